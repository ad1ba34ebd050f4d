//! The part of the picture that belongs to one application, or to one namespace of it, and is small enough to be looked at.
//! Pure.
//!
//! ```text
//!   application ─> channel ─┬─> subscription ─> broker ─┬─> trigger ─> subscriber
//!                           └─> …  24 namespaces        └─> …  50 triggers in all
//! ```
//! What is not well is shown before what is, so a culprit is left out only where there are more of them than fit.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_api::health::topology::{TopologyGraph, Truncation};
use heddle_api::health::{HealthCounts, HealthStatus};

use super::evidence::{ApplicationEvidence, PairEvidence, TriggerEvidence};
use super::{Report, TopologyQuestion, judge, topology};

/// Namespaces in the picture of one application, each with a link and a Broker.
const NAMESPACES_MAX: usize = 24;
/// Triggers in it, each with a subscriber: with source and channel these are 150 nodes.
const TRIGGERS_MAX: usize = 50;
/// Nodes of a Trigger, and of a namespace besides its Triggers.
const NODES_EACH: usize = 2;

/// The way of an application's events; `None` when there is no such application.
#[must_use]
pub fn draw(report: &Report, application: &str, namespace: Option<&str>) -> Option<TopologyGraph> {
    let all = &*report.evidence;
    let found = all.iter().find(|one| one.name == application)?;
    let meant = |pair: &&PairEvidence| namespace.is_none_or(|name| pair.namespace == name);
    let mut pairs: Vec<&PairEvidence> = found.namespaces.iter().filter(meant).collect();
    pairs.sort_by_cached_key(|pair| Reverse(health(report, application, pair)));
    let (shown, others) = pairs.split_at(pairs.len().min(NAMESPACES_MAX));

    let mut triggers: Vec<(usize, &TriggerEvidence)> = Vec::new();
    for (at, pair) in shown.iter().enumerate() {
        triggers.extend(pair.triggers.iter().map(|trigger| (at, trigger)));
    }
    triggers.sort_by_cached_key(|(_, trigger)| Reverse(judge::trigger(trigger).health));
    triggers.truncate(TRIGGERS_MAX);

    let all: usize = pairs.iter().map(|pair| pair.triggers.len()).sum();
    let hidden = (all - triggers.len() + others.len()) * NODES_EACH;
    let mut kept: Vec<Vec<TriggerEvidence>> = vec![Vec::new(); shown.len()];
    for (at, trigger) in triggers {
        kept[at].push(trigger.clone());
    }
    let namespaces = shown.iter().zip(kept);
    let namespaces = namespaces.map(|(pair, triggers)| narrowed(pair, triggers));
    let evidence = ApplicationEvidence {
        name: found.name.clone(),
        skipped: found.skipped,
        application: found.application.clone(),
        source: found.source.clone(),
        channel: found.channel.clone(),
        door: found.door,
        namespaces: namespaces.collect(),
    };
    let whole = TopologyQuestion {
        all: true,
        ..TopologyQuestion::default()
    };
    let mut graph = topology::draw(&narrow_report(report, evidence), &whole);
    graph.truncated = (hidden > 0).then(|| Truncation {
        hidden: u32::try_from(hidden).unwrap_or(u32::MAX),
        by: "trigger".to_owned(),
        verdicts: HealthCounts::default(),
    });
    Some(graph)
}

fn health(report: &Report, application: &str, pair: &PairEvidence) -> HealthStatus {
    let key = (application.to_owned(), pair.namespace.clone());
    let found = report.pairs.get(&key);
    found.map_or(HealthStatus::Unknown, |found| found.verdict.health)
}

fn narrowed(pair: &PairEvidence, triggers: Vec<TriggerEvidence>) -> PairEvidence {
    PairEvidence {
        namespace: pair.namespace.clone(),
        mapping: pair.mapping.clone(),
        failed_instance: pair.failed_instance.clone(),
        flows: pair.flows.clone(),
        broker: pair.broker.clone(),
        link: pair.link.clone(),
        triggers,
        probing: pair.probing.clone(),
    }
}

/// As much of a report as a picture is drawn from.
fn narrow_report(report: &Report, evidence: ApplicationEvidence) -> Report {
    let keys = evidence.namespaces.iter();
    let keys = keys.map(|pair| (evidence.name.clone(), pair.namespace.clone()));
    let pairs: BTreeMap<_, _> = keys
        .filter_map(|key| Some((key.clone(), report.pairs.get(&key)?.clone())))
        .collect();
    let mut narrow = Report {
        pairs,
        evidence: Arc::new(vec![evidence]),
        ..Report::default()
    };
    narrow.mesh.at = report.mesh.at;
    narrow
}
