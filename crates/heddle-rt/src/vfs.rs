//! Files, as a port: the disk in production, a memory that forgets in tests.
//!
//! The operations are the few that durability is made of. What is promised is what a careful
//! reader of POSIX may rely on and no more: bytes are safe after [`VfsFile::sync`], names are safe
//! after [`Vfs::sync_dir`]. [`MemoryVfs`] takes everything else away at the worst moment.
//! All calls block; they belong on threads of their own, not on async workers.

mod crash;
mod disk;
mod memory;
mod twisted;

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

pub use crash::Crash;
pub use disk::DiskVfs;
pub use memory::{Fault, MemoryVfs, PowerLoss};
pub use twisted::{FileTwist, TwistedVfs};

/// How a file is opened. Files are always opened for reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    pub create: Create,
    /// Permission bits of a file that is created.
    pub mode: u32,
}

/// What to do about a file that does not exist, or does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// It must exist.
    Never,
    /// Create it when missing.
    IfMissing,
    /// Create it, or empty the one that exists.
    Truncate,
}

impl Open {
    /// Only when it exists.
    #[must_use]
    pub const fn existing() -> Self {
        Self {
            create: Create::Never,
            mode: 0o600,
        }
    }

    /// Create when missing, readable by the owner only.
    #[must_use]
    pub const fn or_create() -> Self {
        Self {
            create: Create::IfMissing,
            mode: 0o600,
        }
    }

    /// Start with an empty file.
    #[must_use]
    pub const fn truncated(mode: u32) -> Self {
        Self {
            create: Create::Truncate,
            mode,
        }
    }
}

/// How much room there is on the file system that a path is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What this process may still use; what the system keeps for its administrator is not in it.
    pub free_bytes: u64,
    /// Of the whole file system; 0 when it does not say.
    pub total_bytes: u64,
}

/// A tree of files.
pub trait Vfs: Debug + Send + Sync {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>>;

    /// Makes the directory and its missing parents, and makes their names safe.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Replaces `to`, as one step for everybody who looks.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names inside a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Makes the names inside `dir` safe: what was created, renamed or removed stays so.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// How much room is left where `path` is, which must exist.
    fn space(&self, path: &Path) -> io::Result<Space>;

    /// Takes `path` for this process until the guard is dropped. `ResourceBusy` when it is taken.
    /// The lock ends with the process, however that ends.
    fn lock(&self, path: &Path) -> io::Result<Lock>;

    /// The whole file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Open::existing())?;
        let mut bytes = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Puts a file in place whole and safe: whatever happens, `path` holds the old bytes or the new.
    fn write_atomic(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let temporary = temporary_name(path)?;
        let file = self.open(&temporary, Open::truncated(mode))?;
        file.write_at(0, bytes)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        self.sync_dir(parent(path))
    }
}

/// One open file. Positions are given with each call, so a handle may be shared.
#[expect(
    clippy::len_without_is_empty,
    reason = "the length of a file, not of a collection"
)]
pub trait VfsFile: Debug + Send + Sync {
    /// Fills `out` from `offset`; `UnexpectedEof` when the file ends before.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it by zeroes for which there is room on the disk.
    fn set_len(&self, len: u64) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    /// Returns when the bytes and the length are safe. After an error nothing is known about what
    /// was written since the last success, and a later success says nothing about it either.
    fn sync(&self) -> io::Result<()>;

    /// Forgets what is only cached: later reads show what the device holds.
    fn evict(&self) -> io::Result<()>;
}

/// Holds a path for this process.
#[must_use = "the lock ends when this is dropped"]
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl Lock {
    fn holding(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

impl Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lock")
    }
}

/// Whether an operation was refused because there is no room where it should write.
#[must_use]
pub fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// Whether an operation was refused for want of something that comes back: room, descriptors, memory, an undisturbed
/// moment. It says nothing about the device, and had no effect.
#[must_use]
pub fn is_exhausted(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory};
    let descriptors = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    let out_of_descriptors = error
        .raw_os_error()
        .is_some_and(|number| descriptors.contains(&number));
    is_no_room(error) || out_of_descriptors || matches!(error.kind(), Interrupted | OutOfMemory)
}

/// The directory a path is in; `.` for a bare name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// Beside `path`, and the same each time: what a crash left behind is used up by the next attempt.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(".new");
    Ok(path.with_file_name(temporary))
}

#[cfg(test)]
mod tests;
