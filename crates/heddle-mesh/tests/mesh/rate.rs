//! Rates: no more than was asked for is sent, and no less while events wait, whatever answers take and whatever changes
//! meanwhile.

use std::time::Duration;

use heddle_api::ledger::EventState;
use serde_json::{Value, json};

use crate::world::{Consent, Manner, World};

fn at(rate: &str) -> Value {
    with(rate, json!({}))
}

/// A rate beside other annotations.
fn with(rate: &str, others: Value) -> Value {
    let mut annotations = json!({"heddle.dev/rate": rate});
    let others = others.as_object().unwrap().clone();
    annotations.as_object_mut().unwrap().extend(others);
    json!({"metadata": {"annotations": annotations}})
}

/// A world with a trigger `t` of that kind, whose subscriber `a` takes so long, and with so many events that wait.
async fn sending(trigger: Value, answer_ms: u64, events: usize) -> World {
    let mut world = World::with_broker();
    world.trigger("t", "a", trigger);
    world.manner("a", Manner::AcceptAfter(Duration::from_millis(answer_ms)));
    world.route().await;
    publish(&world, 0, events).await;
    world
}

async fn publish(world: &World, from: usize, events: usize) {
    for number in from..from + events {
        let key = format!("k{}", number % 50);
        let id = format!("{number:05}");
        assert_eq!(world.publish(&id, &[("partitionkey", &key)]).await, 202);
    }
}

fn count(world: &World) -> usize {
    world.received("a").len()
}

/// Whether it is what was wanted, within two in a hundred and the one that begins.
fn is_near(counted: usize, wanted: usize) -> bool {
    let off = wanted / 50 + 1;
    (wanted - off..=wanted + off).contains(&counted)
}

