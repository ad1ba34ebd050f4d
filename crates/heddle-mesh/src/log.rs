//! The contract of a durable log: append, read, acknowledge, trim.
//!
//! ```text
//!   first                 committed
//!     │ 7 │ 8 │ 9 │ … │ 41 │        offsets grow by one and are never used twice
//!     ^trim            ^append
//! ```
//! - **append**: the answer comes when all of it is safe. A refusal says that none of it will ever be read.
//! - **read**: in order, without gaps but those that trimming or damage left, never more than what is safe.
//! - **acknowledge**: what consumers did, as records of the journal, safe when it answers.
//! - **trim**: whole segments from anywhere, only what nobody needs; who needs what is for the caller to know.
//!
//! Every engine passes the same suite, [`conformance`].

pub mod conformance;
pub mod embedded;
pub mod memory;
pub(crate) mod room;

use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heddle_rt::Vfs;
use heddle_store::Health;
use jiff::Timestamp;
use tokio::sync::watch;

pub use room::{Reserve, Room};

/// The place of a record in a log. The first is 1.
pub type Offset = u64;

/// A record that is to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// What [`Log::find`] finds it by; 0 for nothing.
    pub key: u64,
    /// Head and body; they become one payload.
    pub parts: [&'a [u8]; 2],
}

/// A record that is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub offset: Offset,
    pub at: Timestamp,
    pub payload: Bytes,
}

/// Some records in order, and where to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub records: Vec<Record>,
    /// Everything below is in `records`, in `damaged`, or trimmed.
    pub next: Offset,
    /// What was appended and cannot be read any more, in order, below `next`.
    pub damaged: Vec<Range<Offset>>,
}

/// What is left of something that was kept at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T = Record> {
    Found(T),
    /// Its bytes are not what was written: they are lost, and no later read brings them back.
    Damaged,
    /// It was trimmed, or is not there yet.
    Gone,
}

impl<T> Lookup<T> {
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Damaged | Self::Gone => None,
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(found) => Lookup::Found(change(found)),
            Self::Damaged => Lookup::Damaged,
            Self::Gone => Lookup::Gone,
        }
    }
}

/// A segment of the log that can be trimmed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub first: Offset,
    pub next: Offset,
    pub last_at: Timestamp,
    pub bytes: u64,
    /// Nothing is appended to it any more.
    pub sealed: bool,
}

/// Why nothing was appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefused {
    #[error("the event is too large for the log: {bytes} bytes, at most {max}")]
    TooLarge { bytes: usize, max: usize },
    /// Later.
    #[error("the log has too much to write already")]
    Busy,
    /// When there is room again.
    #[error("there is no room left for events")]
    Full,
    /// Soon: the system had too little of something else.
    #[error("the log cannot be written for now: {0}")]
    Exhausted(String),
    /// When there is more room than what is already accepted may come to need.
    #[error("there is too little room for events: {0}")]
    Low(Box<Room>),
    /// After a restart, once the disk is well.
    #[error("the log cannot be written any more: {0}")]
    Broken(String),
    /// Likewise, and this append is what it broke on: it may be found in the log after the restart.
    #[error("the log cannot be written any more: {0}")]
    Undetermined(String),
}

/// The log could not be asked: no descriptors, no memory, a device that does not answer. It says nothing about what is in
/// the log, so it ends nothing: whoever asked asks again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log cannot be read for now: {0}")]
pub struct Unavailable(pub String);

/// Where something that is derived from the log can be kept. Nothing there is needed, and nothing of it is believed over the log.
#[derive(Clone, Debug)]
pub struct Derived {
    pub vfs: Arc<dyn Vfs>,
    /// Made when first used.
    pub dir: PathBuf,
    /// The number of this very log.
    pub mark: u32,
}

/// A future that an engine answers with.
pub type LogFuture<T, E> = BoxFuture<'static, Result<T, E>>;

/// One durable log with its journal.
pub trait Log: Debug + Send + Sync + 'static {
    /// All drafts, in this order and without anything between them, or none.
    fn append(&self, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused>;

    /// The first offset that is kept, and the one after the last that is safe.
    fn bounds(&self) -> Range<Offset>;

    /// Answers once something beyond `offset` is safe.
    fn beyond(&self, offset: Offset) -> BoxFuture<'static, Offset>;

    /// Records from `from` on, if they are at hand without waiting for a device.
    fn recent(&self, from: Offset, bytes_max: usize) -> Option<Batch>;

    /// Records from `from` on; at least one if there is one. May wait for a device.
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable>;

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable>;

    /// The offsets of records with this key, oldest first.
    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable>;

    /// The same from an offset on, all of them.
    fn find_from(&self, key: u64, from: Offset) -> Result<Vec<Offset>, Unavailable> {
        let mut found = self.find(key, usize::MAX)?;
        found.retain(|offset| *offset >= from);
        Ok(found)
    }

    /// The first offset that was appended at or after a time.
    fn at_time(&self, at: Timestamp) -> Offset;

    fn segments(&self) -> Vec<SegmentInfo>;

    /// Forgets a sealed segment, for good.
    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable>;

    /// Records of the journal, all or none.
    fn acknowledge(&self, lines: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused>;

    /// The journal, read like the log itself.
    fn journal(&self) -> &dyn Journal;

    fn health(&self) -> Health;

    /// Looks how much room there is; otherwise that is done only when the log has grown.
    fn survey(&self);

    /// The room there was at the last look. Changes are told only when events begin or cease to be refused.
    fn room(&self) -> watch::Receiver<Room>;

    /// Records that are damaged and kept aside.
    fn damaged(&self) -> u64;

    /// Where in the log itself records cannot be read any more, as far as anybody has looked: the first of them.
    fn damaged_at(&self) -> Vec<Range<Offset>>;

    /// Where what is derived from the log may be kept, if anywhere.
    fn derived(&self) -> Option<Derived> {
        None
    }

    fn close(&self) -> BoxFuture<'static, ()>;
}

/// Reading and trimming the journal.
pub trait Journal: Debug + Send + Sync {
    fn bounds(&self) -> Range<Offset>;
    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable>;
    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable>;
    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable>;
    fn segments(&self) -> Vec<SegmentInfo>;
    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable>;
    /// The newest state that was written down, newest first; what cannot be read is left out by the caller.
    fn snapshots(&self) -> Result<Vec<(Offset, Vec<u8>)>, Unavailable>;
    /// Keeps a state that sums up everything below `next`, and the one before it.
    fn keep_snapshot(&self, next: Offset, bytes: &[u8]) -> Result<(), Unavailable>;
}

/// The checksum used for what is kept outside the log's own records.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}
