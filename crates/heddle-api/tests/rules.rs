//! The rules that span fields or generations do what their messages say, by the evaluator the embedded API server uses.

use heddle_api::crds;
use kube_cel::{Validator, compile_schema};
use serde_json::{Value, json};

fn schema(kind: &str) -> Value {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .expect(kind);
    let validation = crd.spec.versions[0]
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    serde_json::to_value(validation).expect("a schema is JSON")
}

/// Validates `spec`, as a change of `old` where there is one, and compares what is said against it.
fn check(kind: &str, old: Option<Value>, spec: Value, expected: &[&str]) {
    let old = old.map(|spec| json!({"spec": spec}));
    let result = Validator::new().validate(&schema(kind), &json!({"spec": spec}), old.as_ref());
    let said: Vec<_> = result
        .err()
        .into_iter()
        .flat_map(|errors| errors.into_vec())
        .map(|error| error.message)
        .collect();
    assert_eq!(said, expected, "{kind}: {spec}");
}

#[test]
fn every_rule_compiles() {
    for crd in crds() {
        let compiled = compile_schema(&schema(&crd.spec.names.kind));
        assert!(
            !compiled.has_errors(),
            "{}: {:?}",
            crd.spec.names.kind,
            compiled.compilation_errors()
        );
    }
}

#[test]
fn what_identifies_an_object_cannot_be_changed() {
    let subscriber = json!({"uri": "http://x"});
    let trigger = |broker: &str| json!({"broker": broker, "subscriber": subscriber});
    check("Trigger", Some(trigger("a")), trigger("a"), &[]);
    check(
        "Trigger",
        Some(trigger("a")),
        trigger("b"),
        &["broker is immutable"],
    );

    let subscription = |name: &str| json!({"channel": {"kind": "Channel", "name": name}, "subscriber": subscriber});
    check(
        "Subscription",
        Some(subscription("a")),
        subscription("a"),
        &[],
    );
    check(
        "Subscription",
        Some(subscription("a")),
        subscription("b"),
        &["channel is immutable"],
    );

    let source = |source: &str| json!({"source": source});
    check(
        "HTTPSource",
        Some(source("a")),
        source("b"),
        &["source is immutable"],
    );

    let broker = |name: &str| json!({"config": {"kind": "ConfigMap", "name": name}});
    check(
        "Broker",
        Some(broker("a")),
        broker("b"),
        &["config is immutable"],
    );
    check("Broker", Some(json!({})), broker("b"), &[]);

    let channel = |kind: &str, retry: i32| json!({"channelTemplate": {"apiVersion": "v1", "kind": kind, "spec": {"retry": retry}}});
    check("Channel", Some(channel("A", 1)), channel("A", 2), &[]);
    check(
        "Channel",
        Some(channel("A", 1)),
        channel("B", 1),
        &["the kind of a channel is immutable"],
    );

    let flow = |application: &str, service: &str| json!({"application": application, "serviceID": service});
    check(
        "EventFlow",
        Some(flow("a", "s")),
        flow("b", "s"),
        &["application is immutable"],
    );
    check(
        "EventFlow",
        Some(flow("a", "s")),
        flow("a", "t"),
        &["serviceID is immutable"],
    );

    let revision = |version: &str| {
        json!({"bundle": "b", "image": "i", "manifestDigest": "m", "configDigest": "c",
        "runtime": 1, "description": {"version": version}})
    };
    check("BundleRevision", Some(revision("1")), revision("1"), &[]);
    check(
        "BundleRevision",
        Some(revision("1")),
        revision("2"),
        &["a revision is immutable"],
    );

    let instance = |plan: &str| json!({"instanceID": "i", "serviceID": "s", "planID": plan});
    check(
        "ServiceInstance",
        Some(instance("small")),
        instance("large"),
        &[],
    );
}

#[test]
fn a_destination_needs_somewhere_to_go() {
    let trigger = |subscriber: Value| json!({"broker": "default", "subscriber": subscriber});
    check("Trigger", None, trigger(json!({"uri": "http://x"})), &[]);
    check(
        "Trigger",
        None,
        trigger(json!({"ref": {"kind": "Service", "name": "x"}, "uri": "/path"})),
        &[],
    );
    check(
        "Trigger",
        None,
        trigger(json!({"audience": "x"})),
        &["a destination needs a ref, a uri, or both"],
    );
    check(
        "Subscription",
        None,
        json!({"channel": {"kind": "Channel", "name": "a"}}),
        &["a subscription needs a subscriber, a reply, or both"],
    );
}

#[test]
fn a_filter_is_written_in_one_dialect() {
    let trigger = |filters: Value| json!({"broker": "default", "subscriber": {"uri": "http://x"}, "filters": filters});
    let each = json!([
        {"exact": {"a": "b"}}, {"prefix": {"a": "b"}}, {"suffix": {"a": "b"}}, {"not": {"exact": {"a": "b"}}},
        {"all": [{"exact": {"a": "b"}}]}, {"any": [{"exact": {"a": "b"}}]}, {"cesql": "true"}, {}
    ]);
    check("Trigger", None, trigger(each), &[]);
    check(
        "Trigger",
        None,
        trigger(json!([{"exact": {"a": "b"}, "cesql": "true"}])),
        &["a filter is written in one dialect; combine several with all or any"],
    );
}

#[test]
fn a_policy_names_each_party_in_one_way() {
    let reference = json!({"kind": "Broker", "name": "default"});
    check(
        "EventPolicy",
        None,
        json!({"to": [{"ref": reference}], "from": [{"sub": "a"}]}),
        &[],
    );
    check(
        "EventPolicy",
        None,
        json!({"to": [{}]}),
        &["a target is either a ref or a selector"],
    );
    check(
        "EventPolicy",
        None,
        json!({"from": [{"ref": reference, "sub": "a"}]}),
        &["a publisher is either a ref or a sub"],
    );
}

#[test]
fn a_registry_that_keeps_its_offerings_sets_no_limit_for_hiding_them() {
    let registry = |policy: Value| json!({"type": "apiv2", "stalePolicy": policy});
    check(
        "Registry",
        None,
        registry(json!({"mode": "hide", "hideAfterFailures": 3})),
        &[],
    );
    check(
        "Registry",
        None,
        registry(json!({"mode": "keep", "hideAfterFailures": 3})),
        &["hideAfterFailures and hideAfterSeconds need mode hide"],
    );
}
