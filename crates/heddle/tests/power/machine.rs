//! A machine: a server, the disk it keeps its data on, and a plug.

use heddle_rt::Chance;
use heddle_rt::vfs::PowerLoss;

use crate::disk::Disk;
use crate::harness::{Server, eventually};
use crate::stage;

pub(crate) struct Machine {
    /// Before the disk, which cannot go while it is in use.
    pub(crate) server: Server,
    pub(crate) disk: Disk,
    chance: Chance,
}

impl Machine {
    /// One on which nothing was ever started.
    pub(crate) fn new(chance: Chance) -> Self {
        let disk = Disk::mount();
        Self {
            server: Server::keeping(disk.data()),
            disk,
            chance,
        }
    }

    /// One with a server that has a namespace and a Broker in it.
    pub(crate) async fn with_broker(chance: Chance) -> Self {
        let mut machine = Self::new(chance);
        machine.server.launch().await;
        stage::set_up(&machine.server).await;
        machine
    }

    /// Cuts the power after fewer than so many operations of the running server, and brings it back.
    pub(crate) async fn lose_power_within(&mut self, operations: u64) {
        let how = match self.chance.below(3) {
            0 => PowerLoss::LoseUnsynced,
            _ => PowerLoss::Arbitrary {
                seed: self.chance.u64(),
            },
        };
        let operations = self.chance.below(operations);
        self.lose_power(operations, how).await;
    }

    /// Cuts the power after exactly so many operations.
    pub(crate) async fn lose_power(&mut self, operations: u64, how: PowerLoss) {
        self.disk.cut_after(operations);
        eventually("the power to go", async || {
            self.disk.is_dark().then_some(())
        })
        .await;
        self.server.kill_and(|| self.disk.let_go());
        self.disk.restore(how);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A server cannot end inside a call that a dark disk does not answer.
        self.disk.let_go();
    }
}
