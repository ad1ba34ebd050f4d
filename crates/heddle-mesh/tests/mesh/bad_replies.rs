//! Replies that cannot go on: the event was delivered, and what came back for it is counted, told and kept.

use std::sync::Arc;

use heddle_api::ledger::{Account, BadReply, DeadLetter, DeadLetterSelection};
use serde_json::{Value, json};

use crate::world::{Manner, World};

const STRUCTURED: (&str, &str) = ("content-type", "application/cloudevents+json");

/// An event with whatever data follows.
const EVENT: &[(&str, &str)] = &[
    ("ce-specversion", "1.0"),
    ("ce-type", "t"),
    ("ce-source", "/s"),
    ("ce-id", "r"),
];

/// Each kind of a reply that is no event, with the fault that it is.
fn kinds() -> Vec<(&'static str, Manner)> {
    let large: &'static str = "x".repeat(2 << 20).leak();
    vec![
        ("not-an-event", Manner::Say(&[STRUCTURED], "{\"spec")),
        (
            "not-an-event",
            Manner::Say(&[("ce-specversion", "1.0"), ("ce-type", "t")], "no source"),
        ),
        ("too-large", Manner::Say(EVENT, large)),
        (
            "undecodable",
            Manner::Say(&[STRUCTURED, ("content-encoding", "gzip")], "zipped"),
        ),
        (
            "undecodable",
            Manner::Say(
                &[("content-type", "application/cloudevents-batch+json")],
                "[]",
            ),
        ),
    ]
}

fn dead_letters(world: &World) -> Vec<DeadLetter> {
    let all = DeadLetterSelection::default();
    world.mesh.dead_letters(&all, 0, 500).items
}

fn everything() -> DeadLetterSelection {
    DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    }
}

async fn bad_reply(world: &World, id: &str) -> BadReply {
    let trace = world.trace(id).await;
    let verdict = &trace.events[0].verdicts[0];
    let reply = verdict.attempts.last().unwrap().bad_reply.clone();
    reply.unwrap_or_else(|| panic!("{trace:#?}"))
}

/// What must hold for one delivered event with one bad reply, however often the process ended meanwhile.
async fn check(world: &World, fault: &str) {
    let account = world.account("t");
    assert_eq!(
        (account.matched, account.delivered, account.dead_lettered),
        (1, 1, 0),
        "{fault}"
    );
    assert_eq!((account.difference(), account.dead_letters), (0, 0));
    assert_eq!(account.dead_replies, 1, "{fault}");
    let letters = dead_letters(world);
    assert_eq!(letters.len(), 1, "{fault}");
    let letter = &letters[0];
    let reply = letter.reply.as_ref().expect("it is a reply");
    assert_eq!((&*reply.fault, &*letter.id), (fault, "1"));
    let told = bad_reply(world, "1").await;
    assert_eq!(told.fault, fault);
    assert_eq!(told.dead_letter.as_ref(), Some(&letter.name));
    assert!(!told.reason.is_empty());
    let condition = world.mesh.consumer("trigger/ns/t").unwrap();
    let words = condition.bad_replies.expect("the trigger says so");
    assert!(words.contains("--trigger ns/t"), "{words}");
}

