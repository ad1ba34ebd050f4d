//! A log or a journal that lost what it had said was safe, while the other kept what is said about it.
//!
//! No disk may do that, and no mesh can make up for it. It is refused, and does not become worse once that is accepted: what
//! is left stays.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use heddle_api::ledger::DeadLetterSelection;
use heddle_rt::vfs::Vfs as _;
use serde_json::json;

use crate::world::{Manner, World};

/// Real time, for what is shown is that simulated time goes on. It takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_backlog_that_is_gone_is_not_looked_for_all_the_time() {
    let (tell, told) = mpsc::channel();
    let story = std::thread::Builder::new().spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(lose_the_log());
        tell.send(()).ok();
    });
    story.unwrap();
    let told = told.recv_timeout(PATIENCE);
    assert_eq!(told, Ok(()), "a mesh that never rests lets no time pass");
}

async fn lose_the_log() {
    let mut world = World::on_disk_with_broker();
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    world.trigger("t", "a", paused);
    world.route().await;
    for id in ["1", "2", "3"] {
        assert_eq!(world.publish(id, &[]).await, 202);
    }
    world.mesh.settled().await;
    assert_eq!(world.account("t").pending, 3);
    world.stop().await;
    let (disk, log) = (world.disk.clone().unwrap(), Path::new("/mesh/log"));
    for name in disk.list(log).unwrap() {
        disk.remove(&log.join(name)).unwrap();
    }
    let world = world.over(disk, "the log is gone");
    assert!(
        world.repaired,
        "what was accepted is not forgotten without a word"
    );
    world.route().await;
    world.pass(60).await;
    assert_eq!(world.publish("4", &[]).await, 202);
    let told = |world: &World| (world.account("t").lost, world.account("t").pending) == (3, 1);
    world.until("each is accounted for", told).await;
}

/// The oldest segment and every snapshot are gone from both copies of the journal, so nothing says how it began.
#[tokio::test(start_paused = true)]
async fn of_a_journal_without_a_beginning_the_dead_letters_that_are_left_stay() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::AnswerTo(&["poison"], 400));
    world.route().await;
    world.publish_many((0..200).map(|id| id.to_string())).await;
    world.until_delivered("t", 200).await;
    assert_eq!(world.publish("poison", &[]).await, 202);
    world.until_dead_lettered("t", 1).await;
    world.pass(1).await;
    world.stop().await;
    let disk = world.disk.clone().unwrap();
    for dir in ["journal", "journal-mirror"].map(|name| Path::new("/mesh").join(name)) {
        let names = disk.list(&dir).unwrap();
        let segments: Vec<_> = names.iter().filter(|name| name.ends_with(".log")).collect();
        assert!(segments.len() > 1, "{names:?}");
        let oldest = segments.into_iter().min().unwrap();
        let snapshots = names.iter().filter(|name| name.starts_with("positions-"));
        for name in snapshots.chain([oldest]) {
            disk.remove(&dir.join(name)).unwrap();
        }
    }
    let world = world.over(disk, "the journal has no beginning");
    assert!(world.repaired, "what is lost is accepted by somebody");
    world.route().await;
    world.mesh.settled().await;
    let letters = (world.mesh).dead_letters(&DeadLetterSelection::default(), 0, 10);
    let ids: Vec<_> = letters.items.iter().map(|letter| &*letter.id).collect();
    assert_eq!(ids, ["poison"]);
}
