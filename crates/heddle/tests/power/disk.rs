//! A disk with a plug: a mounted file system whose files are those of a [`MemoryVfs`].
//!
//! ```text
//!   on ── cut_after(n) ──> n more operations ──> dark ── let_go() ──> gone ── restore(how) ──> on
//!                                                 │                     │
//!                                        nothing is answered    everything fails
//! ```
//!
//! Whoever uses the disk when it goes dark waits, as it would for a machine without power, and has
//! no chance to react. It is to be killed while it waits; a process cannot end inside a call that is
//! not answered, so the disk has to let go of it afterwards.
//!
//! The kernel is told to keep nothing: every read and write comes here, every name is looked up
//! anew. So nothing is left of the old world when there is a new one in the same place.

mod fuse;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, MountOption};
use heddle_rt::vfs::{MemoryVfs, PowerLoss};
use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;

use fuse::Kernel;
use tree::Tree;

#[derive(Debug)]
pub(crate) struct Disk {
    shared: Arc<Shared>,
    /// Before the folder, which is where it is mounted.
    _session: BackgroundSession,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told when the power changes.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    power: Power,
    tree: Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    On,
    /// Until the operation with this number, which does not happen.
    Until(u64),
    Dark,
    Gone,
}

impl Disk {
    /// An empty one, mounted in a folder of its own for as long as this lives.
    pub(crate) fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                power: Power::On,
                tree: Tree::on(MemoryVfs::new()),
            }),
            changed: Condvar::new(),
        });
        let kernel = Kernel::serving(shared.clone());
        let options = [MountOption::FSName("forgetful".to_owned())];
        let session = fuser::spawn_mount2(kernel, folder.path(), &options).unwrap_or_else(|error| {
            panic!(
                "cannot mount a file system, which this suite needs: {error}; \
                 there must be a /dev/fuse (modprobe fuse; in a container: --device /dev/fuse and CAP_SYS_ADMIN), \
                 and who is not root needs fusermount3 (apt install fuse3)"
            )
        });
        Self {
            shared,
            _session: session,
            folder,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A place on it that is not there yet, and nor is the folder above it.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("srv/heddle")
    }

    /// How many operations there have been that change something or make something safe.
    pub(crate) fn operations(&self) -> u64 {
        self.shared.state.lock().tree.vfs().operations()
    }

    /// From now on nothing is made safe in folders of this name, though it is said to be.
    pub(crate) fn lie_about(&self, folder: &'static str) {
        self.shared.state.lock().tree.lie_about(folder);
    }

    /// Lets so many more operations happen, and then nothing.
    pub(crate) fn cut_after(&self, operations: u64) {
        let mut state = self.shared.state.lock();
        let last = state.tree.vfs().operations() + operations;
        state.tree.vfs().crash_at(last + 1);
        state.power = Power::Until(last + 1);
    }

    pub(crate) fn is_dark(&self) -> bool {
        self.shared.state.lock().power == Power::Dark
    }

    /// Lets those who wait fail, and all others as well.
    pub(crate) fn let_go(&self) {
        self.shared.turn(Power::Gone);
    }

    /// The power is back: only what was safe is there, and whatever else `how` leaves.
    pub(crate) fn restore(&self, how: PowerLoss) {
        self.shared.state.lock().tree.lose_power(how);
        self.shared.turn(Power::On);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What is not answered cannot be unmounted.
        self.let_go();
    }
}

impl Shared {
    fn turn(&self, power: Power) {
        self.state.lock().power = power;
        self.changed.notify_all();
    }

    /// Does what the kernel asks for, if there is power for it.
    fn operate<T>(&self, work: impl FnOnce(&mut Tree) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut state = self.state.lock();
        let mut result = match state.power {
            Power::On | Power::Until(_) => work(&mut state.tree),
            Power::Dark | Power::Gone => Err(Errno::IO),
        };
        if let Power::Until(last) = state.power
            && state.tree.vfs().operations() >= last
        {
            state.power = Power::Dark;
            result = Err(Errno::IO);
        }
        while state.power == Power::Dark {
            self.changed.wait(&mut state);
        }
        result
    }
}
