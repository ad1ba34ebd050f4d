//! A consumer that does not take its events keeps no more of the log than was agreed, and nothing ends silently.

use std::time::Duration;

use heddle_api::ledger::EventState;
use heddle_mesh::{Quota, Retention};
use serde_json::{Value, json};

use crate::world::{Manner, World};

/// Segments have 4 KiB on the disk and 16 events in memory.
const QUOTA_BYTES: u64 = 16 << 10;
const SEGMENT_BYTES: u64 = 4 << 10;

fn bounded(extra: Value) -> Value {
    let mut trigger = json!({
        "metadata": {"annotations": {"heddle.dev/backlog-bytes-max": "16Ki"}},
        "spec": {"delivery": {"timeout": "PT5S", "retry": 1000, "backoffDelay": "PT1S"}},
    });
    for (name, value) in extra.as_object().into_iter().flatten() {
        trigger["metadata"]["annotations"][name] = value.clone();
    }
    trigger
}

/// Forgets what is finished as soon as it can.
fn forgetful() -> Retention {
    Retention {
        age_max: Duration::ZERO,
        bytes_max: 0,
    }
}

fn numbers(count: u32) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("{number:05}"))
}

/// Tidies up until the consumer has read and let go of everything beyond its quota.
async fn tidy(world: &World) {
    for _ in 0..3 {
        world.mesh.tidy().await;
        world.pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_subscriber_keeps_its_quota_of_the_log_and_its_neighbour_gets_everything() {
    for mut world in World::each() {
        world.retention = forgetful();
        world.restart().await;
        world.broker("ns", "default");
        world.trigger("dead", "dead", bounded(json!({})));
        world.trigger("well", "well", json!({}));
        world.manner("dead", Manner::Answer(503));
        world.route().await;
        world.publish_many(numbers(1000)).await;
        world
            .until("matched", |world| world.account("dead").matched == 1000)
            .await;
        let before = world.account("dead").kept_bytes;
        assert!(before > 4 * QUOTA_BYTES, "{before}");
        tidy(&world).await;
        let account = world.account("dead");
        assert!(
            account.kept_bytes <= QUOTA_BYTES + SEGMENT_BYTES,
            "{account:?}"
        );
        assert!(account.pending > 0 && account.expired > 500, "{account:?}");
        assert_eq!(account.dead_lettered, 0);
        let log: u64 = world.log.segments().iter().map(|one| one.bytes).sum();
        assert!(log <= QUOTA_BYTES + SEGMENT_BYTES, "{log} bytes are left");
        assert_eq!(world.account("well").delivered, 1000);
        assert_eq!(world.account("well").expired, 0);
        // What expired is safe: after a crash nobody tries it again, and the books balance.
        world.mesh.settled().await;
        let account = world.account("dead");
        world.crash().await;
        world.manner("dead", Manner::Accept);
        world.route().await;
        assert_eq!(world.account("dead").expired, account.expired);
        world.until_pending("dead", 0).await;
        let now = world.account("dead");
        assert_eq!(now.delivered, account.pending);
        assert_eq!(now.expired, account.expired);
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_says_so_and_so_does_its_trigger() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", bounded(json!({})));
    world.manner("a", Manner::Answer(503));
    world.route().await;
    let over = |world: &World| world.mesh.consumer("trigger/ns/t").unwrap().over_quota;
    world.publish_many(numbers(50)).await;
    tidy(&world).await;
    assert_eq!(over(&world), None, "it is within its quota");
    assert_eq!(world.account("t").expired, 0);
    world
        .publish_many((50..500).map(|number| number.to_string()))
        .await;
    tidy(&world).await;
    let reason = over(&world).unwrap();
    assert!(reason.contains("may keep"), "{reason}");
    assert_eq!(world.account("t").over_quota, Some(reason));
    let trace = world.trace("00000").await;
    let verdict = &trace.events[0].verdicts[0];
    assert_eq!(verdict.state, EventState::Expired);
    assert!(verdict.reason.contains("backlog"), "{verdict:?}");
    assert!(!verdict.attempts.is_empty(), "{verdict:?}");
    assert_eq!(verdict.next_attempt_at, None, "nobody tries it again");
    // Once it keeps up again, nothing is said any more.
    world.manner("a", Manner::Accept);
    world.until_pending("t", 0).await;
    tidy(&world).await;
    assert_eq!(over(&world), None);
}

#[tokio::test(start_paused = true)]
async fn events_that_are_too_old_expire_also_while_the_trigger_is_paused() {
    for mut world in World::each() {
        world.quota.age_max = Some(Duration::from_secs(60));
        world.restart().await;
        world.broker("ns", "default");
        let paused = |annotation| json!({"metadata": {"annotations": annotation}});
        world.trigger("t", "a", paused(json!({"heddle.dev/paused": "true"})));
        let patient = json!({"heddle.dev/paused": "true", "heddle.dev/backlog-age-max": "none"});
        world.trigger("patient", "b", paused(patient));
        world.route().await;
        world.publish_many(numbers(20)).await;
        world.pass(61).await;
        world.publish("young", &[]).await;
        world
            .until("expired", |world| world.account("t").expired == 20)
            .await;
        world.trigger("t", "a", json!({}));
        world.trigger(
            "patient",
            "b",
            json!({"metadata": {"annotations": {"heddle.dev/backlog-age-max": "none"}}}),
        );
        world.route().await;
        world.until_pending("t", 0).await;
        assert_eq!(world.received("a"), ["young"]);
        world.until_delivered("patient", 21).await;
        assert_eq!(world.account("patient").expired, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_quota_nothing_expires() {
    let mut world = World::on_disk();
    assert_eq!(world.quota, Quota::default());
    world.broker("ns", "default");
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    world.trigger("t", "a", paused);
    world.route().await;
    world.publish_many(numbers(500)).await;
    world.pass(300).await;
    tidy(&world).await;
    let account = world.account("t");
    assert_eq!((account.pending, account.expired), (500, 0));
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_was_never_in_memory_expires_as_well() {
    let mut world = World::with_broker();
    world.trigger("t", "a", bounded(json!({"heddle.dev/paused": "true"})));
    world.route().await;
    world.publish_many(numbers(9000)).await;
    tidy(&world).await;
    let account = world.account("t");
    assert!(
        account.kept_bytes <= QUOTA_BYTES + SEGMENT_BYTES,
        "{account:?}"
    );
    assert_eq!(account.expired + account.pending, 9000);
    world.crash().await;
    world.trigger("t", "a", bounded(json!({})));
    world.route().await;
    world.until_pending("t", 0).await;
    let received = world.received_sorted("a");
    let newest: Vec<String> = numbers(9000).skip(9000 - received.len()).collect();
    assert_eq!(received, newest, "the oldest went first");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_an_ordered_backlog_is_delivered_in_order() {
    for mut world in World::each_with_broker() {
        let ordered = json!({"heddle.dev/delivery-order": "ordered"});
        world.trigger("t", "a", bounded(ordered));
        world.manner("a", Manner::Answer(503));
        world.route().await;
        for number in 0..600 {
            let (id, key) = (format!("{number:05}"), (number % 7).to_string());
            assert_eq!(world.publish(&id, &[("partitionkey", &key)]).await, 202);
        }
        world
            .until("tried", |world| world.account("t").retrying > 0)
            .await;
        tidy(&world).await;
        let left = world.account("t").pending;
        assert!(left > 0 && left < 600, "{left}");
        world.subscribers.forget();
        world.manner("a", Manner::Accept);
        world.until_pending("t", 0).await;
        let received = world.received("a");
        for key in 0..7 {
            let of_key = |id: &&String| id.parse::<u32>().unwrap() % 7 == key;
            let of_key: Vec<&String> = received.iter().filter(of_key).collect();
            assert!(of_key.is_sorted(), "{of_key:?}");
        }
        let account = world.account("t");
        assert_eq!(account.delivered + account.expired, 600);
    }
}
