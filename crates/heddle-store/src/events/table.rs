//! Sorted pairs of numbers in a file, searched where they lie.
//!
//! ```text
//!   table  block │ block │ …          all full but the last
//!   block  crc u32 │ number u32 │ up to 255 × (u64, u64)
//! ```
//! A sealed segment has three: key to offset, offset to position, time to offset. Nothing is loaded
//! before it is asked for, and a question costs a few blocks. Each block is checked when it is read;
//! the checksum begins with a seed that names the segment and the table, so that a sound block of
//! another table is not mistaken for this one.

use std::io;

use heddle_rt::vfs::VfsFile;

use super::format::{u32_at, u64_at};

const PAIRS_MAX: u64 = 255;
const PAIR_BYTES: u64 = 16;
const BLOCK_HEADER_BYTES: u64 = 8;
const BLOCK_BYTES: u64 = BLOCK_HEADER_BYTES + PAIRS_MAX * PAIR_BYTES;

/// Where a table lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) at: u64,
    pub(super) pairs: u64,
    pub(super) seed: u32,
}

/// Why a table has no answer.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The block at this position is not what was written.
    Damaged(u64),
    Io(io::Error),
}

/// How many bytes a table of so many pairs takes; `None` when no file is that long.
pub(super) fn table_bytes(pairs: u64) -> Option<u64> {
    let blocks = pairs.div_ceil(PAIRS_MAX);
    pairs
        .checked_mul(PAIR_BYTES)?
        .checked_add(blocks * BLOCK_HEADER_BYTES)
}

/// Appends a table of pairs that are sorted.
pub(super) fn write_table(out: &mut Vec<u8>, seed: u32, pairs: &[(u64, u64)]) {
    debug_assert!(pairs.is_sorted());
    for (number, block) in (0_u32..).zip(pairs.chunks(usize::try_from(PAIRS_MAX).expect("small"))) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&number.to_le_bytes());
        for (key, value) in block {
            out.extend_from_slice(&key.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(seed, &out[start + 4..]);
        out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

impl Table {
    /// The pairs whose key is `key`, in order, at most `limit`.
    pub(super) fn equal(
        &self,
        file: &dyn VfsFile,
        key: u64,
        limit: usize,
    ) -> Result<Vec<u64>, Unreadable> {
        let mut found = Vec::new();
        let mut number = self.block_before(file, key)?;
        while number < self.blocks() {
            for (found_key, value) in self.block(file, number)? {
                if found_key > key || (found_key == key && found.len() == limit) {
                    return Ok(found);
                }
                if found_key == key {
                    found.push(value);
                }
            }
            number += 1;
        }
        Ok(found)
    }

    /// The last pair whose key is at most `key`.
    pub(super) fn at_most(
        &self,
        file: &dyn VfsFile,
        key: u64,
    ) -> Result<Option<(u64, u64)>, Unreadable> {
        let mut number = self.block_before(file, key)?;
        let mut last = None;
        while number < self.blocks() {
            for pair in self.block(file, number)? {
                if pair.0 > key {
                    return Ok(last);
                }
                last = Some(pair);
            }
            number += 1;
        }
        Ok(last)
    }

    /// Reads every block.
    pub(super) fn check(&self, file: &dyn VfsFile) -> Result<(), Unreadable> {
        (0..self.blocks()).try_for_each(|number| self.block(file, number).map(drop))
    }

    /// The last block that begins with a smaller key, or the first one.
    fn block_before(&self, file: &dyn VfsFile, key: u64) -> Result<u64, Unreadable> {
        let (mut low, mut high) = (0, self.blocks());
        while low + 1 < high {
            let middle = low.midpoint(high);
            match self.block(file, middle)?.first() {
                Some((first, _)) if *first < key => low = middle,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    fn blocks(&self) -> u64 {
        self.pairs.div_ceil(PAIRS_MAX)
    }

    fn block(&self, file: &dyn VfsFile, number: u64) -> Result<Vec<(u64, u64)>, Unreadable> {
        let position = self.at + number * BLOCK_BYTES;
        let pairs = (self.pairs - number * PAIRS_MAX).min(PAIRS_MAX);
        let len =
            usize::try_from(BLOCK_HEADER_BYTES + pairs * PAIR_BYTES).expect("a block is small");
        let mut bytes = vec![0; len];
        match file.read_at(position, &mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Unreadable::Damaged(position));
            }
            other => other.map_err(Unreadable::Io)?,
        }
        let sound = u32_at(&bytes, 0) == crc32c::crc32c_append(self.seed, &bytes[4..])
            && u64::from(u32_at(&bytes, 4)) == number;
        if !sound {
            return Err(Unreadable::Damaged(position));
        }
        let (pairs, _) = bytes[8..].as_chunks::<16>();
        Ok(pairs
            .iter()
            .map(|pair| (u64_at(pair, 0), u64_at(pair, 8)))
            .collect())
    }
}

#[cfg(test)]
mod tests;
