use heddle_api::checks::FindingLevel;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

const OLD: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T01:00:00Z";

fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(
    name: &str,
    metadata: Value,
    spec: Value,
    status: Value,
) -> K {
    let mut object = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": {"name": name, "namespace": "team-a", "uid": name, "generation": 1, "creationTimestamp": OLD},
        "spec": spec, "status": status,
    });
    for (key, value) in metadata.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

/// One flow with everything it needs.
fn world() -> Flows {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let labels = json!({APPLICATION_LABEL: "shop", BROKER_NAMESPACE_LABEL: "team-a", MANAGED_BY_LABEL: MANAGED_BY});
    let owned = json!([{"apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow", "name": "orders", "uid": "orders"}]);
    Flows {
        flows: vec![object(
            "orders",
            json!({}),
            json!({"application": "shop", "serviceID": "s"}),
            ready,
        )],
        brokers: vec![object("default", json!({}), json!({}), json!({}))],
        subscriptions: vec![object(
            "link-shop-team-a",
            json!({"namespace": "kyma-integration", "labels": labels}),
            json!({"channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "shop"}}),
            json!({}),
        )],
        activations: vec![object(
            "s",
            json!({"ownerReferences": owned}),
            json!({"sourceId": "shop"}),
            json!({}),
        )],
        policies: Vec::new(),
        instances: vec![object(
            "orders",
            json!({}),
            json!({"instanceID": "orders", "serviceID": "s", "planID": "p", "operation": {
                "id": "o1", "kind": "provision", "requestHash": "h", "acceptedAt": OLD, "deadline": "2026-01-01T00:54:00Z"}}),
            json!({"operation": {"id": "o1", "kind": "provision", "state": "succeeded"}}),
        )],
    }
}

fn found(world: &Flows) -> Vec<String> {
    let findings = of(world, NOW.parse().unwrap());
    let bad = findings
        .iter()
        .filter(|finding| finding.level == FindingLevel::Bad);
    bad.map(|finding| format!("{}: {}", finding.about, finding.what))
        .collect()
}

#[test]
fn a_flow_with_all_it_needs_is_well() {
    assert_eq!(found(&world()), [""; 0]);
}

#[test]
fn each_broken_promise_is_found() {
    let check = |change: fn(&mut Flows), expected: &[&str]| {
        let mut world = world();
        change(&mut world);
        assert_eq!(found(&world), expected);
    };
    check(
        |world| world.brokers.clear(),
        &["eventflow/team-a/orders: its Broker default does not exist"],
    );
    check(
        |world| world.subscriptions.push(world.subscriptions[0].clone()),
        &[
            "subscription/kyma-integration/link-shop-team-a: 2 links from shop to team-a: its events arrive more than once",
        ],
    );
    check(
        |world| world.subscriptions.clear(),
        &["eventflow/team-a/orders: it says it is ready, and no link carries its events"],
    );
    check(
        |world| world.flows.clear(),
        &[
            "subscription/kyma-integration/link-shop-team-a: no flow of shop in team-a needs it any more",
            "eventactivation/team-a/s: the flows that it shows are gone",
        ],
    );
    check(
        |world| {
            let status = world.instances[0].status.as_mut().unwrap();
            status.operation.as_mut().unwrap().state = OperationState::InProgress;
        },
        &["serviceinstance/team-a/orders: operation o1 should have ended 6 min ago"],
    );
    check(
        |world| {
            world.instances[0]
                .status
                .as_mut()
                .unwrap()
                .observed_generation = Some(2)
        },
        &["serviceinstance/team-a/orders: its status speaks of a generation that does not exist"],
    );
}

#[test]
fn controllers_have_a_moment() {
    let mut world = world();
    world.brokers.clear();
    let young = Time("2026-01-01T00:59:30Z".parse().unwrap());
    world.flows[0].metadata.creation_timestamp = Some(young);
    assert_eq!(found(&world), [""; 0]);
}

#[test]
fn flows_that_are_not_ready_are_not_counted_as_having_all_they_need() {
    let mut world = world();
    let waits = json!({"conditions": [{"type": "Ready", "status": "False"}]});
    let spec = json!({"application": "shop", "serviceID": "t"});
    let second = object("other", json!({}), spec, waits);
    world.flows.push(second);
    let findings = of(&world, NOW.parse().unwrap());
    let told: Vec<_> = findings.iter().map(|found| found.what.as_str()).collect();
    assert_eq!(told, ["1 of 2 flows with all they need"]);
}
