use heddle_api::dataplane::Held;
use heddle_api::trigger::{DEPENDENCY_ANNOTATION, Trigger, TriggerStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::dependency::{self, DependencyState};
use super::observe::World;
use super::{status, targets};
use crate::dataplane::RoutingState;
use crate::references::Target;
use crate::resolve::Resolved;

fn yes() -> RoutingState {
    RoutingState::Yes {
        held: None,
        over_quota: None,
        bad_replies: None,
        faults: Vec::new(),
    }
}

fn broker(ready: &str, annotations: Value, spec: Value) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"name": "default", "namespace": "team-a", "generation": 1, "annotations": annotations},
        "spec": spec,
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready, "reason": "Because"}]},
    })
}

/// A world in which everything is well.
fn world() -> World {
    let trigger = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": "t", "namespace": "team-a", "uid": "u1", "generation": 4},
        "spec": {"broker": "default", "subscriber": {"uri": "http://s.example/"}},
    });
    World {
        trigger: serde_json::from_value(trigger).unwrap(),
        broker: serde_json::from_value(broker("True", json!({}), json!({}))).unwrap(),
        subscriber: Ok(Resolved {
            uri: "http://s.example/".to_owned(),
            ..Resolved::default()
        }),
        dependency: DependencyState::Met,
        dead_letter_sink: None,
        routed: yes(),
    }
}

fn read(world: &World) -> TriggerStatus {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    serde_json::from_value(status).unwrap()
}

/// `Ready` and one other condition, as status and reason.
fn check(world: &World, condition: &str, expected: &str, ready: &str) {
    let status = read(world);
    let text = |name: &str| {
        let found = status.conditions.find(name).unwrap();
        let reason = found.reason.as_ref().map(|reason| format!(":{reason}"));
        format!("{:?}{}", found.status, reason.unwrap_or_default())
    };
    assert_eq!(text(condition), expected, "{status:#?}");
    assert_eq!(text("Ready"), ready, "{status:#?}");
    assert_eq!(status.observed_generation, Some(4));
}

#[test]
fn a_trigger_in_force_with_a_ready_broker_and_an_address_is_ready() {
    check(&world(), "SubscriptionReady", "True", "True");
    let status = read(&world());
    assert_eq!(status.subscriber_uri.as_deref(), Some("http://s.example/"));
}

#[test]
fn a_trigger_is_as_ready_as_the_table_in_force_says() {
    let held = |held| RoutingState::Yes {
        held: Some(held),
        over_quota: None,
        bad_replies: None,
        faults: Vec::new(),
    };
    let gone = held(Held::Gone("http://s.example/ answered 410".to_owned()));
    let unconsented = held(Held::Unconsented("no WebHook-Allowed-Origin".to_owned()));
    let unsigned = held(Held::Unsigned(
        "Secret team/t-signing is not there".to_owned(),
    ));
    let waiting = held(Held::Waiting("paused by annotation".to_owned()));
    let faulty = RoutingState::Yes {
        held: None,
        over_quota: None,
        bad_replies: None,
        faults: vec!["heddle.dev/max-in-flight is not a number".to_owned()],
    };
    let over_quota = RoutingState::Yes {
        held: Some(Held::Waiting("paused by annotation".to_owned())),
        over_quota: Some("events expire undelivered: its backlog may be 24 h old".to_owned()),
        bad_replies: None,
        faults: Vec::new(),
    };
    let replies = |held| RoutingState::Yes {
        held,
        over_quota: None,
        bad_replies: Some("its subscriber replied what could not go on".to_owned()),
        faults: Vec::new(),
    };
    let paused = Held::Waiting("paused by annotation".to_owned());
    for (routed, expected, ready) in [
        (RoutingState::NoMesh, "Unknown:NoMesh", "Unknown:NoMesh"),
        (
            RoutingState::Absent,
            "Unknown:NotYetRouted",
            "Unknown:NotYetRouted",
        ),
        (
            RoutingState::Stale,
            "Unknown:NotYetRouted",
            "Unknown:NotYetRouted",
        ),
        (
            RoutingState::Rejected("spec.filters[0].cesql".to_owned()),
            "False:FilterInvalid",
            "False:FilterInvalid",
        ),
        (gone, "False:SubscriberGone", "False:SubscriberGone"),
        (unconsented, "False:ConsentMissing", "False:ConsentMissing"),
        (
            unsigned,
            "False:SigningKeyUnreadable",
            "False:SigningKeyUnreadable",
        ),
        (
            over_quota,
            "False:BacklogOverQuota",
            "False:BacklogOverQuota",
        ),
        (waiting, "True:DeliveryHeld", "True"),
        (faulty, "True:SettingsIgnored", "True"),
        (replies(None), "True:BadReplies", "True"),
        (replies(Some(paused)), "True:DeliveryHeld", "True"),
    ] {
        let world = World { routed, ..world() };
        check(&world, "SubscriptionReady", expected, ready);
    }
}

