//! As much of the picture as can be looked at: at most [`NODES_MAX`] nodes. Pure.
//!
//! ```text
//!   first   what is unhealthy, then what is degraded, each with one way that leads to it
//!   then    the frame: applications, channels, links and brokers, hop after hop as long as all of a hop fits
//!   rest    summed up by namespace, with how many of them are how well
//! ```
//! The frame and the sums do not follow verdicts as long as there is room: what turns ill is added, and what is already there
//! stays. When more is ill than fits, the worst are shown, and the sums say how many are not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heddle_api::health::topology::{GraphNode, Truncation};
use heddle_api::health::{HealthCounts, HealthStatus};

use super::{DrawnGraph, DrawnLink, DrawnNode, HOPS, way_to};

/// Nodes in the picture unless somebody asks for all.
pub(super) const NODES_MAX: usize = 150;
/// Namespaces that are summed up one by one; with more, the others are one node.
const SUMS_MAX: usize = 30;
/// Nodes of the frame.
const FRAME_MAX: usize = 60;
/// How many hops the frame has at most: triggers and subscribers are what there are too many of.
const FRAME_HOPS: usize = 4;
/// What ends as a sum of all namespaces that have none of their own.
const OTHERS: &str = "*";

/// What a namespace keeps out of sight.
type Hidden = BTreeMap<String, HealthCounts>;

/// Leaves as much as can be looked at, and says what is summed up.
pub(super) fn sum_up(graph: &mut DrawnGraph) -> Option<Truncation> {
    if graph.nodes.len() <= NODES_MAX {
        return None;
    }
    let single = singles(graph);
    let (mut hidden, mut sizes) = (Hidden::new(), BTreeMap::<String, u32>::new());
    let mut verdicts = HealthCounts::default();
    for (drawn, is_single) in graph.nodes.iter().zip(&single) {
        *sizes.entry(namespace_of(drawn).to_owned()).or_default() += 1;
        if !is_single {
            let counts = hidden.entry(namespace_of(drawn).to_owned()).or_default();
            counts.add(drawn.health);
            verdicts.add(drawn.health);
        }
    }
    put_together(&mut hidden, &sizes);
    *graph = summed(std::mem::take(graph), &single, &hidden);
    Some(Truncation {
        hidden: verdicts.all(),
        by: "namespace".to_owned(),
        verdicts,
    })
}

/// Which nodes are shown one by one.
fn singles(graph: &DrawnGraph) -> Vec<bool> {
    let upstream = graph.upstream();
    let mut single = vec![false; graph.nodes.len()];
    let mut room = NODES_MAX - sums_of(graph);
    for wanted in [HealthStatus::Unhealthy, HealthStatus::Degraded] {
        let mut is_full = false;
        for (index, drawn) in graph.nodes.iter().enumerate() {
            if drawn.health != wanted {
                continue;
            }
            let missing = way_to(index, &upstream).filter(|node| !single[*node]);
            let way: Vec<usize> = missing.collect();
            if way.len() > room {
                is_full = true;
                continue;
            }
            room -= way.len();
            way.into_iter().for_each(|node| single[node] = true);
        }
        if is_full {
            // What is less ill does not take the place of what is worse.
            return single;
        }
    }
    let mut frame = FRAME_MAX;
    for hop in 0..FRAME_HOPS {
        let members = (0..graph.nodes.len()).filter(|node| graph.nodes[*node].hop == hop);
        let members: Vec<usize> = members.collect();
        let missing = members.iter().filter(|node| !single[**node]).count();
        if members.len() > frame || missing > room {
            // Without this hop nothing would lead to the next one.
            break;
        }
        frame -= members.len();
        room -= missing;
        members.into_iter().for_each(|node| single[node] = true);
    }
    single
}

/// How many sums there can be.
fn sums_of(graph: &DrawnGraph) -> usize {
    let namespaces: std::collections::BTreeSet<&str> =
        graph.nodes.iter().map(namespace_of).collect();
    namespaces.len().min(SUMS_MAX)
}

