//! One offering in a namespace: its plans, what can be said to them, and a form for whoever may provision it.

use heddle_api::access::Right;
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::event::quoted;
use super::{PageLook, PageResult, catalog};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::schema_form::{draw, fields, fixed};

pub(crate) async fn page(look: &PageLook, namespace: &str, name: &str) -> PageResult {
    let path = catalog::path(namespace);
    let offerings = catalog::offerings(look, namespace).await?;
    let found = offerings.iter().find(|offering| offering["name"] == name);
    let offering = found.ok_or_else(|| AnswerFault {
        status: StatusCode::NOT_FOUND,
        message: format!("{name} is not offered in {namespace}"),
        path: path.clone(),
        position: None,
    })?;
    let asked = look.visit.text("plan");
    let plan = catalog::plans(offering)
        .find(|plan| asked.as_deref().is_none_or(|asked| plan["name"] == asked));
    let may_provision = look.may(Right::Operate, Some(namespace));
    let body = html! {
        p.crumbs { a href=(look.links.page(&format!("catalog?ns={}", part(namespace)))) { "Catalog of " (namespace) } " › " (name) }
        section.card {
            h1 { (name) }
            p.lead { (offering["description"].as_str().unwrap_or_default()) }
            (plans(offering, plan, namespace, name, look))
        }
        @if let Some(plan) = plan {
            @if may_provision { (form(offering, plan, namespace, name)) }
            @else { p.quiet { "Who may provision it: operators of " (namespace) "." } }
        }
    };
    let plan = plan.and_then(|plan| plan["name"].as_str());
    let choice = plan.map_or_else(|| name.to_owned(), |plan| format!("{name}/{plan}"));
    let command = format!("heddle provision {} -n {namespace} --wait", quoted(&choice));
    Ok(RenderedPage::new("offering", "catalog", name, body).behind(&command, &path))
}

fn plans(
    offering: &Value,
    chosen: Option<&Value>,
    namespace: &str,
    name: &str,
    look: &PageLook,
) -> Markup {
    let link = |plan: &str| {
        let page = format!(
            "catalog/{}/{}?plan={}",
            part(namespace),
            part(name),
            part(plan)
        );
        look.links.page(&page)
    };
    html! {
        h2 { "Plans" }
        ul.plain { @for plan in catalog::plans(offering) {
            @let plan_name = plan["name"].as_str().unwrap_or_default();
            li {
                a href=(link(plan_name)) aria-current=[(chosen == Some(plan)).then_some("true")] { (plan_name) } " "
                span.quiet { (plan["description"].as_str().unwrap_or_default()) }
                @if let Some(version) = plan["maintenance_info"]["version"].as_str() { " " span.quiet { "version " (version) } }
            }
        } }
    }
}

fn form(offering: &Value, plan: &Value, namespace: &str, name: &str) -> Markup {
    let schema = &plan["schemas"]["service_instance"]["create"]["parameters"];
    let fields = fields(schema, "/parameters");
    let instances = format!("/heddle/v1/osb/{}/v2/service_instances", part(namespace));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    html! {
        form.card.change hidden data-change="PUT" data-to=(format!("{instances}/{{id}}?accepts_incomplete=true"))
            data-then=(format!("/ui/instances/{}?id={{id}}", part(namespace))) data-done="Asked for." {
            h2 { "Provision " (name) " in " (namespace) }
            label.field { span { "Id of the instance " span.quiet { "(required)" } } input name="id" type="text" required maxlength="200" value=(name) autocomplete="off"; }
            (draw(&fields))
            (fixed("/service_id", &text(&offering["id"]))) (fixed("/plan_id", &text(&plan["id"])))
            (fixed("/organization_guid", "heddle")) (fixed("/space_guid", namespace))
            (fixed("/context/platform", "heddle")) (fixed("/context/namespace", namespace))
            div.bar { button.primary type="submit" { "Provision" } output role="status" {} }
        }
    }
}
