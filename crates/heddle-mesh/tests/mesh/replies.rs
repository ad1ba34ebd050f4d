//! What a delivery brings forth: replies, hops to other brokers, and dead letters for a sink outside.

use heddle_api::ledger::DeadLetterSelection;
use heddle_mesh::log::AppendRefused;
use serde_json::{Value, json};

use crate::world::{Manner, World};

#[tokio::test(start_paused = true)]
async fn a_reply_is_an_event_like_any_other_also_over_a_crash() {
    for mut world in World::each_with_broker() {
        world.deliver_a_reply_over_a_crash().await;
        assert_eq!(world.received("a"), ["1"], "the reply was safe");
        world.mesh.settled().await;
        let trace = world.mesh.trace("1-r", "/replier").unwrap();
        let cause = trace.events[0].cause.as_ref().unwrap();
        assert_eq!(
            (cause.offset, &*cause.consumer),
            (1, "trigger/ns/asks"),
            "{trace:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_cannot_be_kept_is_a_failed_attempt() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.asks_and_hears();
    world.route().await;
    world.publish("1", &[]).await;
    log.refuse(Some(AppendRefused::Full));
    world.until_retrying("asks", 1).await;
    let trace = world.trace("1").await;
    assert!(
        trace.events[0].verdicts[0]
            .reason
            .contains("its reply was not accepted"),
        "{trace:?}"
    );
    log.refuse(None);
    world.until_delivered("hears", 1).await;
    assert_eq!(world.account("asks").delivered, 1);
    assert_eq!(world.received("b"), ["1-r"]);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_replies_ends_in_a_dead_letter_of_the_last_one() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Reply("order.created"));
    world.route().await;
    world.publish("1", &[]).await;
    world
        .until("the end", |world| world.account("t").dead_replies == 1)
        .await;
    world.pass(3600).await;
    assert_eq!(world.received("a").len(), 256, "255 hops after the first");
    let page = world
        .mesh
        .dead_letters(&DeadLetterSelection::default(), 0, 10);
    assert!(page.items[0].reason.contains("there is a loop"), "{page:?}");
    let account = world.account("t");
    assert_eq!((account.delivered, account.dead_lettered), (256, 0));
}

#[tokio::test(start_paused = true)]
async fn another_broker_can_be_the_subscriber() {
    for mut world in World::each() {
        world.bridge(json!({}));
        world.route().await;
        world.publish("1", &[("partitionkey", "k")]).await;
        world.until_delivered("t", 1).await;
        assert_eq!(world.account("bridge").delivered, 1);
        assert_eq!(world.deliveries("a")[0].body, "data of 1");
        assert!(world.received("nobody").is_empty());
        let trace = world.trace("1").await;
        let entries: Vec<&str> = trace.events.iter().map(|event| &*event.entry).collect();
        assert_eq!(entries, ["broker/ns/default", "broker/ns/other"]);
    }
}

fn with_sink() -> Value {
    json!({
        "spec": {"delivery": {"retry": 1, "backoffDelay": "PT1S", "deadLetterSink": {"uri": "http://sink/"}}},
        "status": {"deadLetterSinkUri": "http://sink/"},
    })
}

#[tokio::test(start_paused = true)]
async fn the_sink_for_dead_letters_is_told_what_went_wrong() {
    let mut world = World::with_broker();
    world.trigger("t", "a", with_sink());
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world.publish("1", &[]).await;
    let sent = |world: &World| {
        let page = world
            .mesh
            .dead_letters(&DeadLetterSelection::default(), 0, 10);
        let first = page.items.first();
        first.and_then(|first| first.sink.clone()).as_deref() == Some("sent")
    };
    world.until("sent", sent).await;
    let delivery = &world.deliveries("sink")[0];
    assert_eq!(delivery.headers["ce-knativeerrorcode"], "500");
    assert_eq!(delivery.headers["ce-knativeerrordest"], "http://a/");
    assert_eq!(delivery.headers["ce-knativeerrordata"], "bm8=");
    assert_eq!(delivery.body, "data of 1");
    assert_eq!(world.account("t").dead_letters, 1, "it rests here as well");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_or_hangs_ends_no_dead_letter() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", with_sink());
        world.manner("a", Manner::Answer(400));
        world.manner("sink", Manner::AnswerTo(&["1"], 500));
        world.route().await;
        world.publish("1", &[]).await;
        let sink = |world: &World, number: usize| {
            let page = world
                .mesh
                .dead_letters(&DeadLetterSelection::default(), 0, 10);
            page.items
                .get(number)
                .and_then(|letter| letter.sink.clone())
                .unwrap_or_default()
        };
        world
            .until("given up", |world| sink(world, 0).starts_with("failed"))
            .await;
        assert_eq!(
            world.received("sink"),
            ["1", "1"],
            "tried as often as it may"
        );
        world.manner("sink", Manner::Hang);
        world.publish("2", &[]).await;
        world
            .until("hangs", |world| world.received("sink").len() == 3)
            .await;
        world.mesh.settled().await;
        world.crash().await;
        assert_eq!(
            (sink(&world, 0).starts_with("failed"), &*sink(&world, 1)),
            (true, "waiting")
        );
        world.manner("sink", Manner::Accept);
        world.route().await;
        world.until("sent", |world| sink(world, 1) == "sent").await;
        assert_eq!(world.account("t").dead_letters, 2);
    }
}
