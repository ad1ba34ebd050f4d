//! Places of nodes, as tables and as rules that hold for every graph.

use heddle_api::health::topology::{GraphLink, GraphNode, TopologyGraph, Truncation};

use super::*;

fn graph(nodes: &[(&str, &str)], links: &[(&str, &str)]) -> TopologyGraph {
    let node = |(hop, id): &(&str, &str)| GraphNode {
        id: (*id).to_owned(),
        hop: (*hop).to_owned(),
        verdict: "healthy".to_owned(),
        ..GraphNode::default()
    };
    let link = |(from, to): &(&str, &str)| GraphLink {
        from: (*from).to_owned(),
        to: (*to).to_owned(),
        ..GraphLink::default()
    };
    TopologyGraph {
        nodes: nodes.iter().map(node).collect(),
        links: links.iter().map(link).collect(),
        ..TopologyGraph::default()
    }
}

/// `wide` sources that each lead, in the opposite order, to a broker.
fn crossed(wide: usize) -> TopologyGraph {
    let mut graph = graph(&[], &[]);
    for number in 0..wide {
        let (from, to) = (
            format!("application/{number:03}"),
            format!("broker/{:03}", wide - number),
        );
        for (hop, id) in [("source", &from), ("broker", &to)] {
            graph.nodes.push(GraphNode {
                id: id.clone(),
                hop: hop.to_owned(),
                ..GraphNode::default()
            });
        }
        graph.links.push(GraphLink {
            from,
            to,
            ..GraphLink::default()
        });
    }
    graph
}

#[test]
fn a_single_way_is_a_straight_line() {
    let nodes = [("source", "a"), ("channel", "b"), ("broker", "c")];
    let places = place(&graph(&nodes, &[("a", "b"), ("b", "c")]));
    assert_eq!(places.columns, ["source", "channel", "broker"]);
    assert_eq!(places.places, [(0, 0.0), (1, 0.0), (2, 0.0)]);
    assert_eq!(places.rows, 1.0);
}

#[test]
fn whoever_leads_to_two_stands_between_them() {
    let nodes = [("broker", "b"), ("trigger", "t1"), ("trigger", "t2")];
    let places = place(&graph(&nodes, &[("b", "t1"), ("b", "t2")]));
    assert_eq!(places.places, [(0, 0.5), (1, 0.0), (1, 1.0)]);
}

#[test]
fn links_that_need_not_cross_do_not() {
    let graph = crossed(20);
    let places = place(&graph);
    for (from, to, _) in &places.links {
        assert_eq!(places.places[*from].1, places.places[*to].1, "{graph:?}");
    }
}

#[test]
fn verdicts_move_nothing() {
    let mut graph = crossed(12);
    let before = place(&graph);
    for node in graph.nodes.iter_mut().step_by(3) {
        node.verdict = "unhealthy".to_owned();
    }
    assert_eq!(place(&graph).places, before.places);
}

#[test]
fn no_two_nodes_of_a_column_share_a_place_and_nobody_is_outside() {
    for wide in [0, 1, 2, 7, 75] {
        let mut graph = crossed(wide);
        // Everybody leads to one broker too, so that wishes collide.
        for number in 0..wide {
            graph.links.push(GraphLink {
                from: format!("application/{number:03}"),
                to: format!("broker/{wide:03}"),
                ..GraphLink::default()
            });
        }
        let places = place(&graph);
        for column in 0..places.columns.len() {
            let members = places.places.iter().filter(|(found, _)| *found == column);
            let mut rows: Vec<f64> = members.map(|(_, row)| *row).collect();
            rows.sort_by(f64::total_cmp);
            assert!(
                rows.windows(2).all(|pair| pair[1] - pair[0] >= 0.5),
                "{rows:?}"
            );
            assert!(
                rows.iter().all(|row| (0.0..places.rows).contains(row)),
                "{rows:?}"
            );
        }
    }
}

#[test]
fn a_link_to_nowhere_is_left_out() {
    let places = place(&graph(&[("source", "a")], &[("a", "gone"), ("gone", "a")]));
    assert!(places.links.is_empty());
}

#[test]
fn places_are_as_near_as_the_order_allows() {
    assert_eq!(apart(&[0.0, 1.0, 2.0]), [0.0, 1.0, 2.0]);
    assert_eq!(apart(&[1.0, 1.0]), [0.5, 1.5]);
    assert_eq!(
        apart(&[5.0, 0.0, 0.0]),
        [
            0.666_666_666_666_666_6,
            1.666_666_666_666_666_5,
            2.666_666_666_666_666_5
        ]
    );
    assert!(apart(&[]).is_empty());
}

#[test]
fn what_comes_into_a_picture_of_sums_moves_nobody_above_it_and_no_other_column() {
    let ids: Vec<String> = (0..9).map(|number| format!("trigger/{number}")).collect();
    let mut nodes = vec![("broker", "broker/a"), ("broker", "broker/b")];
    nodes.push(("namespace", "namespace/a"));
    nodes.extend(ids.iter().map(|id| ("trigger", &**id)));
    let summed = |left_out: &str| {
        let nodes: Vec<(&str, &str)> = nodes
            .iter()
            .copied()
            .filter(|(_, id)| *id != left_out)
            .collect();
        let links: Vec<(&str, &str)> = nodes.iter().map(|(_, id)| ("broker/b", *id)).collect();
        let mut graph = graph(&nodes, &links);
        graph.truncated = Some(Truncation::default());
        let places = place(&graph).places;
        let ids = graph.nodes.into_iter().map(|node| node.id);
        ids.zip(places).collect::<HashMap<String, (usize, f64)>>()
    };
    let (before, after) = (summed("trigger/5"), summed(""));
    for (id, place) in before {
        let below = id.as_str() > "trigger/5";
        assert_eq!(
            after[&id].1,
            place.1 + if below { 1.0 } else { 0.0 },
            "{id}"
        );
        assert_eq!(after[&id].0, place.0, "{id}");
    }
}
