//! Files that were damaged, and what a repair keeps of them.

use std::collections::BTreeMap;
use std::path::Path;

use heddle_rt::vfs::PowerLoss;
use heddle_rt::{MemoryVfs, Vfs as _};
use heddle_store::repair::{Finding, Plan, examine};
use heddle_store::{Key, ResourceVersion, Store};

use crate::script::{RESOURCES, tell};
use crate::support::*;

/// As redb has them.
const PAGE_BYTES: usize = 4096;
/// Bytes of each page that are damaged, at its head and in the rest.
const PER_PAGE: usize = 6;

/// The data of every object by its key.
type Contents = BTreeMap<Key, (ResourceVersion, String)>;

fn contents(store: &Store) -> Contents {
    let mut contents = Contents::new();
    for resource in RESOURCES {
        for object in store.list(resource, None).items {
            let said = (object.version, data(&object));
            contents.insert(object.key.clone(), said);
        }
    }
    contents
}

/// A store of many pages, with history: objects that were changed, deleted and made again.
async fn filled(vfs: &MemoryVfs) -> Store {
    let store = open(vfs);
    tell(&store, 0).await;
    for n in 0..120 {
        one(&store, create(&format!("many{n:03}"), &"x".repeat(300)))
            .await
            .expect("it works on a sound disk");
    }
    for n in (0..120).step_by(3) {
        let object = store
            .get(&key(&format!("many{n:03}")))
            .expect("it works on a sound disk");
        one(&store, update(&object, &format!("changed{n}")))
            .await
            .expect("it works on a sound disk");
    }
    for n in (0..120).step_by(7) {
        let object = store
            .get(&key(&format!("many{n:03}")))
            .expect("it works on a sound disk");
        one(&store, remove(&object))
            .await
            .expect("it works on a sound disk");
    }
    store
}

fn found(vfs: &MemoryVfs) -> Finding {
    examine(&vfs.shared(), Path::new(DIR)).expect("it can be looked at")
}

fn plan(vfs: &MemoryVfs) -> Option<Box<Plan>> {
    match found(vfs) {
        Finding::Sound { .. } => None,
        Finding::Damaged(plan) => Some(plan),
    }
}

/// Repairs, and holds the result against what was in the store: each object is as it was, or named.
fn judge(vfs: &MemoryVfs, before: &Contents, last: ResourceVersion, what: &str) -> Option<usize> {
    let plan = plan(vfs)?;
    let older: BTreeMap<Key, ResourceVersion> = plan.older.iter().cloned().collect();
    let (lost, unnamed) = (plan.lost.clone(), plan.unnamed_count);
    let damaged = vfs.read(database()).expect("it works on a sound disk");
    let kept = plan
        .carry_out()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(
        vfs.read(&kept).expect("it works on a sound disk"),
        damaged,
        "{what}: the damaged file is kept"
    );
    let store = try_open(vfs).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(store.version() > last, "{what}: versions go on");
    let after = contents(&store);
    let mut missing = 0;
    for (key, said) in before {
        match after.get(key) {
            Some(now) if now == said => {}
            Some(now) => assert_eq!(
                older.get(key),
                Some(&now.0),
                "{what}: {key} is another, unsaid"
            ),
            None if lost.contains(key) => {}
            None => missing += 1,
        }
    }
    // Where the name is what was damaged, that is how it is told.
    let misread = lost.iter().filter(|key| !before.contains_key(key)).count() as u64;
    // `None` says that nobody knows how many.
    assert!(
        unnamed.is_none_or(|unnamed| missing <= unnamed + misread),
        "{what}: {missing} are missing, {unnamed:?} were said to be, {misread} under other names"
    );
    for key in after.keys().filter(|key| !before.contains_key(key)) {
        assert!(older.contains_key(key), "{what}: {key} came back unsaid");
    }
    Some(
        older.len()
            + lost.len()
            + usize::try_from(unnamed.unwrap_or(missing)).expect("there are few"),
    )
}

/// Bytes that matter, all kinds of them: the header, and an even share of the rest.
fn places(file: &[u8], count: usize) -> Vec<u64> {
    let used = (0..file.len()).filter(|at| file[*at] != 0 || *at < 320);
    let used: Vec<usize> = used.collect();
    let header = used.iter().filter(|at| **at < 320).step_by(3);
    let rest = used.iter().step_by((used.len() / count) | 1);
    header.chain(rest).map(|at| *at as u64).collect()
}

