//! Where the nodes of a graph in columns stand. Pure, and a function of names and links alone: numbers and verdicts move
//! nothing.
//!
//! A picture in which much is summed up gains and loses nodes with their verdicts. There every column has the order of its
//! names, from the top: a node that comes moves none above it, and none of another column.
//!
//! Columns are the hops. Within a column nodes are ordered by the mean place of their neighbours, swept back and forth, and
//! the order with the fewest crossings is kept; then each column is moved as near to its neighbours as the order allows.

use std::collections::HashMap;

use heddle_api::health::topology::TopologyGraph;

/// Hops in the order of an event's way; what is summed up stands behind them.
pub(crate) const HOPS: [&str; 7] = [
    "source",
    "channel",
    "subscription",
    "broker",
    "trigger",
    "delivery",
    "namespace",
];

/// How often the order is swept, and how often the places are.
const SWEEPS: usize = 8;

/// Nodes with their places: the column, and the row as a number that need not be whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GraphPlaces {
    /// The hops that have nodes.
    pub(crate) columns: Vec<&'static str>,
    /// By the node's index in the graph.
    pub(crate) places: Vec<(usize, f64)>,
    /// By indices of nodes; links of which an end is missing are left out.
    pub(crate) links: Vec<(usize, usize, usize)>,
    /// How many rows there are.
    pub(crate) rows: f64,
}

/// Places for all nodes.
pub(crate) fn place(graph: &TopologyGraph) -> GraphPlaces {
    let hop = |index: usize| HOPS.iter().position(|hop| *hop == graph.nodes[index].hop);
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); HOPS.len()];
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        columns[hop(index).unwrap_or(HOPS.len() - 1)].push(index);
        by_id.insert(&node.id, index);
    }
    let names: Vec<&'static str> = HOPS
        .into_iter()
        .zip(&columns)
        .filter(|(_, nodes)| !nodes.is_empty())
        .map(|(hop, _)| hop)
        .collect();
    columns.retain(|nodes| !nodes.is_empty());
    for column in &mut columns {
        column.sort_by(|a, b| graph.nodes[*a].id.cmp(&graph.nodes[*b].id));
    }
    let ends = graph.links.iter().enumerate().filter_map(|(index, link)| {
        let (from, to) = (by_id.get(&*link.from)?, by_id.get(&*link.to)?);
        Some((*from, *to, index))
    });
    let links: Vec<(usize, usize, usize)> = ends.collect();
    let (columns, rows) = match graph.truncated {
        Some(_) => in_order_of_names(columns, graph.nodes.len()),
        None => {
            let neighbours = Neighbours::new(graph.nodes.len(), &columns, &links);
            let columns = order(columns, &neighbours);
            let rows = rows(&columns, &neighbours);
            (columns, rows)
        }
    };
    let lowest = rows.iter().copied().fold(0.0, f64::max);
    let mut places = vec![(0, 0.0); graph.nodes.len()];
    for (column, nodes) in columns.iter().enumerate() {
        for node in nodes {
            places[*node] = (column, rows[*node]);
        }
    }
    GraphPlaces {
        columns: names,
        places,
        links,
        rows: if graph.nodes.is_empty() {
            0.0
        } else {
            lowest + 1.0
        },
    }
}

/// Each node below the one before it.
fn in_order_of_names(columns: Vec<Vec<usize>>, nodes: usize) -> (Vec<Vec<usize>>, Vec<f64>) {
    let mut rows = vec![0.0; nodes];
    for (row, node) in columns.iter().flat_map(|column| column.iter().enumerate()) {
        rows[*node] = row as f64;
    }
    (columns, rows)
}

