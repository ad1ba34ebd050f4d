//! Damage at rest, one fault at a time and two at a time: no intact event is lost, and every lost one is named.
//!
//! A mesh with events in every state is stopped, by a kill or in good order. Then a bit is flipped, a few bytes are zeroed,
//! a file is cut off or removed, and a new process starts on what is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use heddle_api::ledger::{DeadLetter, DeadLetterSelection};
use heddle_mesh::log::Lookup;
use heddle_rt::vfs::{MemoryVfs, Vfs as _};
use serde_json::json;

use crate::world::{Manner, World};

const DIRS: [&str; 3] = ["log", "journal", "journal-mirror"];
const EVENTS: u64 = 20;
/// A fault for so many bytes of a file; no record is shorter.
const STEP: usize = 32;
const PAIRS: usize = 10_000;

/// What was, before the damage.
struct Story {
    world: World,
    /// Stopped by a kill with the mirror up to date, by a kill before that, and in good order.
    disks: Vec<MemoryVfs>,
    /// Ended for good, by trigger.
    done: [BTreeSet<u64>; 3],
}

/// Which of the disks was left before the mirror was up to date.
const MIRROR_BEHIND: usize = 1;

const TRIGGERS: [(&str, &str); 3] = [("t1", "one"), ("t2", "two"), ("t3", "three")];

/// The event whose delivery to the third was answered with what is no event.
const REPLIED: &str = "4";

async fn story() -> Story {
    let mut world = World::on_disk_with_broker();
    world.trigger("t1", "one", json!({"spec": {"delivery": {"retry": 0}}}));
    let delivery = json!({"retry": 10, "backoffPolicy": "linear", "backoffDelay": "PT30S"});
    world.trigger("t2", "two", json!({"spec": {"delivery": delivery}}));
    world.manner("one", Manner::AnswerTo(&["3", "7", "11"], 500));
    world.manner("two", Manner::AnswerTo(&["2", "5"], 500));
    world.trigger("t3", "three", json!({}));
    let claim = &[("content-type", "application/cloudevents+json")];
    world.manner("three", Manner::SayTo(&[REPLIED], claim, "no event"));
    world.route().await;
    publish(&world, 0..12).await;
    world
        .until("the first events have ended or failed", |world| {
            let [one, two, three] = ["t1", "t2", "t3"].map(|name| world.account(name));
            (
                one.delivered,
                one.dead_lettered,
                two.delivered,
                two.retrying,
                three.delivered,
                three.dead_replies,
            ) == (9, 3, 10, 2, 12, 1)
        })
        .await;
    world.mesh.tidy().await;
    for (_, host) in TRIGGERS {
        world.manner(host, Manner::Hang);
    }
    let selected = |id: &str| DeadLetterSelection {
        id: Some(id.to_owned()),
        ..DeadLetterSelection::default()
    };
    assert_eq!(world.mesh.redrive(&selected("7"), "me").await.count, 1);
    publish(&world, 12..16).await;
    world.mesh.tidy().await;
    assert_eq!(world.mesh.discard(&selected("11"), "me").await.count, 1);
    publish(&world, 16..EVENTS).await;
    // What the journal does not speak of yet and is cut off the end of the log looks like what was never accepted.
    world
        .until("everything was matched", |world| {
            world.mesh.accounts(true).matched_up_to > EVENTS
        })
        .await;
    world.mesh.settled().await;
    let disk = world.disk.clone().unwrap();
    let behind = disk.kill();
    world.pass(1).await;
    let killed = disk.kill();
    world.stop().await;
    let stopped = world.disk.clone().unwrap();
    let all = |but: &[u64]| (0..12).filter(|id| !but.contains(id)).collect();
    Story {
        world,
        disks: vec![killed, behind, stopped],
        done: [all(&[3, 7]), all(&[2, 5]), all(&[])],
    }
}

async fn publish(world: &World, ids: std::ops::Range<u64>) {
    world.publish_many(ids.map(|id| id.to_string())).await;
}