/// Waits until so many rest.
async fn until_kept(world: &World, count: usize) {
    world
        .until("kept", |world| dead_letters(world).len() == count)
        .await;
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_bad_reply_is_counted_told_and_kept_over_restarts() {
    for (fault, manner) in kinds() {
        for mut world in World::each_with_broker() {
            world.trigger("t", "a", json!({}));
            world.manner("a", manner.clone());
            world.route().await;
            world.publish("1", &[]).await;
            world.until_delivered("t", 1).await;
            world.mesh.settled().await;
            let counted = format!(
                "heddle_bad_replies_total{{kind=\"trigger\",ns=\"ns\",trigger=\"t\",reason=\"{fault}\"}} 1\n"
            );
            let text = world.mesh.metrics_text();
            assert!(text.contains(&counted), "{text}");
            check(&world, fault).await;
            world.crash().await;
            world.route().await;
            check(&world, fault).await;
            world.mesh.tidy().await;
            world.restart().await;
            world.route().await;
            check(&world, fault).await;
            assert_eq!(world.received("a"), ["1"], "the subscriber did its part");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_kept_as_it_came_up_to_a_bound() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    let long: &'static str = "y".repeat(40_000).leak();
    world.manner("a", Manner::Say(&[STRUCTURED], long));
    world.route().await;
    world.publish("1", &[]).await;
    until_kept(&world, 1).await;
    let name = dead_letters(&world)[0].name.clone();
    let detail = world.mesh.dead_letter(&name).unwrap();
    assert_eq!(detail.answer, Some("y".repeat(16 * 1024)));
    let reply = detail.summary.reply.unwrap();
    assert_eq!(reply.content_type, "application/cloudevents+json");
    assert_eq!(detail.event.value()["id"], "1", "the event it answers");
}

#[tokio::test(start_paused = true)]
async fn a_reply_can_be_thrown_away_and_not_be_sent_again() {
    for mut world in World::each_with_broker() {
        let annotations = json!({"metadata": {"annotations": {"heddle.dev/auto-redrive": "3"}}});
        world.trigger("t", "a", annotations);
        world.manner("a", Manner::Say(&[STRUCTURED], "{"));
        world.route().await;
        world.publish("1", &[]).await;
        until_kept(&world, 1).await;
        let taken = world.mesh.redrive(&everything(), "me").await;
        assert_eq!((taken.count, taken.replies), (0, 1));
        // A success brings the next dead letter that may be redriven; a reply may not.
        world.manner("a", Manner::Accept);
        world.publish("2", &[]).await;
        world.until_delivered("t", 2).await;
        world.pass(60).await;
        assert_eq!(world.received("a"), ["1", "2"]);
        let taken = world.mesh.discard(&everything(), "me").await;
        assert_eq!((taken.count, taken.replies), (1, 0));
        for _ in 0..2 {
            let account = world.account("t");
            assert_eq!((account.delivered, account.removed), (2, 0));
            assert_eq!((account.difference(), account.dead_replies), (0, 0));
            assert_eq!(dead_letters(&world), []);
            let told = bad_reply(&world, "1").await;
            assert_eq!(told.discarded_by.as_deref(), Some("me"));
            let consumer = world.mesh.consumer("trigger/ns/t").unwrap();
            assert_eq!(consumer.bad_replies, None, "the condition is clear again");
            world.crash().await;
            world.route().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_the_trigger_is_woken_when_bad_replies_come_and_go() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Say(&[STRUCTURED], "{"));
    world.route().await;
    let seen = world.mesh.changed(0).await;
    world.publish("1", &[]).await;
    let seen = world.mesh.changed(seen).await;
    assert!(has_bad_replies(&world));
    world.publish("2", &[]).await;
    until_kept(&world, 2).await;
    let changed = world.mesh.changed(seen);
    assert!(
        futures::FutureExt::now_or_never(changed).is_none(),
        "what is said stays the same, so nobody need write it again"
    );
    world.mesh.discard(&everything(), "me").await;
    world.mesh.changed(seen).await;
    assert!(!has_bad_replies(&world));
}

fn has_bad_replies(world: &World) -> bool {
    let consumer = world.mesh.consumer("trigger/ns/t").unwrap();
    consumer.bad_replies.is_some()
}

#[tokio::test(start_paused = true)]
async fn bad_replies_keep_nobody_from_being_sent_events_and_beyond_a_bound_none_is_kept() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Say(&[STRUCTURED], "{"));
    world.route().await;
    let events = 1_010;
    world
        .publish_many((0..events).map(|number| number.to_string()))
        .await;
    world.until_delivered("t", events).await;
    let account = world.account("t");
    assert_eq!((account.dead_replies, account.held), (1_000, None));
    let mut kept = 0;
    for id in 0..events {
        kept += u32::from(
            bad_reply(&world, &id.to_string())
                .await
                .dead_letter
                .is_some(),
        );
    }
    assert_eq!(kept, 1_000, "the others are told all the same");
    let text = world.mesh.metrics_text();
    assert!(text.contains("reason=\"not-an-event\"} 1010\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_sink_for_dead_letters_hears_of_no_reply() {
    let mut world = World::with_broker();
    let sink = json!({
        "spec": {"delivery": {"deadLetterSink": {"uri": "http://sink/"}}},
        "status": {"deadLetterSinkUri": "http://sink/"},
    });
    world.trigger("t", "a", sink);
    world.manner("a", Manner::Say(&[STRUCTURED], "{"));
    world.route().await;
    world.publish("1", &[]).await;
    until_kept(&world, 1).await;
    world.pass(60).await;
    assert_eq!(world.received("sink"), [""; 0]);
    assert_eq!(dead_letters(&world)[0].sink, None);
}

/// A channel whose subscriber `a` replies with events, which go to this address, if there is one.
fn channel_with_replies(world: &mut World, reply: Option<&str>) {
    let name = json!({"name": "c", "namespace": "ns", "uid": "c", "generation": 1});
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "metadata": name, "spec": {},
    });
    let channel = serde_json::from_value(channel).unwrap();
    world.resources.channels.push(Arc::new(channel));
    let mut addresses = json!({"subscriberUri": "http://a/"});
    if let Some(reply) = reply {
        addresses["replyUri"] = json!(reply);
    }
    let subscription = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
        "metadata": {"name": "s", "namespace": "ns", "uid": "s", "generation": 1},
        "spec": {
            "channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "c"},
            "subscriber": {"uri": "http://a/"}, "reply": {"uri": "http://b/"}, "delivery": {"retry": 1},
        },
        "status": {"physicalSubscription": addresses},
    });
    let subscription = serde_json::from_value(subscription).unwrap();
    world.resources.subscriptions.push(Arc::new(subscription));
}

