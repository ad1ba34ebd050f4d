//! What tests of commands share: a world without chance, and a terminal that can be read.

use std::sync::Arc;

use heddle_rt::{Chance, Clock, DiskVfs};

pub(super) use crate::terminal::Screen;
use crate::wire::World;

/// The machine's time, but always the same chance.
pub(super) fn world() -> World {
    World {
        clock: Clock::system(),
        chance: Chance::seeded(7),
        vfs: Arc::new(DiskVfs),
    }
}
