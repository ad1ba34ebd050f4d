//! A file system with a twist: it lies about syncing, writes half, or waits for a word.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_rt::vfs::{Lock, Open, Space, Vfs, VfsFile};
use parking_lot::{Condvar, Mutex};

/// What is different.
#[derive(Debug)]
pub(crate) enum Twist {
    /// Only the first two syncs through each handle are done: those that make a segment.
    LazySync,
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

#[derive(Debug)]
pub(crate) struct TwistedVfs {
    pub(crate) inner: Arc<dyn Vfs>,
    pub(crate) twist: Arc<Twist>,
}

#[derive(Debug)]
struct TwistedFile {
    inner: Arc<dyn VfsFile>,
    twist: Arc<Twist>,
    syncs: AtomicU64,
}

impl Vfs for TwistedVfs {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(TwistedFile {
            inner: self.inner.open(path, options)?,
            twist: self.twist.clone(),
            syncs: 0.into(),
        }))
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.inner.space(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.inner.lock(path)
    }
}

impl VfsFile for TwistedFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, out)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Twist::ShortWrite { number, seen } = &*self.twist
            && seen.fetch_add(1, Ordering::Relaxed) + 1 == *number
        {
            // All but the last byte: whole records and a torn one.
            self.inner
                .write_at(offset, &bytes[..bytes.len().saturating_sub(1)])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.write_at(offset, bytes)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn sync(&self) -> io::Result<()> {
        match &*self.twist {
            Twist::LazySync if self.syncs.fetch_add(1, Ordering::Relaxed) > 1 => Ok(()),
            Twist::Gate(gate) => {
                gate.pass();
                self.inner.sync()
            }
            _ => self.inner.sync(),
        }
    }
    fn evict(&self) -> io::Result<()> {
        self.inner.evict()
    }
}