#[tokio::test]
async fn a_flipped_bit_costs_no_more_than_what_is_named() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let (before, last) = (contents(&store), store.version());
    store.close().await;
    let file = vfs.read(database()).unwrap();
    let (mut repaired, mut worst, mut clean) = (0, 0, 0);
    for at in places(&file, 160) {
        let copy = vfs.power_loss(PowerLoss::LoseUnsynced);
        copy.flip_bit(database(), at * 8 + at % 8).unwrap();
        if let Some(cost) = judge(&copy, &before, last, &format!("a bit of byte {at}")) {
            repaired += 1;
            worst = worst.max(cost);
            clean += usize::from(cost == 0);
        }
    }
    assert!(
        repaired > 30,
        "only {repaired} flipped bits asked for a repair"
    );
    assert!(clean > 5, "only {clean} of them cost nothing");
    // One leaf is what one bit can make unreadable where nothing leads around it.
    assert!(
        worst < before.len() / 2,
        "one bit cost {worst} of {}",
        before.len()
    );
}

/// Few bytes lead to all others: the heads of pages, and pages with little in them. An even share misses most of those.
fn places_in_every_page(file: &[u8]) -> Vec<u64> {
    let mut places = Vec::new();
    for (page, bytes) in file.chunks(PAGE_BYTES).enumerate().skip(1) {
        let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let head = used.iter().take(PER_PAGE);
        let rest = used.iter().skip(PER_PAGE);
        let rest = rest.step_by((used.len() / PER_PAGE) | 1);
        let chosen = head.chain(rest);
        places.extend(chosen.map(|at| (page * PAGE_BYTES + at) as u64));
    }
    places
}

#[tokio::test]
async fn damage_in_any_page_is_named() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let (before, last) = (contents(&store), store.version());
    // As a power loss leaves it, with the commit before the last one beside the last one; and as it is closed.
    let lost_power = vfs.power_loss(PowerLoss::LoseUnsynced);
    store.close().await;
    for (how, vfs) in [("lost power", lost_power), ("closed", vfs)] {
        let file = vfs.read(database()).unwrap();
        for at in places_in_every_page(&file) {
            let copy = vfs.power_loss(PowerLoss::LoseUnsynced);
            copy.flip_bit(database(), at * 8 + at % 8).unwrap();
            judge(&copy, &before, last, &format!("{how}: a bit of byte {at}"));
        }
    }
}

#[tokio::test]
async fn with_a_copy_beside_it_nothing_is_lost_that_was_in_the_copy() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let copy = store
        .copy_beside()
        .await
        .unwrap()
        .expect("the first one is made");
    assert!(vfs.exists(&copy).unwrap());
    let copied = contents(&store);
    let changed = store.get(&key("many001")).unwrap();
    one(&store, update(&changed, "after the copy"))
        .await
        .unwrap();
    let gone = store.get(&key("many002")).unwrap();
    one(&store, remove(&gone)).await.unwrap();
    let (before, last) = (contents(&store), store.version());
    store.close().await;
    let file = vfs.read(database()).unwrap();
    for at in places(&file, 60) {
        let world = vfs.power_loss(PowerLoss::LoseUnsynced);
        world.flip_bit(database(), at * 8 + at % 8).unwrap();
        let what = format!("a bit of byte {at}");
        let repaired = judge(&world, &before, last, &what);
        if repaired.is_none() {
            continue;
        }
        let after = contents(&open(&world));
        for key in copied.keys().filter(|key| before.contains_key(key)) {
            assert!(after.contains_key(key), "{what}: {key} was in the copy");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_gone_empty_or_foreign_comes_back_from_the_copy() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    store.copy_beside().await.unwrap();
    let (before, last) = (contents(&store), store.version());
    store.close().await;
    let file = vfs.read(database()).unwrap();
    let damages: [(&str, Option<Vec<u8>>); 4] = [
        ("gone", None),
        ("empty", Some(Vec::new())),
        ("foreign", Some(b"this is not a database".repeat(1000))),
        ("cut", Some(file[..file.len() / 3].to_vec())),
    ];
    for (what, bytes) in damages {
        let world = vfs.power_loss(PowerLoss::LoseUnsynced);
        match bytes {
            Some(bytes) => world.overwrite(database(), &bytes).unwrap(),
            None => world.remove(database()).unwrap(),
        }
        plan(&world).expect(what).carry_out().unwrap();
        let store = open(&world);
        assert_eq!(contents(&store), before, "{what}");
        assert!(store.version() > last, "{what}");
    }
}

#[tokio::test]
async fn a_damaged_copy_is_passed_over_for_the_one_before() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let first = store.copy_beside().await.unwrap().expect("it is new");
    let before = contents(&store);
    one(&store, create("later", "1")).await.unwrap();
    let second = store.copy_beside().await.unwrap().expect("it is new");
    store.close().await;
    let without_store = || {
        let world = vfs.power_loss(PowerLoss::LoseUnsynced);
        world.remove(database()).unwrap();
        world
    };
    let plan_of = |world: &MemoryVfs| plan(world).expect("it is gone");
    assert_eq!(plan_of(&without_store()).copy.as_deref(), Some(&*second));
    let file = vfs.read(&second).unwrap();
    let name = file
        .windows(5)
        .rposition(|bytes| bytes == b"later")
        .unwrap();
    for at in [0, name as u64] {
        let world = without_store();
        world.flip_bit(&second, at * 8).unwrap();
        let plan = plan_of(&world);
        assert_eq!(plan.copy.as_deref(), Some(&*first), "byte {at}");
        plan.carry_out().unwrap();
        assert_eq!(contents(&open(&world)), before, "byte {at}");
    }
    let world = without_store();
    for copy in [&first, &second] {
        world.overwrite(copy, b"not a database").unwrap();
    }
    assert_eq!(plan_of(&world).copy, None);
}

