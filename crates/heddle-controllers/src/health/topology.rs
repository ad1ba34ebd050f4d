//! The picture of the mesh, from the evidence of the last verdict. Pure.
//!
//! ```text
//!   application ─> channel ─> subscription ─> broker ─> trigger ─> subscriber
//! ```
//! With more nodes than people can look at, those that are well are summed up by namespace; those that are not are always shown.

use std::collections::BTreeMap;

use heddle_api::health::topology::{GraphLink, GraphNode, TopologyGraph, Truncation};
use heddle_api::health::{HealthStatus, PlaneHealth};

use super::evidence::{
    ApplicationEvidence, ObjectState, PairEvidence, PathObject, TriggerEvidence,
};
use super::{Report, judge};

/// DrawnNodes shown one by one unless somebody asks for all.
const NODES_MAX: usize = 150;
/// Hops in their order.
const HOPS: [&str; 6] = [
    "source",
    "channel",
    "subscription",
    "broker",
    "trigger",
    "delivery",
];

/// DrawnNodes by hop and id, so that what several applications share is there once.
type DrawnNodes = BTreeMap<(usize, String), (GraphNode, HealthStatus)>;
type DrawnLinks = BTreeMap<(String, String), (GraphLink, HealthStatus)>;

#[derive(Default)]
struct Drawing {
    nodes: DrawnNodes,
    links: DrawnLinks,
}

/// The picture that a report gives, whole or as much of it as can be looked at.
#[must_use]
pub fn draw(report: &Report, all: bool) -> TopologyGraph {
    let mut drawing = Drawing::default();
    for application in report.evidence.iter() {
        drawing.application(application, report);
    }
    let hidden = if all { None } else { drawing.sum_up() };
    TopologyGraph {
        at: report.mesh.at,
        nodes: drawing.nodes.into_values().map(|(node, _)| node).collect(),
        links: drawing.links.into_values().map(|(link, _)| link).collect(),
        truncated: hidden,
    }
}

impl Drawing {
    fn application(&mut self, evidence: &ApplicationEvidence, report: &Report) {
        let name = Some(evidence.name.as_str());
        let own = [&evidence.source, &evidence.application];
        let worst = own
            .into_iter()
            .map(of_object)
            .max_by_key(|(health, _)| *health);
        let source = worst.unwrap_or_default();
        let node = format!("application/{}", evidence.name);
        self.node(0, &node, name, None, source.clone());
        let channel = of_object(&evidence.channel);
        self.node(1, &evidence.channel.object, name, None, channel);
        self.link(&node, &evidence.channel.object, 0, source.0);
        for pair in &evidence.namespaces {
            let key = (evidence.name.clone(), pair.namespace.clone());
            let data = report
                .pairs
                .get(&key)
                .map(|found| &found.verdict.planes.data);
            self.pair(evidence, pair, data);
        }
    }

    fn pair(
        &mut self,
        evidence: &ApplicationEvidence,
        pair: &PairEvidence,
        data: Option<&PlaneHealth>,
    ) {
        let (Some(link), Some(broker)) = (&pair.link, &pair.broker) else {
            return;
        };
        let namespace = Some(pair.namespace.as_str());
        // What was measured there counts besides what the object says.
        let found = |hop: usize, object: &PathObject| {
            let said = of_object(object);
            match data.filter(|data| data.health == HealthStatus::Unhealthy) {
                Some(data) if data.hop.as_deref() == Some(HOPS[hop]) => {
                    (HealthStatus::Unhealthy, Some(data.reason.clone()))
                }
                _ => said,
            }
        };
        let (link_found, broker_found) = (found(2, link), found(3, broker));
        self.link(&evidence.channel.object, &link.object, 1, link_found.0);
        self.link(&link.object, &broker.object, 2, link_found.0);
        self.node(2, &link.object, Some(&evidence.name), namespace, link_found);
        self.node(3, &broker.object, None, namespace, broker_found.clone());
        for trigger in &pair.triggers {
            self.trigger(broker, trigger, namespace, broker_found.0);
        }
    }

