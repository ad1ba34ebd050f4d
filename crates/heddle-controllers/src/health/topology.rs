//! The picture of the mesh, from the evidence of the last verdict. Pure.
//!
//! ```text
//!   application ─> channel ─> subscription ─> broker ─> trigger ─> subscriber
//!                          └> mapping (no flow yet)
//! ```
//! Everything that events can pass is in it, each object once: Brokers that no application leads to as well, and mappings that
//! nothing flows through yet. What is asked for of it, and what is summed up because nobody can look at so much, is left to
//! [`selection`] and [`summary`].

mod selection;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use heddle_api::health::topology::{GraphLink, GraphNode, TopologyGraph};
use heddle_api::health::{HealthStatus, PlaneHealth, Verdict};

pub use self::selection::TopologyQuestion;
use super::evidence::{
    ApplicationEvidence, BrokerEvidence, ObjectState, PairEvidence, PathObject, TriggerEvidence,
};
use super::{Report, judge};

/// Hops in their order.
const HOPS: [&str; 6] = [
    "source",
    "channel",
    "subscription",
    "broker",
    "trigger",
    "delivery",
];

/// A node, and how well it is.
#[derive(Debug, Clone, PartialEq)]
struct DrawnNode {
    hop: usize,
    health: HealthStatus,
    node: GraphNode,
}

/// A link between two nodes, by their indices.
#[derive(Debug, Clone, PartialEq)]
struct DrawnLink {
    from: usize,
    to: usize,
    health: HealthStatus,
    link: GraphLink,
}

/// Nodes in the order of hops, then of names; links in the order of their ends.
#[derive(Debug, Clone, Default, PartialEq)]
struct DrawnGraph {
    nodes: Vec<DrawnNode>,
    links: Vec<DrawnLink>,
}

/// Nodes by hop and id, links by the ids of their ends, so that what several applications share is there once.
#[derive(Default)]
struct Drawing<'a> {
    nodes: BTreeMap<(usize, String), (GraphNode, HealthStatus)>,
    links: BTreeMap<(String, String), (GraphLink, HealthStatus)>,
    denied: Option<&'a BTreeMap<String, String>>,
}

/// The picture that a report gives: what is asked for of it, and unless all of it is asked for as much as can be looked at.
#[must_use]
pub fn draw(report: &Report, question: &TopologyQuestion) -> TopologyGraph {
    let mut drawing = Drawing {
        denied: Some(&report.reading.denied_links),
        ..Drawing::default()
    };
    for application in report.evidence.iter() {
        drawing.application(application, report);
    }
    for broker in report.brokers.iter() {
        drawing.broker(broker);
    }
    let mut graph = selection::select(drawing.finish(), question);
    let truncated = match question.all {
        true => None,
        false => summary::sum_up(&mut graph),
    };
    TopologyGraph {
        at: report.mesh.at,
        offset: report.reading.log.end,
        nodes: graph.nodes.into_iter().map(|drawn| drawn.node).collect(),
        links: graph.links.into_iter().map(|drawn| drawn.link).collect(),
        truncated,
    }
}

