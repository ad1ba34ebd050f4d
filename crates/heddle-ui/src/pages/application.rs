//! Applications: all of them, and the way of one through a namespace, the culprit first.

use heddle_api::ResourceKind;
use heddle_api::health::topology::TopologyGraph;
use heddle_api::health::{
    ApplicationHealth, ApplicationHealthList, HealthStatus, NamespaceHealth, state,
};
use maud::{Markup, html};
use serde_json::Value;

use super::mesh::{applications, planes};
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::graph;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::objects;
use crate::parts::{conditions, verdict};
use crate::words;

const LIST: &str = "/heddle/v1/health/applications";

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let list: ApplicationHealthList = look.ask.get(LIST).await?;
    let body = html! { h1 { "Applications" } (applications(&list, look)) };
    Ok(
        RenderedPage::new("applications", "applications", "Applications", body)
            .behind("heddle health", LIST),
    )
}

pub(crate) async fn one(look: &PageLook, name: &str) -> PageResult {
    let path = format!("{LIST}/{}", part(name));
    let found: ApplicationHealth = look.ask.get(&path).await?;
    let wanted = look.visit.text("ns");
    let namespaces = &found.eventing.namespaces;
    let only = (namespaces.len() == 1).then(|| namespaces[0].name.clone());
    let Some(namespace) = wanted.or(only) else {
        let whole = way(look, name, None).await?;
        let body = html! {
            (title(&found, None, look))
            (planes(&found.eventing.verdict.planes, &look.links))
            (self::namespaces(&found, look))
            (whole)
        };
        let command = format!("heddle health {name}");
        return Ok(
            RenderedPage::new("application", "applications", name, body).behind(&command, &path)
        );
    };
    let path = format!("{path}/namespaces/{}", part(&namespace));
    let pair: NamespaceHealth = look.ask.get(&path).await?;
    let whole = way(look, name, Some(&namespace)).await?;
    let parts = path_objects(look, name, &namespace).await?;
    let body = html! {
        (title(&found, Some(&pair), look))
        (steps(&pair, look))
        (planes(&pair.verdict.planes, &look.links))
        (whole)
        (parts)
        @if namespaces.len() > 1 { (self::namespaces(&found, look)) }
    };
    let command = format!("heddle health {name} -n {namespace}");
    Ok(RenderedPage::new("application", "applications", name, body).behind(&command, &path))
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
async fn way(look: &PageLook, name: &str, namespace: Option<&str>) -> Result<Markup, AnswerFault> {
    let graph: TopologyGraph = look.ask.get("/heddle/v1/topology?all").await?;
    let graph = of_application(&graph, name, namespace);
    Ok(html! {
        section.card.ways data-view="graph" aria-labelledby="ways" {
            h2 #ways { "Its way" }
            div.picture { (graph::draw(&graph, &look.links, false)) }
            div.twin { (graph::table(&graph, &look.links)) }
        }
    })
}

/// What can be reached from the application's source, in a namespace if one is meant.
fn of_application(graph: &TopologyGraph, name: &str, namespace: Option<&str>) -> TopologyGraph {
    let is_meant = |id: &str| {
        let node = graph.nodes.iter().find(|node| node.id == id);
        node.is_some_and(|node| {
            node.ns.is_none() || namespace.is_none() || node.ns.as_deref() == namespace
        })
    };
    let mut reached = vec![format!("application/{name}")];
    let mut looked = 0;
    while let Some(from) = reached.get(looked).cloned() {
        looked += 1;
        for link in graph.links.iter().filter(|link| link.from == from) {
            if is_meant(&link.to) && !reached.contains(&link.to) {
                reached.push(link.to.clone());
            }
        }
    }
    let mut part = graph.clone();
    part.truncated = None;
    part.nodes.retain(|node| reached.contains(&node.id));
    part.links
        .retain(|link| reached.contains(&link.from) && reached.contains(&link.to));
    part
}

/// The objects of the way with their conditions, in its order.
async fn path_objects(look: &PageLook, name: &str, namespace: &str) -> Result<Markup, AnswerFault> {
    let fixed = [
        (ResourceKind::Application, None, name),
        (
            ResourceKind::HTTPSource,
            Some(heddle_api::well_known::INTEGRATION_NAMESPACE),
            name,
        ),
        (
            ResourceKind::Channel,
            Some(heddle_api::well_known::INTEGRATION_NAMESPACE),
            name,
        ),
        (ResourceKind::ApplicationMapping, Some(namespace), name),
    ];
    let mut found: Vec<(ResourceKind, Value)> = Vec::new();
    for (kind, namespace, name) in fixed {
        let object = look
            .ask
            .find(&objects::of(kind).one(namespace, name))
            .await?;
        found.extend(object.map(|object| (kind, object)));
    }
    for kind in [
        ResourceKind::EventFlow,
        ResourceKind::Broker,
        ResourceKind::Trigger,
    ] {
        let path = objects::of(kind).within(namespace);
        let list: Option<Value> = look.ask.find(&path).await?;
        let items = list.as_ref().and_then(|list| list["items"].as_array());
        let of_application = |object: &&Value| {
            kind != ResourceKind::EventFlow || object["spec"]["application"].as_str() == Some(name)
        };
        let items = items.into_iter().flatten().filter(of_application);
        found.extend(items.map(|object| (kind, object.clone())));
    }
    Ok(html! {
        section.card aria-labelledby="conditions" {
            h2 #conditions { "Conditions, in the order of the way" }
            ul.objects {
                @for (kind, object) in &found { (conditions_of(*kind, object, look)) }
            }
        }
    })
}

fn conditions_of(kind: ResourceKind, object: &Value, look: &PageLook) -> Markup {
    let id = super::object::id(kind, object);
    let ready = conditions::readiness(object);
    let word = ready.as_ref().map_or("unknown", |(word, _)| word);
    let all = conditions::of(object);
    html! {
        li data-verdict=(word) {
            details open[word != "healthy"] {
                summary { (verdict::mark(word)) " " span.object { (id) } " " span.quiet { @if word == "healthy" { "ready" } @else { "not ready" } } }
                @if let Some(link) = look.links.object(&id) { p { a href=(link) { "The object itself" } } }
                (conditions::list(&all, objects::of(kind).conditions, look.now))
            }
        }
    }
}
