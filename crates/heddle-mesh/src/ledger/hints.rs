//! What a segment of the log surely does not contain: small files beside it, made when it is full.
//!
//! ```text
//!   head   magic u64 │ crc u32 │ mark u32 │ first u64 │ next u64 │ bytes u64 │ last_at i64 │ blocks u32 │ 0 u32 │ 0 u64
//!   block  60 bytes of bits │ crc u32
//! ```
//! Ids, request ids, trace ids, subjects, sources, types and entries of all events of a segment are thrown into a Bloom
//! filter in blocks, so that a question about one word costs two small reads for each segment. It only says "surely not" or "look": what
//! it lets pass is read in the log and compared. It is derived and may be missing; a file that is damaged, or speaks of
//! another segment than the one that is there, is thrown away and made again.

mod build;
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use bytes::BufMut as _;
use heddle_api::search::IndexedWord;
use heddle_rt::vfs::{Open, VfsFile};
use parking_lot::Mutex;

pub(crate) use self::build::{run, tend};
use crate::log::{Derived, Log, Offset, SegmentInfo};

const MAGIC: u64 = u64::from_le_bytes(*b"heddle/h");
const HEAD_BYTES: usize = 64;
const BLOCK_BYTES: usize = 64;
const BLOCK_BITS: u64 = 60 * 8;
/// Words that share a block: about one question in two hundred reads a segment in vain.
const BLOCK_WORDS: usize = 36;
const PROBES: u64 = 6;
const SUFFIX: &str = ".hints";

/// A word, as a number that will not change, for it is kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HintWord(u64);

impl HintWord {
    pub(crate) fn of(kind: IndexedWord, text: &str) -> Self {
        let tag = match kind {
            IndexedWord::Id => "i",
            IndexedWord::Source => "s",
            IndexedWord::Type => "t",
            IndexedWord::Subject => "j",
            IndexedWord::Entry => "e",
            IndexedWord::Request => "r",
            IndexedWord::Trace => "c",
        };
        // FNV spreads its input over the lower bits only.
        let mut hash = crate::event::key_of(tag, text);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(hash ^ (hash >> 33))
    }

    fn block(self, blocks: u32) -> u32 {
        let scaled = (self.0 >> 32) * u64::from(blocks);
        u32::try_from(scaled >> 32).expect("smaller than the number of blocks")
    }

    /// The bits of the block that are set for it.
    fn bits(self) -> impl Iterator<Item = usize> {
        let (low, step) = (self.0 & 0xffff, ((self.0 >> 16) & 0xffff) | 1);
        (0..PROBES).map(move |probe| {
            let bit = (low + probe * step) % BLOCK_BITS;
            usize::try_from(bit).expect("a block is small")
        })
    }
}

/// The hints of one log.
#[derive(Debug)]
pub(crate) struct Hints {
    /// `None` where nothing can be kept.
    derived: Option<Derived>,
    /// The first places of segments of which no hints can be made, so that they are not read for that again and again.
    without: Mutex<BTreeSet<Offset>>,
}

/// What a file of hints says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    SurelyNot,
    Look,
    /// There is none, or it cannot be asked now.
    Missing,
    /// It is not what was written, or speaks of something else.
    Damaged,
}

impl Hints {
    pub(crate) fn of(log: &dyn Log) -> Self {
        Self {
            derived: log.derived(),
            without: Mutex::default(),
        }
    }

    /// Whether an event in this segment may have all of these words. Blocks.
    pub(crate) fn may_have(&self, segment: &SegmentInfo, words: &[HintWord]) -> bool {
        let Some(derived) = &self.derived else {
            return true;
        };
        if words.is_empty() || !segment.sealed {
            return true;
        }
        match ask(derived, segment, words) {
            Hint::SurelyNot => false,
            Hint::Look | Hint::Missing => true,
            Hint::Damaged => {
                let path = path(derived, segment.first);
                tracing::warn!(path = %path.display(), "hints about a segment are of no use; they are made again");
                derived.vfs.remove(&path).ok();
                true
            }
        }
    }
}

fn ask(derived: &Derived, segment: &SegmentInfo, words: &[HintWord]) -> Hint {
    let opened = derived
        .vfs
        .open(&path(derived, segment.first), Open::existing());
    let Ok(file) = opened else {
        return Hint::Missing;
    };
    let asked = read_head(&*file, derived, segment).and_then(|blocks| {
        let Some(blocks) = blocks else {
            return Ok(Hint::Damaged);
        };
        for word in words {
            let Some(bits) = read_block(&*file, derived, segment, word.block(blocks))? else {
                return Ok(Hint::Damaged);
            };
            if !word.bits().all(|bit| bits[bit / 8] & (1 << (bit % 8)) != 0) {
                return Ok(Hint::SurelyNot);
            }
        }
        Ok(Hint::Look)
    });
    asked.unwrap_or(Hint::Missing)
}

/// The number of blocks, if this is about that segment.
fn read_head(
    file: &dyn VfsFile,
    derived: &Derived,
    segment: &SegmentInfo,
) -> io::Result<Option<u32>> {
    let mut head = [0; HEAD_BYTES];
    if !read_whole(file, 0, &mut head)? {
        return Ok(None);
    }
    let blocks = u32::from_le_bytes([head[48], head[49], head[50], head[51]]);
    Ok((blocks > 0 && head == write_head(derived, segment, blocks)).then_some(blocks))
}

fn read_block(
    file: &dyn VfsFile,
    derived: &Derived,
    segment: &SegmentInfo,
    number: u32,
) -> io::Result<Option<[u8; BLOCK_BYTES]>> {
    let mut block = [0; BLOCK_BYTES];
    let position = HEAD_BYTES as u64 + u64::from(number) * BLOCK_BYTES as u64;
    if !read_whole(file, position, &mut block)? {
        return Ok(None);
    }
    let sum = block_sum(derived, segment, number, &block[..BLOCK_BYTES - 4]);
    Ok((block[BLOCK_BYTES - 4..] == sum.to_le_bytes()).then_some(block))
}

/// Whether the file is long enough.
fn read_whole(file: &dyn VfsFile, position: u64, out: &mut [u8]) -> io::Result<bool> {
    match file.read_at(position, out) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_head(derived: &Derived, segment: &SegmentInfo, blocks: u32) -> [u8; HEAD_BYTES] {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.put_u64_le(MAGIC);
    head.put_u32_le(0);
    head.put_u32_le(derived.mark);
    head.put_u64_le(segment.first);
    head.put_u64_le(segment.next);
    head.put_u64_le(segment.bytes);
    head.put_i64_le(segment.last_at.as_microsecond());
    head.put_u32_le(blocks);
    head.resize(HEAD_BYTES, 0);
    let sum = crc32c::crc32c(&head);
    head[8..12].copy_from_slice(&sum.to_le_bytes());
    head.try_into().expect("as long as it was made")
}

/// A sound block of another file, or of another place in this one, does not fit.
fn block_sum(derived: &Derived, segment: &SegmentInfo, number: u32, bits: &[u8]) -> u32 {
    let seed = crc32c::crc32c_append(derived.mark, &segment.first.to_le_bytes());
    let seed = crc32c::crc32c_append(seed, &number.to_le_bytes());
    crc32c::crc32c_append(seed, bits)
}

fn path(derived: &Derived, first: Offset) -> PathBuf {
    // Padded, so that names sort like the numbers in them.
    derived.dir.join(format!("{first:020}{SUFFIX}"))
}
