//! The picture: what is in it, what is asked for of it, and how much of it is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use heddle_api::dataplane::{ConsumerReading, LogReading, MeshReading};
use heddle_api::health::NamespaceHealth;
use jiff::Timestamp;

use super::*;
use crate::health::evidence::{DoorWindow, Probing};

fn object(name: &str) -> PathObject {
    PathObject {
        object: name.to_owned(),
        state: ObjectState::Ready,
    }
}

/// A trigger whose subscriber takes what it is sent.
fn trigger(namespace: &str, name: &str) -> TriggerEvidence {
    let key = format!("trigger/{namespace}/{name}");
    TriggerEvidence {
        trigger: object(&key),
        reading: Some(ConsumerReading {
            key,
            succeeded: Some(std::time::Duration::from_secs(1)),
            ..ConsumerReading::default()
        }),
    }
}

fn pair(application: &str, namespace: &str, triggers: usize) -> PairEvidence {
    let link = format!("subscription/kyma-integration/{application}-{namespace}");
    let triggers = (0..triggers).map(|number| trigger(namespace, &format!("t{number:04}")));
    PairEvidence {
        namespace: namespace.to_owned(),
        mapping: Some(object(&format!(
            "applicationmapping/{namespace}/{application}"
        ))),
        failed_instance: None,
        flows: vec![object(&format!("eventflow/{namespace}/one"))],
        broker: Some(object(&format!("broker/{namespace}/default"))),
        link: Some(object(&link)),
        triggers: triggers.collect(),
        probing: Probing::Unneeded,
    }
}

fn application(name: &str, namespaces: Vec<PairEvidence>) -> ApplicationEvidence {
    ApplicationEvidence {
        name: name.to_owned(),
        skipped: false,
        application: object(&format!("application/{name}")),
        source: object(&format!("httpsource/kyma-integration/{name}")),
        channel: object(&format!("channel/kyma-integration/{name}")),
        door: DoorWindow::default(),
        namespaces,
    }
}

fn report(applications: Vec<ApplicationEvidence>) -> Report {
    Report {
        evidence: Arc::new(applications),
        ..Report::default()
    }
}

/// One application whose events go to so many triggers in each of so many namespaces.
fn mesh(namespaces: usize, triggers: usize) -> Vec<ApplicationEvidence> {
    let pairs = (0..namespaces).map(|number| pair("shop", &format!("ns{number:03}"), triggers));
    vec![application("shop", pairs.collect())]
}

fn make_ill(applications: &mut [ApplicationEvidence], namespace: usize, number: usize) {
    let trigger = &mut applications[0].namespaces[namespace].triggers[number];
    trigger.trigger.state = ObjectState::NotReady("SubscriberUnresolved".to_owned());
}

fn shown(report: &Report) -> TopologyGraph {
    draw(report, &TopologyQuestion::default())
}

fn asked(report: &Report, name: &str, verdicts: &[HealthStatus]) -> Vec<String> {
    let question = TopologyQuestion {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        verdicts: verdicts.to_vec(),
        ..TopologyQuestion::default()
    };
    let graph = draw(report, &question);
    graph.nodes.into_iter().map(|node| node.id).collect()
}

fn ids(graph: &TopologyGraph) -> BTreeSet<&str> {
    graph.nodes.iter().map(|node| &*node.id).collect()
}

fn link<'a>(graph: &'a TopologyGraph, from: &str, to: &str) -> &'a GraphLink {
    let found = graph
        .links
        .iter()
        .find(|link| link.from == from && link.to == to);
    found.unwrap_or_else(|| panic!("no link from {from} to {to} in {graph:?}"))
}

/// What holds of every picture that is not asked for whole.
fn check(graph: &TopologyGraph, applications: &[ApplicationEvidence]) {
    let ids = ids(graph);
    assert_eq!(ids.len(), graph.nodes.len(), "a node is drawn twice");
    assert!(graph.nodes.len() <= summary::NODES_MAX, "{}", ids.len());
    for link in &graph.links {
        assert!(ids.contains(&*link.from) && ids.contains(&*link.to));
    }
    // Everything is there once: by itself, or in a sum.
    let whole = draw(
        &report(applications.to_vec()),
        &TopologyQuestion {
            all: true,
            ..TopologyQuestion::default()
        },
    );
    let singles = graph.nodes.iter().filter(|node| node.of.is_none()).count();
    let summed: u32 = graph.nodes.iter().filter_map(|node| node.of).sum();
    assert_eq!(singles + summed as usize, whole.nodes.len());
    assert_eq!(
        graph.truncated.as_ref().map_or(0, |found| found.hidden),
        summed
    );
    for node in graph.nodes.iter().filter(|node| node.of.is_none()) {
        let leads = graph.links.iter().any(|link| link.to == node.id);
        assert!(node.hop == "source" || leads, "{} stands alone", node.id);
    }
    for node in &graph.nodes {
        let counts = node.verdicts.map(|counts| counts.all());
        assert_eq!(counts, node.of, "{}", node.id);
    }
}

