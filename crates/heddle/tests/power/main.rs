//! The real binary on a disk that forgets: what was acknowledged is there when the power is back.
//!
//! `kill -9` loses nothing that the kernel has. Here the kernel has nothing: the data directory is
//! on a file system of our own, mounted for the test, in which bytes are safe after `fsync` and
//! names after `fsync` of their directory. Everything else is gone, torn or out of order when the
//! plug is pulled. `forgetting.rs` proves that of the disk itself, `cycles.rs` and `starts.rs` hold
//! heddle against it.
//!
//! The seed of a run is printed; `HEDDLE_POWER_SEED` brings it back, and `HEDDLE_POWER_TIMES=10` does
//! ten times as much. A run that is itself killed leaves a mount behind, which `umount -l` removes.
//!
//! Asked for with `--features power-tests`. It needs `/dev/fuse`, and root or `fusermount3` (Debian
//! package fuse3); asking without them is a failure, not a pass.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod cycles;
mod disk;
mod forgetting;
mod machine;
mod starts;

#[path = "../e2e/harness.rs"]
mod harness;
#[path = "../e2e/events/load.rs"]
mod load;
#[expect(dead_code, reason = "the stories of the other suite need more")]
#[path = "../e2e/events/stage.rs"]
mod stage;
#[expect(dead_code, reason = "the stories of the other suite need more")]
#[path = "../e2e/events/subscriber.rs"]
mod subscriber;
#[path = "../e2e/events/wire.rs"]
mod wire;
#[path = "../e2e/writers.rs"]
mod writers;

use heddle_rt::Chance;

/// What decides when the power goes and what is left of what was not synced. Threads run as they like,
/// so it may take a few runs with a seed to see again what it found.
#[expect(
    clippy::disallowed_methods,
    reason = "the knob of a test is no configuration"
)]
fn seed() -> u64 {
    let asked = std::env::var("HEDDLE_POWER_SEED").ok();
    asked.map_or_else(|| Chance::system().u64(), |seed| seed.parse().unwrap())
}

/// More for those who have the time.
#[expect(
    clippy::disallowed_methods,
    reason = "the knob of a test is no configuration"
)]
fn times(usual: usize) -> usize {
    let asked = std::env::var("HEDDLE_POWER_TIMES").ok();
    asked.map_or(usual, |times| usual * times.parse::<usize>().unwrap())
}
