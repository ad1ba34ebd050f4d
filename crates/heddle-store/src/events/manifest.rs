//! What the segments cannot tell themselves: which were removed, and how far the log had come.
//!
//! ```text
//!   magic u64 │ crc u32 │ layout u32 │ mark u32 │ clean u32 │ floor u64 │ newest u64 │
//!   sealed u64 │ count u64 │ count × (start u64, end u64)
//! ```
//! Without it a segment that somebody deleted would look like one that retention removed. It is put
//! in place whole, so it is always of one moment; it may be behind the segments, never ahead.

pub(crate) mod fuzzing;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use heddle_rt::vfs::{Open, Vfs};

use super::format::{Decoded, LAYOUT, u32_at, u64_at};

const NAME: &str = "manifest";
const MAGIC: u64 = u64::from_le_bytes(*b"heddle/m");
const FIXED_BYTES: usize = 56;
/// A file longer than this is none of ours: that many separate holes were never made.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) mark: u32,
    /// The log was closed and ended exactly at `floor`.
    pub(super) clean: bool,
    /// Everything before this was safe once.
    pub(super) floor: u64,
    /// The first offset of the last segment made; 0 before there is one.
    pub(super) newest: u64,
    /// Every segment that ends here or before has a trailer.
    pub(super) sealed: u64,
    /// Sorted, apart from each other.
    removed: Vec<Range<u64>>,
}

impl Manifest {
    pub(super) fn new(mark: u32) -> Self {
        Self {
            mark,
            clean: false,
            floor: 1,
            newest: 0,
            sealed: 0,
            removed: Vec::new(),
        }
    }

    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join(NAME)
    }

    /// `None` when there is no such file.
    pub(super) fn load(vfs: &dyn Vfs, dir: &Path) -> io::Result<Option<Decoded<Self>>> {
        let file = match vfs.open(&Self::path(dir), Open::existing()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let len = file.len()?;
        if len > BYTES_MAX {
            return Ok(Some(Decoded::Damaged));
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_at(0, &mut bytes)?;
        Ok(Some(Self::decode(&bytes)))
    }

    pub(super) fn save(&self, vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
        vfs.write_atomic(&Self::path(dir), &self.encode(), 0o600)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.removed.len() * 16);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&LAYOUT.to_le_bytes());
        bytes.extend_from_slice(&self.mark.to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.clean).to_le_bytes());
        bytes.extend_from_slice(&self.floor.to_le_bytes());
        bytes.extend_from_slice(&self.newest.to_le_bytes());
        bytes.extend_from_slice(&self.sealed.to_le_bytes());
        bytes.extend_from_slice(&(self.removed.len() as u64).to_le_bytes());
        for range in &self.removed {
            bytes.extend_from_slice(&range.start.to_le_bytes());
            bytes.extend_from_slice(&range.end.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let sound = bytes.len() >= FIXED_BYTES
            && u64_at(bytes, 0) == MAGIC
            && u32_at(bytes, 8) == crc32c::crc32c(&bytes[12..]);
        if !sound {
            return Decoded::Damaged;
        }
        match u32_at(bytes, 12) {
            LAYOUT => {}
            newer => return Decoded::Newer(newer),
        }
        let (pairs, rest) = bytes[FIXED_BYTES..].as_chunks::<16>();
        if !rest.is_empty() || u64_at(bytes, 48) != pairs.len() as u64 {
            return Decoded::Damaged;
        }
        let removed: Vec<Range<u64>> = pairs
            .iter()
            .map(|pair| u64_at(pair, 0)..u64_at(pair, 8))
            .collect();
        let in_order = removed.iter().all(|range| range.start <= range.end)
            && removed.is_sorted_by(|one, next| one.end < next.start);
        if !in_order {
            return Decoded::Damaged;
        }
        Decoded::Fine(Self {
            mark: u32_at(bytes, 16),
            clean: u32_at(bytes, 20) != 0,
            floor: u64_at(bytes, 24),
            newest: u64_at(bytes, 32),
            sealed: u64_at(bytes, 40),
            removed,
        })
    }

    /// Remembers that these offsets are gone on purpose.
    pub(super) fn remove(&mut self, offsets: Range<u64>) {
        self.removed.push(offsets);
        self.removed.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(self.removed.len());
        for range in self.removed.drain(..) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.removed = merged;
    }

    /// Whether all of these are gone on purpose.
    pub(super) fn has_removed(&self, offsets: &Range<u64>) -> bool {
        self.removed
            .iter()
            .any(|range| range.start <= offsets.start && offsets.end <= range.end)
    }

    /// The end of what is gone on purpose; 1 when nothing is.
    pub(super) fn removed_end(&self) -> u64 {
        self.removed.last().map_or(1, |range| range.end)
    }

    /// Which of these are not gone on purpose.
    pub(super) fn unexplained(&self, offsets: Range<u64>) -> Vec<Range<u64>> {
        let mut left = Vec::new();
        let mut start = offsets.start;
        for range in &self.removed {
            if range.start >= offsets.end {
                break;
            }
            if range.start > start {
                left.push(start..range.start);
            }
            start = start.max(range.end);
        }
        if start < offsets.end {
            left.push(start..offsets.end);
        }
        left
    }
}

#[cfg(test)]
mod tests;
