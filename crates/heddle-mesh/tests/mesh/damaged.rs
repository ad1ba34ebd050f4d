//! Records that decayed on disk while events waited: each still ends, and somebody hears of it, who asks for it included.

use std::path::Path;

use heddle_api::ledger::{DeadLetter, DeadLetterSelection};
use heddle_rt::vfs::{MemoryVfs, Vfs as _};
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
    let mut world = World::on_disk_with_broker();
    world.trigger("waits", "w", paused(true));
    world.trigger("done", "d", json!({}));
    let other = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}},
        "spec": {"filter": {"attributes": {"type": "something.else"}}}});
    world.trigger("other", "o", other);
    world.route().await;
    world
        .publish_many((1..=EVENTS).map(|number| format!("<{number}>")))
        .await;
    world.until_delivered("done", EVENTS).await;
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
        world.until_pending("waits", 0).await;
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
    world.until_pending("waits", 0).await;
    let account = world.account("waits");
    assert_eq!((account.delivered, account.dead_lettered), (EVENTS - 5, 5));
    let offsets: Vec<u64> = dead_letters(&world, "waits")
        .iter()
        .map(|one| one.offset)
        .collect();
    assert_eq!(offsets, [3, 4, 5, 11, EVENTS]);
}

fn told(losses: &[String], part: &str) -> bool {
    losses.iter().any(|loss| loss.contains(part))
}

#[tokio::test(start_paused = true)]
async fn a_trace_names_the_damage_that_is_the_event_or_may_be_it() {
    let mut world = waiting().await;
    decay(&world, "<7>");
    go_on(&mut world).await;
    world.until_pending("waits", 0).await;
    let by_source = world.trace("<7>").await;
    let by_id = world.mesh.trace_by_id("<7>", 0..u64::MAX).await.unwrap();
    let never_sent = world.trace("<99>").await;
    for trace in [by_source, by_id, never_sent] {
        assert_eq!(trace.events, []);
        assert!(told(&trace.losses, "place 7 of the log"), "{trace:?}");
    }
    let intact = world.trace("<8>").await;
    assert_eq!((intact.events.len(), intact.losses.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_trace_says_that_the_journal_lost_what_may_have_spoken_of_the_event() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    world.mesh.settled().await;
    world.die().await;
    let disk = world.disk.clone().unwrap().kill();
    for (dir, prefix) in [("journal-mirror", ""), ("journal", "positions-")] {
        let dir = Path::new("/mesh").join(dir);
        let names = disk.list(&dir).unwrap().into_iter();
        for name in names.filter(|name| name.starts_with(prefix)) {
            disk.remove(&dir.join(name)).unwrap();
        }
    }
    flip_in(&disk, "journal", "trigger/ns/t");
    let mut world = world.over(disk, "the record that introduces the trigger");
    world.route().await;
    world
        .until("delivered", |world| {
            world.account("t").delivered + world.account("t").lost > 0
        })
        .await;
    assert!(world.mesh.accounts(true).log.journal_lost > 0);
    let before = world.trace("1").await;
    assert_eq!(before.events.len(), 1);
    assert!(told(&before.losses, "of the journal is lost"), "{before:?}");
    world.pass(60).await;
    world.publish("2", &[]).await;
    world
        .until("delivered", |world| {
            world.received("a").contains(&"2".to_owned())
        })
        .await;
    let after = world.trace("2").await;
    assert_eq!(
        (after.events.len(), after.losses.len()),
        (1, 0),
        "{after:?}"
    );
    world.die().await;
}

/// Flips a bit in the first place of a directory's files that has this text.
fn flip_in(disk: &MemoryVfs, dir: &str, text: &str) {
    let dir = Path::new("/mesh").join(dir);
    let mut paths = disk
        .list(&dir)
        .unwrap()
        .into_iter()
        .map(|name| dir.join(name));
    let found = paths.find_map(|path| {
        let bytes = disk.read(&path).unwrap();
        let mut windows = bytes.windows(text.len());
        let at = windows.position(|some| some == text.as_bytes())?;
        Some((path, at))
    });
    let (path, at) = found.expect("the text is there");
    disk.flip_bit(&path, (at as u64 + 2) * 8).unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_repair_places_that_were_never_used_are_not_counted_and_lost_ones_are_told() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.publish_many((1..=10).map(|id| id.to_string())).await;
    world.until_delivered("t", 10).await;
    world.stop().await;
    let log = Path::new("/mesh/log");
    let disk = world.disk.clone().unwrap();
    let names = disk.list(log).unwrap();
    let older: Vec<_> = names
        .iter()
        .map(|name| (log.join(name), disk.read(&log.join(name)).unwrap()))
        .collect();
    world.begin();
    world.route().await;
    world.publish_many((11..=30).map(|id| id.to_string())).await;
    world.until_delivered("t", 30).await;
    world.stop().await;
    let disk = world.disk.clone().unwrap();
    for name in disk.list(log).unwrap() {
        if !names.contains(&name) {
            disk.remove(&log.join(name)).unwrap();
        }
    }
    for (path, bytes) in older {
        disk.overwrite(&path, &bytes).unwrap();
    }
    let mut world = world.over(disk, "an older copy of the log");
    assert!(world.repaired);
    world.route().await;
    world.publish_many((31..=32).map(|id| id.to_string())).await;
    world
        .until("delivered", |world| {
            world.received("a").contains(&"32".to_owned())
        })
        .await;
    let log = world.mesh.accounts(true).log;
    assert!(log.next - log.first > 1 << 32, "{log:?}");
    assert_eq!(log.events, 12, "{log:?}");
    let text = world.mesh.metrics_text();
    assert!(text.contains("heddle_log_events 12\n"), "{text}");
    let lost = world.trace("20").await;
    assert_eq!(lost.events, []);
    assert!(told(&lost.losses, "begun anew"), "{lost:?}");
    assert_eq!(world.trace("5").await.losses, [""; 0]);
    world.die().await;
}

/// Hints say what is surely not in a segment, which nobody knows of one that cannot be read whole; and it is tried once.
#[tokio::test(start_paused = true)]
async fn of_a_segment_with_damage_no_hints_are_made() {
    let mut world = World::on_disk_with_broker();
    world.route().await;
    world
        .publish_many((1..=300).map(|number| format!("<{number}>")))
        .await;
    world.stop().await;
    decay(&world, "<7>");
    world.begin();
    world.route().await;
    world.mesh.note_hints().await;
    let segments = world.log.segments();
    let sealed = segments.iter().filter(|segment| segment.sealed).count();
    let disk = world.disk.clone().unwrap();
    let hints = || disk.list(Path::new("/mesh/hints")).unwrap().len();
    assert_eq!(hints(), sealed - 1);
    let looks = disk.looks();
    world.mesh.note_hints().await;
    assert_eq!(
        (disk.looks(), hints()),
        (looks, sealed - 1),
        "nothing is read again"
    );
    let found = world.mesh.trace_by_id("<8>", 0..u64::MAX).await.unwrap();
    assert_eq!(found.events.len(), 1, "its neighbours are found by looking");
}