fn account_of_subscription(world: &World) -> Account {
    let accounts = world.mesh.accounts(true);
    let mut all = accounts.consumers.into_iter();
    all.find(|account| account.consumer == "subscription/ns/s")
        .unwrap_or_default()
}

/// An event was delivered, and whoever its reply goes to answers with this status until something is a dead letter.
async fn replied_to(status: u16) -> World {
    let mut world = World::in_memory().await;
    channel_with_replies(&mut world, Some("http://b/"));
    world.manner("a", Manner::Reply("order.checked"));
    world.manner("b", Manner::Answer(status));
    world.route().await;
    world.publish_at("/channel/ns/c", "1", &[]).await;
    world
        .until("a dead letter", |world| dead_letters(world).len() == 1)
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_refused_for_what_it_is_rests_and_its_event_is_delivered() {
    for status in [400, 413, 415, 422] {
        let world = replied_to(status).await;
        let account = account_of_subscription(&world);
        assert_eq!((account.delivered, account.dead_lettered), (1, 0));
        assert_eq!(world.received("a"), ["1"], "it is not called again");
        assert_eq!(world.received("b"), ["1-r"]);
        let letter = &dead_letters(&world)[0];
        assert_eq!(letter.reply.as_ref().unwrap().fault, "refused");
        let detail = world.mesh.dead_letter(&letter.name).unwrap();
        let reply: Value = serde_json::from_str(&detail.answer.unwrap()).unwrap();
        assert_eq!(reply["id"], "1-r", "what can be kept of it is");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_refused_for_another_reason_fails_its_delivery() {
    for status in [401, 403, 404, 500] {
        let world = replied_to(status).await;
        let account = account_of_subscription(&world);
        assert_eq!((account.delivered, account.dead_lettered), (0, 1));
        assert_eq!(world.received("a"), ["1", "1"], "{status}");
        assert_eq!(dead_letters(&world)[0].reply, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_a_destination_rests() {
    let mut world = World::in_memory().await;
    channel_with_replies(&mut world, None);
    world.manner("a", Manner::Reply("order.checked"));
    world.route().await;
    world.publish_at("/channel/ns/c", "1", &[]).await;
    until_kept(&world, 1).await;
    assert_eq!(account_of_subscription(&world).delivered, 1);
    let letter = &dead_letters(&world)[0];
    assert_eq!(letter.reply.as_ref().unwrap().fault, "no-destination");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_claim_to_be_an_event_is_no_reply() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner(
        "a",
        Manner::Say(&[("content-type", "application/json")], "{}"),
    );
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    assert_eq!(world.account("t").dead_replies, 0);
    assert_eq!(dead_letters(&world), []);
}
