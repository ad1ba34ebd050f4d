//! Applications: the worst of them, and the way of one through a namespace, the culprit first.

mod path;
#[cfg(test)]
mod tests;

use heddle_api::health::topology::TopologyGraph;
use heddle_api::health::{ApplicationHealth, HealthStatus, MeshHealth, NamespaceHealth, state};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use maud::{Markup, html};

use super::mesh::{applications, planes};
use super::{PageLook, PageResult, ROWS_MAX};
use crate::ask::AnswerFault;
use crate::draw::graph;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::verdict;
use crate::words;

const LIST: &str = "/heddle/v1/health/applications";

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let mesh: MeshHealth = look.ask.get(super::mesh::HEALTH).await?;
    let list = mesh.application_list.unwrap_or_default();
    let body = html! { h1 { "Applications" } (applications(&list, ROWS_MAX, look)) };
    Ok(
        RenderedPage::new("applications", "applications", "Applications", body)
            .behind("heddle health", super::mesh::HEALTH),
    )
}

pub(crate) async fn one(look: &PageLook, name: &str) -> PageResult {
    let path = format!("{LIST}/{}", part(name));
    let found: ApplicationHealth = look.ask.get(&path).await?;
    let wanted = look.visit.text("ns");
    let namespaces = &found.eventing.namespaces;
    let only = (namespaces.len() == 1).then(|| namespaces[0].name.clone());
    let Some(namespace) = wanted.or(only) else {
        let graph = topology(look, name, None).await?;
        let body = html! {
            (title(&found, None, look))
            (planes(&found.eventing.verdict.planes, &look.links))
            (self::namespaces(&found, look))
            (way(&graph, look))
            (delays(name, None, look))
        };
        let command = format!("heddle health {name}");
        return Ok(
            RenderedPage::new("application", "applications", name, body).behind(&command, &path)
        );
    };
    let path = format!("{path}/namespaces/{}", part(&namespace));
    let pair: NamespaceHealth = look.ask.get(&path).await?;
    let graph = topology(look, name, Some(&namespace)).await?;
    let parts = path::objects(look, name, &pair, &graph).await?;
    let body = html! {
        (title(&found, Some(&pair), look))
        (steps(&pair, look))
        (planes(&pair.verdict.planes, &look.links))
        (way(&graph, look))
        (delays(name, Some(&namespace), look))
        (parts)
        @if namespaces.len() > 1 { (self::namespaces(&found, look)) }
    };
    let command = format!("heddle health {name} -n {namespace}");
    Ok(RenderedPage::new("application", "applications", name, body).behind(&command, &path))
}

/// The way to how long its events take: to all triggers, or to those of a namespace.
fn delays(name: &str, namespace: Option<&str>, look: &PageLook) -> Markup {
    let entry = format!("entry:\"channel/{INTEGRATION_NAMESPACE}/{name}\"");
    let query = match namespace {
        Some(namespace) => format!("{entry} consumer:trigger/{namespace}/*"),
        None => entry,
    };
    html! { p { a href=(look.links.delays("trigger", &query)) { "How long its events take" } } }
}

fn title(found: &ApplicationHealth, pair: Option<&NamespaceHealth>, look: &PageLook) -> Markup {
    let shown = pair.map_or(&found.eventing.verdict, |pair| &pair.verdict);
    let word = shown.health.word();
    let scope = match pair {
        Some(pair) => format!("application/{}/{}", found.name, pair.name),
        None => format!("application/{}", found.name),
    };
    html! {
        p.crumbs { a href=(look.links.page("applications")) { "Applications" } " › " @if pair.is_some() { a href=(look.links.application(&found.name, None)) { (found.name) } } @else { (found.name) } }
        section #verdict.headline data-verdict=(word) data-scope=(scope) {
            h1 { (verdict::mark(word)) " " (found.name) @if let Some(pair) = pair { " in " (pair.name) } " is " span.word { (word) } }
            p.lead { (shown.message) }
            p.quiet { "Since " (words::since(shown.since, look.now)) @if let Some(plane) = shown.plane { " · " (plane.word()) " plane" } @if let Some(hop) = &shown.hop { " · hop " (hop) } }
            @if shown.health != HealthStatus::Healthy {
                details open { summary { "Why, and what helps" } (verdict::particulars(shown, &look.links)) }
            }
        }
    }
}

/// How far it has come, and what its heartbeat says.
fn steps(pair: &NamespaceHealth, look: &PageLook) -> Markup {
    let all = [
        (state::CREATED, "created", "the application can publish"),
        (state::BOUND, "bound", "the namespace may use it"),
        (
            state::ENABLED,
            "enabled",
            "its events flow into the namespace",
        ),
        (state::TRIGGERED, "triggered", "a Trigger receives them"),
    ];
    html! {
        ol.steps aria-label="How far it has come" {
            @for (number, name, meaning) in all {
                @let done = number <= pair.state;
                li data-verdict=(if done { "healthy" } else { "unknown" }) title=(meaning) {
                    (verdict::mark(if done { "healthy" } else { "unknown" })) " " (number) " " (name) span.unseen { @if done { ", done" } @else { ", not yet" } }
                }
            }
        }
        @if let Some(heartbeat) = &pair.heartbeat {
            p.quiet {
                "Heartbeat "
                @match heartbeat.age_seconds { Some(age) => { (words::seconds(age)) " ago" }, None => "not seen yet" }
                @if let Some(took) = heartbeat.end_to_end_seconds { ", end to end in " (words::seconds(took)) }
                @if let Some(last) = heartbeat.last_probe { ", last probe " (words::since(last, look.now)) }
            }
        }
    }
}

fn namespaces(found: &ApplicationHealth, look: &PageLook) -> Markup {
    let all = &found.eventing.namespaces;
    html! {
        section.card aria-labelledby="namespaces" {
            h2 #namespaces { "Namespaces" }
            @if all.is_empty() { p.quiet { "No namespace uses it. An ApplicationMapping lets one." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Namespace" } th scope="col" { "How it is" } th scope="col" { "State" } th scope="col" { "Why" } } }
                    tbody { @for pair in all {
                        tr data-row data-verdict=(pair.verdict.health.word()) {
                            th scope="row" { a href=(look.links.application(&found.name, Some(&pair.name))) { (pair.name) } }
                            td data-label="How it is" { (verdict::badge(pair.verdict.health.word())) }
                            td data-label="State" { (super::mesh::state(pair.state)) }
                            td data-label="Why" { (pair.verdict.message) }
                        }
                    } }
                } }
                @if found.eventing.namespaces_left_out > 0 { p.quiet { (found.eventing.namespaces_left_out) " more are left out." } }
            }
        }
    }
}

/// The part of the picture that belongs to one application, or to one namespace of it.
async fn topology(
    look: &PageLook,
    name: &str,
    namespace: Option<&str>,
) -> Result<TopologyGraph, AnswerFault> {
    let scope = match namespace {
        Some(namespace) => format!("application/{name}/{namespace}"),
        None => format!("application/{name}"),
    };
    let path = format!("/heddle/v1/topology?scope={}", part(&scope));
    look.ask.get(&path).await
}

fn way(graph: &TopologyGraph, look: &PageLook) -> Markup {
    html! {
        section.card.ways data-view="graph" aria-labelledby="ways" {
            h2 #ways { "Its way" }
            @if let Some(truncated) = &graph.truncated {
                p.notice { (words::number(truncated.hidden.into())) " nodes are left out; those that are not well come first." }
            }
            div.picture { (graph::draw(graph, &look.links, false)) }
            div.twin { (graph::table(graph, &look.links)) }
        }
    }
}
