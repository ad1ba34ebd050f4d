//! Why the log refuses, grouped by what to do about it; and what it found damaged.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Why nothing was appended. Unless it says otherwise, nothing of it will ever be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Append less at once.
    #[error("an append of {bytes} bytes is too large, at most {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    /// Try again soon: too much waits for the disk.
    #[error("the log is busy: too many bytes wait for the disk")]
    Busy,
    /// Make room on the disk; the log goes on by itself.
    #[error("no room left on the disk")]
    Full,
    /// Try again soon: the system had too little of something else. The log goes on by itself.
    #[error("the log could not be written: {0}")]
    Exhausted(Arc<str>),
    /// Restart: the disk failed before this append was written.
    #[error("the log takes nothing until a restart: {0}")]
    Poisoned(Arc<str>),
    /// Restart: the disk failed with this append, and whether it was kept is known only after recovery.
    #[error("the log takes nothing until a restart, and may have kept this: {0}")]
    Undetermined(Arc<str>),
    #[error("the log is closed")]
    Closed,
}

/// Why nothing was read, this time. It says nothing about the records, which a later read may find: damaged ones are no
/// error, see [`Damage`].
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Look at the disk.
    #[error("cannot read the segment {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Why a segment was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("there is no segment that begins at offset {first}")]
    NotFound { first: u64 },
    /// Seal it first.
    #[error("the segment that begins at offset {first} is still appended to")]
    Active { first: u64 },
    /// Look at the disk.
    #[error("cannot remove the segment {path}")]
    Io { path: PathBuf, source: io::Error },
    #[error("the log is closed")]
    Closed,
}

/// Something on disk that is not as it was written. Its bytes stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    /// Where in the file; 0 when it is about the whole file.
    pub position: u64,
    /// The records that cannot be read because of it; often none.
    pub offsets: Range<u64>,
    pub kind: DamageKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DamageKind {
    /// Records whose bytes have changed.
    Record,
    /// The header of a segment. Its records are read all the same.
    Header,
    /// The tables or the trailer of a sealed segment. They are made anew from its records.
    Index,
    /// Too short to be a segment.
    Short,
    /// The file has the name of another segment. Its records are read all the same.
    Misnamed,
    /// A second file for the same records. It is left alone.
    Duplicate,
    /// A segment of another log. It is left alone.
    Foreign,
    /// A segment that does not continue the one before, as after an old copy was put back.
    Chain,
    /// Records that should be there and are in no segment.
    Missing,
    /// The file that tells what was removed and where the log ended.
    Manifest,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            DamageKind::Record => "damaged records",
            DamageKind::Header => "a damaged header",
            DamageKind::Index => "a damaged index",
            DamageKind::Short => "no segment, it is too short",
            DamageKind::Misnamed => "a segment under the wrong name",
            DamageKind::Duplicate => "a second copy of a segment",
            DamageKind::Foreign => "a segment of another log",
            DamageKind::Chain => "a segment that does not continue the one before",
            DamageKind::Missing => "missing records",
            DamageKind::Manifest => "no sound manifest",
        };
        write!(
            f,
            "{}: {what} at byte {}",
            self.path.display(),
            self.position
        )?;
        if !self.offsets.is_empty() {
            let Range { start, end } = self.offsets;
            write!(f, ", offsets {start} to {}", end - 1)?;
        }
        Ok(())
    }
}
