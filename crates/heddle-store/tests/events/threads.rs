//! The writer and the keeper on threads of their own, and many producers.

use std::sync::Arc;

use heddle_rt::vfs::{DiskVfs, PowerLoss};
use heddle_rt::{Clock, MemoryVfs};
use heddle_store::Mode;
use heddle_store::events::{AppendError, EventLog, Options};

use crate::support::*;
use crate::twist::{Gate, Twist, twisted};

fn threaded(options: Options) -> EventLog {
    let mode = Mode::Thread;
    EventLog::open(Options { mode, ..options }).expect("nothing is in the way")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_producers_share_syncs_and_every_record_is_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let options = || {
        let mut options = Options::new(DiskVfs::shared(), dir.path(), Clock::system());
        options.limits.segment_bytes = 200_000;
        options.limits.reserve_bytes = 200_000;
        options.limits.cache_bytes_max = 50_000;
        options
    };
    let log = threaded(options());
    let tasks: Vec<_> = (0..64_u64)
        .map(|producer| {
            let log = log.clone();
            #[expect(clippy::disallowed_methods, reason = "a test has no tree of tasks")]
            tokio::spawn(async move {
                let mut offsets = Vec::new();
                for number in 0..50 {
                    let payload = format!("{producer}/{number}/{}", "x".repeat(200));
                    let appended = log.append(&[draft(producer + 1, payload.as_bytes())]);
                    offsets.push((appended.await.unwrap().start, payload));
                }
                offsets
            })
        })
        .collect();
    let follower = {
        let log = log.clone();
        #[expect(clippy::disallowed_methods, reason = "a test has no tree of tasks")]
        tokio::spawn(async move {
            let (mut next, mut count) = (1, 0);
            while count < 64 * 50 {
                log.beyond(next).await;
                let batch = log.read(next, 10_000).unwrap();
                count += batch.records.len();
                next = batch.next;
            }
            next
        })
    };
    let mut expected = Vec::new();
    for task in tasks {
        expected.extend(task.await.unwrap());
    }
    expected.sort();
    assert_eq!(follower.await.unwrap(), 64 * 50 + 1);
    let stats = log.stats();
    assert_eq!(stats.records_count, 64 * 50);
    assert!(stats.syncs_count < 64 * 50, "some shared a sync");
    assert_eq!(stats.batch_records.sum as u64, 64 * 50);
    log.close().await;
    assert!(log.segments().iter().all(|segment| segment.sealed));
    let log = threaded(options());
    let found: Vec<(u64, String)> = all(&log)
        .into_iter()
        .map(|record| record.offset)
        .zip(texts(&log))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(log.find(64, 100).unwrap().len(), 50);
    assert_eq!(log.damage(), []);
}

async fn gated(limit: usize) -> (Arc<Twist>, EventLog, MemoryVfs) {
    let vfs = MemoryVfs::new();
    // Everything that happens once is done before the gate is there.
    let log = open(&vfs);
    one(&log, "first").await.expect("nothing is in the way");
    drop(log);
    let twist = Arc::new(Twist::Gate(Gate::default()));
    gate(&twist).set(true);
    let mut options = options_on(twisted(vfs.shared(), twist.clone()));
    options.limits.pending_bytes_max = limit;
    options.limits.segment_bytes = 1_000_000;
    options.limits.reserve_bytes = 0;
    let log = threaded(options);
    gate(&twist).set(false);
    (twist, log, vfs)
}

fn gate(twist: &Twist) -> &Gate {
    match twist {
        Twist::Gate(gate) => gate,
        _ => unreachable!("made with a gate"),
    }
}

#[tokio::test]
async fn what_comes_during_a_sync_shares_the_next_one_and_needs_no_listener() {
    let (twist, log, vfs) = gated(1_000_000).await;
    let before = gate(&twist).count();
    let first = log.append(&[draft(0, b"a")]);
    gate(&twist).wait_for(before + 1);
    let others: Vec<_> = (0..10).map(|_| log.append(&[draft(0, b"b")])).collect();
    drop(log.append(&[draft(0, b"nobody waits for this one")]));
    assert_eq!(log.committed(), 2, "nothing is shown before it is safe");
    assert_eq!(log.recent(2, 1), None);
    gate(&twist).set(true);
    assert_eq!(first.await, Ok(2..3));
    for (number, other) in (3..).zip(others) {
        assert_eq!(other.await, Ok(number..number + 1));
    }
    assert_eq!(log.beyond(12).await, 14);
    assert_eq!(log.stats().syncs_count, 2);
    log.close().await;
    assert_eq!(
        texts(&open(&vfs.kill())).last().unwrap(),
        "nobody waits for this one"
    );
}

#[tokio::test]
async fn more_than_may_wait_for_the_disk_is_refused_as_busy_and_taken_later() {
    let (twist, log, _vfs) = gated(1000).await;
    let before = gate(&twist).count();
    let first = log.append(&[draft(0, &[0; 400])]);
    gate(&twist).wait_for(before + 1);
    let second = log.append(&[draft(0, &[0; 400])]);
    assert_eq!(one(&log, &"x".repeat(100)).await, Err(AppendError::Busy));
    gate(&twist).set(true);
    assert_eq!(first.await, Ok(2..3));
    assert_eq!(second.await, Ok(3..4));
    assert_eq!(one(&log, &"x".repeat(100)).await, Ok(4));
    log.close().await;
}

#[tokio::test]
async fn of_a_torn_write_of_many_appends_only_whole_ones_at_its_beginning_are_kept() {
    let (twist, log, vfs) = gated(1_000_000).await;
    let before = gate(&twist).count();
    let first = log.append(&[draft(0, b"a")]);
    gate(&twist).wait_for(before + 1);
    let texts_of =
        |append: u32| (0..3).map(move |number| format!("{append}/{number}/{}", "x".repeat(150)));
    let others: Vec<_> = (0..6)
        .map(|append| {
            let payloads: Vec<String> = texts_of(append).collect();
            let drafts: Vec<_> = payloads
                .iter()
                .map(|text| draft(1, text.as_bytes()))
                .collect();
            log.append(&drafts)
        })
        .collect();
    // The second write has been made and waits to be made safe.
    gate(&twist).admit();
    gate(&twist).wait_for(before + 2);
    assert_eq!(first.await, Ok(2..3));
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let log = open(&vfs.power_loss(PowerLoss::Arbitrary { seed }));
        assert_eq!(log.damage(), []);
        let found = texts(&log);
        assert_eq!(found[..2], ["first", "a"]);
        let appends = (0..6).take((found.len() - 2) / 3);
        assert_eq!(
            found[2..],
            appends.flat_map(texts_of).collect::<Vec<_>>(),
            "seed {seed}"
        );
        kept.insert((found.len() - 2) / 3);
    }
    assert!(kept.len() > 3, "it was torn in the middle too: {kept:?}");
    gate(&twist).set(true);
    for (number, other) in (0..).zip(others) {
        assert_eq!(other.await, Ok(3 + number * 3..6 + number * 3));
    }
    log.close().await;
}
