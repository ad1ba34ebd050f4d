//! The objects that events of an application pass on their way, with their conditions, the first that is not ready opened.
//!
//! Which they are is what the picture of the way says: those of other applications are not asked for, however many there are.

use heddle_api::conditions::Status;
use heddle_api::health::topology::{GraphNode, TopologyGraph};
use heddle_api::health::{NamespaceHealth, catalogue};
use heddle_api::{ResourceKind, well_known};
use maud::{Markup, html};
use serde_json::Value;

use super::super::{PageLook, ROWS_MAX, object};
use crate::ask::AnswerFault;
use crate::objects::of;
use crate::parts::{conditions, verdict};
use crate::words;

/// Triggers whose conditions are listed; those that are not well come first.
const TRIGGERS_MAX: usize = 20;

/// Objects of the way, in its order.
#[derive(Default)]
struct WayObjects {
    found: Vec<(ResourceKind, Value)>,
    /// Triggers that are not among them.
    left_out: u64,
}

impl WayObjects {
    async fn add(
        &mut self,
        look: &PageLook,
        kind: ResourceKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), AnswerFault> {
        let path = of(kind).one(namespace, name);
        let object: Option<Value> = look.ask.find(&path).await?;
        self.found.extend(object.map(|object| (kind, object)));
        Ok(())
    }

    /// Those of a hop that events of the application pass: nobody else's, and no more than can be read.
    async fn add_hop(
        &mut self,
        look: &PageLook,
        kind: ResourceKind,
        graph: &TopologyGraph,
    ) -> Result<(), AnswerFault> {
        let prefix = format!("{}/", kind.name().to_lowercase());
        let nodes = graph.nodes.iter();
        let mut nodes: Vec<&GraphNode> =
            nodes.filter(|node| node.id.starts_with(&prefix)).collect();
        nodes.sort_by_key(|node| node.verdict == "healthy");
        self.left_out += nodes.len().saturating_sub(TRIGGERS_MAX) as u64;
        for node in nodes.into_iter().take(TRIGGERS_MAX) {
            let names = node.id[prefix.len()..].split_once('/');
            if let Some((namespace, name)) = names {
                self.add(look, kind, Some(namespace), name).await?;
            }
        }
        Ok(())
    }
}

/// The objects of the way with their conditions, in its order.
pub(super) async fn objects(
    look: &PageLook,
    name: &str,
    pair: &NamespaceHealth,
    graph: &TopologyGraph,
) -> Result<Markup, AnswerFault> {
    let integration = Some(well_known::INTEGRATION_NAMESPACE);
    let mut objects = WayObjects::default();
    for (kind, namespace) in [
        (ResourceKind::Application, None),
        (ResourceKind::HTTPSource, integration),
        (ResourceKind::Channel, integration),
    ] {
        objects.add(look, kind, namespace, name).await?;
    }
    objects
        .add_hop(look, ResourceKind::Subscription, graph)
        .await?;
    let namespace = Some(&*pair.name);
    objects
        .add(look, ResourceKind::ApplicationMapping, namespace, name)
        .await?;
    let flows = of(ResourceKind::EventFlow).within(&pair.name);
    let flows: Option<Value> = look.ask.find(&format!("{flows}?limit={ROWS_MAX}")).await?;
    let flows = flows.as_ref().and_then(|list| list["items"].as_array());
    for flow in flows.into_iter().flatten() {
        if flow["spec"]["application"].as_str() == Some(name) {
            let flow = (ResourceKind::EventFlow, flow.clone());
            objects.found.push(flow);
        }
    }
    for kind in [ResourceKind::Broker, ResourceKind::Trigger] {
        objects.add_hop(look, kind, graph).await?;
    }
    Ok(conditions_of_all(objects, pair, look))
}

fn conditions_of_all(objects: WayObjects, pair: &NamespaceHealth, look: &PageLook) -> Markup {
    let control = &pair.verdict.planes.control;
    let stalled = control.reason == catalogue::CONTROLLER_STALLED.code;
    let hidden = objects.left_out;
    let found: Vec<ConditionedObject> = (objects.found.into_iter())
        .map(|(kind, object)| ConditionedObject::read(kind, &object, stalled))
        .collect();
    let first = found.iter().position(|object| object.word != "healthy");
    html! {
        section.card aria-labelledby="conditions" {
            h2 #conditions { "Conditions, in the order of the way" }
            @if stalled {
                p.notice { (control.message) " What conditions say may be no longer so." }
            }
            ul.objects {
                @for (index, object) in found.iter().enumerate() { (shown(object, Some(index) == first, look)) }
            }
            @if hidden > 0 {
                p.quiet { (words::number(hidden)) " more Triggers of the picture are not listed; those that are not well come first." }
            }
        }
    }
}

/// An object with what it says of itself.
struct ConditionedObject {
    kind: ResourceKind,
    id: String,
    word: &'static str,
    conditions: Vec<heddle_api::Condition>,
}

impl ConditionedObject {
    /// Whose controller is not at work says nothing that could be relied on.
    fn read(kind: ResourceKind, object: &Value, stalled: bool) -> Self {
        let ready = conditions::readiness(object);
        let mut all = conditions::of(object);
        if stalled {
            for condition in &mut all {
                condition.status = Status::Unknown;
            }
        }
        Self {
            kind,
            id: object::id(kind, object),
            word: match ready {
                Some((word, _)) if !stalled => word,
                _ => "unknown",
            },
            conditions: all,
        }
    }
}

fn shown(object: &ConditionedObject, open: bool, look: &PageLook) -> Markup {
    let said = match object.word {
        "healthy" => "ready",
        "unhealthy" => "not ready",
        _ => "unknown",
    };
    html! {
        li data-verdict=(object.word) {
            details open[open] {
                summary { (verdict::mark(object.word)) " " span.object { (object.id) } " " span.quiet { (said) } }
                @if let Some(link) = look.links.object(&object.id) { p { a href=(link) { "The object itself" } } }
                (conditions::list(&object.conditions, of(object.kind).conditions, look.now))
            }
        }
    }
}
