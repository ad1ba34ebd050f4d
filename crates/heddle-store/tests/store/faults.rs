//! Disks that fail and disks that are full.

use std::time::Duration;

use heddle_rt::vfs::{Fault, PowerLoss};
use heddle_rt::{Clock, MemoryVfs};
use heddle_store::engine::{Batch, Engine, EngineError, Image, LoadError};
use heddle_store::{CommitError, Health, Mode, Options, Store};

use crate::script::{Reference, STORY, snapshot, tell};
use crate::support::*;

#[tokio::test]
async fn after_an_io_error_nothing_is_acknowledged_and_reads_go_on() {
    let reference = Reference::run().await;
    let mut poisoned = 0;
    for operation in 1..=reference.operations {
        let vfs = MemoryVfs::new();
        vfs.fail_at(operation, Fault::Eio);
        let mut acknowledged = 0;
        if let Ok(store) = try_open(&vfs) {
            let (told, refused) = tell(&store, 0).await;
            acknowledged = told;
            if let Some(refused) = refused {
                poisoned += 1;
                assert_eq!(refused, CommitError::Poisoned, "operation {operation}");
                assert!(matches!(store.health(), Health::Poisoned(_)));
                assert_eq!(
                    one(&store, create("late", "x")).await,
                    Err(CommitError::Poisoned)
                );
                assert_eq!(
                    *reference.after(told),
                    (store.version(), snapshot(&store)),
                    "operation {operation}"
                );
            }
            store.close().await;
        }
        // The next process shows what it found, and what it shows is safe from then on.
        let restarted = vfs.kill();
        let store = open(&restarted);
        let shown = (store.version(), snapshot(&store));
        let lost = open(&restarted.power_loss(PowerLoss::LoseUnsynced));
        assert_eq!(
            (lost.version(), snapshot(&lost)),
            shown,
            "operation {operation}"
        );
        for store in [store, lost, open(&vfs.power_loss(PowerLoss::LoseUnsynced))] {
            let judged = reference.judge(&store, acknowledged).await;
            assert!(judged.is_ok(), "operation {operation}: {judged:?}");
        }
    }
    assert!(poisoned > 50, "only {poisoned} errors hit a commit");
}

#[tokio::test]
async fn a_full_disk_refuses_a_group_and_takes_it_when_there_is_room() {
    let reference = Reference::run().await;
    let (mut refusals, mut fatal) = (0, 0);
    for operation in 1..=reference.operations {
        let vfs = MemoryVfs::new();
        vfs.fail_at(operation, Fault::Enospc);
        let Ok(store) = try_open(&vfs) else { continue };
        let (told, refused) = tell(&store, 0).await;
        match refused {
            None => {}
            // A sync that fails is a failed sync, whatever it says.
            Some(CommitError::Poisoned) => {
                fatal += 1;
                continue;
            }
            Some(other) => {
                refusals += 1;
                assert_eq!(other, CommitError::Full, "operation {operation}");
                assert_eq!(store.health(), Health::Full);
                assert_eq!(*reference.after(told), (store.version(), snapshot(&store)));
                let (told, refused) = tell(&store, told).await;
                assert_eq!(
                    (told, refused),
                    (STORY.len(), None),
                    "operation {operation}"
                );
                assert_eq!(store.health(), Health::Serving);
                assert_eq!(store.stats().refusals_count, 1);
            }
        }
        assert_eq!(
            *reference.after(STORY.len()),
            (store.version(), snapshot(&store)),
            "operation {operation}"
        );
        store.close().await;
        let store = open(&vfs.power_loss(PowerLoss::LoseUnsynced));
        assert_eq!(
            *reference.after(STORY.len()),
            (store.version(), snapshot(&store)),
            "operation {operation}"
        );
    }
    assert!(
        refusals > 20 && fatal < refusals,
        "{refusals} refused, {fatal} fatal"
    );
}

/// An engine with a bug of its own.
struct Broken(Image);

impl Engine for Broken {
    fn load(&mut self) -> Result<Image, LoadError> {
        Ok(self.0.clone())
    }

