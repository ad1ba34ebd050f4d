//! A disk that fills up: events are refused in time, and everything else goes on.

use heddle_api::dataplane::Held;
use heddle_mesh::Retention;
use heddle_mesh::journal::{self, JournalRecord};
use heddle_mesh::log::{AppendRefused, Reserve};
use serde_json::json;

use crate::world::{Manner, World};

const DISK_BYTES: u64 = 256 << 10;
const RESERVE_BYTES: u64 = 96 << 10;

/// Replies to every order, for which there may be no room, and whoever hears them.
fn asks_and_hears(world: &mut World, extra: &serde_json::Value) {
    world.broker("ns", "default");
    let of_type = |type_: &str| {
        let mut trigger =
            json!({"spec": {"filter": {"attributes": {"type": type_}}, "delivery": {"retry": 0}}});
        if let Some(extra) = extra.as_object().filter(|_| type_ == "order.created") {
            trigger.as_object_mut().unwrap().extend(extra.clone());
        }
        trigger
    };
    world.trigger("asks", "a", of_type("order.created"));
    world.trigger("hears", "b", of_type("order.checked"));
    world.manner("a", Manner::Reply("order.checked"));
}

fn held(world: &World, trigger: &str) -> Option<Held> {
    let routed = world.mesh.consumer(&format!("trigger/ns/{trigger}"));
    routed.unwrap().held
}

/// Publishes until an event is refused; gives how many were accepted, and the refusal.
async fn fill(world: &World) -> (u64, serde_json::Value) {
    for accepted in 0.. {
        let (status, after, body) = world.post("/broker/ns/default").await;
        match status {
            202 => continue,
            507 => {
                assert_eq!(after.as_deref(), Some("10"));
                return (accepted, body);
            }
            _ => panic!("{status}: {body}"),
        }
    }
    unreachable!("a small disk is full one day")
}

/// A world whose log has reached the reserve with nothing delivered yet.
async fn filled() -> (World, u64) {
    let mut world = World::on_small_disk(DISK_BYTES, Reserve::Bytes(RESERVE_BYTES));
    world.broker("ns", "default");
    let delivery = json!({"timeout": "PT5S", "retry": 1000, "backoffDelay": "PT1S"});
    world.trigger("t", "a", json!({"spec": {"delivery": delivery}}));
    world.manner("a", Manner::Hang);
    world.route().await;
    let (accepted, body) = fill(&world).await;
    assert!(accepted > 100, "{accepted}");
    assert_eq!(body["code"], "storage-low");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("/mesh has "), "{message}");
    assert_eq!(body["directory"], "/mesh");
    assert_eq!(body["neededBytes"], RESERVE_BYTES / 8 * 9);
    let free = DISK_BYTES - world.disk.as_ref().unwrap().used_bytes();
    assert!(free > RESERVE_BYTES / 2, "only {free} bytes were left");
    (world, accepted)
}

#[tokio::test(start_paused = true)]
async fn below_the_reserve_events_are_refused_and_deliveries_go_on() {
    let (mut world, accepted) = filled().await;
    let health = world.mesh.health().unwrap_err();
    assert!(health.contains("too little room"), "{health}");
    let facts = world.mesh.accounts(false).log;
    assert!(facts.health.contains("too little room"), "{facts:?}");
    assert!(world.mesh.metrics_text().contains("heddle_log_serving 0"));
    // Nothing that was accepted is touched, and a restart changes nothing about it.
    world.crash().await;
    world.route().await;
    assert_eq!(world.post("/broker/ns/default").await.0, 507);
    world.manner("a", Manner::Accept);
    world.until_delivered("t", accepted).await;
    assert_eq!(world.account("t").matched, accepted);
}

#[tokio::test(start_paused = true)]
async fn freed_room_is_noticed_without_help() {
    let (world, _) = filled().await;
    world.disk.as_ref().unwrap().set_capacity(None);
    world.pass(1).await;
    assert_eq!(world.post("/broker/ns/default").await.0, 202);
    assert_eq!(world.mesh.health(), Ok(()));
    assert!(world.mesh.metrics_text().contains("heddle_log_serving 1"));
}

