//! Walking through records, and finding the next one behind damage.
//!
//! A record counts when its mark, its bounds and its checksum are right, when it carries the next
//! offset, and when it chains to the record before. Where that fails, the walk goes on at the next
//! multiple of eight bytes that begins a sound record with an offset that fits the bytes skipped.
//! What was skipped is a [`Hole`]. Memory is bounded by the longest payload the format allows.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use heddle_rt::vfs::VfsFile;

use super::format::{ALIGNMENT, Head, RECORD_HEADER_BYTES};

/// How much is read at once when nobody says otherwise.
pub(super) const WINDOW_BYTES: usize = 256 * 1024;
const STEP: u64 = ALIGNMENT as u64;
const ZEROES: [u8; 4096] = [0; 4096];

/// A record and where it lies.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) head: Head,
    pub(super) position: u64,
    pub(super) payload: Bytes,
}

/// Bytes that are no records, where there should be some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) position: u64,
    pub(super) bytes: u64,
    /// The offsets that are missing.
    pub(super) offsets: Range<u64>,
}

#[derive(Debug)]
pub(super) enum Found {
    Record(Located),
    Hole(Hole),
}

/// Which part of which file to walk through.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) file: &'a dyn VfsFile,
    pub(super) mark: u32,
    pub(super) positions: Range<u64>,
    /// What the first record should carry, and the first offset that does not belong here.
    pub(super) offsets: Range<u64>,
    /// The checksum of the record before, when it is known.
    pub(super) chain: Option<u32>,
    pub(super) window_bytes: usize,
}

/// A walk through a scope.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    scope: Scope<'a>,
    window: Bytes,
    window_at: u64,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(scope: Scope<'a>) -> Self {
        let window_at = scope.positions.start;
        Self {
            scope,
            window: Bytes::new(),
            window_at,
        }
    }

    /// Where the walk stands: behind the last record that was found.
    pub(super) fn position(&self) -> u64 {
        self.scope.positions.start
    }

    /// The offset that comes next.
    pub(super) fn expected(&self) -> u64 {
        self.scope.offsets.start
    }

    /// The next record, or the hole before it. `None`: no record follows.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        let Range {
            start: position, ..
        } = self.scope.positions;
        let expected = self.expected();
        if self.scope.offsets.is_empty() {
            return Ok(None);
        }
        if let Some(located) = self.record(position, expected..expected + 1, self.scope.chain)? {
            self.scope.positions.start += located.head.record_bytes() as u64;
            self.scope.offsets.start += 1;
            self.scope.chain = Some(located.head.crc);
            return Ok(Some(Found::Record(located)));
        }
        if self.rest_is_blank()? {
            return Ok(None);
        }
        let mut candidate = position + STEP;
        while let Some(marked) = self.marked(candidate)? {
            // So many records may have been where the hole is, and no more.
            let lost_max = (marked - position) / RECORD_HEADER_BYTES as u64;
            let last = expected
                .saturating_add(lost_max + 1)
                .min(self.scope.offsets.end);
            if let Some(located) = self.record(marked, expected..last, None)? {
                let hole = Hole {
                    position,
                    bytes: marked - position,
                    offsets: expected..located.head.offset,
                };
                self.scope.positions.start = marked;
                self.scope.offsets.start = located.head.offset;
                self.scope.chain = None;
                return Ok(Some(Found::Hole(hole)));
            }
            candidate = marked + STEP;
        }
        Ok(None)
    }

    /// Whether only zeroes follow, as in a file that was made ready.
    pub(super) fn rest_is_blank(&mut self) -> io::Result<bool> {
        let Range { start, end } = self.scope.positions;
        let mut position = start;
        while position < end {
            let bytes = self.bytes_from(position)?;
            let chunk = &bytes[..bytes.len().min(ZEROES.len())];
            if chunk != &ZEROES[..chunk.len()] {
                return Ok(false);
            }
            position += chunk.len() as u64;
        }
        Ok(true)
    }

    fn record(
        &mut self,
        position: u64,
        offsets: Range<u64>,
        chain: Option<u32>,
    ) -> io::Result<Option<Located>> {
        let mark = self.scope.mark;
        let Some(bytes) = self.bytes(position, RECORD_HEADER_BYTES)? else {
            return Ok(None);
        };
        let Some(head) = Head::decode(&bytes, mark) else {
            return Ok(None);
        };
        if !offsets.contains(&head.offset) || chain.is_some_and(|chain| chain != head.chain) {
            return Ok(None);
        }
        let len = RECORD_HEADER_BYTES + head.length as usize;
        let Some(bytes) = self.bytes(position, len)? else {
            return Ok(None);
        };
        Ok(head.verify(&bytes).then(|| Located {
            head,
            position,
            payload: bytes.slice(RECORD_HEADER_BYTES..),
        }))
    }

    /// The next place, from `position` on, that begins with the log's mark.
    fn marked(&mut self, mut position: u64) -> io::Result<Option<u64>> {
        let mark = self.scope.mark.to_le_bytes();
        while position + RECORD_HEADER_BYTES as u64 <= self.scope.positions.end {
            let bytes = self.bytes_from(position)?;
            let (words, _) = bytes.as_chunks::<ALIGNMENT>();
            if let Some(word) = words.iter().position(|word| word[..4] == mark) {
                return Ok(Some(position + word as u64 * STEP));
            }
            position += (words.len().max(1) as u64) * STEP;
        }
        Ok(None)
    }

    /// Exactly `len` bytes; `None` when there are fewer.
    fn bytes(&mut self, position: u64, len: usize) -> io::Result<Option<Bytes>> {
        let Range { end, .. } = self.scope.positions;
        if position
            .checked_add(len as u64)
            .is_none_or(|needed| needed > end)
        {
            return Ok(None);
        }
        let start = self.fill(position, len)?;
        Ok(Some(self.window.slice(start..start + len)))
    }

    /// What is at hand from `position` on, at least a little. Not past the end.
    fn bytes_from(&mut self, position: u64) -> io::Result<Bytes> {
        let left = self.scope.positions.end - position;
        let little = usize::try_from(left.min(STEP)).expect("a few bytes");
        let start = self.fill(position, little)?;
        Ok(self.window.slice(start..))
    }

    /// Makes `len` bytes from `position` on available and says where in the window they begin.
    fn fill(&mut self, position: u64, len: usize) -> io::Result<usize> {
        if let Some(start) = position.checked_sub(self.window_at)
            && let Ok(start) = usize::try_from(start)
            && start + len <= self.window.len()
        {
            return Ok(start);
        }
        let left = self.scope.positions.end - position;
        let wanted = (len.max(self.scope.window_bytes) as u64).min(left);
        let mut window = vec![0; usize::try_from(wanted).map_err(io::Error::other)?];
        self.scope.file.read_at(position, &mut window)?;
        self.window = window.into();
        self.window_at = position;
        Ok(0)
    }
}

#[cfg(test)]
mod tests;
