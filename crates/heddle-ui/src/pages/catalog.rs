//! The catalog of a namespace: what can be provisioned there, and what is left out with the reason.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{PageLook, PageResult, ROWS_MAX};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;

const NAMESPACES: &str = "/api/v1/namespaces";
const STANDINGS: &str = "/heddle/v1/catalog/bundles";

/// The pages about what can be provisioned.
pub(crate) fn tabs(here: &str, look: &PageLook) -> Markup {
    let mut all = vec![("Catalog", "catalog"), ("Instances", "instances")];
    // What is in no namespace is for those who look everywhere.
    if look.own_namespaces().is_none() {
        all.push(("Registries", "registries"));
    }
    html! {
        nav.tabs aria-label="Catalog" {
            @for (name, path) in all {
                a href=(look.links.page(path)) aria-current=[(path == here).then_some("page")] { (name) }
            }
        }
    }
}

/// What is asked for the catalog of a namespace; the same as platforms get.
pub(crate) fn path(namespace: &str) -> String {
    format!("/heddle/v1/osb/{}/v2/catalog", part(namespace))
}

/// The offerings of a namespace.
pub(crate) async fn offerings(look: &PageLook, namespace: &str) -> Result<Vec<Value>, AnswerFault> {
    let catalog: Value = look.ask.get(&path(namespace)).await?;
    Ok(catalog["services"].as_array().cloned().unwrap_or_default())
}

/// The namespaces in which somebody may look.
async fn namespaces(look: &PageLook) -> Result<Vec<String>, AnswerFault> {
    if let Some(names) = look.own_namespaces() {
        return Ok(names.iter().cloned().collect());
    }
    let all = look.list(NAMESPACES).await?;
    let names = all
        .iter()
        .filter_map(|object| object["metadata"]["name"].as_str());
    Ok(names
        .filter(|name| !name.starts_with("kube-"))
        .map(str::to_owned)
        .collect())
}

/// How a Bundle stands in the catalog.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BundleStanding {
    name: Option<String>,
    left_out: Option<String>,
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let namespaces = namespaces(look).await?;
    let chosen = look
        .visit
        .text("ns")
        .or_else(|| namespaces.first().cloned());
    let Some(namespace) = chosen else {
        let body = html! { (tabs("catalog", look)) h1 { "Catalog" } section.card.state { p { "There is no namespace yet." } } };
        return Ok(RenderedPage::new("catalog", "catalog", "Catalog", body));
    };
    let offerings = offerings(look, &namespace).await?;
    let body = html! {
        (tabs("catalog", look))
        div.bar { h1 { "Catalog of " (namespace) } (chooser(&namespaces, &namespace, look)) }
        @if offerings.is_empty() {
            section.card.state {
                p { "Nothing is offered in " (namespace) "." }
                p.quiet { "An ApplicationMapping there enables an Application's services; a registry brings bundles." }
            }
        } @else { (table(&offerings, &namespace, look)) }
        (left_out(look).await)
    };
    let command = format!("heddle catalog -n {namespace}");
    Ok(
        RenderedPage::new("catalog", "catalog", "Catalog", body)
            .behind(&command, &path(&namespace)),
    )
}

fn chooser(namespaces: &[String], chosen: &str, look: &PageLook) -> Markup {
    html! {
        form.inline method="get" action=(look.links.page("catalog")) {
            label { "Namespace " select name="ns" {
                @for name in namespaces { option value=(name) selected[name == chosen] { (name) } }
            } }
            button type="submit" { "Show" }
        }
    }
}

fn table(offerings: &[Value], namespace: &str, look: &PageLook) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    html! {
        section.card { div.table { table {
            thead { tr { th scope="col" { "Offering" } th scope="col" { "Plans" } th scope="col" { "Bindable" } th scope="col" { "What it is" } } }
            tbody { @for offering in offerings {
                @let name = text(&offering["name"]);
                tr data-row data-offering=(name) {
                    th scope="row" { a href=(look.links.page(&format!("catalog/{}/{}", part(namespace), part(&name)))) { (name) } }
                    td data-label="Plans" { (plans(offering).map(|plan| text(&plan["name"])).collect::<Vec<_>>().join(", ")) }
                    td data-label="Bindable" { @if offering["bindable"] == true { "yes" } @else { "no" } }
                    td data-label="What it is" { (text(&offering["description"])) }
                }
            } }
        } } }
    }
}

/// The plans of an offering.
pub(crate) fn plans(offering: &Value) -> impl Iterator<Item = &Value> {
    offering["plans"].as_array().into_iter().flatten()
}

/// Bundles that should be offered and are not; only who looks everywhere is told.
async fn left_out(look: &PageLook) -> Markup {
    let standings = look.ask.get::<BTreeMap<String, BundleStanding>>(STANDINGS);
    let standings = standings.await.unwrap_or_default();
    let left_out: Vec<_> = (standings.iter())
        .filter_map(|(bundle, standing)| Some((bundle, standing, standing.left_out.as_deref()?)))
        .take(ROWS_MAX)
        .collect();
    html! {
        @if !left_out.is_empty() {
            section.card aria-labelledby="left-out" {
                h2 #left-out { "Left out" }
                ul.plain { @for (bundle, standing, why) in left_out {
                    li { a href=[look.links.object(&format!("bundle/{bundle}"))] { (standing.name.as_deref().unwrap_or(bundle)) } ": " (why) }
                } }
            }
        }
    }
}
