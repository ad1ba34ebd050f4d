//! What is pending behind a link can be counted and ended, and every event still ends once.

use std::sync::Arc;
use std::time::Duration;

use heddle_api::dataplane::{Fate, GivenUp};
use heddle_api::ledger::EventState;
use serde_json::json;

use crate::world::{Manner, World};

const CHANNEL: &str = "channel/ns/shop";
const BROKER: &str = "broker/ns/default";
const WHY: &str = "deprovisioned";

/// A broker with a trigger, fed by the channel `shop` over a link of its own namespace.
fn linked(world: &mut World, trigger: serde_json::Value) {
    world.broker("ns", "default");
    world.trigger("t", "one", trigger);
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
        "metadata": {"namespace": "ns", "name": "shop", "uid": "c", "generation": 1}, "spec": {},
    });
    let link = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
        "metadata": {"namespace": "ns", "name": "link", "uid": "l", "generation": 1},
        "spec": {
            "channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "shop"},
            "subscriber": {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"}},
        },
    });
    let resources = &mut world.resources;
    resources
        .channels
        .push(Arc::new(serde_json::from_value(channel).unwrap()));
    resources
        .subscriptions
        .push(Arc::new(serde_json::from_value(link).unwrap()));
}

async fn unlink(world: &mut World) {
    world.resources.subscriptions.clear();
    world.route().await;
}

async fn through_channel(world: &World, ids: std::ops::Range<u32>) {
    for id in ids {
        let id = format!("c{id}");
        assert_eq!(world.publish_at("/channel/ns/shop", &id, &[]).await, 202);
    }
}

fn dead(dead_lettered: u64) -> GivenUp {
    GivenUp {
        dead_lettered,
        discarded: 0,
    }
}

async fn give_up(world: &World, fate: Fate) -> GivenUp {
    let given_up = world.mesh.give_up(CHANNEL, BROKER, fate, WHY).await;
    given_up.expect("the log is well")
}

fn paused() -> serde_json::Value {
    json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}})
}

