//! Instances: what platforms asked for, and what each waits for.

use heddle_api::{ResourceKind, names};
use maud::{Markup, html};
use serde_json::Value;

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::objects;
use crate::parts::{conditions, content, verdict};

/// Rows of one page.
pub(crate) const ROWS_MAX: usize = 500;

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let kind = objects::of(ResourceKind::ServiceInstance);
    let path = format!("{}?limit={ROWS_MAX}", kind.all());
    let list: Value = look.ask.get(&path).await?;
    let items = items(&list);
    let body = html! {
        (super::catalog::tabs("instances", look))
        h1 { "Instances" }
        @if items.is_empty() {
            section.card.state { p { "Nobody has provisioned anything yet." } p.quiet { code { "heddle catalog" } " shows what there is, " code { "heddle provision" } " makes an instance." } }
        } @else { section.card { div.table { table {
            thead { tr { th scope="col" { "Instance" } th scope="col" { "Namespace" } th scope="col" { "How it is" } th scope="col" { "What it waits for" } } }
            tbody { @for object in items { (row(object, look)) } }
        } } } }
    };
    Ok(RenderedPage::new("instances", "catalog", "Instances", body)
        .behind("heddle get serviceinstances -A", &path))
}

/// The objects of a list.
pub(crate) fn items(list: &Value) -> &[Value] {
    list["items"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn row(object: &Value, look: &PageLook) -> Markup {
    let metadata = &object["metadata"];
    let (name, namespace) = (
        metadata["name"].as_str().unwrap_or_default(),
        metadata["namespace"].as_str().unwrap_or_default(),
    );
    let ready = conditions::readiness(object);
    let word = ready.as_ref().map_or("unknown", |(word, _)| word);
    let message = ready
        .as_ref()
        .and_then(|(_, condition)| condition.message.as_deref());
    html! {
        tr data-row data-verdict=(word) {
            th scope="row" { a href=(look.links.page(&format!("instances/{}/{}", crate::links::part(namespace), crate::links::part(name)))) { (object["spec"]["instanceID"].as_str().unwrap_or(name)) } }
            td data-label="Namespace" { (namespace) }
            td data-label="How it is" { span.verdict data-verdict=(word) { (verdict::mark(word)) (object["status"]["phase"].as_str().unwrap_or("unknown")) } }
            td data-label="What it waits for" { @if word != "healthy" { (message.unwrap_or_default()) } @else { "–" } }
        }
    }
}

pub(crate) async fn one(look: &PageLook, namespace: &str, name: &str) -> PageResult {
    let kind = objects::of(ResourceKind::ServiceInstance);
    let path = kind.one(Some(namespace), name);
    let instance: Value = look.ask.get(&path).await?;
    let id = instance["spec"]["instanceID"]
        .as_str()
        .unwrap_or(name)
        .to_owned();
    // The flow of an instance has its name; an instance without events has none.
    let flow_kind = objects::of(ResourceKind::EventFlow);
    let flow: Option<Value> = look
        .ask
        .find(&flow_kind.one(Some(namespace), &names::instance(&id)))
        .await?;
    let ready = conditions::readiness(&instance);
    let word = ready.as_ref().map_or("unknown", |(word, _)| word);
    let operation = &instance["status"]["operation"];
    let body = html! {
        p.crumbs { a href=(look.links.page("instances")) { "Instances" } " › " (namespace) " › " (id) }
        section #verdict.headline data-verdict=(word) {
            h1 { (verdict::mark(word)) " " (id) " " span.word { (instance["status"]["phase"].as_str().unwrap_or("has not been looked at yet")) } }
            @if let Some((_, condition)) = &ready { @if let Some(message) = &condition.message { p.lead { (message) } } }
        }
        section.card {
            h2 { "As the platform sees it" }
            dl.facts {
                dt { "Service" } dd { (instance["spec"]["serviceID"].as_str().unwrap_or_default()) }
                dt { "Plan" } dd { (instance["spec"]["planID"].as_str().unwrap_or_default()) }
                @if let Some(state) = operation["state"].as_str() { dt { "Last operation" } dd { (state) @if let Some(said) = operation["description"].as_str() { ": " (said) } } }
                @if let Some(deadline) = instance["spec"]["operation"]["deadline"].as_str() { dt { "Deadline" } dd { (deadline) } }
            }
        }
        @if let Some(flow) = &flow {
            section.card { h2 { "Its flow of events" } (conditions::list(&conditions::of(flow), flow_kind.conditions, look.now)) }
        }
        section.card { h2 { "Conditions" } (conditions::list(&conditions::of(&instance), kind.conditions, look.now)) (content::json(&instance["status"], "status")) }
    };
    let command = format!(
        "heddle explain instance {} -n {}",
        quoted(&id),
        quoted(namespace)
    );
    Ok(RenderedPage::new("instance", "catalog", &id, body).behind(&command, &path))
}