/// A repaired file holds every record once, so what is damaged in it is lost; versions go on from ever higher ones.
#[tokio::test]
async fn a_store_that_was_repaired_can_be_repaired_again_and_names_what_is_lost() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let (mut before, mut last) = (contents(&store), store.version());
    store.close().await;
    for (round, number) in ["066", "093", "099"].into_iter().enumerate() {
        let key = key(&format!("many{number}"));
        let text = format!("changed{}", number.trim_start_matches('0'));
        let file = vfs.read(database()).unwrap();
        for (at, bytes) in file.windows(text.len()).enumerate() {
            if bytes == text.as_bytes() {
                vfs.flip_bit(database(), at as u64 * 8).unwrap();
            }
        }
        let plan = plan(&vfs).expect("it is damaged");
        if round > 0 {
            assert_eq!(
                (&*plan.lost, plan.unnamed_count),
                (&[key.clone()][..], Some(0))
            );
            assert!(plan.older.is_empty());
            before.remove(&key);
        }
        plan.carry_out().unwrap();
        let store = open(&vfs);
        let mut after = contents(&store);
        if round == 0 {
            // Here an earlier form may be in the file.
            before.remove(&key);
            after.remove(&key);
        }
        assert_eq!(after, before, "{text}");
        assert!(store.version() > last, "{text}");
        last = store.version();
        store.close().await;
    }
}

#[tokio::test]
async fn a_sound_store_is_left_alone() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    let count = contents(&store).len() as u64;
    store.close().await;
    let file = vfs.read(database()).unwrap();
    let Finding::Sound { objects_count } = found(&vfs) else {
        panic!("it is sound");
    };
    assert_eq!(objects_count, count);
    assert_eq!(vfs.read(database()).unwrap(), file);
    assert_eq!(contents(&open(&vfs)).len() as u64, count);
}

#[tokio::test]
async fn a_repair_that_is_broken_off_leaves_the_damaged_store_or_the_repaired_one() {
    let vfs = MemoryVfs::new();
    let store = filled(&vfs).await;
    store.copy_beside().await.unwrap();
    let before = contents(&store);
    store.close().await;
    vfs.overwrite(database(), b"not a database").unwrap();
    let whole = vfs.power_loss(PowerLoss::LoseUnsynced);
    let begin = whole.operations();
    plan(&whole).unwrap().carry_out().unwrap();
    let steps = whole.operations() - begin;
    let mut damaged = 0;
    for step in (0..steps).step_by(usize::try_from(steps / 40 + 1).unwrap()) {
        let world = vfs.power_loss(PowerLoss::LoseUnsynced);
        world.crash_at(world.operations() + step);
        if let Ok(Finding::Damaged(plan)) = examine(&world.shared(), Path::new(DIR)) {
            plan.carry_out().ok();
        }
        let world = world.power_loss(PowerLoss::LoseUnsynced);
        match try_open(&world) {
            Ok(store) => assert_eq!(contents(&store), before, "step {step}"),
            Err(_) => {
                damaged += 1;
                plan(&world)
                    .expect("it is still there")
                    .carry_out()
                    .unwrap();
                assert_eq!(contents(&open(&world)), before, "step {step}, again");
            }
        }
    }
    assert!(damaged > 3, "only {damaged} were broken off in time");
}

#[tokio::test]
async fn two_copies_are_kept_and_none_is_made_of_what_did_not_change() {
    let vfs = MemoryVfs::new();
    let store = open_threaded(&vfs);
    for n in 0..4 {
        one(&store, create(&format!("a{n}"), "1")).await.unwrap();
        assert!(store.copy_beside().await.unwrap().is_some());
        assert!(
            store.copy_beside().await.unwrap().is_none(),
            "nothing changed"
        );
    }
    let copies = vfs.list(Path::new(DIR)).unwrap();
    let copies: Vec<&String> = copies
        .iter()
        .filter(|name| name.starts_with("copy-"))
        .collect();
    assert_eq!(copies.len(), 2, "{copies:?}");
    store.close().await;
}
