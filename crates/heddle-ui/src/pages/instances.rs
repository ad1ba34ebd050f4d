//! Instances: what platforms asked for, and what each waits for.

mod bindings;
mod waiting;

use heddle_api::access::Right;
use heddle_api::well_known::OSB_FRONT_ANNOTATION;
use heddle_api::{ResourceKind, names};
use maud::{Markup, html};
use serde_json::Value;

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::objects;
use crate::parts::{conditions, content, verdict};

/// After how many milliseconds the page looks again.
const FRESH_WAITING: u32 = 1_000;
const FRESH_READY: u32 = 30_000;

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let kind = objects::of(ResourceKind::ServiceInstance);
    let items = look.objects(kind).await?;
    let body = html! {
        (super::catalog::tabs("instances", look))
        h1 { "Instances" }
        @if items.is_empty() {
            section.card.state { p { "Nobody has provisioned anything yet." } p.quiet { code { "heddle catalog" } " shows what there is, " code { "heddle provision" } " makes an instance." } }
        } @else { section.card { div.table { table {
            thead { tr { th scope="col" { "Instance" } th scope="col" { "Namespace" } th scope="col" { "How it is" } th scope="col" { "What it waits for" } } }
            tbody { @for object in &items { (row(object, look)) } }
        } } } }
    };
    let page = RenderedPage::new("instances", "catalog", "Instances", body);
    Ok(page.behind("heddle get serviceinstances -A", &kind.all()))
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
            th scope="row" { a href=(look.links.instance(namespace, name)) { (object["spec"]["instanceID"].as_str().unwrap_or(name)) } }
            td data-label="Namespace" { (namespace) }
            td data-label="How it is" { span.verdict data-verdict=(word) { (verdict::mark(word)) (object["status"]["phase"].as_str().unwrap_or("unknown")) } }
            td data-label="What it waits for" { @if word != "healthy" { (message.unwrap_or_default()) } @else { "–" } }
        }
    }
}

/// The front that an instance was asked for at is the only one that knows it; those of platforms are theirs to remove.
fn front_of(instance: &Value, namespace: &str) -> Option<String> {
    let front = instance["metadata"]["annotations"][OSB_FRONT_ANNOTATION].as_str();
    (front != Some("/v2"))
        .then(|| format!("/heddle/v1/osb/{}/v2/service_instances", part(namespace)))
}

/// The id is typed, because what the instance is for ends with it.
fn deprovision(instance: &Value, namespace: &str, id: &str) -> Markup {
    let text = |value: &Value| part(value.as_str().unwrap_or_default());
    let spec = &instance["spec"];
    let (service, plan) = (text(&spec["serviceID"]), text(&spec["planID"]));
    html! {
        @if let Some(front) = front_of(instance, namespace) {
            form.card.change hidden data-change="DELETE" data-done="Asked for. It goes when what it made is gone." data-then=(format!("/ui/instances/{}?id={}", part(namespace), part(id)))
                data-to=(format!("{front}/{}?service_id={service}&plan_id={plan}&accepts_incomplete=true", part(id))) {
                h2 { "Deprovision" }
                p { "Removes the instance and what was made for it. Type its id to go on." }
                label.field { span { "Id" } input type="text" required pattern=(as_pattern(id)) autocomplete="off" title=(id); }
                div.bar { button type="submit" { "Deprovision " (id) } output role="status" {} }
                p.quiet { code { "heddle deprovision " (quoted(id)) " -n " (namespace) " --wait" } }
            }
        } @else {
            p.quiet { "A platform asked for this instance at /v2, and removes it there." }
        }
    }
}

/// What matches this text and no other.
fn as_pattern(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric();
    text.chars()
        .map(|character| match plain(character) {
            true => character.to_string(),
            false => format!("\\u{{{:x}}}", u32::from(character)),
        })
        .collect()
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
        // Whoever waits for it sees it come; what is ready says when it no longer is.
        section #verdict.headline data-verdict=(word) data-fresh=(if word == "healthy" { FRESH_READY } else { FRESH_WAITING }) {
            h1 { (verdict::mark(word)) " " (id) " " span.word { (instance["status"]["phase"].as_str().unwrap_or("has not been looked at yet")) } }
            @if let Some((_, condition)) = &ready { @if let Some(message) = &condition.message { p.lead { (message) } } }
        }
        (waiting::of(&instance, flow.as_ref(), look))
        section.card {
            h2 { "As the platform sees it" }
            dl.facts {
                dt { "Service" } dd { (instance["spec"]["serviceID"].as_str().unwrap_or_default()) }
                dt { "Plan" } dd { (instance["spec"]["planID"].as_str().unwrap_or_default()) }
                @if let Some(state) = operation["state"].as_str() { dt { "Last operation" } dd { (state) @if let Some(said) = operation["description"].as_str() { ": " (said) } } }
                @if let Some(deadline) = instance["spec"]["operation"]["deadline"].as_str() { dt { "Deadline" } dd { (deadline) } }
                @if let Some(user) = waiting::on_behalf(&instance["spec"]["originatingIdentity"]) { dt { "On behalf of" } dd { (user) } }
            }
        }
        (bindings::of(look, namespace, name, &instance).await?)
        @if let Some(flow) = &flow {
            section.card { h2 { "Its flow of events" } (conditions::list(&conditions::of(flow), flow_kind.conditions, look.now)) }
        }
        section.card { h2 { "Conditions" } (conditions::list(&conditions::of(&instance), kind.conditions, look.now)) (content::json(&instance["status"], "status")) (crate::parts::command::line(&format!("heddle explain instance {} -n {}", quoted(&id), quoted(namespace)))) }
        @if look.may(Right::Operate, Some(namespace)) { (deprovision(&instance, namespace, &id)) }
    };
    let command = kind.command(Some(namespace), name);
    Ok(RenderedPage::new("instance", "catalog", &id, body).behind(&command, &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_the_text_itself_and_nothing_of_it_means_anything() {
        assert_eq!(as_pattern("order-1"), "order\\u{2d}1");
        assert_eq!(as_pattern(".*"), "\\u{2e}\\u{2a}");
    }
}
