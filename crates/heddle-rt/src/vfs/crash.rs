//! The ways in which a process ends without being asked, and those in which a read fails.

use super::{Fault, MemoryVfs, PowerLoss};

/// What ends the process, and with it whatever was not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Everything written is still there.
    Kill,
    PowerLoss(PowerLoss),
}

impl Crash {
    /// Every way to end once, and so many ways to lose what was not synced: others for each salt.
    pub fn all(salt: u64, seeds: u64) -> impl Iterator<Item = Self> {
        let arbitrary = (0..seeds).map(move |seed| PowerLoss::Arbitrary {
            seed: salt * seeds + seed,
        });
        [Self::Kill, Self::PowerLoss(PowerLoss::LoseUnsynced)]
            .into_iter()
            .chain(arbitrary.map(Self::PowerLoss))
    }
}

impl Fault {
    /// What a read may fail with that says nothing about what should have been read.
    pub const OF_READS: [Self; 5] = [
        Self::Emfile,
        Self::Enfile,
        Self::Enomem,
        Self::Eio,
        Self::Eintr,
    ];
}

impl MemoryVfs {
    /// The world after the process ended so.
    #[must_use]
    pub fn crash(&self, how: Crash) -> Self {
        match how {
            Crash::Kill => self.kill(),
            Crash::PowerLoss(how) => self.power_loss(how),
        }
    }
}
