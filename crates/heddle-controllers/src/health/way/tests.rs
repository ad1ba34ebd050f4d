//! The picture of one application is small however large the mesh, and shows what is broken.

use heddle_api::dataplane::ConsumerReading;

use super::*;
use crate::health::evidence::{DoorWindow, ObjectState, PathObject, Probing};

fn object(object: String) -> PathObject {
    PathObject {
        object,
        state: ObjectState::Ready,
    }
}

fn trigger(namespace: &str, number: usize) -> TriggerEvidence {
    TriggerEvidence {
        trigger: object(format!("trigger/{namespace}/t{number}")),
        reading: Some(ConsumerReading::default()),
    }
}

/// An application with so many namespaces, and so many triggers in each.
fn application(name: &str, namespaces: usize, triggers: usize) -> ApplicationEvidence {
    let pair = |number: usize| {
        let namespace = format!("n{number}");
        PairEvidence {
            mapping: None,
            failed_instance: None,
            flows: Vec::new(),
            broker: Some(object(format!("broker/{namespace}/default"))),
            link: Some(object(format!(
                "subscription/kyma-integration/{name}-{namespace}"
            ))),
            triggers: (0..triggers).map(|at| trigger(&namespace, at)).collect(),
            probing: Probing::Unneeded,
            namespace,
        }
    };
    ApplicationEvidence {
        name: name.to_owned(),
        skipped: false,
        application: object(format!("application/{name}")),
        source: object(format!("httpsource/kyma-integration/{name}")),
        channel: object(format!("channel/kyma-integration/{name}")),
        door: DoorWindow::default(),
        namespaces: (0..namespaces).map(pair).collect(),
    }
}

fn report(evidence: Vec<ApplicationEvidence>) -> Report {
    Report {
        evidence: Arc::new(evidence),
        ..Report::default()
    }
}

fn has(graph: &TopologyGraph, id: &str) -> bool {
    graph.nodes.iter().any(|node| node.id == id)
}

#[test]
fn ten_thousand_triggers_are_a_picture_of_at_most_150_nodes_with_the_broken_one_in_it() {
    let mut shop = application("shop", 1, 10_000);
    shop.namespaces[0].triggers[9_999].trigger.state = ObjectState::NotReady("gone".to_owned());
    let graph = draw(&report(vec![shop]), "shop", Some("n0")).unwrap();
    assert_eq!(graph.nodes.len(), 4 + 2 * TRIGGERS_MAX);
    assert!(has(&graph, "trigger/n0/t9999") && has(&graph, "subscriber/n0/t9999"));
    assert!(has(&graph, "broker/n0/default") && has(&graph, "application/shop"));
    let truncated = graph.truncated.unwrap();
    assert_eq!(truncated.hidden, 2 * (10_000 - 50));

    let graph = draw(&report(vec![application("shop", 1_000, 10)]), "shop", None).unwrap();
    assert_eq!(graph.nodes.len(), 150);
    assert_eq!(graph.truncated.unwrap().hidden, 2 * (976 + 10_000 - 50));
}

#[test]
fn it_is_about_one_application_and_one_namespace_of_it() {
    let both = report(vec![application("shop", 2, 1), application("other", 2, 1)]);
    let graph = draw(&both, "shop", Some("n1")).unwrap();
    assert!(has(&graph, "subscription/kyma-integration/shop-n1"));
    for foreign in [
        "application/other",
        "subscription/kyma-integration/other-n1",
        "subscription/kyma-integration/shop-n0",
        "trigger/n0/t0",
    ] {
        assert!(!has(&graph, foreign), "{foreign}");
    }
    assert_eq!(graph.truncated, None);
    assert_eq!(draw(&both, "missing", None), None);
}
