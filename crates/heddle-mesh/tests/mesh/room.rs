//! A disk that fills up: events are refused in time, and everything else goes on.

use heddle_mesh::Retention;
use heddle_mesh::log::{Refused, Reserve};
use serde_json::json;

use crate::world::{Manner, World};

const DISK_BYTES: u64 = 256 << 10;
const RESERVE_BYTES: u64 = 96 << 10;

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
    world
        .until("delivered", |world| {
            world.account("t").delivered == accepted
        })
        .await;
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
    world
        .until("delivered", |world| {
            world.account("t").delivered == accepted
        })
        .await;
    let first = world.log.bounds().start;
    world
        .until("room", |world| world.mesh.health().is_ok())
        .await;
    assert!(world.log.bounds().start > first);
    let bytes: u64 = world.log.stretches().iter().map(|one| one.bytes).sum();
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
    for refused in [Refused::Full, Refused::Low(Box::default()), Refused::Busy] {
        let (mut world, log) = World::in_memory_that_refuses();
        world.bridge(json!({"spec": {"delivery": {"retry": 0}}}));
        world.route().await;
        assert_eq!(world.publish("1", &[]).await, 202);
        log.refuse(Some(refused));
        world.pass(60).await;
        let account = world.account("bridge");
        assert_eq!((account.retrying, account.dead_lettered), (1, 0));
        log.refuse(None);
        world
            .until("delivered", |world| world.account("t").delivered == 1)
            .await;
    }
}
