//! Ordered triggers: one event of a key at a time, and no key waits for another.

use heddle_api::ledger::DeadLetterSelection;
use serde_json::{Value, json};

use crate::world::{Manner, World};

fn ordered(generation: i64) -> Value {
    json!({
        "metadata": {"generation": generation, "annotations": {"heddle.dev/delivery-order": "ordered"}},
        "spec": {"delivery": {"retry": 100, "backoffDelay": "PT1S", "backoffPolicy": "linear"}},
    })
}

async fn publish(world: &World, key: &str, ids: &[&str]) {
    for id in ids {
        assert_eq!(world.publish(id, &[("partitionkey", key)]).await, 202);
    }
}

fn of_key(world: &World, key: &str) -> Vec<String> {
    let received = world.received("a").into_iter();
    received.filter(|id| id.starts_with(key)).collect()
}

#[tokio::test(start_paused = true)]
async fn events_of_a_key_keep_their_order_through_retries() {
    let mut world = World::with_broker();
    world.trigger("t", "a", ordered(1));
    world.manner("a", Manner::FailFirst(2));
    world.route().await;
    for number in 1..=3 {
        publish(&world, "k", &[&format!("k{number}")]).await;
        publish(&world, "l", &[&format!("l{number}")]).await;
        // Without a key they are one sequence.
        world.publish(&format!("n{number}"), &[]).await;
    }
    world.until_delivered("t", 9).await;
    for key in ["k", "l", "n"] {
        let received = of_key(&world, key);
        assert_eq!(received.len(), 9);
        assert!(received.is_sorted(), "{received:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_event_fails_waits_also_over_a_crash_and_blocks_no_other() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", ordered(1));
        world.manner("a", Manner::AnswerTo(&["k1"], 503));
        world.route().await;
        publish(&world, "k", &["k1", "k2", "k3"]).await;
        publish(&world, "l", &["l1", "l2"]).await;
        world.until_delivered("t", 2).await;
        world.mesh.settled().await;
        world.crash().await;
        world.route().await;
        publish(&world, "k", &["k4"]).await;
        publish(&world, "l", &["l3"]).await;
        world.until_delivered("t", 3).await;
        assert!(of_key(&world, "k").iter().all(|id| id == "k1"));
        world.manner("a", Manner::Accept);
        world.until_delivered("t", 7).await;
        let mut received = of_key(&world, "k");
        received.dedup();
        assert_eq!(received, ["k1", "k2", "k3", "k4"]);
        assert_eq!(of_key(&world, "l"), ["l1", "l2", "l3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_goes_on_after_its_subscriber_asked_to_be_left_alone() {
    let mut world = World::with_broker();
    world.trigger("t", "a", ordered(1));
    world.manner("a", Manner::Answer(410));
    world.route().await;
    publish(&world, "k", &["k1", "k2", "k3"]).await;
    world
        .until("held", |world| world.account("t").held.is_some())
        .await;
    world.manner("a", Manner::Accept);
    world.trigger("t", "a", ordered(2));
    world.route().await;
    world.until_delivered("t", 3).await;
    assert_eq!(world.received("a"), ["k1", "k1", "k2", "k3"]);
}

#[tokio::test(start_paused = true)]
async fn events_that_wait_for_their_key_go_when_order_is_no_longer_asked_for() {
    let mut world = World::with_broker();
    world.trigger("t", "a", ordered(1));
    world.manner("a", Manner::AnswerTo(&["k1"], 503));
    world.route().await;
    publish(&world, "k", &["k1", "k2", "k3"]).await;
    world.until_retrying("t", 1).await;
    world.trigger("t", "a", json!({"metadata": {"generation": 2}}));
    world.route().await;
    world.until_delivered("t", 2).await;
    world.manner("a", Manner::Accept);
    world.until_delivered("t", 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_waits_for_its_key_makes_nobody_read_again_what_is_done() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", ordered(1));
        world.manner("a", Manner::AnswerTo(&["k1"], 400));
        world.route().await;
        publish(&world, "k", &["k1"]).await;
        publish(&world, "l", &["l1", "l2", "l3"]).await;
        world.until_delivered("t", 3).await;
        world.manner("a", Manner::HangOn("k2"));
        publish(&world, "k", &["k2"]).await;
        world
            .until("under way", |world| world.account("t").in_flight == 1)
            .await;
        let all = DeadLetterSelection {
            all: true,
            ..Default::default()
        };
        assert_eq!(world.mesh.redrive(&all, "ann").await.count, 1);
        publish(&world, "l", &["l4"]).await;
        world.until_delivered("t", 4).await;
        assert_eq!(world.account("t").pending, 2);
        world.mesh.settled().await;
        world.manner("a", Manner::Accept);
        world.crash().await;
        world.route().await;
        world.until_delivered("t", 6).await;
        world.pass(60).await;
        assert_eq!(of_key(&world, "l"), ["l1", "l2", "l3", "l4"]);
        assert_eq!(world.account("t").delivered, 6);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_overtakes_an_event_that_a_dead_letter_on_its_way_went_before() {
    let mut world = World::in_memory().await;
    let at_once = |generation: i64, in_flight: &str, paused: bool| {
        let annotations = json!({
            "heddle.dev/delivery-order": "ordered",
            "heddle.dev/max-in-flight": in_flight,
            "heddle.dev/paused": paused.to_string(),
        });
        json!({
            "metadata": {"generation": generation, "annotations": annotations},
            "spec": {"delivery": {"retry": 0, "timeout": "PT1S"}},
        })
    };
    world.broker("ns", "default");
    world.trigger("t", "a", at_once(1, "8", false));
    world.manner("a", Manner::HangOn("k1"));
    world.route().await;
    publish(&world, "k", &["k1", "k2", "k3"]).await;
    world
        .until("under way", |world| world.received("a") == ["k1"])
        .await;
    // The first dies while nothing may be sent, so that the second may go and does not.
    world.trigger("t", "a", at_once(2, "8", true));
    world.route().await;
    world
        .until("dead", |world| world.account("t").dead_letters == 1)
        .await;
    let all = DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    };
    assert_eq!(world.mesh.redrive(&all, "ann").await.count, 1);
    world.manner("a", Manner::Accept);
    // One at a time: nobody asks for the key while the dead letter has it.
    world.trigger("t", "a", at_once(3, "1", false));
    world.route().await;
    world.until_delivered("t", 3).await;
    assert_eq!(of_key(&world, "k"), ["k1", "k1", "k2", "k3"]);
}