fn namespace_of(drawn: &DrawnNode) -> &str {
    drawn.node.ns.as_deref().unwrap_or_default()
}

/// With more namespaces than can be named, those with the most illness out of sight stay, then the largest, and the others are
/// one. A namespace is as large as all of it, so that one whose illness is shown does not lose its sum to another.
fn put_together(hidden: &mut Hidden, sizes: &BTreeMap<String, u32>) {
    if hidden.len() <= SUMS_MAX {
        return;
    }
    let mut namespaces: Vec<(String, HealthCounts)> = std::mem::take(hidden).into_iter().collect();
    namespaces.sort_by_key(|(name, counts)| {
        let ill = (counts.unhealthy, counts.degraded, sizes.get(name));
        (Reverse(ill), name.clone())
    });
    let others = namespaces.split_off(SUMS_MAX - 1);
    let mut sum = HealthCounts::default();
    for (_, counts) in others {
        sum.unhealthy += counts.unhealthy;
        sum.degraded += counts.degraded;
        sum.unknown += counts.unknown;
        sum.healthy += counts.healthy;
    }
    hidden.extend(namespaces);
    hidden.insert(OTHERS.to_owned(), sum);
}

/// Singles with the links between them, and behind them the sums with what leads there.
fn summed(graph: DrawnGraph, single: &[bool], hidden: &Hidden) -> DrawnGraph {
    let mut numbers = vec![0; single.len()];
    let mut nodes: Vec<DrawnNode> = Vec::new();
    let mut namespaces: Vec<String> = Vec::with_capacity(single.len());
    for (index, drawn) in graph.nodes.into_iter().enumerate() {
        namespaces.push(namespace_of(&drawn).to_owned());
        if single[index] {
            numbers[index] = nodes.len();
            nodes.push(drawn);
        }
    }
    let sums: BTreeMap<&str, usize> = (nodes.len()..)
        .zip(hidden)
        .map(|(number, (namespace, _))| (&**namespace, number))
        .collect();
    nodes.extend(hidden.iter().map(|(name, counts)| sum(name, *counts)));
    let mut links: BTreeMap<(usize, usize), DrawnLink> = BTreeMap::new();
    // What leads away from a sum is left out: what it leads to has a way of its own.
    for mut drawn in graph.links.into_iter().filter(|link| single[link.from]) {
        let end = drawn.to;
        drawn.from = numbers[drawn.from];
        drawn.to = match (single[end], sums.get(&*namespaces[end])) {
            (true, _) => numbers[end],
            (false, Some(sum)) => *sum,
            (false, None) => sums[OTHERS],
        };
        drawn.link.to.clone_from(&nodes[drawn.to].node.id);
        let known = links.entry((drawn.from, drawn.to));
        let known = known.or_insert_with(|| drawn.clone());
        if drawn.health > known.health {
            *known = drawn;
        }
    }
    DrawnGraph {
        nodes,
        links: links.into_values().collect(),
    }
}

/// One node for many. It is as well as the worst of them of whom anything is known.
fn sum(namespace: &str, counts: HealthCounts) -> DrawnNode {
    let worst_first = [
        HealthStatus::Unhealthy,
        HealthStatus::Degraded,
        HealthStatus::Healthy,
    ];
    let health = worst_first.into_iter().find(|one| counts.of(*one) > 0);
    let health = health.unwrap_or_default();
    let node = GraphNode {
        id: format!("namespace/{namespace}"),
        hop: "namespace".to_owned(),
        ns: Some(namespace.to_owned()),
        verdict: health.word().to_owned(),
        reason: (health != HealthStatus::Healthy).then(|| counts.said()),
        of: Some(counts.all()),
        verdicts: Some(counts),
        ..GraphNode::default()
    };
    DrawnNode {
        hop: HOPS.len(),
        health,
        node,
    }
}
