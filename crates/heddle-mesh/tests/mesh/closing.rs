//! Ending in an orderly way, and going on when outcomes cannot be written.

use std::time::Duration;

use heddle_mesh::log::AppendRefused;
use serde_json::json;

use crate::world::{Manner, World};

#[tokio::test(start_paused = true)]
async fn closing_during_deliveries_fails_none_of_them() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", json!({"spec": {"delivery": {"retry": 0}}}));
        world.manner("a", Manner::Hang);
        world.route().await;
        world
            .publish_many((0..100).map(|number| format!("{number:02}")))
            .await;
        world
            .until("under way", |world| world.account("t").in_flight == 64)
            .await;
        world.stop().await;
        world.manner("a", Manner::Accept);
        world.begin();
        world.route().await;
        world.until_delivered("t", 100).await;
        assert_eq!(world.account("t").dead_lettered, 0);
        let mut received = world.received_sorted("a");
        assert_eq!(received.len(), 164, "twice is only what was under way");
        received.dedup();
        assert_eq!(received.len(), 100);
    }
}

#[tokio::test(start_paused = true)]
async fn closing_lets_attempts_finish_and_remembers_them() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", json!({}));
        world.route().await;
        world
            .publish_many((0..100).map(|number| number.to_string()))
            .await;
        world.restart().await;
        world.route().await;
        world.until_delivered("t", 100).await;
        assert_eq!(world.received("a").len(), 100, "nothing twice");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_outcomes_cannot_be_written() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.route().await;
    log.refuse_lines(Some(AppendRefused::Full));
    world.publish("1", &[]).await;
    world
        .until("sent", |world| world.received("a").len() == 1)
        .await;
    world.pass(1).await;
    world.publish("2", &[]).await;
    world.publish("3", &[]).await;
    world.pass(60).await;
    assert_eq!(world.received("a"), ["1"]);
    log.refuse_lines(None);
    world.until_delivered("t", 3).await;
    assert_eq!(world.received_sorted("a"), ["1", "2", "3"]);
    world.mesh.settled().await;
    let account = world.account("t");
    world.crash().await;
    world.route().await;
    assert_eq!(
        world.account("t"),
        account,
        "the outcomes were kept meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_recovers_is_noticed_even_if_nothing_happens() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.trigger(
        "t",
        "a",
        json!({"spec": {"delivery": {"retry": 1, "backoffDelay": "PT5S"}}}),
    );
    world.manner("a", Manner::Answer(503));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_retrying("t", 1).await;
    world.mesh.settled().await;
    log.refuse_lines(Some(AppendRefused::Busy));
    // Somebody asks, there is nothing to write, and still the journal turns out to refuse.
    let settled = world.mesh.settled();
    let waited = world.clock.timeout(Duration::from_secs(1), settled).await;
    assert!(waited.is_err(), "it cannot be safe");
    log.refuse_lines(None);
    world.manner("a", Manner::Accept);
    world.until_delivered("t", 1).await;
    assert!(
        world.clock.monotonic() < Duration::from_secs(20),
        "at the next chance, not when housekeeping happens to ask"
    );
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_for_a_while_makes_nobody_forget_or_repeat() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    let delivery = json!({"retry": 100, "backoffDelay": "PT1S", "backoffPolicy": "linear"});
    world.trigger("t", "a", json!({"spec": {"delivery": delivery}}));
    world.manner("a", Manner::Hang);
    world.route().await;
    world.publish("1", &[]).await;
    world
        .until("under way", |world| world.received("a").len() == 1)
        .await;
    world.manner("a", Manner::Answer(503));
    world.publish("2", &[]).await;
    world.until_retrying("t", 1).await;
    world.mesh.settled().await;
    world.crash().await;
    log.refuse_reads(true);
    world.manner("a", Manner::Accept);
    world.route().await;
    // The second event is on record and sent from there, before its place in the log was read again.
    world
        .until("sent", |world| {
            world.received("a").last().map(String::as_str) == Some("2")
        })
        .await;
    world.pass(10).await;
    world.publish("3", &[]).await;
    log.refuse_reads(false);
    world.until_delivered("t", 3).await;
    world.pass(60).await;
    let account = world.account("t");
    assert_eq!((account.matched, account.delivered), (3, 3));
    let received = world.received("a");
    let last: Vec<&str> = received.iter().rev().take(3).map(String::as_str).collect();
    assert!(
        last.contains(&"1") && last.contains(&"2") && last.contains(&"3"),
        "{received:?}"
    );
}
