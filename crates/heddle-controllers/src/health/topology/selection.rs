//! What is asked for of the picture: names and verdicts, for every way in which it is shown. Pure.
//!
//! What is meant keeps one way that leads to it, so that nothing stands alone.

use heddle_api::health::HealthStatus;

use super::{DrawnGraph, DrawnNode, way_to};

/// What somebody wants to see of the mesh. Nothing asked is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopologyQuestion {
    /// Sum nothing up, however much it is.
    pub all: bool,
    /// What is named so: a part of the object's name, its application or its namespace, in small or large letters.
    pub name: Option<String>,
    /// What is as well as that; empty is however well it is.
    pub verdicts: Vec<HealthStatus>,
}

impl TopologyQuestion {
    fn is_narrow(&self) -> bool {
        self.name.is_some() || !self.verdicts.is_empty()
    }

    fn means(&self, drawn: &DrawnNode, name: Option<&str>) -> bool {
        let has = |text: &str| name.is_none_or(|name| text.to_lowercase().contains(name));
        let node = &drawn.node;
        let names = [Some(&node.id), node.app.as_ref(), node.ns.as_ref()];
        let is_named = names.into_iter().flatten().any(|text| has(text));
        is_named && (self.verdicts.is_empty() || self.verdicts.contains(&drawn.health))
    }
}

/// What is asked for, with a way to each.
pub(super) fn select(graph: DrawnGraph, question: &TopologyQuestion) -> DrawnGraph {
    if !question.is_narrow() {
        return graph;
    }
    let name = question.name.as_deref().map(str::to_lowercase);
    let upstream = graph.upstream();
    let mut kept = vec![false; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        if question.means(node, name.as_deref()) {
            for on_the_way in way_to(index, &upstream) {
                kept[on_the_way] = true;
            }
        }
    }
    graph.only(&kept)
}

impl DrawnGraph {
    /// The nodes that are kept, and the links between them.
    fn only(self, kept: &[bool]) -> Self {
        let mut numbers = vec![None; kept.len()];
        let mut nodes = Vec::new();
        for (index, node) in self.nodes.into_iter().enumerate() {
            if kept[index] {
                numbers[index] = Some(nodes.len());
                nodes.push(node);
            }
        }
        let links = self.links.into_iter().filter_map(|mut link| {
            (link.from, link.to) = (numbers[link.from]?, numbers[link.to]?);
            Some(link)
        });
        let links = links.collect();
        Self { nodes, links }
    }
}
