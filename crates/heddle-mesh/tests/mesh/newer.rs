//! A log that a newer version has written to, under this one.
//!
//! What it says cannot be known. It is refused by name at the start, and nothing is written before that.

use heddle_mesh::log::Draft;
use serde_json::json;

use crate::world::World;

/// A mesh that has delivered an event and ended as it should, and whose log is open again.
async fn ended() -> World {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.until_delivered("t", 1).await;
    world.stop().await;
    world.reopen_log();
    world
}

fn is_refused(world: &mut World, about: &str) {
    let disk = world.disk.clone().unwrap();
    let operations = disk.operations();
    let error = world.begin_mesh().unwrap_err();
    assert_eq!(disk.operations(), operations, "something was written");
    for part in [about, "newer version", "restore a backup"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

fn draft<'a>(head: &'a [u8], body: &'a [u8]) -> Draft<'a> {
    Draft {
        key: 0,
        parts: [head, body],
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_of_a_kind_that_is_not_known_is_refused() {
    for kind in [20, u8::MAX] {
        let mut world = ended().await;
        let line = world.log.acknowledge(&[draft(&[kind], b"whatever")]);
        let record = line.await.unwrap().start;
        is_refused(&mut world, &format!("record {record} of the journal"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_layout_that_is_not_known_is_refused() {
    let mut world = ended().await;
    let event = world.log.append(&[draft(&[2], b"whatever")]);
    let offset = event.await.unwrap().start;
    is_refused(&mut world, &format!("the event at offset {offset}"));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_never_was_one_is_no_reason_to_refuse() {
    let mut world = ended().await;
    let event = world.log.append(&[draft(&[0], b"whatever")]);
    event.await.unwrap();
    world.begin_mesh().unwrap();
}
