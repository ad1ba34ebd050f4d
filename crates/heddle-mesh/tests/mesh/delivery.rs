//! What becomes of an event: delivered, tried again, laid to rest, and always accounted for.

use heddle_api::ledger::{DeadLetterSelection, EventState};
use serde_json::json;

use crate::world::{Manner, World};

fn all() -> DeadLetterSelection {
    DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_delivered_once_to_whoever_wants_it() {
    let mut world = World::with_broker();
    world.trigger(
        "wants",
        "a",
        json!({"spec": {"filter": {"attributes": {"type": "order.created"}}}}),
    );
    world.trigger(
        "wants-not",
        "b",
        json!({"spec": {"filter": {"attributes": {"type": "order.paid"}}}}),
    );
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.until_delivered("wants", 1).await;
    assert_eq!(world.received("a"), ["1"]);
    assert!(world.received("b").is_empty());
    let delivery = &world.deliveries("a")[0];
    assert_eq!(delivery.headers["ce-type"], "order.created");
    assert_eq!(delivery.body, "data of 1");
    let trace = world.trace("1").await;
    let states: Vec<EventState> = trace.events[0]
        .verdicts
        .iter()
        .map(|verdict| verdict.state)
        .collect();
    assert_eq!(states, [EventState::Delivered, EventState::Filtered]);
    assert_eq!(trace.events[0].summary, "done");
    assert!(
        trace.events[0].verdicts[1].reason.contains("order.paid"),
        "{trace:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_followed_by_others_until_one_succeeds() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::FailFirst(3));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    assert_eq!(world.received("a"), ["1"; 4]);
    let trace = world.trace("1").await;
    let statuses: Vec<_> = trace.events[0].verdicts[0]
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(statuses, [Some(500), Some(500), Some(500), Some(200)]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_takes_rests_until_it_is_redriven_or_discarded() {
    let mut world = World::with_broker();
    world.trigger(
        "t",
        "a",
        json!({"spec": {"delivery": {"retry": 2, "backoffDelay": "PT0.1S"}}}),
    );
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world.publish("1", &[]).await;
    world.publish("2", &[]).await;
    world.until_dead_lettered("t", 2).await;
    assert_eq!(world.received("a").len(), 6);
    let page = world
        .mesh
        .dead_letters(&DeadLetterSelection::default(), 0, 10);
    assert_eq!(page.total, 2);
    assert_eq!(page.items[0].attempts, 3);
    world.manner("a", Manner::Accept);
    let first = DeadLetterSelection {
        names: vec![page.items[0].name.clone()],
        ..DeadLetterSelection::default()
    };
    assert_eq!(world.mesh.redrive(&first, "ann").await.count, 1);
    world.until_delivered("t", 1).await;
    assert_eq!(world.mesh.discard(&all(), "ann").await.count, 1);
    let account = world.account("t");
    assert_eq!(
        (
            account.matched,
            account.removed,
            account.dead_lettered,
            account.pending
        ),
        (2, 1, 0, 0)
    );
    world.crash().await;
    world.route().await;
    assert_eq!(
        world.account("t"),
        heddle_api::ledger::Account { ..account },
        "a restart changes nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_at_once_is_asked_gently_until_it_is_well() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world.publish_many((0..3000).map(|id| id.to_string())).await;
    world.pass(1).await;
    let asked = world.received("a").len();
    assert!((100..=300).contains(&asked), "{asked} times in a second");
    world.manner("a", Manner::Accept);
    world.until_pending("t", 0).await;
    let account = world.account("t");
    assert_eq!(account.delivered + account.dead_lettered, 3000);
    assert!(account.delivered > 2000, "most did not fail: {account:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_forgets_neither_backlog_nor_attempts() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({"spec": {"delivery": {"retry": 5, "backoffDelay": "PT1S", "backoffPolicy": "linear"}}}));
    world.manner("a", Manner::Answer(503));
    world.route().await;
    world
        .publish_many((0..20).map(|number| format!("e{number}")))
        .await;
    world.until_retrying("t", 20).await;
    world.mesh.settled().await;
    let attempts_before = world.received("a").len();
    world.crash().await;
    world.route().await;
    world.until_dead_lettered("t", 20).await;
    let attempts = world.received("a").len();
    assert!(
        attempts >= 20 * 6,
        "every event has all its attempts: {attempts}"
    );
    assert!(
        attempts <= 20 * 6 + 20,
        "and none starts anew: {attempts_before} before, {attempts} in all"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_falls_behind_and_catches_up_without_loss_or_repetition() {
    let mut world = World::with_broker();
    world.trigger(
        "t",
        "a",
        json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}}),
    );
    world.route().await;
    world
        .publish_many((0..10_000).map(|number| format!("{number}")))
        .await;
    world.until_pending("t", 10_000).await;
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.until_delivered("t", 10_000).await;
    let mut received: Vec<u32> = world
        .received("a")
        .iter()
        .map(|id| id.parse().unwrap())
        .collect();
    received.sort_unstable();
    assert_eq!(received, (0..10_000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_request_goes_along_with_its_event_and_is_no_part_of_it() {
    for mut world in World::each() {
        world.bridge(json!({}));
        world.manner("a", Manner::FailFirst(1));
        world.route().await;
        let id = ("x-request-id", "8b1f-7/a");
        assert_eq!(world.publish_with("1", &[id]).await, 202);
        world.until_retrying("t", 1).await;
        // What is not safe yet would be done again.
        world.mesh.settled().await;
        world.crash().await;
        world.route().await;
        world.until_delivered("t", 1).await;
        for delivery in world.deliveries("a") {
            assert_eq!(delivery.headers["x-request-id"], "8b1f-7/a");
            assert!(!delivery.headers.contains_key("ce-x-request-id"));
        }
        let trace = world.trace("1").await;
        for event in &trace.events {
            assert_eq!(event.request_id.as_deref(), Some("8b1f-7/a"));
        }
        assert_eq!(trace.events.len(), 2, "also at the next broker");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_a_request_that_is_none_is_left_out() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    let long = "x".repeat(129);
    for (number, id) in ["", "a b", "tab\there", &long].into_iter().enumerate() {
        let id = [("x-request-id", id)];
        assert_eq!(world.publish_with(&number.to_string(), &id).await, 202);
    }
    world.until_delivered("t", 4).await;
    for delivery in world.deliveries("a") {
        assert!(!delivery.headers.contains_key("x-request-id"));
    }
    assert_eq!(world.trace("1").await.events[0].request_id, None);
}

/// Large enough that eight of them are all that one destination may hold.
const LARGE_BYTES: usize = 1_000_000;

#[tokio::test(start_paused = true)]
async fn a_destination_that_does_not_answer_holds_a_few_large_events_and_no_neighbours() {
    let mut world = World::with_broker();
    let slowly =
        json!({"spec": {"delivery": {"timeout": "PT20S", "retry": 20, "backoffDelay": "PT1S"}}});
    let stalled: Vec<String> = (0..6).map(|n| format!("stalled-{n}")).collect();
    for name in &stalled {
        world.trigger(name, name, slowly.clone());
        world.manner(name, Manner::Hang);
    }
    world.trigger("good", "good", json!({}));
    world.route().await;
    for id in 0..20 {
        assert_eq!(world.publish_large(&id.to_string(), LARGE_BYTES).await, 202);
    }
    world.until_delivered("good", 20).await;
    for name in &stalled {
        let held = world.received(name).len();
        assert!((1..=8).contains(&held), "{name} has {held} at once");
    }
    for name in &stalled {
        world.manner(name, Manner::Accept);
    }
    for name in &stalled {
        world.until_delivered(name, 20).await;
        assert_eq!(world.account(name).dead_lettered, 0);
    }
}

/// For its sink a dead letter is read once more and written anew, which is counted with it.
#[tokio::test(start_paused = true)]
async fn a_sink_that_does_not_answer_holds_fewer_large_events_yet() {
    let mut world = World::with_broker();
    let with_sink = json!({
        "spec": {"delivery": {"retry": 0, "timeout": "PT20S", "deadLetterSink": {"uri": "http://sink/"}}},
        "status": {"deadLetterSinkUri": "http://sink/"},
    });
    world.trigger("t", "a", with_sink);
    world.manner("a", Manner::Answer(400));
    world.manner("sink", Manner::Hang);
    world.route().await;
    for id in 0..12 {
        assert_eq!(world.publish_large(&id.to_string(), LARGE_BYTES).await, 202);
    }
    world.until_dead_lettered("t", 12).await;
    world.pass(10).await;
    let held = world.received("sink").len();
    assert!((1..=2).contains(&held), "it has {held} at once");
    world.manner("sink", Manner::Accept);
    let all = |world: &World| {
        let mut told = world.received_sorted("sink");
        told.dedup();
        told.len() == 12
    };
    world.until("all are told to the sink", all).await;
}

#[tokio::test(start_paused = true)]
async fn large_events_wait_for_room_at_the_cost_of_no_attempt() {
    let mut world = World::with_broker();
    let once = json!({"spec": {"delivery": {"timeout": "PT1S", "retry": 0}}});
    world.trigger("once", "once", once);
    world.manner("once", Manner::Hang);
    world.route().await;
    for id in 0..30 {
        assert_eq!(world.publish_large(&id.to_string(), LARGE_BYTES).await, 202);
    }
    // Each is tried once and no more; those that found no room were not tried meanwhile.
    world.until_dead_lettered("once", 30).await;
    let mut received = world.received_sorted("once");
    received.dedup();
    assert_eq!(received.len(), 30, "each was sent");
    assert_eq!(world.received("once").len(), 30, "and once");
}

/// A neighbour that may take ten minutes holds all that the destination may have. Whoever allows a second waits a second, says
/// why nothing moves, and looks again.
#[tokio::test(start_paused = true)]
async fn room_is_waited_for_no_longer_than_an_attempt_may_take() {
    let mut world = World::with_broker();
    let within = |timeout: &str| json!({"spec": {"delivery": {"timeout": timeout, "retry": 0}}});
    world.manner("same", Manner::Hang);
    world.trigger("patient", "same", within("PT10M"));
    world.route().await;
    for id in 0..8 {
        assert_eq!(world.publish_large(&id.to_string(), LARGE_BYTES).await, 202);
    }
    let all = |world: &World| world.received("same").len() == 8;
    world.until("they are on their way", all).await;
    world.trigger("brisk", "same", within("PT1S"));
    world.route().await;
    assert_eq!(world.publish_large("late", LARGE_BYTES).await, 202);
    world.pass(3).await;
    let told = format!("{:?}", world.mesh.consumer("trigger/ns/brisk"));
    assert!(told.contains("hold the memory"), "{told}");
    assert_eq!(world.received("same").len(), 8);
}
