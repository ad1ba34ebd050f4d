use heddle_api::dataplane::Held;
use heddle_api::subscription::SubscriptionStatus;
use jiff::Timestamp;
use serde_json::json;

use super::observe::World;
use super::status;
use crate::dataplane::RoutingState;
use crate::resolve::{Resolution, Resolved};

fn at(uri: &str) -> Resolution {
    Ok(Resolved {
        uri: uri.to_owned(),
        ..Resolved::default()
    })
}

/// A world in which everything is well.
fn world() -> World {
    let subscription = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
        "metadata": {"name": "s", "namespace": "ns", "uid": "u1", "generation": 4},
        "spec": {"channel": {"kind": "Channel", "name": "c"}, "subscriber": {"uri": "http://s.example/"}},
    });
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
        "metadata": {"name": "c", "namespace": "ns", "generation": 1}, "spec": {},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    World {
        subscription: serde_json::from_value(subscription).unwrap(),
        channel: Ok(serde_json::from_value(channel).unwrap()),
        subscriber: Some(at("http://s.example/")),
        reply: None,
        dead_letter_sink: None,
        routed: RoutingState::Yes {
            held: None,
            over_quota: None,
            bad_replies: None,
            faults: Vec::new(),
        },
    }
}

fn read(world: &World) -> SubscriptionStatus {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    serde_json::from_value(status).unwrap()
}

fn check(world: &World, expected: [&str; 4]) {
    let found: Vec<String> = (read(world).conditions.iter())
        .map(|condition| {
            let reason = condition.reason.as_ref().map(|reason| format!(":{reason}"));
            format!("{:?}{}", condition.status, reason.unwrap_or_default())
        })
        .collect();
    assert_eq!(found, expected, "{world:#?}");
}

#[test]
fn a_subscription_is_ready_when_it_resolves_is_in_force_and_has_a_ready_channel() {
    check(&world(), ["True", "True", "True", "True"]);
    let mut unready = world();
    let channel = unready.channel.as_mut().unwrap();
    channel.metadata.generation = Some(2);
    let why = "Unknown:ChannelNotReady";
    check(&unready, ["True", "True", why, why]);
    let mut absent = world();
    absent.channel = Err("Channel ns/c does not exist".to_owned());
    absent.routed = RoutingState::Absent;
    let why = "False:ChannelNotFound";
    check(&absent, [why, "False:NotAddedToChannel", why, why]);
}

#[test]
fn every_destination_must_resolve() {
    let lost = || Some(Err("Broker ns/x does not exist".to_owned()));
    let mut subscriber = world();
    subscriber.subscriber = lost();
    check(
        &subscriber,
        [
            "False:SubscriberNotFound",
            "True",
            "True",
            "False:SubscriberNotFound",
        ],
    );
    assert_eq!(read(&subscriber).physical_subscription, None);
    let mut reply = world();
    reply.reply = lost();
    check(
        &reply,
        ["False:ReplyNotFound", "True", "True", "False:ReplyNotFound"],
    );
    let mut sink = world();
    sink.subscription.spec.delivery = serde_json::from_value(json!({"retry": 1})).unwrap();
    sink.dead_letter_sink = lost();
    check(
        &sink,
        [
            "False:DeadLetterSinkNotFound",
            "True",
            "True",
            "False:DeadLetterSinkNotFound",
        ],
    );
}

#[test]
fn addresses_are_those_in_effect() {
    let mut world = world();
    world.reply = Some(at("http://r.example/"));
    let channel = world.channel.as_mut().unwrap();
    let delivery = json!({"deadLetterSink": {"uri": "http://dls.example/"}});
    channel.spec.delivery = serde_json::from_value(delivery).unwrap();
    channel.status.as_mut().unwrap().dead_letter_sink_uri = Some("http://dls.example/".to_owned());
    let physical = read(&world).physical_subscription.unwrap();
    assert_eq!(
        physical.subscriber_uri.as_deref(),
        Some("http://s.example/")
    );
    assert_eq!(physical.reply_uri.as_deref(), Some("http://r.example/"));
    assert_eq!(
        physical.dead_letter_sink_uri.as_deref(),
        Some("http://dls.example/")
    );
    // Any field of its own replaces all of the Channel's delivery.
    world.subscription.spec.delivery = serde_json::from_value(json!({"retry": 1})).unwrap();
    let physical = read(&world).physical_subscription.unwrap();
    assert_eq!(physical.dead_letter_sink_uri, None);
}

#[test]
fn a_subscription_is_as_ready_as_the_table_in_force_says() {
    let gone = RoutingState::Yes {
        held: Some(Held::Gone("410".to_owned())),
        over_quota: None,
        bad_replies: None,
        faults: Vec::new(),
    };
    for (routed, expected) in [
        (RoutingState::NoMesh, "Unknown:NoMesh"),
        (RoutingState::Absent, "Unknown:NotAddedToChannel"),
        (RoutingState::Stale, "Unknown:NotAddedToChannel"),
        (
            RoutingState::Rejected("a circle".to_owned()),
            "False:NotAddedToChannel",
        ),
        (gone, "False:SubscriberGone"),
    ] {
        let world = World { routed, ..world() };
        check(&world, ["True", expected, "True", expected]);
    }
}