#[tokio::test(start_paused = true)]
async fn finished_events_make_room_for_new_ones_before_their_time() {
    let (mut world, accepted) = filled().await;
    assert_eq!(world.retention, Retention::default());
    world.manner("a", Manner::Accept);
    world.until_delivered("t", accepted).await;
    let first = world.log.bounds().start;
    world
        .until("room", |world| world.mesh.health().is_ok())
        .await;
    assert!(world.log.bounds().start > first);
    let bytes: u64 = world.log.segments().iter().map(|one| one.bytes).sum();
    assert!(bytes > 0, "no more than needed went");
    assert_eq!(world.post("/broker/ns/default").await.0, 202);
    world.crash().await;
    world.route().await;
    world
        .until("delivered", |world| {
            world.account("t").delivered == accepted + 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_on_its_way_to_another_broker_waits_for_room_as_long_as_it_takes() {
    for refused in [
        AppendRefused::Full,
        AppendRefused::Low(Box::default()),
        AppendRefused::Busy,
    ] {
        let (mut world, log) = World::in_memory_that_refuses();
        world.bridge(json!({"spec": {"delivery": {"retry": 0}}}));
        world.route().await;
        assert_eq!(world.publish("1", &[]).await, 202);
        log.refuse(Some(refused));
        world.pass(60).await;
        let account = world.account("bridge");
        assert_eq!((account.retrying, account.dead_lettered), (1, 0));
        log.refuse(None);
        world.until_delivered("t", 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn replies_wait_for_room_and_cost_no_attempt() {
    // That each found no room is written down once, within the reserve.
    let mut world =
        World::on_small_disk(4 * DISK_BYTES, Reserve::Bytes(4 * DISK_BYTES - (64 << 10)));
    let paused = json!({"metadata": {"namespace": "ns", "name": "asks", "uid": "t-asks", "generation": 1,
        "annotations": {"heddle.dev/paused": "true"}}});
    asks_and_hears(&mut world, &paused);
    world.route().await;
    let (accepted, _) = fill(&world).await;
    asks_and_hears(&mut world, &json!({}));
    world.resources.brokers.truncate(1);
    world.route().await;
    world.until_retrying("asks", accepted).await;
    world.pass(120).await;
    // The subscriber did its part once; it is not called again for a reply that would be refused again.
    assert_eq!(world.received("a").len() as u64, accepted);
    let account = world.account("asks");
    assert_eq!((account.pending, account.dead_lettered), (accepted, 0));
    let Some(Held::Waiting(why)) = held(&world, "asks") else {
        panic!("nothing is said about the room");
    };
    assert!(why.contains("too little room"), "{why}");
    let written = world.log.journal().bounds().end;
    world.pass(60).await;
    // Housekeeping leaves a checkpoint now and then; waiting leaves no line, and moves nobody's place.
    let since = world.log.journal().read(written, usize::MAX).unwrap();
    for record in &since.records {
        for line in journal::decode(&record.payload).unwrap() {
            let JournalRecord::Checkpoint(mark) = &line else {
                panic!("waiting wrote {line:?}");
            };
            assert!(mark.consumers.is_empty(), "{mark:?}");
        }
    }
    // A restart in between knows what it owes, and forgives nothing that was not to be forgiven.
    world.crash().await;
    world.route().await;
    world.pass(60).await;
    assert_eq!(world.account("asks").pending, accepted);
    world.disk.as_ref().unwrap().set_capacity(None);
    world.until_delivered("hears", accepted).await;
    let account = world.account("asks");
    assert_eq!((account.delivered, account.dead_lettered), (accepted, 0));
    world
        .until("well", |world| held(world, "asks").is_none())
        .await;
    assert_eq!(world.account("hears").matched, accepted);
}

#[tokio::test(start_paused = true)]
async fn after_waiting_for_room_an_event_has_all_its_attempts() {
    let (mut world, log) = World::in_memory_that_refuses();
    let delivery = json!({"spec": {
        "filter": {"attributes": {"type": "order.created"}}, "broker": "default",
        "subscriber": {"uri": "http://a/"}, "delivery": {"retry": 2, "backoffDelay": "PT1S"},
    }});
    asks_and_hears(&mut world, &delivery);
    world.route().await;
    world.publish("1", &[]).await;
    log.refuse(Some(AppendRefused::Full));
    world.pass(600).await;
    let calls = world.received("a").len();
    assert!(
        calls > 3,
        "there is no reserve to ask, so it is tried: {calls}"
    );
    assert_eq!(world.account("asks").retrying, 1);
    world.crash().await;
    world.manner("a", Manner::Answer(503));
    log.refuse(None);
    world.route().await;
    world.until_dead_lettered("asks", 1).await;
    assert_eq!(world.received("a").len(), calls + 3, "three attempts count");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_failed_makes_no_dead_letters() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.bridge(json!({"spec": {"delivery": {"retry": 0}}}));
    world.route().await;
    world.publish("1", &[]).await;
    log.refuse(Some(AppendRefused::Broken("torn".to_owned())));
    world.pass(60).await;
    let account = world.account("bridge");
    assert_eq!((account.retrying, account.dead_lettered), (1, 0));
    log.refuse(None);
    world.crash().await;
    world.route().await;
    world.until_delivered("t", 1).await;
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_cannot_be_written_cost_nothing_but_time() {
    let mut world = World::on_small_disk(DISK_BYTES, Reserve::Bytes(0));
    asks_and_hears(&mut world, &json!({}));
    world.manner("a", Manner::Hang);
    world.route().await;
    let (accepted, _) = fill(&world).await;
    world.manner("a", Manner::Reply("order.checked"));
    world.pass(600).await;
    for trigger in ["asks", "hears"] {
        let Some(Held::Waiting(why)) = held(&world, trigger) else {
            panic!("nothing is said about the journal");
        };
        assert!(why.contains("written down"), "{why}");
    }
    assert!(world.account("asks").held.is_some());
    assert_eq!(world.account("asks").dead_lettered, 0);
    world.disk.as_ref().unwrap().set_capacity(None);
    world.until_delivered("asks", accepted).await;
    world
        .until("heard", |world| {
            let hears = world.account("hears");
            hears.delivered == hears.matched && hears.matched >= accepted
        })
        .await;
    assert_eq!(world.account("asks").dead_lettered, 0);
    assert_eq!(held(&world, "asks"), None);
}