    fn commit(&mut self, _: &Batch) -> Result<(), EngineError> {
        panic!("the engine broke")
    }
}

#[tokio::test]
async fn a_writer_that_breaks_says_so_and_ends_the_process() {
    let engine = Broken(Image {
        meta: Store::fresh().meta,
        ..Image::default()
    });
    let options = Options {
        mode: Mode::Thread,
        ..options(&MemoryVfs::new())
    };
    let tasks = options.tasks.clone();
    let store = Store::open_on(options, Box::new(engine)).unwrap();
    assert_eq!(
        one(&store, create("a", "1")).await,
        Err(CommitError::Poisoned)
    );
    let failure = tasks.ended_by().await;
    assert_eq!(
        failure.to_string(),
        "task heddle/store/writer failed: panicked: the engine broke"
    );
    assert_eq!(
        one(&store, create("a", "1")).await,
        Err(CommitError::Poisoned)
    );
    assert!(matches!(store.health(), Health::Poisoned(_)));
    assert_eq!(store.list("things", None).items, []);
    store.close().await;
}

#[tokio::test]
async fn freeing_space_alone_resumes_service() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    let first = one(&store, create("first", "x")).await.unwrap();
    vfs.set_capacity(Some(vfs.used_bytes()));
    let mut stored = Vec::new();
    let refused = loop {
        match one(
            &store,
            create(&format!("o{}", stored.len()), &"x".repeat(200_000)),
        )
        .await
        {
            Ok(object) => stored.push(object),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, CommitError::Full);
    assert_eq!(store.health(), Health::Full);
    for _ in 0..3 {
        assert_eq!(
            one(&store, create("more", &"x".repeat(200_000))).await,
            Err(CommitError::Full)
        );
    }
    assert_eq!(store.get(&first.key), Some(first));
    assert_eq!(store.list("things", None).items.len(), stored.len() + 1);
    vfs.set_capacity(None);
    assert_eq!(
        store.commit(vec![]).await,
        Ok(vec![]),
        "an empty batch asks the disk"
    );
    assert_eq!(store.health(), Health::Serving);
    one(&store, create("more", &"x".repeat(200_000)))
        .await
        .unwrap();
    let expected = snapshot(&store);
    store.close().await;
    assert_eq!(
        snapshot(&open(&vfs.power_loss(PowerLoss::LoseUnsynced))),
        expected
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_left_alone_for_a_while() {
    let vfs = MemoryVfs::new();
    let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
    let mut options = Options {
        clock: clock.clone(),
        ..options(&vfs)
    };
    options.limits.full_pause = Duration::from_secs(1);
    let store = Store::open(options).unwrap();
    vfs.set_capacity(Some(vfs.used_bytes()));
    let mut count = 0;
    let large = "x".repeat(1_400_000);
    while one(&store, create(&format!("o{count}"), &large)).await != Err(CommitError::Full) {
        count += 1;
    }
    vfs.set_capacity(None);
    let operations = vfs.operations();
    assert_eq!(
        one(&store, create("small", "x")).await,
        Err(CommitError::Full)
    );
    assert_eq!(vfs.operations(), operations, "the disk is left alone");
    clock.sleep(Duration::from_secs(1)).await;
    one(&store, create("small", "x")).await.unwrap();
    assert_eq!(store.health(), Health::Serving);
}

#[tokio::test]
async fn a_full_disk_that_loses_its_power_holds_what_was_acknowledged() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    one(&store, create("first", "x")).await.unwrap();
    vfs.set_capacity(Some(vfs.used_bytes()));
    let mut count = 0;
    while one(&store, create(&format!("o{count}"), &"x".repeat(200_000)))
        .await
        .is_ok()
    {
        count += 1;
    }
    let expected = snapshot(&store);
    for seed in 0..20 {
        let after = vfs.power_loss(PowerLoss::Arbitrary { seed });
        assert_eq!(snapshot(&open(&after)), expected, "seed {seed}");
    }
}
