//! The bindings of an instance: what each is, where its credentials lie, and forms for whoever may make and remove them.
//!
//! Credentials are never shown: the page says which Secret has them.

use heddle_api::ResourceKind;
use heddle_api::access::Right;
use maud::{Markup, html};
use serde_json::Value;

use super::super::catalog;
use super::{PageLook, front_of};
use crate::ask::AnswerFault;
use crate::links::part;
use crate::objects;
use crate::parts::schema_form::{draw, fields, fixed};
use crate::parts::{conditions, verdict};

pub(super) async fn of(
    look: &PageLook,
    namespace: &str,
    name: &str,
    instance: &Value,
) -> Result<Markup, AnswerFault> {
    let kind = objects::of(ResourceKind::ServiceBinding);
    let all = look.list(&kind.within(namespace)).await?;
    let own: Vec<&Value> = all
        .iter()
        .filter(|binding| binding["spec"]["instanceRef"]["name"] == name)
        .collect();
    let may = look.may(Right::Operate, Some(namespace));
    let front = front_of(instance, namespace).filter(|_| may);
    let plan = match &front {
        Some(_) => plan_of(look, namespace, instance).await,
        None => None,
    };
    Ok(html! {
        @if !own.is_empty() { section.card aria-labelledby="bindings" {
            h2 #bindings { "Bindings" }
            ul.plain { @for binding in &own { (one(binding, instance, front.as_deref(), look)) } }
        } }
        @if let (Some(front), Some(plan)) = (&front, &plan) { (form(front, instance, plan, namespace)) }
    })
}

/// The plan, if it can be bound.
async fn plan_of(look: &PageLook, namespace: &str, instance: &Value) -> Option<Value> {
    let offerings = catalog::offerings(look, namespace).await.ok()?;
    let offering = offerings
        .iter()
        .find(|offering| offering["id"] == instance["spec"]["serviceID"])?;
    let plan = catalog::plans(offering).find(|plan| plan["id"] == instance["spec"]["planID"])?;
    let bindable = plan["bindable"]
        .as_bool()
        .or_else(|| offering["bindable"].as_bool());
    (bindable == Some(true)).then(|| plan.clone())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where a binding of the instance is asked for.
fn path(front: &str, instance: &Value) -> String {
    let id = part(text(&instance["spec"]["instanceID"]));
    format!("{front}/{id}/service_bindings")
}

fn one(binding: &Value, instance: &Value, front: Option<&str>, look: &PageLook) -> Markup {
    let id = text(&binding["spec"]["bindingID"]);
    let ready = conditions::readiness(binding);
    let word = ready.as_ref().map_or("unknown", |(word, _)| word);
    let spec = &binding["spec"];
    let ids = format!(
        "service_id={}&plan_id={}",
        part(text(&spec["serviceID"])),
        part(text(&spec["planID"]))
    );
    let namespace = text(&binding["metadata"]["namespace"]);
    let object = format!(
        "servicebinding/{namespace}/{}",
        text(&binding["metadata"]["name"])
    );
    html! {
        li data-binding=(id) data-verdict=(word) {
            (verdict::mark(word)) " " a href=[look.links.object(&object)] { (id) } " "
            @if let Some(secret) = binding["status"]["secretRef"]["name"].as_str() { "credentials in Secret " code { (namespace) "/" (secret) } }
            @else if let Some((_, condition)) = &ready { (condition.message.as_deref().unwrap_or_default()) }
            @if let Some(front) = front {
                form.inline hidden data-change="DELETE" data-to=(format!("{}/{}?{ids}&accepts_incomplete=true", path(front, instance), part(id))) data-done="Asked for." {
                    button.plain type="submit" { "Unbind" } output role="status" {}
                }
            }
        }
    }
}

fn form(front: &str, instance: &Value, plan: &Value, namespace: &str) -> Markup {
    let spec = &instance["spec"];
    let fields = fields(
        &plan["schemas"]["service_binding"]["create"]["parameters"],
        "/parameters",
    );
    html! {
        form.card.change hidden data-change="PUT" data-to=(format!("{}/{{id}}?accepts_incomplete=true", path(front, instance)))
            data-then=(format!("/ui/instances/{}?id={}", part(namespace), part(text(&spec["instanceID"])))) data-done="Asked for." {
            h2 { "Bind" }
            p.quiet { "Makes credentials and puts them into a Secret of " (namespace) "." }
            label.field { span { "Id of the binding " span.quiet { "(required)" } } input name="id" type="text" required maxlength="200" autocomplete="off"; }
            (draw(&fields))
            (fixed("/service_id", text(&spec["serviceID"]))) (fixed("/plan_id", text(&spec["planID"])))
            (fixed("/context/platform", "heddle")) (fixed("/context/namespace", namespace))
            div.bar { button.primary type="submit" { "Bind" } output role="status" {} }
        }
    }
}