#[tokio::test(start_paused = true)]
async fn a_hundred_in_a_second_are_sent_whatever_answers_take() {
    for answer_ms in [0, 3, 25, 150, 500] {
        let world = sending(at("100/s"), answer_ms, 1000).await;
        for second in 1..=9 {
            world.pass(1).await;
            let sent = count(&world);
            assert!(
                is_near(sent, second * 100),
                "{sent} after {second} s, answered after {answer_ms} ms"
            );
        }
        world.until_delivered("t", 1000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_among_ordered_events_and_keeps_their_order() {
    let ordered = json!({"heddle.dev/delivery-order": "ordered"});
    let world = sending(with("100/s", ordered), 150, 1000).await;
    world.pass(5).await;
    assert!(is_near(count(&world), 500), "{}", count(&world));
    world.until_delivered("t", 1000).await;
    for key in 0..50 {
        let received = world.received("a").into_iter();
        let of_key: Vec<_> = received
            .filter(|id| id.parse::<usize>().unwrap() % 50 == key)
            .collect();
        assert!(of_key.len() == 20 && of_key.is_sorted(), "{of_key:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_over_changes_of_the_table() {
    let mut world = sending(at("100/s"), 40, 1000).await;
    for change in 1..=50 {
        world.clock.sleep(Duration::from_millis(100)).await;
        let mut edited = at("100/s");
        edited["metadata"]["generation"] = json!(1 + change);
        world.trigger("t", "a", edited);
        world.trigger("u", "b", json!({"metadata": {"generation": change}}));
        world.route().await;
    }
    assert!(is_near(count(&world), 500), "{}", count(&world));
    // As slow as it goes, where only a rate that begins anew would send anything.
    world.trigger("t", "a", at("1/h"));
    world.route().await;
    let before = count(&world);
    for change in 1..=50 {
        world.clock.sleep(Duration::from_millis(100)).await;
        world.trigger("u", "b", json!({"metadata": {"generation": 100 + change}}));
        world.route().await;
    }
    assert_eq!(count(&world), before);
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_over_pauses_and_saves_nothing_up() {
    let mut world = sending(at("100/s"), 40, 1000).await;
    world.pass(2).await;
    for _ in 0..3 {
        world.trigger(
            "t",
            "a",
            with("100/s", json!({"heddle.dev/paused": "true"})),
        );
        world.route().await;
        let before = count(&world);
        world.pass(5).await;
        assert_eq!(count(&world), before);
        world.trigger("t", "a", at("100/s"));
        world.route().await;
        world.pass(2).await;
        let sent = count(&world) - before;
        assert!(is_near(sent, 200), "{sent} in two seconds");
    }
    world.until_delivered("t", 1000).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_rate_sends_one_at_its_time_and_shows_what_that_costs() {
    let world = sending(at("0.5/s"), 40, 5).await;
    world.clock.sleep(Duration::from_millis(100)).await;
    for sent in 1..=4 {
        assert_eq!(count(&world), sent);
        let account = world.account("t");
        assert_eq!(account.delivered, sent as u64);
        assert_eq!(account.pending, 5 - sent as u64);
        assert_eq!((account.in_flight, account.retrying), (0, 0), "it waits");
        assert_eq!(account.held, None);
        assert_eq!(account.rate.as_deref(), Some("0.5/s"));
        assert_eq!(account.rate_delay_s, Some(2.0 * account.pending as f64));
        world.pass(2).await;
    }
    world.until_delivered("t", 5).await;
    assert_eq!(world.account("t").rate_delay_s, Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_waits_for_its_turn_was_not_attempted_and_says_so() {
    let world = sending(at("1/h"), 0, 3).await;
    world.pass(60).await;
    let verdict = world
        .trace("00001")
        .await
        .events
        .remove(0)
        .verdicts
        .remove(0);
    assert_eq!(verdict.state, EventState::Pending);
    assert!(verdict.attempts.is_empty(), "{verdict:?}");
    assert!(verdict.reason.contains("no more than 1/h"), "{verdict:?}");
    assert!(
        verdict.reason.contains("2 that wait take 2 h"),
        "{verdict:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_cannot_be_read_is_told_and_holds_nothing_up() {
    let world = sending(at("fast"), 0, 300).await;
    world.pass(1).await;
    assert_eq!(world.account("t").delivered, 300);
    assert_eq!(world.account("t").rate, None);
    let routed = world.mesh.consumer("trigger/ns/t").unwrap();
    let told = routed.faults.join("; ");
    assert!(
        told.contains("heddle.dev/rate is \"fast\"") && told.contains("100/s"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn another_rate_holds_from_the_last_event_on() {
    let mut world = sending(at("1/h"), 0, 500).await;
    world.pass(60).await;
    assert_eq!(count(&world), 1);
    world.trigger("t", "a", at("50/s"));
    world.route().await;
    world.pass(2).await;
    assert!(is_near(count(&world), 100), "{}", count(&world));
    world.trigger("t", "a", at("1/s"));
    world.route().await;
    let before = count(&world);
    world.pass(10).await;
    assert!((9..=11).contains(&(count(&world) - before)));
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.pass(1).await;
    assert_eq!(
        world.account("t").delivered,
        500,
        "without a rate all go at once"
    );
}

#[tokio::test(start_paused = true)]
async fn retries_take_turns_too() {
    let mut trigger = at("10/s");
    trigger["spec"] =
        json!({"delivery": {"retry": 5, "backoffDelay": "PT0.1S", "backoffPolicy": "linear"}});
    let world = sending(trigger, 0, 50).await;
    world.manner("a", Manner::FailFirst(1));
    world.pass(5).await;
    assert!(is_near(count(&world), 50), "{}", count(&world));
    world.until_delivered("t", 50).await;
    assert!((100..=102).contains(&count(&world)), "{}", count(&world));
}

#[tokio::test(start_paused = true)]
async fn the_later_of_two_turns_holds() {
    for (own, allowed, wanted) in [
        ("100/s", "60", 60),
        ("1/s", "6000", 60),
        ("2/s", "120", 120),
    ] {
        let mut world = World::with_broker();
        let asks = json!({"heddle.dev/webhook-origin": "mesh.example"});
        world.trigger("t", "a", with(own, asks));
        let consent = vec![
            ("webhook-allowed-origin", "*"),
            ("webhook-allowed-rate", allowed),
        ];
        world.consent("a", Consent(200, consent));
        world.manner("a", Manner::AcceptAfter(Duration::from_millis(1500)));
        world.route().await;
        publish(&world, 0, 200).await;
        world.pass(60).await;
        assert!(
            is_near(count(&world), wanted),
            "{} of {wanted}",
            count(&world)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_survives_a_restart_and_a_crash() {
    for crash in [false, true] {
        let mut world = World::on_disk_with_broker();
        world.trigger("t", "a", at("20/s"));
        world.route().await;
        publish(&world, 0, 100).await;
        world.pass(1).await;
        world.mesh.settled().await;
        if crash {
            world.crash().await;
        } else {
            world.restart().await;
        }
        let before = count(&world);
        assert!(is_near(before, 20), "{before}");
        world.route().await;
        world.pass(2).await;
        assert!(is_near(count(&world) - before, 40), "{}", count(&world));
        world.until_delivered("t", 100).await;
        let mut received = world.received_sorted("a");
        received.dedup();
        assert_eq!(received.len(), 100);
    }
}