#[test]
fn a_mesh_that_fits_is_shown_whole() {
    let applications = mesh(2, 3);
    let graph = shown(&report(applications.clone()));
    check(&graph, &applications);
    assert_eq!(graph.truncated, None);
    assert_eq!(graph.nodes.len(), 2 + 2 * (2 + 3 * 2));
}

#[test]
fn no_more_is_shown_than_can_be_looked_at_however_it_is_spread() {
    for (namespaces, triggers) in [(1, 5000), (40, 250), (200, 3), (1000, 0), (149, 1)] {
        let applications = mesh(namespaces, triggers);
        let graph = shown(&report(applications.clone()));
        check(&graph, &applications);
        assert!(graph.truncated.is_some(), "{namespaces} by {triggers}");
    }
    let many: Vec<ApplicationEvidence> = (0..1000)
        .map(|number| {
            let name = format!("app{number:04}");
            let pair = pair(&name, &format!("ns{}", number % 7), 0);
            application(&name, vec![pair])
        })
        .collect();
    check(&shown(&report(many.clone())), &many);
}

#[test]
fn what_is_ill_is_shown_by_itself_with_its_way() {
    let mut applications = mesh(40, 250);
    for namespace in [0, 17, 39] {
        make_ill(&mut applications, namespace, 249);
    }
    let graph = shown(&report(applications.clone()));
    check(&graph, &applications);
    for namespace in ["ns000", "ns017", "ns039"] {
        let broker = format!("broker/{namespace}/default");
        let trigger = format!("trigger/{namespace}/t0249");
        let subscriber = format!("subscriber/{namespace}/t0249");
        assert_eq!(link(&graph, &broker, &trigger).verdict, "healthy");
        assert_eq!(link(&graph, &trigger, &subscriber).verdict, "unhealthy");
        let way = format!("subscription/kyma-integration/shop-{namespace}");
        link(&graph, &way, &broker);
        link(&graph, "channel/kyma-integration/shop", &way);
    }
    // What leads to many is drawn as well.
    let sum = graph
        .nodes
        .iter()
        .find(|node| node.id == "namespace/ns000")
        .unwrap();
    assert_eq!(sum.of, Some(498));
    link(&graph, "broker/ns000/default", "namespace/ns000");
    assert_eq!(graph.truncated.unwrap().verdicts.unhealthy, 0);
}

#[test]
fn when_more_is_ill_than_fits_the_sums_say_how_much() {
    let mut applications = mesh(2, 300);
    for number in 0..200 {
        make_ill(&mut applications, 0, number);
        make_ill(&mut applications, 1, number);
    }
    let graph = shown(&report(applications.clone()));
    check(&graph, &applications);
    let truncated = graph.truncated.as_ref().unwrap();
    let single = graph.nodes.iter().filter(|node| node.of.is_none());
    let ill = single.filter(|node| node.verdict == "unhealthy").count();
    assert!(ill >= 130, "only {ill} of what is ill is shown");
    assert_eq!(truncated.verdicts.unhealthy as usize, 800 - ill);
    let sums = graph.nodes.iter().filter(|node| node.of.is_some());
    for sum in sums {
        assert!(sum.verdict == "unhealthy" || sum.verdicts.unwrap().unhealthy == 0);
    }
}

#[test]
fn what_is_unhealthy_comes_before_what_is_degraded_and_unknown_is_no_illness() {
    let mut applications = mesh(1, 1000);
    let triggers = &mut applications[0].namespaces[0].triggers;
    for trigger in &mut triggers[..400] {
        let reading = trigger.reading.as_mut().unwrap();
        reading.dead_letters = 1;
    }
    for trigger in &mut triggers[400..900] {
        trigger.trigger.state = ObjectState::Unobserved("it has no conditions yet".to_owned());
    }
    make_ill(&mut applications, 0, 999);
    let graph = shown(&report(applications.clone()));
    check(&graph, &applications);
    let nodes = ids(&graph);
    assert!(nodes.contains("trigger/ns000/t0999") && nodes.contains("subscriber/ns000/t0999"));
    assert!(!nodes.contains("trigger/ns000/t0400"), "unknown is shown");
}

#[test]
fn what_turns_ill_is_added_and_nothing_that_was_there_goes() {
    let mut applications = mesh(30, 100);
    let before = shown(&report(applications.clone()));
    make_ill(&mut applications, 12, 50);
    let after = shown(&report(applications.clone()));
    check(&after, &applications);
    let (before, after) = (ids(&before), ids(&after));
    assert!(before.is_subset(&after), "{:?}", before.difference(&after));
    let added: Vec<&&str> = after.difference(&before).collect();
    let way = ["subscriber/ns012/t0050", "trigger/ns012/t0050"];
    assert!(way.iter().all(|id| added.contains(&id)), "{added:?}");
    assert!(added.len() <= 4, "{added:?}");
}