/// Who is linked to whom, in the columns before and in those behind.
struct Neighbours {
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl Neighbours {
    fn new(nodes: usize, columns: &[Vec<usize>], links: &[(usize, usize, usize)]) -> Self {
        let mut column_of = vec![0; nodes];
        for (column, members) in columns.iter().enumerate() {
            for node in members {
                column_of[*node] = column;
            }
        }
        let mut neighbours = Self {
            before: vec![Vec::new(); nodes],
            behind: vec![Vec::new(); nodes],
        };
        for (from, to, _) in links {
            let (left, right) = match column_of[*from] <= column_of[*to] {
                true => (*from, *to),
                false => (*to, *from),
            };
            neighbours.behind[left].push(right);
            neighbours.before[right].push(left);
        }
        neighbours
    }
}

/// Sweeps, and keeps the order with the fewest crossings.
fn order(mut columns: Vec<Vec<usize>>, neighbours: &Neighbours) -> Vec<Vec<usize>> {
    let mut best = (crossings(&columns, neighbours), columns.clone());
    for sweep in 0..SWEEPS {
        let nodes = neighbours.before.len();
        let mut rank = vec![0.0; nodes];
        for column in &columns {
            for (row, node) in column.iter().enumerate() {
                rank[*node] = row as f64;
            }
        }
        let is_forward = sweep % 2 == 0;
        let indices: Vec<usize> = match is_forward {
            true => (0..columns.len()).collect(),
            false => (0..columns.len()).rev().collect(),
        };
        let around = match is_forward {
            true => &neighbours.before,
            false => &neighbours.behind,
        };
        for index in indices {
            let wanted = |node: &usize| mean(&around[*node], &rank).unwrap_or(rank[*node]);
            columns[index].sort_by(|a, b| wanted(a).total_cmp(&wanted(b)));
            for (row, node) in columns[index].iter().enumerate() {
                rank[*node] = row as f64;
            }
        }
        let count = crossings(&columns, neighbours);
        if count < best.0 {
            best = (count, columns.clone());
        }
    }
    best.1
}

fn mean(nodes: &[usize], of: &[f64]) -> Option<f64> {
    let sum: f64 = nodes.iter().map(|node| of[*node]).sum();
    (!nodes.is_empty()).then(|| sum / nodes.len() as f64)
}

/// How many pairs of links cross, between each column and what is behind it.
fn crossings(columns: &[Vec<usize>], neighbours: &Neighbours) -> usize {
    let mut rank = vec![0; neighbours.before.len()];
    for column in columns {
        for (row, node) in column.iter().enumerate() {
            rank[*node] = row;
        }
    }
    let mut count = 0;
    for column in columns {
        let mut seen: Vec<usize> = Vec::new();
        for node in column {
            let mut ends: Vec<usize> = neighbours.behind[*node]
                .iter()
                .map(|end| rank[*end])
                .collect();
            ends.sort_unstable();
            for end in &ends {
                count += seen.len() - seen.partition_point(|other| other <= end);
            }
            for end in ends {
                let at = seen.partition_point(|other| *other <= end);
                seen.insert(at, end);
            }
        }
    }
    count
}

/// Rows that are near to those of the neighbours, at least one apart, in the given order.
fn rows(columns: &[Vec<usize>], neighbours: &Neighbours) -> Vec<f64> {
    let mut rows = vec![0.0; neighbours.before.len()];
    for column in columns {
        for (row, node) in column.iter().enumerate() {
            rows[*node] = row as f64;
        }
    }
    for sweep in 0..SWEEPS {
        let indices: Vec<usize> = match sweep % 2 {
            0 => (0..columns.len()).rev().collect(),
            _ => (0..columns.len()).collect(),
        };
        for index in indices {
            let around = match sweep % 2 {
                0 => &neighbours.behind,
                _ => &neighbours.before,
            };
            let wanted: Vec<f64> = columns[index]
                .iter()
                .map(|node| mean(&around[*node], &rows).unwrap_or(rows[*node]))
                .collect();
            for (node, row) in columns[index].iter().zip(apart(&wanted)) {
                rows[*node] = row;
            }
        }
    }
    let top = rows.iter().copied().fold(f64::INFINITY, f64::min);
    // Halves are enough for a straight look, and keep the drawing the same when a sum is rounded otherwise.
    rows.iter()
        .map(|row| ((row - top) * 2.0).round() / 2.0)
        .collect()
}

/// The nearest places to the wanted ones that keep their order and are one apart: blocks of equal shift, merged until in order.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (index, wish) in wanted.iter().enumerate() {
        blocks.push((wish - index as f64, 1));
        while let [.., (before, many), (last, few)] = blocks[..]
            && before > last
        {
            let members = many + few;
            let shift = (before * many as f64 + last * few as f64) / members as f64;
            blocks.truncate(blocks.len() - 2);
            blocks.push((shift, members));
        }
    }
    let shifts = blocks
        .into_iter()
        .flat_map(|(shift, members)| std::iter::repeat_n(shift, members));
    shifts
        .enumerate()
        .map(|(index, shift)| shift + index as f64)
        .collect()
}

#[cfg(test)]
mod tests;
