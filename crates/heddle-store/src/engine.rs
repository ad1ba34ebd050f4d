//! The contract of a storage engine: load everything, commit a batch.
//!
//! All reads are served from memory, so an engine is written to and read only at the start. It
//! stores opaque bytes in two maps and one slot; what they mean is known in `format`.

mod redb;

use std::io;

use bytes::Bytes;

pub use redb::RedbEngine;

/// Keeps bytes safe.
pub trait Engine: Send {
    /// Everything that was committed.
    fn load(&mut self) -> Result<Image, LoadError>;

    /// Applies the whole batch or nothing, and returns when it is safe from power loss.
    fn commit(&mut self, batch: &Batch) -> Result<(), EngineError>;
}

/// How much is looked at when a store that was closed in order is opened. After a crash it is
/// always everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Every record: its checksum, its place, and that none is missing. Damage to the engine's own
    /// bookkeeping shows when it is used, and ends writing.
    #[default]
    Records,
    /// Every page of the file as well, on a copy in memory. Takes several times as long.
    Pages,
}

/// Everything an engine holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub meta: Bytes,
    pub objects: Vec<(Bytes, Bytes)>,
    pub tombstones: Vec<(u64, Bytes)>,
}

/// What changes together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub meta: Bytes,
    /// In order: the last one for a key counts.
    pub objects: Vec<(Vec<u8>, Option<Bytes>)>,
    pub tombstones: Vec<(u64, Option<Bytes>)>,
}

/// Why nothing was loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{0}")]
    Corrupt(String),
    #[error("cannot read")]
    Io(#[from] io::Error),
}

/// Why a batch is not safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// There was no room and the batch was not applied; later ones may be.
    #[error("no room left on the disk")]
    Full,
    /// The disk failed. What is on it is known only after loading again in another process.
    #[error("{0}")]
    Failed(String),
}
