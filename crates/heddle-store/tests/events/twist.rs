//! A file system with a twist: it writes half, or waits for a word.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_rt::vfs::{FileTwist, TwistedVfs, Vfs, VfsFile};
use parking_lot::{Condvar, Mutex};

/// What is different.
#[derive(Debug)]
pub(crate) enum Twist {
    /// The write with this number is broken off in the middle, for want of room.
    ShortWrite { number: u64, seen: AtomicU64 },
    /// Syncs wait until the gate is opened.
    Gate(Gate),
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    /// How many may pass although it is closed.
    admitted: u64,
    arrived: u64,
}

impl Gate {
    pub(crate) fn set(&self, open: bool) {
        self.state.lock().open = open;
        self.changed.notify_all();
    }

    /// Lets one pass.
    pub(crate) fn admit(&self) {
        self.state.lock().admitted += 1;
        self.changed.notify_all();
    }

    /// Returns when so many have come to the gate.
    pub(crate) fn wait_for(&self, count: u64) {
        let mut state = self.state.lock();
        while state.arrived < count {
            self.changed.wait(&mut state);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.state.lock().arrived
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.arrived += 1;
        self.changed.notify_all();
        while !state.open && state.admitted == 0 {
            self.changed.wait(&mut state);
        }
        state.admitted = state.admitted.saturating_sub(1);
    }
}

/// The file system with this twist, one for all its files.
pub(crate) fn twisted(inner: Arc<dyn Vfs>, twist: Arc<Twist>) -> Arc<dyn Vfs> {
    Arc::new(TwistedVfs::new(inner, move || twist.clone()))
}

impl FileTwist for Twist {
    fn write_at(&self, file: &dyn VfsFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Self::ShortWrite { number, seen } = self
            && seen.fetch_add(1, Ordering::Relaxed) + 1 == *number
        {
            // All but the last byte: whole records and a torn one.
            file.write_at(offset, &bytes[..bytes.len().saturating_sub(1)])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.write_at(offset, bytes)
    }

    fn sync(&self, file: &dyn VfsFile) -> io::Result<()> {
        if let Self::Gate(gate) = self {
            gate.pass();
        }
        file.sync()
    }
}