#[derive(Clone, Debug)]
enum Fault {
    Flip(PathBuf, usize),
    Zero(PathBuf, usize),
    Cut(PathBuf, usize),
    Remove(PathBuf),
}

impl Fault {
    fn path(&self) -> &Path {
        match self {
            Self::Flip(path, _) | Self::Zero(path, _) | Self::Cut(path, _) | Self::Remove(path) => {
                path
            }
        }
    }

    fn strike(&self, disk: &MemoryVfs) {
        let read = |path: &Path| disk.read(path).unwrap_or_default();
        match self {
            Self::Flip(path, at) => {
                disk.flip_bit(path, *at as u64 * 8 + 3).ok();
            }
            Self::Zero(path, at) => {
                let mut bytes = read(path);
                let end = bytes.len().min(at + STEP);
                if *at < end {
                    bytes[*at..end].fill(0);
                    disk.overwrite(path, &bytes).unwrap();
                }
            }
            Self::Cut(path, at) => {
                let bytes = read(path);
                if *at < bytes.len() {
                    disk.overwrite(path, &bytes[..*at]).unwrap();
                }
            }
            Self::Remove(path) => {
                disk.remove(path).ok();
            }
        }
    }
}

/// Every fault of a disk, where there is anything to hurt.
fn faults(disk: &MemoryVfs) -> Vec<Fault> {
    let mut faults = Vec::new();
    for dir in DIRS {
        let dir = Path::new("/mesh").join(dir);
        for name in disk.list(&dir).unwrap() {
            if name == "lock" {
                continue;
            }
            let path = dir.join(name);
            let bytes = disk.read(&path).unwrap();
            faults.push(Fault::Remove(path.clone()));
            for at in (0..bytes.len()).step_by(STEP) {
                let end = bytes.len().min(at + STEP);
                if bytes[at..end].iter().all(|byte| *byte == 0) {
                    continue;
                }
                faults.push(Fault::Flip(path.clone(), (at + 5).min(end - 1)));
                faults.push(Fault::Zero(path.clone(), at));
                faults.push(Fault::Cut(path.clone(), at));
            }
        }
    }
    faults
}

/// Starts on what is left, lets everything end, and looks for what is missing.
async fn check(story: &Story, disk: MemoryVfs, what: &str) {
    let mut world = story.world.over(disk, what);
    world.route().await;
    let settled = |world: &World| {
        let accounts = world.mesh.accounts(true);
        accounts
            .consumers
            .iter()
            .all(|account| account.pending == 0)
            && accounts.matched_up_to >= accounts.log.next
    };
    for _ in 0..400 {
        if settled(&world) {
            break;
        }
        world.pass(3).await;
    }
    world.mesh.settled().await;
    let accounts = world.mesh.accounts(true);
    for account in &accounts.consumers {
        assert_eq!(account.pending, 0, "{what}: stuck: {account:#?}");
        assert_eq!(account.difference(), 0, "{what}: {account:#?}");
        assert_eq!(
            account.dead_lettered, account.dead_letters,
            "{what}: {account:#?}"
        );
    }
    let letters = world
        .mesh
        .dead_letters(&DeadLetterSelection::default(), 0, 500);
    for ((trigger, host), done) in TRIGGERS.into_iter().zip(&story.done) {
        let key = format!("trigger/ns/{trigger}");
        let received = world.received(host);
        for id in (0..EVENTS).filter(|id| !done.contains(id)) {
            let text = id.to_string();
            let rests = letters.items.iter().any(|letter| {
                letter.reply.is_none()
                    && letter.id == text
                    && (letter.consumer == key || letter.consumer.starts_with("unknown/"))
            });
            if received.contains(&text) || rests {
                continue;
            }
            let intact = matches!(world.log.get(id + 1), Ok(Lookup::Found(_)));
            assert!(!intact, "{what}: {trigger} lost the intact event {id}");
            let account = accounts
                .consumers
                .iter()
                .find(|account| account.consumer == key);
            let named = world.repaired
                || accounts.log.damaged > 0
                || account.is_some_and(|account| account.lost > 0);
            assert!(
                named,
                "{what}: {trigger} lost event {id}, and nobody says so"
            );
        }
    }
    check_reply(&world, &letters.items, what);
    world.die().await;
}

