//! Room that is left alone: events are refused before the disk is full.
//!
//! ```text
//!   free   ──────────── needed = reserve and an eighth ── reserve ─────────────── 0
//!            accepting ──────────────────────────────────> low ──> journal, resources, snapshots
//!            accepting <── low
//! ```
//! What was accepted must still be delivered, remembered and removed when nothing more can be accepted, and that takes a
//! little room. Looking costs a system call, so nobody looks per event: only when a segment was begun, when the mesh
//! tidies up, and, while there is too little, once a second when somebody asks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use heddle_rt::vfs::Space;
use heddle_rt::{Clock, Vfs};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The usual reserve is one part in this many of the file system, within the two bounds below.
const USUAL_PART: u64 = 50;
/// Two segments of the log and two of the journal may be made ready between two looks.
const USUAL_BYTES_MIN: u64 = 256 << 20;
/// Two per cent of a large disk are more than anybody needs to get out of trouble.
const USUAL_BYTES_MAX: u64 = 4 << 30;
/// On a very small file system most of it is for events all the same.
const USUAL_PART_MAX: u64 = 4;
/// Accepting again takes this part of the reserve on top, so that it does not flicker.
const SLACK_PART: u64 = 8;
/// How often to look while there is too little.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How much of the disk events may not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reserve {
    /// Two per cent of the file system, from 256 MiB to 4 GiB, and never more than a quarter of it.
    #[default]
    Usual,
    /// So many bytes; none with zero.
    Bytes(u64),
}

impl Reserve {
    fn bytes(self, total_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Usual => (total_bytes / USUAL_PART)
                .clamp(USUAL_BYTES_MIN, USUAL_BYTES_MAX)
                .min(total_bytes / USUAL_PART_MAX),
        }
    }
}

/// How much room there was when somebody last looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Where; empty when the log has no disk of its own.
    pub dir: PathBuf,
    pub free_bytes: u64,
    /// With less than this free, events are refused or soon will be.
    pub needed_bytes: u64,
    /// Whether events are refused.
    pub low: bool,
}

impl Room {
    /// What must become free before events are accepted again.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        if self.low {
            self.needed_bytes.saturating_sub(self.free_bytes)
        } else {
            0
        }
    }

    /// With less than this free, events are refused.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        self.needed_bytes - self.needed_bytes / (SLACK_PART + 1)
    }

    fn seen(dir: &Path, space: Space, reserve: Reserve, was_low: bool) -> Self {
        let reserve = reserve.bytes(space.total_bytes);
        let needed_bytes = reserve.saturating_add(reserve / SLACK_PART);
        let least = if was_low { needed_bytes } else { reserve };
        Self {
            dir: dir.to_owned(),
            free_bytes: space.free_bytes,
            needed_bytes,
            low: space.free_bytes < least,
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} has {} free and {} are needed",
            self.dir.display(),
            mebibytes(self.free_bytes),
            mebibytes(self.needed_bytes)
        )
    }
}

/// Bytes for people, who compare them with what their tools say.
pub(crate) fn mebibytes(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    match bytes {
        0 => "0 MiB".to_owned(),
        1..MEBIBYTE => "less than 1 MiB".to_owned(),
        _ => format!("{} MiB", bytes / MEBIBYTE),
    }
}

/// Looks after the room of one directory.
#[derive(Debug)]
pub(super) struct RoomGate {
    clock: Clock,
    dir: PathBuf,
    reserve: Reserve,
    room: watch::Sender<Room>,
    low: AtomicBool,
    /// How many segments had been begun at the last look.
    begun: AtomicU64,
    looked_at: Mutex<Duration>,
}

impl RoomGate {
    pub(super) fn new(vfs: &dyn Vfs, dir: PathBuf, clock: Clock, reserve: Reserve) -> Self {
        let gate = Self {
            room: watch::Sender::default(),
            low: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            looked_at: Mutex::default(),
            clock,
            dir,
            reserve,
        };
        gate.look(vfs);
        gate
    }

    /// Whether events are accepted. Looks only if there is reason to.
    pub(super) fn pass(&self, vfs: &dyn Vfs, begun: u64) -> Result<(), Room> {
        let grown = self.begun.load(Ordering::Relaxed) != begun;
        if !grown && !self.low.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.begun.swap(begun, Ordering::Relaxed) != begun || self.is_old() {
            self.look(vfs);
        }
        if self.low.load(Ordering::Relaxed) {
            return Err(self.room.borrow().clone());
        }
        Ok(())
    }

    fn is_old(&self) -> bool {
        let now = self.clock.monotonic();
        now.saturating_sub(*self.looked_at.lock()) >= LOOK_AGAIN
    }

    /// Looks now. Who waits for a change hears of one only when the answer to publishers changes.
    pub(super) fn look(&self, vfs: &dyn Vfs) {
        *self.looked_at.lock() = self.clock.monotonic();
        let space = match vfs.space(&self.dir) {
            Ok(space) if space.total_bytes > 0 => space,
            // Who cannot tell how much room there is does not stop anybody: a full disk is noticed by the write.
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(dir = %self.dir.display(), %error, "cannot tell how much room there is for events");
                return;
            }
        };
        self.room.send_if_modified(|room| {
            let was_low = room.low;
            *room = Room::seen(&self.dir, space, self.reserve, was_low);
            self.low.store(room.low, Ordering::Relaxed);
            if room.low && !was_low {
                tracing::warn!("events are refused until there is more room: {room}");
            } else if was_low && !room.low {
                tracing::info!("events are accepted again: {room}");
            }
            room.low != was_low
        });
    }

    pub(super) fn room(&self) -> watch::Receiver<Room> {
        self.room.subscribe()
    }
}

#[cfg(test)]
mod tests;
