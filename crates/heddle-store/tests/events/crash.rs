//! The world ends at every operation, in every way; what was acknowledged is there.

use std::sync::Arc;

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Crash, PowerLoss, TwistedVfs};
use heddle_store::OpenError;
use heddle_store::events::EventLog;

use crate::story::{Promises, Step, steps};
use crate::support::*;

type Opener = fn(&MemoryVfs) -> Result<EventLog, OpenError>;

/// How often unsynced writes are dropped, torn and reordered at random, for each operation.
const SEEDS: u64 = 4;
const WORKLOADS: u64 = 7;
const STEPS: usize = 14;

/// Tells a story in two parts, with a clean restart between them and the world ending at `operation`.
async fn until(operation: u64, story: &[Step], open: Opener) -> (MemoryVfs, Promises) {
    let vfs = MemoryVfs::new();
    vfs.crash_at(operation);
    let mut promises = Promises::default();
    let (first, second) = story.split_at(story.len() / 2);
    for part in [first, second] {
        let Ok(log) = open(&vfs) else { break };
        promises.tell(&log, part).await;
        log.close().await;
    }
    (vfs, promises)
}

async fn operations(story: &[Step]) -> u64 {
    let (vfs, promises) = until(u64::MAX, story, try_open).await;
    assert_eq!(promises.refused_count, 0);
    promises
        .judge(&open(&vfs))
        .expect("without a crash all is well");
    vfs.operations()
}

/// Ends the world at every operation in every way. The first broken promise is the error.
async fn sweep(seed: u64, open: Opener) -> Result<u64, String> {
    let story = steps(seed, STEPS);
    let mut judged = 0;
    for operation in 1..=operations(&story).await + 1 {
        let (vfs, promises) = until(operation, &story, open).await;
        for end in Crash::all(operation, SEEDS) {
            let context =
                |error: String| format!("seed {seed}, operation {operation}, {end:?}: {error}");
            let after = vfs.crash(end);
            let log = open(&after).map_err(|error| context(format!("{error}: {error:?}")))?;
            promises.judge(&log).map_err(context)?;
            // What is acknowledged after the crash is as safe as what was before it.
            let mut later = promises.clone();
            later.settle(&log);
            later.tell(&log, &steps(1_000_000 + seed, 3)).await;
            let again = open(&after.power_loss(PowerLoss::LoseUnsynced))
                .map_err(|error| context(format!("later: {error:?}")))?;
            later
                .judge(&again)
                .map_err(|error| context(format!("later: {error}")))?;
            judged += 1;
        }
    }
    Ok(judged)
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_end_of_the_world_at_every_operation() {
    let mut judged = 0;
    for seed in 0..WORKLOADS {
        judged += sweep(seed, try_open).await.unwrap();
    }
    assert!(judged > 4000, "only {judged} ends were tried");
}

#[tokio::test]
async fn recovery_may_be_broken_off_at_every_operation_and_begun_again() {
    let mut judged = 0;
    for seed in 100..102 {
        let story = steps(seed, STEPS);
        for operation in 1..=operations(&story).await + 1 {
            let (vfs, promises) = until(operation, &story, try_open).await;
            let seed = seed * 1000 + operation;
            let crashed = vfs.power_loss(PowerLoss::Arbitrary { seed });
            for step in 1.. {
                let recovering = crashed.power_loss(PowerLoss::LoseUnsynced);
                recovering.crash_at(step);
                let finished = try_open(&recovering).is_ok();
                let after = recovering.power_loss(PowerLoss::Arbitrary { seed: seed + step });
                let judged_so = promises.judge(&open(&after));
                judged_so.unwrap_or_else(|error| panic!("{seed}, {operation}, {step}: {error}"));
                judged += 1;
                if finished {
                    break;
                }
            }
        }
    }
    assert!(judged > 500, "only {judged} recoveries were broken off");
}

fn open_lied_to(vfs: &MemoryVfs) -> Result<EventLog, OpenError> {
    // The first two syncs through each handle are those that make a segment.
    EventLog::open(options_on(Arc::new(TwistedVfs::lazy(vfs.shared(), 2))))
}

#[tokio::test]
async fn a_log_that_acknowledges_before_it_syncs_is_caught() {
    let found = sweep(0, open_lied_to).await.unwrap_err();
    assert!(found.contains("is lost"), "{found}");
}