#[tokio::test(start_paused = true)]
async fn only_what_came_by_the_channel_is_given_up() {
    let mut world = World::in_memory().await;
    linked(&mut world, paused());
    world.route().await;
    through_channel(&world, 0..5).await;
    world.publish_many((0..3).map(|id| format!("b{id}"))).await;
    world
        .until("all are matched", |world| world.account("t").matched == 8)
        .await;
    unlink(&mut world).await;
    assert_eq!(world.mesh.pending(BROKER), 8);
    assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 5);
    assert_eq!(world.mesh.pending_through("channel/ns/other", BROKER), 0);
    assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(5));
    let account = world.account("t");
    assert_eq!((account.dead_lettered, account.pending), (5, 3));
    assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 0);
    assert_eq!(world.mesh.pending(BROKER), 3);
    // Asking again ends nothing twice.
    assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(0));
    let trace = world.trace("c0").await;
    let verdict = &trace.events[0].verdicts[0];
    assert_eq!(
        (verdict.state, &*verdict.reason),
        (EventState::DeadLettered, WHY)
    );
    assert!(verdict.attempts.is_empty(), "{verdict:#?}");
    // What is left is still delivered, and a dead letter can be sent on its way again.
    world.trigger("t", "one", json!({}));
    world.route().await;
    world.until_delivered("t", 3).await;
    assert_eq!(world.received_sorted("one"), ["b0", "b1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_discarded_is_removed_in_the_name_of_who_asked() {
    for mut world in World::each() {
        linked(&mut world, paused());
        world.route().await;
        through_channel(&world, 0..4).await;
        world
            .until("all are matched", |world| world.account("t").matched == 4)
            .await;
        unlink(&mut world).await;
        let expected = GivenUp {
            dead_lettered: 0,
            discarded: 4,
        };
        assert_eq!(give_up(&world, Fate::Discard).await, expected);
        world.crash().await;
        world.route().await;
        let account = world.account("t");
        assert_eq!((account.removed, account.pending), (4, 0));
        let trace = world.trace("c3").await;
        let verdict = &trace.events[0].verdicts[0];
        assert_eq!(verdict.state, EventState::Removed);
        assert_eq!(verdict.reason, "removed: deprovisioned");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_may_deliver_and_is_not_repeated() {
    let mut world = World::in_memory().await;
    linked(&mut world, json!({}));
    world.manner("one", Manner::HangOn("c1"));
    world.route().await;
    through_channel(&world, 0..3).await;
    world.until_delivered("t", 2).await;
    unlink(&mut world).await;
    assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 1);
    // It answers only once the attempt has run into its timeout.
    assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(1));
    let account = world.account("t");
    assert_eq!(
        (account.delivered, account.dead_lettered, account.pending),
        (2, 1, 0)
    );
    let attempts = &world.trace("c1").await.events[0].verdicts[0].attempts;
    assert_eq!(attempts.len(), 1);
    world.pass(3600).await;
    let hung = world
        .received("one")
        .iter()
        .filter(|id| *id == "c1")
        .count();
    assert_eq!(hung, 1);
}

#[tokio::test(start_paused = true)]
async fn retries_and_dead_letters_on_their_way_again_are_given_up_too() {
    let mut world = World::in_memory().await;
    linked(
        &mut world,
        json!({"spec": {"delivery": {"retry": 5, "backoffDelay": "PT60S"}}}),
    );
    world.manner("one", Manner::Answer(500));
    world.route().await;
    through_channel(&world, 0..3).await;
    world.until_retrying("t", 3).await;
    unlink(&mut world).await;
    assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(3));
    let all = heddle_api::ledger::DeadLetterSelection {
        all: true,
        ..Default::default()
    };
    assert_eq!(world.mesh.redrive(&all, "ann").await.count, 3);
    world
        .until("they failed again", |world| {
            let account = world.account("t");
            account.retrying == 3 && account.in_flight == 0
        })
        .await;
    assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 3);
    let discarded = give_up(&world, Fate::Discard).await;
    assert_eq!(discarded.discarded, 3);
    let account = world.account("t");
    assert_eq!(
        (account.removed, account.dead_letters, account.pending),
        (3, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_reads_the_log_itself_is_relieved_of_what_it_has_not_read() {
    for mut world in World::each() {
        linked(&mut world, paused());
        world.route().await;
        // More than fits into its queue, with others' events between.
        for round in 0..30 {
            through_channel(&world, round * 150..(round + 1) * 150).await;
            world
                .publish_many((0..50).map(|id| format!("b{round}-{id}")))
                .await;
        }
        world
            .until("all are matched", |world| {
                world.account("t").matched == 6000
            })
            .await;
        unlink(&mut world).await;
        assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 4500);
        let mesh = world.mesh.clone();
        let giving_up = mesh.give_up(CHANNEL, BROKER, Fate::Discard, WHY);
        // The account balances at every step on the way.
        let watching = async {
            loop {
                let account = world.account("t");
                assert_eq!(account.matched, account.removed + account.pending);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            given_up = giving_up => assert_eq!(given_up.unwrap().discarded, 4500),
            () = watching => {}
        }
        assert_eq!(world.account("t").pending, 1500);
        world.trigger("t", "one", json!({}));
        world.route().await;
        world.until_delivered("t", 1500).await;
        assert!(world.received("one").iter().all(|id| id.starts_with('b')));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_leaves_every_event_ended_or_pending() {
    for mut world in World::each() {
        linked(&mut world, paused());
        world.route().await;
        through_channel(&world, 0..4500).await;
        world
            .until("all are matched", |world| {
                world.account("t").matched == 4500
            })
            .await;
        unlink(&mut world).await;
        let mesh = world.mesh.clone();
        let giving_up = mesh.give_up(CHANNEL, BROKER, Fate::Discard, WHY);
        let some_are_gone = world.until("some are gone", |world| world.account("t").removed > 0);
        tokio::select! {
            biased;
            () = some_are_gone => {}
            _ = giving_up => {}
        }
        world.crash().await;
        world.route().await;
        let account = world.account("t");
        assert_eq!(account.matched, 4500);
        assert_eq!(account.removed + account.pending, 4500);
        let rest = world.mesh.pending_through(CHANNEL, BROKER);
        assert_eq!(rest, account.pending);
        // Asking again goes on from there.
        assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(rest));
        let account = world.account("t");
        assert_eq!(
            (account.removed + account.dead_lettered, account.pending),
            (4500, 0)
        );
        world.restart().await;
        world.route().await;
        assert_eq!(world.account("t").pending, 0);
        assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 0);
        assert!(world.received("one").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_still_counts_its_backlog_counts_what_is_given_up() {
    for mut world in World::each() {
        linked(&mut world, json!({}));
        world.route().await;
        through_channel(&world, 0..3000).await;
        world.publish_many((0..10).map(|id| format!("b{id}"))).await;
        // It starts at the beginning of the log, which nobody matched for it.
        world.trigger(
            "late",
            "late",
            json!({"metadata": {"annotations": {
                "heddle.dev/paused": "true", "heddle.dev/start": "earliest",
            }}}),
        );
        world.route().await;
        unlink(&mut world).await;
        let pending = world.mesh.pending(BROKER);
        assert!(pending >= 3010, "{pending}");
        let given_up = give_up(&world, Fate::Discard).await.discarded;
        assert!(given_up >= 3000, "{given_up}");
        world
            .until("it has caught up", |world| {
                world.account("late").matched == 3010
            })
            .await;
        let account = world.account("late");
        assert_eq!((account.removed, account.pending), (3000, 10));
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_of_keys_is_kept_when_some_are_given_up() {
    let mut world = World::in_memory().await;
    linked(
        &mut world,
        json!({
            "metadata": {"annotations": {"heddle.dev/delivery-order": "ordered"}},
            "spec": {"delivery": {"retry": 5, "backoffDelay": "PT60S"}},
        }),
    );
    world.manner("one", Manner::AnswerTo(&["c0"], 500));
    world.route().await;
    let key = [("partitionkey", "k")];
    for (path, id) in [
        ("/channel/ns/shop", "c0"),
        ("/broker/ns/default", "b0"),
        ("/channel/ns/shop", "c1"),
        ("/broker/ns/default", "b1"),
    ] {
        assert_eq!(world.publish_at(path, id, &key).await, 202);
    }
    world.until_retrying("t", 1).await;
    unlink(&mut world).await;
    assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(2));
    world.until_delivered("t", 2).await;
    assert_eq!(world.received("one"), ["c0", "b0", "b1"]);
}

#[tokio::test(start_paused = true)]
async fn what_expired_is_not_pending_and_is_not_given_up_again() {
    for mut world in World::each() {
        world.quota.age_max = Some(Duration::from_secs(60));
        world.restart().await;
        linked(&mut world, paused());
        world.route().await;
        through_channel(&world, 0..20).await;
        world.pass(61).await;
        through_channel(&world, 20..25).await;
        world
            .until("the old ones expired", |world| {
                world.account("t").expired == 20
            })
            .await;
        unlink(&mut world).await;
        assert_eq!(world.mesh.pending_through(CHANNEL, BROKER), 5);
        assert_eq!(give_up(&world, Fate::DeadLetter).await, dead(5));
        world.crash().await;
        world.route().await;
        let account = world.account("t");
        assert_eq!((account.matched, account.pending), (25, 0));
        assert_eq!((account.expired, account.dead_lettered), (20, 5));
    }
}
