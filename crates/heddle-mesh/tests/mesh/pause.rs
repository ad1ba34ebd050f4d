//! Pauses that end by themselves: at their time, however the clock is set, over restarts and crashes, and without losing
//! anything.

use heddle_api::ledger::EventState;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::world::World;

/// The world begins at midnight.
fn until(time: &str) -> Value {
    json!({"metadata": {"annotations": {
        "heddle.dev/paused": "true",
        "heddle.dev/paused-until": format!("2026-01-01T{time}Z"),
        "heddle.dev/paused-by": "ada",
        "heddle.dev/paused-reason": "mending",
    }}})
}

async fn paused(mut world: World, time: &str) -> World {
    world.broker("ns", "default");
    world.trigger("t", "a", until(time));
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.until_pending("t", 1).await;
    world
}

fn delivered(world: &World) -> u64 {
    world.account("t").delivered
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_told_with_who_and_why_and_ends_at_its_time() {
    for on_disk in [false, true] {
        // One after the other: the clock of a world begins with it.
        let world = match on_disk {
            false => World::in_memory().await,
            true => World::on_disk(),
        };
        let world = paused(world, "01:00:00").await;
        let held = world.account("t").held.unwrap();
        assert_eq!(
            held,
            "it is paused by ada until 2026-01-01T01:00:00Z: mending"
        );
        let trace = world.trace("1").await.events.remove(0).verdicts.remove(0);
        assert_eq!(trace.state, EventState::Waiting);
        assert!(trace.reason.contains(&held), "{}", trace.reason);
        world.pass(3590).await;
        assert_eq!((delivered(&world), world.account("t").pending), (0, 1));
        world.pass(15).await;
        assert_eq!((delivered(&world), world.account("t").pending), (1, 0));
        assert_eq!(world.account("t").held, None);
        assert_eq!(world.publish("2", &[]).await, 202);
        world.until_delivered("t", 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_ends_a_pause_and_one_that_is_set_back_begins_none() {
    let world = paused(World::in_memory().await, "12:00:00").await;
    world.pass(60).await;
    world.clock.set_by(SignedDuration::from_hours(12));
    world.pass(15).await;
    assert_eq!(delivered(&world), 1, "within seconds");
    world.clock.set_by(SignedDuration::from_hours(-12));
    // Somebody changes something else, and the table is made again.
    world.route().await;
    assert_eq!(world.publish("2", &[]).await, 202);
    world.until_delivered("t", 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_a_pause_longer_and_loses_nothing() {
    let world = paused(World::in_memory().await, "01:00:00").await;
    world.clock.set_by(SignedDuration::from_hours(-1));
    world.pass(3600).await;
    assert_eq!(delivered(&world), 0, "the clock does not show the time yet");
    world.pass(3610).await;
    assert_eq!(delivered(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_goes_on_over_a_restart_and_ends_while_nobody_runs() {
    for crash in [false, true] {
        let mut world = paused(World::on_disk(), "01:00:00").await;
        world.mesh.settled().await;
        if crash {
            world.crash().await;
        } else {
            world.restart().await;
        }
        world.route().await;
        world.pass(60).await;
        assert_eq!((delivered(&world), world.account("t").pending), (0, 1));
        world.stop().await;
        world.pass(3600).await;
        world.begin();
        world.route().await;
        world.until_delivered("t", 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_pause_holds_although_one_was_over() {
    let mut world = paused(World::in_memory().await, "00:01:00").await;
    world.pass(75).await;
    assert_eq!(delivered(&world), 1);
    world.trigger("t", "a", until("00:10:00"));
    world.route().await;
    assert_eq!(world.publish("2", &[]).await, 202);
    world.pass(60).await;
    assert_eq!((delivered(&world), world.account("t").pending), (1, 1));
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.until_delivered("t", 2).await;
}
