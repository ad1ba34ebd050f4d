//! Backups: a directory with the files of a data directory at one moment, and a manifest that says what belongs to it.
//!
//! ```text
//!   running server ─> source ─> frames over HTTP ─┐
//!   stopped directory ─> source ──────────────────┴─> writer ─> DEST, put in place when it is complete and verified
//!   SRC ─> verified ─> a directory beside ─> opened once ─> put in place
//! ```
//! Resources are taken first, then the journal, then the log: whatever the journal speaks of is in the log, and no trigger is
//! there of which the journal may not know. Credentials are part of it, so a backup is as secret as the directory itself.

pub(crate) mod frames;
pub(crate) mod manifest;
pub(crate) mod server;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod writer;

use std::path::PathBuf;

/// How much of a file is read, sent or written at once.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// One thing in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the data directory, with slashes.
    pub(crate) name: String,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Small ones that are in memory already.
    Bytes {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// The first so many bytes of a file.
    File {
        path: PathBuf,
        bytes: u64,
        mode: u32,
    },
    /// An empty one; others follow from the names in them.
    Directory {
        mode: u32,
    },
    Link {
        target: String,
    },
}

impl Content {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::File { bytes, .. } => *bytes,
            Self::Directory { .. } | Self::Link { .. } => 0,
        }
    }
}