impl Drawing<'_> {
    fn application(&mut self, evidence: &ApplicationEvidence, report: &Report) {
        let name = Some(evidence.name.as_str());
        let own = [&evidence.source, &evidence.application];
        let worst = own
            .into_iter()
            .map(of_object)
            .max_by_key(|(health, _)| *health);
        let source = worst.unwrap_or_default();
        let node = evidence.application.object.as_str();
        self.node(0, node, name, None, source.clone());
        let channel = of_object(&evidence.channel);
        self.node(1, &evidence.channel.object, name, None, channel);
        let verdict = report.applications.get(&evidence.name);
        let verdict = verdict.map(|found| &found.eventing.verdict);
        let ends = [node, &evidence.channel.object];
        self.link(0, ends, (node, source.0), verdict);
        for pair in &evidence.namespaces {
            let key = (evidence.name.clone(), pair.namespace.clone());
            let verdict = report.pairs.get(&key).map(|found| &found.verdict);
            self.pair(evidence, pair, verdict);
        }
    }

    fn pair(
        &mut self,
        evidence: &ApplicationEvidence,
        pair: &PairEvidence,
        verdict: Option<&Verdict>,
    ) {
        let (Some(link), Some(broker)) = (&pair.link, &pair.broker) else {
            return self.mapping(evidence, pair, verdict);
        };
        let namespace = Some(pair.namespace.as_str());
        let data = verdict.map(|verdict| &verdict.planes.data);
        let link_found = measured(2, link, data);
        let broker_found = measured(3, broker, data);
        let of_link = (link.object.as_str(), link_found.0);
        let channel = &evidence.channel.object;
        self.link(1, [channel, &link.object], of_link, verdict);
        self.link(2, [&link.object, &broker.object], of_link, verdict);
        self.node(2, &link.object, Some(&evidence.name), namespace, link_found);
        self.node(3, &broker.object, None, namespace, broker_found.clone());
        for trigger in &pair.triggers {
            self.trigger(broker, trigger, namespace, broker_found.0, verdict);
        }
    }

    /// What lets a namespace use an application while nothing flows.
    fn mapping(
        &mut self,
        evidence: &ApplicationEvidence,
        pair: &PairEvidence,
        verdict: Option<&Verdict>,
    ) {
        let Some(mapping) = &pair.mapping else {
            return;
        };
        let failed = pair.failed_instance.as_ref().map(|failed| {
            let (health, why) = of_object(failed);
            let why = why.unwrap_or_default();
            (health, Some(format!("{}: {why}", failed.object)))
        });
        let found = [Some(of_object(mapping)), failed].into_iter().flatten();
        let found = found.max_by_key(|(health, _)| *health).unwrap_or_default();
        let ends = [&*evidence.channel.object, &*mapping.object];
        self.link(1, ends, (&mapping.object, found.0), verdict);
        let namespace = Some(pair.namespace.as_str());
        self.node(2, &mapping.object, Some(&evidence.name), namespace, found);
    }

    /// A Broker that no application leads to.
    fn broker(&mut self, evidence: &BrokerEvidence) {
        let namespace = Some(evidence.namespace.as_str());
        let (broker, found) = (&evidence.broker, of_object(&evidence.broker));
        let health = found.0;
        self.node(3, &broker.object, None, namespace, found);
        for trigger in &evidence.triggers {
            self.trigger(broker, trigger, namespace, health, None);
        }
    }

    fn trigger(
        &mut self,
        broker: &PathObject,
        trigger: &TriggerEvidence,
        namespace: Option<&str>,
        broker_health: HealthStatus,
        verdict: Option<&Verdict>,
    ) {
        let object = trigger.trigger.object.as_str();
        self.node(4, object, None, namespace, of_object(&trigger.trigger));
        let of_broker = (broker.object.as_str(), broker_health);
        self.link(3, [&broker.object, object], of_broker, verdict);
        let subscriber = judge::trigger(trigger);
        let id = object.replacen("trigger/", "subscriber/", 1);
        self.link(5, [object, &id], (object, subscriber.health), verdict);
        let found = (subscriber.health, Some(subscriber.reason));
        self.node(5, &id, None, namespace, found);
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
            ..GraphNode::default()
        };
        let known = self.nodes.entry((hop, id.to_owned()));
        let (known, worst) = known.or_insert_with(|| (node.clone(), health));
        if health > *worst {
            (*known, *worst) = (node, health);
        }
    }

    /// `object` is whose verdict it is. A verdict on the way tells since when if it is about that object.
    fn link(
        &mut self,
        hop: usize,
        [from, to]: [&str; 2],
        (object, health): (&str, HealthStatus),
        verdict: Option<&Verdict>,
    ) {
        let is_told = |verdict: &&Verdict| {
            verdict.object.as_deref() == Some(object) && verdict.health == health
        };
        // A policy is about where a link leads to.
        let denied = self.denied.filter(|_| hop == 2);
        let link = GraphLink {
            from: from.to_owned(),
            to: to.to_owned(),
            hop: HOPS[hop].to_owned(),
            verdict: health.word().to_owned(),
            object: object.to_owned(),
            denied: denied.and_then(|denied| denied.get(from)).cloned(),
            since: verdict.filter(is_told).map(|verdict| verdict.since),
        };
        let known = self.links.entry((from.to_owned(), to.to_owned()));
        let (known, worst) = known.or_insert_with(|| (link.clone(), health));
        if health > *worst {
            (*known, *worst) = (link, health);
        }
    }

    fn finish(self) -> DrawnGraph {
        let nodes = self.nodes.into_iter();
        let nodes: Vec<DrawnNode> = nodes
            .map(|((hop, _), (node, health))| DrawnNode { hop, health, node })
            .collect();
        let mut graph = DrawnGraph {
            nodes,
            links: Vec::with_capacity(self.links.len()),
        };
        let numbers: BTreeMap<&str, usize> = (graph.nodes.iter().enumerate())
            .map(|(index, drawn)| (&*drawn.node.id, index))
            .collect();
        for (link, health) in self.links.into_values() {
            if let (Some(from), Some(to)) = (numbers.get(&*link.from), numbers.get(&*link.to)) {
                graph.links.push(DrawnLink {
                    from: *from,
                    to: *to,
                    health,
                    link,
                });
            }
        }
        graph
    }
}

impl DrawnGraph {
    /// For each node the one from which a way leads to it: of several the first, whatever their verdicts, so that a way is
    /// drawn where it was.
    fn upstream(&self) -> Vec<Option<usize>> {
        let mut upstream = vec![None; self.nodes.len()];
        for link in &self.links {
            let known: &mut Option<usize> = &mut upstream[link.to];
            *known = Some(known.map_or(link.from, |first| first.min(link.from)));
        }
        upstream
    }
}

/// A node and what leads to it, step by step. Links lead from one hop to a later one, so ways end.
fn way_to(node: usize, upstream: &[Option<usize>]) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(node), |node| upstream[*node])
}

/// How an object of the path is: what was measured there counts besides what it says.
fn measured(
    hop: usize,
    object: &PathObject,
    data: Option<&PlaneHealth>,
) -> (HealthStatus, Option<String>) {
    match data.filter(|data| data.health == HealthStatus::Unhealthy) {
        Some(data) if data.hop.as_deref() == Some(HOPS[hop]) => {
            (HealthStatus::Unhealthy, Some(data.reason.clone()))
        }
        _ => of_object(object),
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