/// The reply rests, with the event it answers; or the event was delivered again and brought another answer, because the
/// delivery was lost with it; or somebody says that what spoke of it is lost.
fn check_reply(world: &World, letters: &[DeadLetter], what: &str) {
    let mut replies = letters.iter().filter(|letter| letter.reply.is_some());
    let Some(reply) = replies.next() else {
        let again = world.received("three").contains(&REPLIED.to_owned());
        let named = world.repaired || world.mesh.accounts(false).log.journal_lost > 0;
        return assert!(
            again || named,
            "{what}: the reply is lost, and nobody says so"
        );
    };
    assert_eq!(reply.id, REPLIED, "{what}");
    assert_eq!(replies.next(), None, "{what}: no reply came since");
    let whole = world.mesh.dead_letter(&reply.name);
    assert!(whole.is_ok(), "{what}: {whole:?}");
}

#[tokio::test(start_paused = true)]
async fn no_single_fault_loses_an_intact_event() {
    let story = story().await;
    for (number, disk) in story.disks.iter().enumerate() {
        for fault in faults(disk) {
            let hurt = disk.kill();
            fault.strike(&hurt);
            check(&story, hurt, &format!("disk {number}, {fault:?}")).await;
        }
    }
}

/// With neither mirror nor snapshot, what a lost record said is made up for from the log and from the records that are left.
#[tokio::test(start_paused = true)]
async fn no_single_fault_loses_an_intact_event_with_one_copy_of_the_journal() {
    let story = story().await;
    for (number, disk) in story.disks.iter().enumerate() {
        let alone = disk.kill();
        for (dir, prefix) in [("journal-mirror", ""), ("journal", "positions-")] {
            let dir = Path::new("/mesh").join(dir);
            let names = alone.list(&dir).unwrap().into_iter();
            for name in names.filter(|name| name.starts_with(prefix)) {
                alone.remove(&dir.join(name)).unwrap();
            }
        }
        for fault in faults(&alone) {
            let hurt = alone.kill();
            fault.strike(&hurt);
            check(&story, hurt, &format!("one copy, disk {number}, {fault:?}")).await;
        }
    }
}

/// Whether an event may be gone together with all that spoke of it: what is lost at the ends of the log and of the journal
/// before the mirror has it looks like what was never accepted.
fn both_ends_may_be_gone(one: &Fault, other: &Fault) -> bool {
    let places = [one.path(), other.path()];
    let any_in = |dir: &str| {
        let dir = Path::new("/mesh").join(dir);
        places.iter().any(|path| path.starts_with(&dir))
    };
    any_in("log") && any_in("journal")
}

#[tokio::test(start_paused = true)]
async fn no_pair_of_faults_loses_an_intact_event() {
    let story = story().await;
    let all: Vec<Vec<Fault>> = story.disks.iter().map(faults).collect();
    let mut chance = 88_172_645_463_325_252_u64;
    let mut draw = |count: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        usize::try_from(chance % count as u64).unwrap()
    };
    for number in 0..PAIRS {
        let disk = number % story.disks.len();
        let faults = &all[disk];
        let (one, other) = (&faults[draw(faults.len())], &faults[draw(faults.len())]);
        if disk == MIRROR_BEHIND && both_ends_may_be_gone(one, other) {
            continue;
        }
        let hurt = story.disks[disk].kill();
        one.strike(&hurt);
        other.strike(&hurt);
        check(
            &story,
            hurt,
            &format!("pair {number}, disk {disk}, {one:?}, {other:?}"),
        )
        .await;
    }
}