    fn trigger(
        &mut self,
        broker: &PathObject,
        trigger: &TriggerEvidence,
        namespace: Option<&str>,
        broker_health: HealthStatus,
    ) {
        let object = &trigger.trigger.object;
        self.node(4, object, None, namespace, of_object(&trigger.trigger));
        self.link(&broker.object, object, 3, broker_health);
        let subscriber = judge::trigger(trigger);
        let id = object.replacen("trigger/", "subscriber/", 1);
        let reason = Some(subscriber.reason);
        self.link(object, &id, 5, subscriber.health);
        self.node(5, &id, None, namespace, (subscriber.health, reason));
    }

    fn node(
        &mut self,
        hop: usize,
        id: &str,
        app: Option<&str>,
        ns: Option<&str>,
        (health, reason): (HealthStatus, Option<String>),
    ) {
        let node = GraphNode {
            id: id.to_owned(),
            hop: HOPS[hop].to_owned(),
            app: app.map(str::to_owned),
            ns: ns.map(str::to_owned),
            verdict: health.word().to_owned(),
            reason: reason.filter(|_| health != HealthStatus::Healthy),
            of: None,
        };
        let known = self.nodes.entry((hop, id.to_owned()));
        let (known, worst) = known.or_insert_with(|| (node.clone(), health));
        if health > *worst {
            (*known, *worst) = (node, health);
        }
    }

    fn link(&mut self, from: &str, to: &str, hop: usize, health: HealthStatus) {
        let link = GraphLink {
            from: from.to_owned(),
            to: to.to_owned(),
            hop: HOPS[hop].to_owned(),
            verdict: health.word().to_owned(),
        };
        self.links
            .insert((from.to_owned(), to.to_owned()), (link, health));
    }

    /// Puts what is well into one node for each namespace, and leaves links where both of their ends are still shown.
    fn sum_up(&mut self) -> Option<Truncation> {
        if self.nodes.len() <= NODES_MAX {
            return None;
        }
        let mut sums: BTreeMap<String, (u32, HealthStatus)> = BTreeMap::new();
        let mut hidden = 0_u32;
        let mut singles = 0;
        self.nodes.retain(|_, (node, health)| {
            let ill = matches!(health, HealthStatus::Unhealthy | HealthStatus::Degraded);
            if ill && singles < NODES_MAX {
                singles += 1;
                return true;
            }
            let (count, worst) = sums.entry(node.ns.clone().unwrap_or_default()).or_default();
            *count += 1;
            *worst = (*worst).max(*health).min(HealthStatus::Unknown);
            if *count == 1 {
                *worst = *health;
            }
            hidden += 1;
            false
        });
        for (namespace, (count, health)) in sums.into_iter().take(NODES_MAX) {
            let node = GraphNode {
                id: format!("namespace/{namespace}"),
                hop: "namespace".to_owned(),
                ns: Some(namespace),
                verdict: health.word().to_owned(),
                of: Some(count),
                ..GraphNode::default()
            };
            let key = (HOPS.len(), node.id.clone());
            self.nodes.insert(key, (node, health));
        }
        let shown: std::collections::HashSet<String> =
            self.nodes.keys().map(|(_, id)| id.clone()).collect();
        self.links
            .retain(|(from, to), _| shown.contains(from) && shown.contains(to));
        Some(Truncation {
            hidden,
            by: "namespace".to_owned(),
        })
    }
}

/// How an object is, by what it says.
fn of_object(object: &PathObject) -> (HealthStatus, Option<String>) {
    match &object.state {
        ObjectState::Ready => (HealthStatus::Healthy, None),
        ObjectState::Missing => (
            HealthStatus::Unhealthy,
            Some("it does not exist".to_owned()),
        ),
        ObjectState::NotReady(why) => (HealthStatus::Unhealthy, Some(why.clone())),
        ObjectState::Unobserved(why) => (HealthStatus::Unknown, Some(why.clone())),
    }
}
