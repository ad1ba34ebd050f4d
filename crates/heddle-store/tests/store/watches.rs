//! Watches: every change once, in order, resumable, or an honest end.

use std::time::Duration;

use heddle_rt::{Clock, MemoryVfs};
use heddle_store::{ChangeKind, Expired, Limits, Options, Store};

use crate::support::*;

fn open_within(vfs: &MemoryVfs, limits: Limits) -> Store {
    Store::open(Options {
        limits,
        ..options(vfs)
    })
    .expect("the store opens")
}

#[tokio::test]
async fn a_watch_tells_every_change_of_its_resource_once_with_what_was_before() {
    let store = open(&MemoryVfs::new());
    let mut watch = store.watch("things", version(0)).unwrap();
    let a = one(&store, create("a", "1")).await.unwrap();
    one(&store, create("others/x", "1")).await.unwrap();
    let a2 = one(&store, update(&a, "2")).await.unwrap();
    one(&store, remove(&a2)).await.unwrap();
    let changes = drain(&mut watch);
    assert_eq!(told(&changes), ["Added a@1", "Modified a@3", "Deleted a@4"]);
    assert_eq!(changes[1].previous.as_ref(), Some(&a));
    assert_eq!(changes[2].previous.as_ref(), Some(&a2));
    assert_eq!(
        changes[2].object.json(),
        json_of(version(4), "2"),
        "its last state, with the new version"
    );
    assert_eq!(changes[2].object.created, version(1));

    let mut later = store.watch("things", version(1)).unwrap();
    assert_eq!(told(&drain(&mut later)), ["Modified a@3", "Deleted a@4"]);
}

#[tokio::test]
async fn the_position_is_a_safe_bookmark() {
    let store = open(&MemoryVfs::new());
    let mut watch = store.watch("things", version(0)).unwrap();
    store
        .commit(vec![
            create("a", "1"),
            create("b", "1"),
            create("others/x", "1"),
        ])
        .await
        .unwrap();
    assert_eq!(watch.position(), version(0));
    watch.try_next().unwrap().unwrap();
    assert_eq!(watch.position(), version(1));
    watch.try_next().unwrap().unwrap();
    assert_eq!(
        watch.position(),
        version(2),
        "what follows has not been looked at"
    );
    assert_eq!(watch.try_next(), Ok(None));
    assert_eq!(
        watch.position(),
        version(3),
        "nothing of this resource is left up to there"
    );
}

#[tokio::test]
async fn a_list_and_its_watch_miss_nothing_and_repeat_nothing() {
    let store = open_threaded(&MemoryVfs::new());
    let writer = store.clone();
    let writing = async move {
        for n in 0..60 {
            one(&writer, create(&format!("o{n}"), "x")).await.unwrap();
        }
    };
    let watching = async {
        loop {
            let (listing, mut watch) = store.list_and_watch("things");
            let first = listing.items.len();
            if first == 60 {
                return;
            }
            let change = watch.next().await.unwrap();
            assert_eq!(change.version.get(), first as u64 + 1);
            assert_eq!(listing.version.get(), first as u64);
        }
    };
    tokio::join!(writing, watching);
    store.close().await;
}

#[tokio::test]
async fn the_future_and_the_forgotten_are_told_apart() {
    let vfs = MemoryVfs::new();
    let limits = Limits {
        tombstones_max: 1,
        ..Limits::default()
    };
    let store = open_within(&vfs, limits);
    let written = store
        .commit(vec![create("a", "1"), create("b", "1")])
        .await
        .unwrap();
    store
        .commit(vec![remove(&written[0]), remove(&written[1])])
        .await
        .unwrap();
    assert_eq!(
        store.watch("things", version(5)).unwrap_err(),
        Expired::Future { latest: version(4) }
    );
    store.close().await;
    let store = open_within(&vfs, limits);
    assert_eq!(
        store.watch("things", version(2)).unwrap_err(),
        Expired::TooOld { oldest: version(3) }
    );
    let mut watch = store.watch("things", version(3)).unwrap();
    assert_eq!(told(&drain(&mut watch)), ["Deleted b@4 recovered"]);
}

#[tokio::test]
async fn over_a_restart_a_watch_goes_on_with_what_it_missed() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    let written = store
        .commit(
            ["kept", "changed", "gone", "again"]
                .iter()
                .map(|name| create(name, "1"))
                .collect(),
        )
        .await
        .unwrap();
    one(&store, update(&written[1], "2")).await.unwrap(); // 5
    one(&store, remove(&written[2])).await.unwrap(); // 6
    one(&store, remove(&written[3])).await.unwrap(); // 7
    one(&store, create("again", "2")).await.unwrap(); // 8
    let brief = one(&store, create("brief", "1")).await.unwrap(); // 9
    one(&store, remove(&brief)).await.unwrap(); // 10
    one(&store, create("others/x", "1")).await.unwrap(); // 11
    store.close().await;

    let store = open(&vfs);
    let mut watch = store.watch("things", version(4)).unwrap();
    let changes = drain(&mut watch);
    assert_eq!(
        told(&changes),
        [
            "Modified changed@5 recovered",
            "Deleted gone@6 recovered",
            "Deleted again@7 recovered",
            "Added again@8 recovered"
        ],
        "who never saw `brief` does not hear of it"
    );
    assert!(changes.iter().all(|change| change.previous.is_none()));
    let gone = &changes[1].object;
    assert_eq!(
        gone.json(),
        r#"{"metadata":{"name":"gone","namespace":"default","uid":"","resourceVersion":"6"}}"#
    );
    assert_eq!(watch.position(), version(11));
    let late = one(&store, create("late", "1")).await.unwrap();
    assert_eq!(
        told(&drain(&mut watch)),
        [format!("Added late@{}", late.version)]
    );
}

