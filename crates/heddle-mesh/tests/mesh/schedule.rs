//! When attempts are made: later if asked, never after the expiry, again by themselves, and one subscriber at a time.

use heddle_api::ledger::EventState;
use serde_json::{Value, json};

use crate::world::{Manner, World};

/// Two times by itself, and without a second attempt each time.
fn auto_redrive() -> Value {
    json!({
        "metadata": {"annotations": {"heddle.dev/auto-redrive": "2"}},
        "spec": {"delivery": {"retry": 0}},
    })
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_asks_for_time_gets_it() {
    let mut world = World::with_broker();
    world.trigger(
        "t",
        "a",
        json!({"spec": {"delivery": {"retry": 3, "backoffDelay": "PT0.1S", "retryAfterMax": "PT60S"}}}),
    );
    world.manner("a", Manner::AnswerWith(429, "retry-after", "30"));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_retrying("t", 1).await;
    world.manner("a", Manner::Accept);
    world.until_delivered("t", 1).await;
    let trace = world.trace("1").await;
    let attempts = &trace.events[0].verdicts[0].attempts;
    let pause = attempts[1].at.duration_since(attempts[0].at);
    assert!(pause.as_secs() >= 30, "{attempts:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_not_sent_after_its_expirytime() {
    for mut world in World::each_with_broker() {
        world.trigger(
            "t",
            "a",
            json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}}),
        );
        world.route().await;
        let expiry = ("expirytime", "2026-01-01T00:01:00Z");
        world.publish("1", &[expiry]).await;
        world.publish("2", &[]).await;
        world.pass(61).await;
        world.trigger("t", "a", json!({}));
        world.route().await;
        world.until_delivered("t", 1).await;
        world
            .until("expired", |world| world.account("t").expired == 1)
            .await;
        assert_eq!(world.received("a"), ["2"]);
        let trace = world.trace("1").await;
        let verdict = &trace.events[0].verdicts[0];
        assert_eq!(verdict.state, EventState::Expired);
        assert!(verdict.reason.contains("expirytime"), "{verdict:?}");
        let account = world.account("t");
        world.crash().await;
        world.route().await;
        assert_eq!(world.account("t"), account);
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_go_on_their_way_again_once_the_subscriber_is_well() {
    let mut world = World::with_broker();
    world.trigger("t", "a", auto_redrive());
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world
        .publish_many((1..=5).map(|number| number.to_string()))
        .await;
    world.until_dead_lettered("t", 5).await;
    world.manner("a", Manner::Accept);
    world.publish("6", &[]).await;
    world.until_delivered("t", 6).await;
    let account = world.account("t");
    assert_eq!((account.dead_lettered, account.dead_letters), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_dies_again_and_again_is_sent_by_itself_only_so_often() {
    let mut world = World::with_broker();
    world.trigger("t", "a", auto_redrive());
    world.manner("a", Manner::AnswerTo(&["bad"], 400));
    world.route().await;
    world.publish("bad", &[]).await;
    for number in 0..10 {
        world.publish(&number.to_string(), &[]).await;
        world.pass(10).await;
    }
    let bad = world.received("a").into_iter().filter(|id| id == "bad");
    assert_eq!(bad.count(), 3, "once, and two times by itself");
    assert_eq!(world.account("t").dead_lettered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_hangs_delays_no_other_and_is_asked_by_few() {
    let mut world = World::with_broker();
    let delivery = json!({"timeout": "PT5S", "retry": 50, "backoffDelay": "PT1S"});
    world.trigger("hangs", "hangs", json!({"spec": {"delivery": delivery}}));
    world.trigger("works", "works", json!({}));
    world.manner("hangs", Manner::Hang);
    world.route().await;
    world
        .publish_many((0..20).map(|number| number.to_string()))
        .await;
    world.until_delivered("works", 20).await;
    assert_eq!(
        world.account("hangs").retrying,
        0,
        "not one attempt at the other has timed out yet"
    );
    world.until_retrying("hangs", 20).await;
    world.pass(30).await;
    assert_eq!(world.account("hangs").in_flight, 1);
    world.manner("hangs", Manner::Accept);
    world.until_delivered("hangs", 20).await;
}