#[test]
fn more_namespaces_than_can_be_named_are_put_together() {
    let applications = mesh(200, 3);
    let graph = shown(&report(applications.clone()));
    check(&graph, &applications);
    let others = graph.nodes.iter().find(|node| node.id == "namespace/*");
    assert!(others.unwrap().of.unwrap() > 500, "{others:?}");
}

#[test]
fn brokers_without_an_application_are_drawn_and_so_are_mappings_without_a_flow() {
    let mut failing = trigger("team-b", "orders");
    failing.reading.as_mut().unwrap().failed = Some((std::time::Duration::ZERO, "503".to_owned()));
    let mut unused = pair("shop", "team-a", 0);
    (unused.link, unused.broker) = (None, None);
    unused.mapping.as_mut().unwrap().state = ObjectState::NotReady("NoSuchApplication".to_owned());
    let mut report = report(vec![application("shop", vec![unused])]);
    report.brokers = Arc::new(vec![BrokerEvidence {
        namespace: "team-b".to_owned(),
        broker: PathObject {
            object: "broker/team-b/default".to_owned(),
            state: ObjectState::Missing,
        },
        triggers: vec![failing],
    }]);
    let graph = shown(&report);
    let mapping = "applicationmapping/team-a/shop";
    let to_mapping = link(&graph, "channel/kyma-integration/shop", mapping);
    assert_eq!(
        (&*to_mapping.verdict, &*to_mapping.object),
        ("unhealthy", mapping)
    );
    let to_trigger = link(&graph, "broker/team-b/default", "trigger/team-b/orders");
    assert_eq!(to_trigger.verdict, "unhealthy");
    let to_subscriber = link(&graph, "trigger/team-b/orders", "subscriber/team-b/orders");
    assert_eq!(to_subscriber.object, "trigger/team-b/orders");
    assert_eq!(graph.nodes.len(), 6);
}

#[test]
fn a_link_says_whose_verdict_it_has_since_when_and_what_would_allow_it() {
    let subscription = "subscription/kyma-integration/shop-ns000";
    let mut applications = mesh(1, 1);
    let refused = "NotAccepted: no EventPolicy in ns000 allows that".to_owned();
    let link_object = applications[0].namespaces[0].link.as_mut().unwrap();
    link_object.state = ObjectState::NotReady(refused);
    let mut report = report(applications);
    let since = Timestamp::from_second(1_800_000_000).unwrap();
    let verdict = Verdict {
        health: HealthStatus::Unhealthy,
        object: Some(subscription.to_owned()),
        since,
        ..Verdict::default()
    };
    let health = NamespaceHealth {
        verdict,
        ..NamespaceHealth::default()
    };
    let key = ("shop".to_owned(), "ns000".to_owned());
    report.pairs.insert(key, health);
    report.reading = Arc::new(MeshReading {
        denied_links: [(subscription.to_owned(), "apply one there".to_owned())].into(),
        log: LogReading {
            end: Some(4711),
            ..LogReading::default()
        },
        ..MeshReading::default()
    });
    let graph = shown(&report);
    assert_eq!(graph.offset, Some(4711));
    let denied = link(&graph, subscription, "broker/ns000/default");
    assert_eq!(denied.denied.as_deref(), Some("apply one there"));
    assert_eq!((&*denied.object, denied.since), (subscription, Some(since)));
    let coming = link(&graph, "channel/kyma-integration/shop", subscription);
    assert_eq!(
        (coming.denied.as_ref(), &*coming.verdict),
        (None, "unhealthy")
    );
    let leaving = link(&graph, "broker/ns000/default", "trigger/ns000/t0000");
    assert_eq!((leaving.since, &*leaving.verdict), (None, "healthy"));
}

#[test]
fn names_and_verdicts_choose_and_what_is_chosen_keeps_its_way() {
    let mut applications = mesh(3, 4);
    make_ill(&mut applications, 1, 2);
    applications.push(application("crm", Vec::new()));
    let report = report(applications);
    let way = [
        "application/shop",
        "channel/kyma-integration/shop",
        "subscription/kyma-integration/shop-ns001",
        "broker/ns001/default",
        "trigger/ns001/t0002",
        "subscriber/ns001/t0002",
    ];
    assert_eq!(asked(&report, "", &[HealthStatus::Unhealthy]), way);
    assert_eq!(asked(&report, "NS001/T0002", &[]), way);
    assert_eq!(asked(&report, "t0002", &[HealthStatus::Unhealthy]), way);
    let crm = ["application/crm", "channel/kyma-integration/crm"];
    assert_eq!(asked(&report, "crm", &[]), crm);
    assert_eq!(asked(&report, "crm", &[HealthStatus::Degraded]), [""; 0]);
    assert_eq!(asked(&report, "ns00", &[]).len(), 2 + 3 * (2 + 4 * 2));
}