#[tokio::test]
async fn a_slow_watch_falls_off_the_history_and_can_come_back() {
    let vfs = MemoryVfs::new();
    let limits = Limits {
        history_bytes_max: 4096,
        ..Limits::default()
    };
    let store = open_within(&vfs, limits);
    let mut slow = store.watch("things", version(0)).unwrap();
    let mut object = one(&store, create("a", "1")).await.unwrap();
    one(&store, create("b", "1")).await.unwrap();
    slow.try_next().unwrap().unwrap();
    for n in 0..50 {
        object = one(&store, update(&object, &n.to_string())).await.unwrap();
        assert!(store.stats().history_bytes <= 4096);
    }
    assert!(store.stats().history_count < 20);
    assert!(matches!(slow.try_next(), Err(Expired::TooOld { .. })));
    let mut back = store.watch("things", slow.position()).unwrap();
    assert_eq!(
        told(&drain(&mut back)),
        ["Added b@2 recovered", "Modified a@52 recovered"]
    );
}

#[tokio::test]
async fn the_oldest_change_of_all_goes_first() {
    let vfs = MemoryVfs::new();
    let limits = Limits {
        history_bytes_max: 2000,
        ..Limits::default()
    };
    let store = open_within(&vfs, limits);
    let mut quiet = store.watch("quiet", version(0)).unwrap();
    one(&store, create("quiet/x", "1")).await.unwrap();
    for n in 0..10 {
        one(&store, create(&format!("o{n}"), "1")).await.unwrap();
    }
    assert!(matches!(quiet.try_next(), Err(Expired::TooOld { .. })));
}

#[tokio::test(start_paused = true)]
async fn deletions_are_remembered_by_age_as_well() {
    let vfs = MemoryVfs::new();
    let clock = Clock::simulated(jiff_epoch());
    let limits = Limits {
        tombstone_age_max: Duration::from_secs(60),
        ..Limits::default()
    };
    let store = Store::open(Options {
        limits,
        clock: clock.clone(),
        ..options(&vfs)
    })
    .unwrap();
    let written = store
        .commit(
            ["a", "b", "c"]
                .iter()
                .map(|name| create(name, "1"))
                .collect(),
        )
        .await
        .unwrap();
    one(&store, remove(&written[0])).await.unwrap();
    clock.sleep(Duration::from_secs(61)).await;
    one(&store, remove(&written[1])).await.unwrap();
    assert_eq!(store.stats().tombstones_count, 1);
    store.close().await;
    let store = open(&vfs);
    assert_eq!(
        store.watch("things", version(3)).unwrap_err(),
        Expired::TooOld { oldest: version(4) }
    );
    assert!(store.watch("things", version(4)).is_ok());
}

#[tokio::test]
async fn more_deletions_at_once_than_are_remembered_expire_the_watches_before_them() {
    let vfs = MemoryVfs::new();
    let limits = Limits {
        tombstones_max: 2,
        ..Limits::default()
    };
    let store = open_within(&vfs, limits);
    let written = store
        .commit((0..5).map(|n| create(&format!("o{n}"), "1")).collect())
        .await
        .unwrap();
    store
        .commit(written.iter().map(|object| remove(object)).collect())
        .await
        .unwrap();
    assert_eq!(store.stats().tombstones_count, 2);
    store.close().await;
    let store = open(&vfs);
    assert_eq!(
        store.watch("things", version(7)).unwrap_err(),
        Expired::TooOld { oldest: version(8) }
    );
    let mut watch = store.watch("things", version(8)).unwrap();
    assert_eq!(
        drain(&mut watch)
            .iter()
            .filter(|change| change.kind == ChangeKind::Deleted)
            .count(),
        2
    );
}

#[tokio::test]
async fn only_watchers_of_what_changed_are_woken() {
    let store = open(&MemoryVfs::new());
    let mut things = store.watch("things", version(0)).unwrap();
    let mut others = store.watch("others", version(0)).unwrap();
    assert_eq!(store.stats().watchers_count, 2);
    let change = one(&store, create("a", "1"));
    let (told_change, _) = tokio::join!(things.next(), change);
    assert_eq!(told(&[told_change.unwrap()]), ["Added a@1"]);
    let mut next = std::pin::pin!(others.next());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(next.as_mut().poll(&mut cx).is_pending());
    drop(things);
    assert_eq!(store.stats().watchers_count, 1);
}

fn jiff_epoch() -> jiff::Timestamp {
    jiff::Timestamp::UNIX_EPOCH
}
