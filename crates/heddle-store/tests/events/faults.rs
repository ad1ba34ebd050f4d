//! Disks that fail and disks that are full, at every operation.

use std::sync::Arc;

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Fault, PowerLoss};
use heddle_store::Health;
use heddle_store::events::{AppendError, EventLog, SegmentInfo, Slot};

use crate::story::{Promises, Step, steps};
use crate::support::*;
use crate::twist::{Twist, twisted};

/// Only appends, so that every refusal is one of an append.
fn story(seed: u64) -> Vec<Step> {
    let mut steps = steps(seed, 18);
    steps.retain(|step| !matches!(step, Step::RemoveOldest));
    steps
}

/// Tells the story with one fault. `None` when the log could not be opened.
async fn with_fault(
    operation: u64,
    fault: Fault,
    story: &[Step],
) -> (MemoryVfs, Promises, Option<EventLog>) {
    let vfs = MemoryVfs::new();
    vfs.fail_at(operation, fault);
    let mut promises = Promises::default();
    let log = try_open(&vfs).ok();
    if let Some(log) = &log {
        promises.tell(log, story).await;
    }
    (vfs, promises, log)
}

/// The same with a log in any case: what could not be opened is opened after a restart.
async fn recovered(
    operation: u64,
    fault: Fault,
    story: &[Step],
) -> (MemoryVfs, Promises, EventLog) {
    let (vfs, promises, log) = with_fault(operation, fault, story).await;
    if let Some(log) = log {
        return (vfs, promises, log);
    }
    let vfs = vfs.kill();
    let log = open(&vfs);
    (vfs, promises, log)
}

async fn operations(story: &[Step]) -> u64 {
    with_fault(u64::MAX, Fault::Eio, story).await.0.operations()
}

#[tokio::test]
async fn after_a_failure_of_the_disk_nothing_is_acknowledged_until_a_restart() {
    for fault in [Fault::Eio, Fault::EioAfter] {
        nothing_is_acknowledged_after(fault).await;
    }
}

async fn nothing_is_acknowledged_after(fault: Fault) {
    let mut poisoned = 0;
    for seed in 0..4 {
        let story = story(seed);
        for operation in 1..=operations(&story).await {
            let context = format!("{fault:?}, seed {seed}, operation {operation}");
            let (vfs, promises, log) = with_fault(operation, fault, &story).await;
            if let Some(log) = log {
                if promises.refused_count > 0 {
                    assert!(matches!(log.health(), Health::Poisoned(_)), "{context}");
                }
                if log.health() != Health::Serving {
                    poisoned += 1;
                    let refused = one(&log, "later")
                        .await
                        .expect_err("a poisoned log takes nothing");
                    assert!(matches!(refused, AppendError::Poisoned(_)), "{context}");
                }
                promises.hold(&log, format_args!("{context}, serving"));
            }
            for seed in 0..3 {
                let after = vfs.power_loss(PowerLoss::Arbitrary { seed });
                promises.hold(&open(&after), format_args!("{context}, power {seed}"));
            }
            let restarted = open(&vfs.kill());
            promises.hold(&restarted, format_args!("{context}, restarted"));
            one(&restarted, "again").await.expect("a restart heals it");
        }
    }
    assert!(poisoned > 50, "only {poisoned} failures were noticed");
}

#[tokio::test]
async fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let mut refused = 0;
    for seed in 10..14 {
        let story = story(seed);
        for operation in 1..=operations(&story).await {
            let context = format!("seed {seed}, operation {operation}");
            let (vfs, mut promises, log) = recovered(operation, Fault::Enospc, &story).await;
            refused += promises.refused_count;
            promises.append(&log, &[b"there is room".to_vec()]).await;
            assert_eq!(log.health(), Health::Serving, "{context}");
            promises.hold(&log, format_args!("{context}"));
            for seed in 0..3 {
                let after = vfs.power_loss(PowerLoss::Arbitrary { seed });
                promises.hold(&open(&after), format_args!("{context}, power {seed}"));
            }
        }
    }
    assert!(refused > 50, "only {refused} appends were refused");
}

