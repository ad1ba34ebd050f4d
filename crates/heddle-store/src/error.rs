//! Why the store refuses, grouped by what to do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Key, Object, ResourceVersion};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop the other process, or use another directory.
    #[error("the store in {dir} is in use by another process")]
    Busy { dir: PathBuf },
    /// Use the newer release; no object was changed. After a crash the engine may have put its pages in order first.
    #[error("the store in {path} has format {found}, this release reads up to {supported}")]
    Newer {
        path: PathBuf,
        found: u32,
        supported: u32,
    },
    /// Repair, or restore a backup; no object was changed. After a crash the engine may have put its pages in order first, so the
    /// file need not have the bytes it had.
    #[error("the store in {path} is damaged: {reason}")]
    Corrupt { path: PathBuf, reason: String },
    /// Look at the disk.
    #[error("cannot open the store in {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Why a batch was not written. Unless it says otherwise, nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Read again and decide again.
    #[error("{key} is not as expected")]
    Conflict {
        key: Key,
        /// What is there instead.
        actual: Option<Arc<Object>>,
    },
    /// Make room on the disk; the store goes on by itself.
    #[error("no room left on the disk")]
    Full,
    /// Restart: the disk failed, and whether this batch was kept is known only after recovery.
    #[error("the disk has failed: nothing is written until a restart")]
    Poisoned,
    #[error("the store is closed")]
    Closed,
    /// Write less.
    #[error("{key} is too large: {bytes} bytes, at most {bytes_max}")]
    TooLarge {
        key: Key,
        bytes: usize,
        bytes_max: usize,
    },
    /// A mistake of the caller.
    #[error("{key} cannot be written: {reason}")]
    Invalid { key: Key, reason: &'static str },
}

/// Why a watch cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Expired {
    /// List again: changes after the asked version are forgotten.
    #[error("changes are kept from version {oldest} on")]
    TooOld { oldest: ResourceVersion },
    /// The asked version has not happened here.
    #[error("the latest version is {latest}")]
    Future { latest: ResourceVersion },
    #[error("the store is closed")]
    Closed,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{path} exists: a backup goes into a fresh file")]
    Exists { path: PathBuf },
    #[error("cannot write the backup {path}")]
    Io { path: PathBuf, source: io::Error },
}
