//! The world ends at every operation, in every way; what was acknowledged is there.

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Crash, PowerLoss};

use crate::planted::Opener;
use crate::script::{Reference, STORY, snapshot, tell};
use crate::support::*;

/// How often unsynced writes are dropped, torn and reordered at random, for each operation.
const SEEDS: u64 = 6;

/// Tells the story with the world ending at `operation`. Returns the commits acknowledged.
async fn until(operation: u64, open: Opener) -> (MemoryVfs, usize) {
    let vfs = MemoryVfs::new();
    vfs.crash_at(operation);
    let acknowledged = match open(&vfs) {
        Ok(store) => {
            let (acknowledged, _) = tell(&store, 0).await;
            store.close().await;
            acknowledged
        }
        Err(_) => 0,
    };
    (vfs, acknowledged)
}

/// Ends the world at every operation in every way. The first broken promise is the error.
pub(crate) async fn sweep(open: Opener) -> Result<u64, String> {
    let reference = Reference::run().await;
    let mut judged = 0;
    for operation in 1..=reference.operations + 1 {
        let (vfs, acknowledged) = until(operation, open).await;
        for end in Crash::all(operation, SEEDS) {
            let context = |error: String| format!("operation {operation}, {end:?}: {error}");
            let after = vfs.crash(end);
            let store = open(&after).map_err(|error| context(format!("{error}: {error:?}")))?;
            reference
                .judge(&store, acknowledged)
                .await
                .map_err(context)?;
            // What was written after the crash is as safe as what was written before it.
            let expected = snapshot(&store);
            let later = open(&after.power_loss(PowerLoss::LoseUnsynced))
                .map_err(|error| context(format!("later: {error:?}")))?;
            if snapshot(&later) != expected {
                return Err(context(
                    "what was acknowledged after the crash is lost".to_owned(),
                ));
            }
            store.close().await;
            judged += 1;
        }
    }
    Ok(judged)
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_end_of_the_world_at_every_operation() {
    let judged = sweep(try_open).await.unwrap();
    assert!(judged > 500, "only {judged} ends were tried");
}

#[tokio::test]
async fn the_story_goes_on_after_every_crash() {
    let reference = Reference::run().await;
    for operation in 1..=reference.operations {
        let (vfs, acknowledged) = until(operation, try_open).await;
        let after = vfs.power_loss(PowerLoss::Arbitrary { seed: operation });
        let store = open(&after);
        let held = (acknowledged..=acknowledged + 1)
            .find(|commits| reference.after(*commits).0 == store.version());
        let (told, refused) = tell(&store, held.expect("it holds what was acknowledged")).await;
        assert_eq!(
            (told, refused),
            (STORY.len(), None),
            "operation {operation}"
        );
        assert_eq!(*reference.after(told), (store.version(), snapshot(&store)));
    }
}

#[tokio::test]
async fn recovery_may_crash_as_often_as_it_likes() {
    let reference = Reference::run().await;
    let mut crashed_recoveries = 0;
    for operation in (1..=reference.operations).step_by(3) {
        let (vfs, acknowledged) = until(operation, try_open).await;
        let before = vfs.power_loss(PowerLoss::Arbitrary { seed: operation });
        for recovery_operation in 1.. {
            let again = before.power_loss(PowerLoss::LoseUnsynced);
            again.crash_at(recovery_operation);
            let opened = try_open(&again).is_ok();
            crashed_recoveries += u32::from(!opened);
            for end in [
                Crash::Kill,
                Crash::PowerLoss(PowerLoss::Arbitrary {
                    seed: recovery_operation,
                }),
            ] {
                let store = open(&again.crash(end));
                let judged = reference.judge(&store, acknowledged).await;
                assert!(
                    judged.is_ok(),
                    "operation {operation}, then {recovery_operation}, {end:?}: {judged:?}"
                );
            }
            if opened {
                break;
            }
        }
    }
    assert!(
        crashed_recoveries > 50,
        "only {crashed_recoveries} recoveries were broken off"
    );
}
