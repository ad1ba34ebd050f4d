//! A log as files that can be copied while it is appended to.
//!
//! What is safe never changes, so of each segment the bytes up to the last safe record are copied and nothing behind them; a
//! restart takes such a copy for a log whose power went at that moment. The manifest is read first, because it may be behind
//! the segments but never ahead of them. Segments that retention removes meanwhile are missing: whoever copies begins anew.

use std::io;
use std::path::PathBuf;

use super::EventLog;
use super::manifest::Manifest;

/// The files of a log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What the manifest holds.
    pub manifest: Vec<u8>,
    pub manifest_path: PathBuf,
    /// Each segment, and how many of its bytes are safe.
    pub segments: Vec<(PathBuf, u64)>,
}

impl EventLog {
    /// What to copy. Reads the manifest, which is small.
    pub fn export(&self) -> io::Result<Export> {
        let shared = &self.inner.shared;
        let manifest_path = Manifest::path(&shared.dir);
        let manifest = shared.vfs.read(&manifest_path)?;
        let segments = shared.all_segments();
        let segments = segments
            .iter()
            .map(|segment| (segment.path.clone(), segment.info().bytes));
        Ok(Export {
            manifest,
            manifest_path,
            segments: segments.collect(),
        })
    }
}