#[test]
fn a_trigger_says_what_is_wrong_with_its_broker() {
    let with = |broker: Value| World {
        broker: serde_json::from_value(broker).unwrap(),
        ..world()
    };
    let none = json!({});
    check(
        &with(Value::Null),
        "BrokerReady",
        "False:BrokerNotFound",
        "False:BrokerNotFound",
    );
    let unready = with(broker("False", none.clone(), none.clone()));
    check(
        &unready,
        "BrokerReady",
        "False:BrokerNotReady",
        "False:BrokerNotReady",
    );
    let unknown = with(broker("Unknown", none.clone(), none.clone()));
    check(
        &unknown,
        "BrokerReady",
        "Unknown:BrokerNotReady",
        "Unknown:BrokerNotReady",
    );
    let mut edited = broker("True", none.clone(), none.clone());
    edited["metadata"]["generation"] = json!(2);
    check(
        &with(edited),
        "BrokerReady",
        "Unknown:BrokerNotReady",
        "Unknown:BrokerNotReady",
    );
    let mut leaving = broker("True", none.clone(), none);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(
        &with(leaving),
        "BrokerReady",
        "False:BrokerNotFound",
        "False:BrokerNotFound",
    );
}

#[test]
fn a_subscriber_that_does_not_resolve_leaves_no_address_behind() {
    let mut world = world();
    world.trigger.status =
        serde_json::from_value(status::status(&world, Timestamp::UNIX_EPOCH).unwrap()).unwrap();
    world.subscriber = Err("Channel team-a/x does not exist".to_owned());
    check(
        &world,
        "SubscriberResolved",
        "False:SubscriberNotFound",
        "False:SubscriberNotFound",
    );
    assert_eq!(read(&world).subscriber_uri, None);
}

#[test]
fn delivery_is_the_triggers_or_wholly_the_brokers() {
    let sink = |uri: &str| Resolved {
        uri: uri.to_owned(),
        ..Resolved::default()
    };
    let mut world = world();
    check(
        &world,
        "DeadLetterSinkResolved",
        "True:DeadLetterSinkNotConfigured",
        "True",
    );
    // The Broker has one, and the Trigger says nothing about delivery.
    let delivery = json!({"delivery": {"deadLetterSink": {"uri": "http://dls.example/"}}});
    world.broker = serde_json::from_value(broker("True", json!({}), delivery)).unwrap();
    check(
        &world,
        "DeadLetterSinkResolved",
        "False:DeadLetterSinkNotFound",
        "False:DeadLetterSinkNotFound",
    );
    let broker = world.broker.as_mut().unwrap();
    broker.status.as_mut().unwrap().dead_letter_sink_uri = Some("http://dls.example/".to_owned());
    assert_eq!(
        read(&world).dead_letter_sink_uri.as_deref(),
        Some("http://dls.example/")
    );
    // Any field of the Trigger's own replaces all of the Broker's.
    world.trigger.spec.delivery = serde_json::from_value(json!({"retry": 3})).unwrap();
    check(
        &world,
        "DeadLetterSinkResolved",
        "True:DeadLetterSinkNotConfigured",
        "True",
    );
    world.dead_letter_sink = Some(Ok(sink("http://own.example/")));
    assert_eq!(
        read(&world).dead_letter_sink_uri.as_deref(),
        Some("http://own.example/")
    );
    world.dead_letter_sink = Some(Err("gone".to_owned()));
    check(
        &world,
        "DeadLetterSinkResolved",
        "False:DeadLetterSinkNotFound",
        "False:DeadLetterSinkNotFound",
    );
}

#[test]
fn a_trigger_on_its_way_out_is_left_alone() {
    let mut world = world();
    world.trigger.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(status::status(&world, Timestamp::UNIX_EPOCH), None);
}

#[test]
fn a_status_at_rest_does_not_change_with_time() {
    let mut world = world();
    let first = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.trigger.status = serde_json::from_value(first.clone()).unwrap();
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn everything_a_trigger_refers_to_wakes_it() {
    let trigger: Trigger = serde_json::from_value(json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {
            "name": "t", "namespace": "team-a",
            "annotations": {DEPENDENCY_ANNOTATION: r#"{"apiVersion":"v1","kind":"HTTPSource","name":"h","namespace":"n"}"#},
        },
        "spec": {
            "broker": "b",
            "subscriber": {"ref": {"kind": "Channel", "name": "c"}},
            "delivery": {"deadLetterSink": {"ref": {"kind": "Application", "name": "a"}}},
        },
    }))
    .unwrap();
    assert_eq!(
        targets(&trigger),
        [
            Target::new("Broker", "team-a", "b"),
            Target::new("Channel", "team-a", "c"),
            Target::new("Application", "", "a"),
            Target::new("HTTPSource", "n", "h"),
        ]
    );
}

#[test]
fn a_dependency_is_met_when_it_is_ready() {
    let mut channel: heddle_api::Channel = serde_json::from_value(json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
        "metadata": {"name": "c", "namespace": "n", "generation": 1}, "spec": {},
    }))
    .unwrap();
    fn unmet(found: Option<&heddle_api::Channel>, expected: &str) {
        match dependency::judge("n", "c", found) {
            DependencyState::Unmet(why) => assert!(why.contains(expected), "{why}"),
            DependencyState::Met => panic!("expected {expected}"),
        }
    }
    unmet(None, "Channel n/c does not exist");
    unmet(Some(&channel), "Channel n/c is not ready");
    let status =
        json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
    channel.status = serde_json::from_value(status).unwrap();
    assert_eq!(
        dependency::judge("n", "c", Some(&channel)),
        DependencyState::Met
    );
    channel.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    unmet(Some(&channel), "being deleted");
}