#[tokio::test]
async fn running_out_of_something_refuses_for_a_moment_and_breaks_nothing() {
    for fault in [Fault::Edquot, Fault::Emfile, Fault::Enfile] {
        let mut refused = 0;
        for seed in 30..33 {
            let story = story(seed);
            for operation in 1..=operations(&story).await {
                let context = format!("{fault:?}, seed {seed}, operation {operation}");
                let (vfs, mut promises, log) = recovered(operation, fault, &story).await;
                refused += promises.refused_count;
                promises.append(&log, &[b"it has passed".to_vec()]).await;
                assert_eq!(log.health(), Health::Serving, "{context}");
                promises.hold(&log, format_args!("{context}"));
                log.seal();
                let unsealed = |segment: &SegmentInfo| segment.records > 0 && !segment.sealed;
                assert!(
                    !log.segments().iter().any(unsealed),
                    "{context}: not sealed"
                );
                let after = vfs.power_loss(PowerLoss::Arbitrary { seed: operation });
                promises.hold(&open(&after), format_args!("{context}, power"));
            }
        }
        assert!(
            refused > 10,
            "{fault:?}: only {refused} appends were refused"
        );
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_this_time_is_neither_damaged_nor_gone() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    while log.segments().len() < 3 {
        one(&log, &"x".repeat(200)).await.unwrap();
    }
    log.close().await;
    let vfs = vfs.kill();
    for fault in Fault::OF_READS {
        let log = open(&vfs);
        let whole = vfs.looks();
        for offset in 1..log.committed() {
            vfs.fail_looks(0..u64::MAX, fault);
            assert!(log.get(offset).is_err(), "{fault:?} at {offset}");
            assert!(log.read(offset, 1).is_err(), "{fault:?} at {offset}");
            vfs.fail_looks(0..0, fault);
            assert!(
                matches!(log.get(offset), Ok(Slot::Record(_))),
                "{fault:?} at {offset}"
            );
        }
        assert!(vfs.looks() > whole, "nothing was read from a file");
        assert_eq!(log.damage(), [], "{fault:?}");
        log.close().await;
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_not_opened_and_loses_nothing() {
    let vfs = MemoryVfs::new();
    let mut promises = Promises::default();
    promises.tell(&open(&vfs), &steps(40, 18)).await;
    let killed = vfs.kill();
    let looks = {
        let log = open(&killed);
        let looks = killed.looks();
        promises.judge(&log).unwrap();
        looks
    };
    let mut refused = 0;
    for fault in Fault::OF_READS {
        for look in 1..=looks {
            let context = format!("{fault:?}, look {look}");
            let blind = vfs.kill();
            blind.fail_looks(look..look + 1, fault);
            let opened = try_open(&blind);
            blind.fail_looks(0..0, fault);
            if let Ok(log) = opened {
                promises.hold(&log, format_args!("{context}"));
                continue;
            }
            refused += 1;
            promises.hold(&open(&blind.kill()), format_args!("{context}, again"));
        }
    }
    assert!(refused > 10, "only {refused} were noticed");
}

#[tokio::test]
async fn what_was_refused_never_appears_even_when_most_of_it_was_written() {
    let story = story(20);
    let mut refused = 0;
    for number in 1..60 {
        let vfs = MemoryVfs::new();
        let seen = 0.into();
        let twist = Arc::new(Twist::ShortWrite { number, seen });
        let Ok(log) = EventLog::open(options_on(twisted(vfs.shared(), twist))) else {
            continue;
        };
        let mut promises = Promises::default();
        for step in &story {
            promises.tell(&log, std::slice::from_ref(step)).await;
            // At once, and before anything is written over it.
            for after in [
                vfs.kill(),
                vfs.power_loss(PowerLoss::Arbitrary { seed: number }),
            ] {
                promises.hold(&open(&after), format_args!("write {number}"));
            }
        }
        refused += promises.refused_count;
    }
    assert!(refused > 10, "only {refused} appends were refused");
}

#[tokio::test]
async fn removing_a_segment_makes_room_on_a_disk_that_has_none_at_all() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    while log.segments().len() < 3 {
        one(&log, &"x".repeat(200)).await.unwrap();
    }
    vfs.set_capacity(Some(vfs.used_bytes()));
    let mut taken = 0;
    let refusal = loop {
        match one(&log, &"y".repeat(200)).await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 100, "the disk is never full");
    };
    assert_eq!(refusal, AppendError::Full);
    assert_eq!(log.health(), Health::Full);
    vfs.set_capacity(Some(vfs.used_bytes()));
    let first = log.first();
    log.remove_segment(first).await.unwrap();
    one(&log, "z").await.unwrap();
    assert_eq!(log.health(), Health::Serving);
    let reopened = open(&vfs.kill());
    assert_eq!(reopened.damage(), []);
    assert!(reopened.first() > first);
}
