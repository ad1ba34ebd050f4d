//! Records that decayed on disk while events waited: each still ends, and somebody hears of it.

use std::path::Path;

use heddle_api::ledger::{DeadLetter, DeadLetterSelection};
use heddle_rt::vfs::Vfs as _;
use serde_json::{Value, json};

use crate::world::World;

const EVENTS: u64 = 20;

fn paused(is: bool) -> Value {
    json!({"metadata": {"annotations": {"heddle.dev/paused": is.to_string()}}})
}

/// Flips a bit in the data of an event, while nobody looks.
fn decay(world: &World, id: &str) {
    let (disk, log) = (world.disk.clone().expect("on disk"), Path::new("/mesh/log"));
    let text = format!("data of {id}");
    let mut flipped = 0;
    for name in disk.list(log).unwrap() {
        let path = log.join(name);
        let bytes = disk.read(&path).unwrap();
        let found = bytes
            .windows(text.len())
            .position(|some| some == text.as_bytes());
        if let Some(at) = found {
            disk.flip_bit(&path, (at as u64 + 2) * 8).unwrap();
            flipped += 1;
        }
    }
    assert_eq!(flipped, 1, "the event is once in the log");
}

fn dead_letters(world: &World, trigger: &str) -> Vec<DeadLetter> {
    let selection = DeadLetterSelection {
        consumer: Some(format!("trigger/ns/{trigger}")),
        ..DeadLetterSelection::default()
    };
    world.mesh.dead_letters(&selection, 0, 100).items
}

/// A trigger that waits, one that is done, and one that wants something else; then the process ends.
async fn waiting() -> World {
    let mut world = World::on_disk();
    world.broker("ns", "default");
    world.trigger("waits", "w", paused(true));
    world.trigger("done", "d", json!({}));
    let other = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}},
        "spec": {"filter": {"attributes": {"type": "something.else"}}}});
    world.trigger("other", "o", other);
    world.route().await;
    world
        .publish_many((1..=EVENTS).map(|number| format!("<{number}>")))
        .await;
    world
        .until("delivered", |world| {
            world.account("done").delivered == EVENTS
        })
        .await;
    world.mesh.settled().await;
    world.stop().await;
    world
}

async fn go_on(world: &mut World) {
    world.begin();
    world.trigger("waits", "w", paused(false));
    world.route().await;
}

#[tokio::test(start_paused = true)]
async fn a_damaged_event_that_was_never_attempted_becomes_a_dead_letter() {
    let mut world = waiting().await;
    decay(&world, "<7>");
    go_on(&mut world).await;
    world
        .until("everything ended", |world| {
            let account = world.account("waits");
            account.pending == 0 && account.matched == EVENTS
        })
        .await;
    let account = world.account("waits");
    assert_eq!((account.delivered, account.dead_lettered), (EVENTS - 1, 1));
    let letters = dead_letters(&world, "waits");
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].offset, letters[0].attempts), (7, 0));
    assert!(
        letters[0].reason.contains("damaged"),
        "{}",
        letters[0].reason
    );
    assert_eq!(
        dead_letters(&world, "done").len(),
        0,
        "it had been delivered before"
    );
    assert_eq!(
        dead_letters(&world, "other").len(),
        0,
        "it was never its own"
    );
    for _ in 0..2 {
        world.restart().await;
        world.route().await;
        world.pass(60).await;
        let account = world.account("waits");
        assert_eq!((account.delivered, account.dead_lettered), (EVENTS - 1, 1));
        assert_eq!(dead_letters(&world, "waits").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn every_single_damaged_event_ends_whichever_it_is_and_whenever_the_power_goes() {
    for number in 1..=EVENTS {
        let mut world = waiting().await;
        decay(&world, &format!("<{number}>"));
        go_on(&mut world).await;
        // Somewhere on the way the process dies; what it had not written down is done again.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        world.crash().await;
        world.trigger("waits", "w", paused(false));
        world.route().await;
        world
            .until("everything ended", |world| {
                world.account("waits").pending == 0
            })
            .await;
        let account = world.account("waits");
        let ended = (account.matched, account.delivered, account.dead_lettered);
        assert_eq!(ended, (EVENTS, EVENTS - 1, 1), "event {number}");
        assert_eq!(dead_letters(&world, "waits")[0].offset, number);
    }
}

#[tokio::test(start_paused = true)]
async fn neighbours_that_decay_together_all_end() {
    let mut world = waiting().await;
    for number in [3, 4, 5, 11, EVENTS] {
        decay(&world, &format!("<{number}>"));
    }
    go_on(&mut world).await;
    world
        .until("everything ended", |world| {
            world.account("waits").pending == 0
        })
        .await;
    let account = world.account("waits");
    assert_eq!((account.delivered, account.dead_lettered), (EVENTS - 5, 5));
    let offsets: Vec<u64> = dead_letters(&world, "waits")
        .iter()
        .map(|one| one.offset)
        .collect();
    assert_eq!(offsets, [3, 4, 5, 11, EVENTS]);
}
