//! Which events are a trigger's own: tables that change, triggers that come and go, and processes that die meanwhile.

use serde_json::{Value, json};

use crate::world::{Manner, World};

fn wants(type_: &str, generation: i64, paused: bool) -> Value {
    json!({
        "metadata": {"generation": generation, "annotations": {"heddle.dev/paused": paused.to_string()}},
        "spec": {"filter": {"attributes": {"type": type_}}},
    })
}

fn paused() -> Value {
    json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}})
}

#[tokio::test(start_paused = true)]
async fn an_event_accepted_just_before_a_crash_is_delivered_after_it() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", json!({}));
        world.route().await;
        world
            .publish_many((0..5).map(|number| number.to_string()))
            .await;
        // Nothing has been matched yet: accepting an event does not wait for anybody.
        world.crash().await;
        world.route().await;
        world.until_delivered("t", 5).await;
        assert_eq!(world.received_sorted("a"), ["0", "1", "2", "3", "4"]);
        assert_eq!(world.account("t").matched, 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_belongs_to_the_filter_in_force_when_it_was_accepted_however_late_it_is_sent() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", wants("one", 1, true));
        world.route().await;
        world.publish("1-one", &[("type", "one")]).await;
        world.publish("1-two", &[("type", "two")]).await;
        world.trigger("t", "a", wants("two", 2, true));
        world.route().await;
        world.publish("2-one", &[("type", "one")]).await;
        world.publish("2-two", &[("type", "two")]).await;
        // The process is gone before these were matched, and the trigger is edited before the next one starts.
        world.crash().await;
        world.trigger("t", "a", wants("three", 3, false));
        world.route().await;
        world.publish("3-two", &[("type", "two")]).await;
        world.publish("3-three", &[("type", "three")]).await;
        world.until_delivered("t", 3).await;
        world.pass(60).await;
        assert_eq!(world.received_sorted("a"), ["1-one", "2-two", "3-three"]);
        assert_eq!(world.account("t").matched, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_is_deleted_and_made_again_misses_nothing() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", paused());
        world.route().await;
        world.publish("1", &[]).await;
        world.remove_trigger("t");
        world.route().await;
        world.publish("2", &[]).await;
        world.crash().await;
        world.route().await;
        world.publish("3", &[]).await;
        world.crash().await;
        world.trigger("t", "a", json!({"metadata": {"uid": "another"}}));
        world.route().await;
        world.publish("4", &[]).await;
        world.until_delivered("t", 4).await;
        world.pass(60).await;
        assert_eq!(world.received_sorted("a"), ["1", "2", "3", "4"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_trigger_starts_where_it_asks_to() {
    for mut world in World::each_with_broker() {
        world.route().await;
        world.publish("1", &[]).await;
        world.pass(10).await;
        let time = world.clock.now();
        world.publish("2", &[]).await;
        world.publish("3", &[]).await;
        let start = |at: &str| json!({"metadata": {"annotations": {"heddle.dev/start": at}}});
        world.trigger("earliest", "earliest", start("earliest"));
        world.trigger("time", "time", start(&time.to_string()));
        world.trigger("event", "event", start("event:/test#3"));
        world.trigger("new", "new", start("new"));
        world.route().await;
        world.publish("4", &[]).await;
        world
            .until("delivered", |world| {
                world.account("earliest").delivered == 4 && world.account("new").delivered == 1
            })
            .await;
        world.mesh.settled().await;
        world.crash().await;
        world.route().await;
        world.pass(60).await;
        assert_eq!(world.received_sorted("earliest"), ["1", "2", "3", "4"]);
        assert_eq!(world.received_sorted("time"), ["2", "3", "4"]);
        assert_eq!(world.received_sorted("event"), ["3", "4"]);
        assert_eq!(world.received_sorted("new"), ["4"]);
        assert_eq!(world.account("time").matched, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_new_trigger_reads_the_past_repeats_and_forgets_nothing() {
    for mut world in World::each_with_broker() {
        world.route().await;
        world
            .publish_many((100..400).map(|number| number.to_string()))
            .await;
        let annotations = json!({"heddle.dev/start": "earliest", "heddle.dev/max-in-flight": "1"});
        world.trigger("t", "a", json!({"metadata": {"annotations": annotations}}));
        world.manner("a", Manner::HangOn("250"));
        world.route().await;
        world.until_delivered("t", 150).await;
        world.mesh.settled().await;
        world.manner("a", Manner::Accept);
        world.crash().await;
        world.route().await;
        world.until_delivered("t", 300).await;
        let mut received = world.received("a");
        assert_eq!(received.len(), 301, "what was under way is sent again");
        received.dedup();
        assert_eq!(received.len(), 300);
        assert_eq!(world.account("t").matched, 300);
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_trigger_keeps_its_events_and_a_resumed_one_sends_them() {
    let mut world = World::with_broker();
    world.trigger("t", "a", paused());
    world.route().await;
    world.publish("1", &[]).await;
    world.pass(3600).await;
    assert!(world.received("a").is_empty());
    let account = world.account("t");
    assert_eq!(
        (account.pending, account.held.as_deref()),
        (1, Some("it is paused"))
    );
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.until_delivered("t", 1).await;
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_a_subscriber_without_an_address() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", json!({"status": {"subscriberUri": null}}));
        world.route().await;
        world.publish("1", &[]).await;
        world.pass(3600).await;
        let account = world.account("t");
        assert_eq!((account.pending, account.dead_lettered), (1, 0));
        assert!(account.held.unwrap().contains("no address"));
        world.crash().await;
        world.trigger("t", "a", json!({}));
        world.route().await;
        world.until_delivered("t", 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_is_gone_is_left_alone_until_its_trigger_is_edited() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", json!({}));
        world.route().await;
        // An edit that changes nothing about which events are wanted.
        world.trigger("t", "a", json!({"metadata": {"generation": 2}}));
        world.manner("a", Manner::Answer(410));
        world.route().await;
        world.publish("1", &[]).await;
        world
            .until("held", |world| world.account("t").held.is_some())
            .await;
        world.publish("2", &[]).await;
        world.mesh.settled().await;
        world.manner("a", Manner::Accept);
        world.crash().await;
        world.route().await;
        world.pass(3600).await;
        assert_eq!(world.received("a"), ["1"], "a restart is no edit");
        world.trigger("t", "a", json!({"metadata": {"generation": 3}}));
        world.route().await;
        world.until_delivered("t", 2).await;
        assert_eq!(world.received_sorted("a"), ["1", "1", "2"]);
    }
}
