//! One file of the log: which records it holds, and how to find one in it.
//!
//! While records are added, and until the file is sealed, the index is in memory. Sealing writes it
//! behind the records and forgets it. A sealed segment costs no memory and no open file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use heddle_rt::vfs::{Open, Vfs, VfsFile};
use parking_lot::RwLock;

use super::SegmentInfo;
use super::format::{ALIGNMENT, Head, SEGMENT_HEADER_BYTES, TRAILER_BYTES, Trailer};
use super::table::{self, Table, Unreadable};
use super::time::{nanoseconds_to_key, timestamp};

/// One record is found by walking at most about so many bytes.
const MARK_BYTES: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) first: u64,
    pub(super) path: PathBuf,
    pub(super) extent: RwLock<Extent>,
}

/// What a segment holds so far.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) next: u64,
    pub(super) records: u64,
    pub(super) first_at: i64,
    pub(super) last_at: i64,
    /// The checksum of the last record, or of the one before the segment.
    pub(super) chain: u32,
    /// Where the records end.
    pub(super) end: u64,
    /// Where the tables have to go when the bytes behind the records are to be kept.
    pub(super) tables_at: Option<u64>,
    pub(super) lookup: Lookup,
}

/// How records are found.
#[derive(Debug)]
pub(super) enum Lookup {
    Memory(Index),
    Sealed {
        tables: u64,
        keys: u64,
        marks: u64,
        bytes: u64,
    },
}

/// The index of a segment that is not sealed.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Key and offset, in the order they came.
    pub(super) keys: Vec<(u64, u64)>,
    /// Offset and position of a record now and then.
    pub(super) marks: Vec<(u64, u64)>,
    /// Time and offset of the same records.
    pub(super) times: Vec<(u64, u64)>,
}

/// The tables of a sealed segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    pub(super) keys: Table,
    pub(super) marks: Table,
    pub(super) times: Table,
}

impl Segment {
    pub(super) fn new(first: u64, path: PathBuf, extent: Extent) -> Arc<Self> {
        Arc::new(Self {
            first,
            path,
            extent: RwLock::new(extent),
        })
    }

    pub(super) fn open(&self, vfs: &dyn Vfs) -> io::Result<Arc<dyn VfsFile>> {
        vfs.open(&self.path, Open::existing())
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.extent.read().lookup, Lookup::Sealed { .. })
    }

    pub(super) fn next(&self) -> u64 {
        self.extent.read().next
    }

    pub(super) fn info(&self) -> SegmentInfo {
        let extent = self.extent.read();
        let times =
            (extent.records > 0).then(|| (timestamp(extent.first_at), timestamp(extent.last_at)));
        let (sealed, bytes) = match extent.lookup {
            Lookup::Memory(_) => (false, extent.end),
            Lookup::Sealed { bytes, .. } => (true, bytes),
        };
        SegmentInfo {
            first: self.first,
            next: extent.next,
            records: extent.records,
            first_at: times.map(|(first, _)| first),
            last_at: times.map(|(_, last)| last),
            bytes,
            sealed,
        }
    }

    /// Writes the index behind the records, makes it safe, and forgets it.
    pub(super) fn seal(&self, vfs: &dyn Vfs, mark: u32) -> io::Result<()> {
        let (at, bytes, sealed) = {
            let extent = self.extent.read();
            let Lookup::Memory(index) = &extent.lookup else {
                return Ok(());
            };
            let at = extent.tables_at.unwrap_or(extent.end);
            let bytes = self.tables(mark, &extent, index, at);
            let sealed = Lookup::Sealed {
                tables: at,
                keys: index.keys.len() as u64,
                marks: index.marks.len() as u64,
                bytes: at + bytes.len() as u64,
            };
            (at, bytes, sealed)
        };
        let file = self.open(vfs)?;
        // What was made ready and not used is given back: a trailer is found at the end of its file.
        file.set_len(at)?;
        file.write_at(at, &bytes)?;
        file.sync()?;
        self.extent.write().lookup = sealed;
        Ok(())
    }

    fn tables(&self, mark: u32, extent: &Extent, index: &Index, at: u64) -> Vec<u8> {
        let mut keys = index.keys.clone();
        keys.sort_unstable();
        let [key_seed, mark_seed, time_seed] = seeds(mark, self.first);
        let mut bytes = Vec::new();
        table::write_table(&mut bytes, key_seed, &keys);
        table::write_table(&mut bytes, mark_seed, &index.marks);
        table::write_table(&mut bytes, time_seed, &index.times);
        let trailer = Trailer {
            mark,
            chain: extent.chain,
            first: self.first,
            next: extent.next,
            records: extent.records,
            first_at: extent.first_at,
            last_at: extent.last_at,
            end: extent.end,
            tables: at,
            keys: keys.len() as u64,
            marks: index.marks.len() as u64,
        };
        bytes.extend_from_slice(&trailer.encode());
        bytes
    }
}

impl Extent {
    /// Without records.
    pub(super) fn empty(first: u64, chain: u32) -> Self {
        Self {
            next: first,
            records: 0,
            first_at: 0,
            last_at: 0,
            chain,
            end: SEGMENT_HEADER_BYTES as u64,
            tables_at: None,
            lookup: Lookup::Memory(Index::default()),
        }
    }

    /// As a trailer tells, when it can be true of a file with so many bytes.
    pub(super) fn of(trailer: &Trailer, file_bytes: u64) -> Option<Self> {
        let keys = table::table_bytes(trailer.keys)?;
        let marks = table::table_bytes(trailer.marks)?;
        let tables = keys.checked_add(marks.checked_mul(2)?)?;
        let expected = trailer
            .tables
            .checked_add(tables)?
            .checked_add(TRAILER_BYTES as u64)?;
        let sound = expected == file_bytes
            && (SEGMENT_HEADER_BYTES as u64..=trailer.tables).contains(&trailer.end)
            && trailer.first <= trailer.next
            && trailer.records <= trailer.next - trailer.first
            && trailer.tables.is_multiple_of(ALIGNMENT as u64);
        sound.then_some(Self {
            next: trailer.next,
            records: trailer.records,
            first_at: trailer.first_at,
            last_at: trailer.last_at,
            chain: trailer.chain,
            end: trailer.end,
            tables_at: None,
            lookup: Lookup::Sealed {
                tables: trailer.tables,
                keys: trailer.keys,
                marks: trailer.marks,
                bytes: file_bytes,
            },
        })
    }

    /// Takes note of a record at `position`.
    pub(super) fn add(&mut self, head: &Head, position: u64) {
        if self.records == 0 {
            self.first_at = head.at;
        }
        self.records += 1;
        self.last_at = head.at;
        self.next = head.offset + 1;
        self.chain = head.crc;
        self.end = position + head.record_bytes() as u64;
        let Lookup::Memory(index) = &mut self.lookup else {
            unreachable!("records are added to segments that are not sealed");
        };
        if head.key != 0 {
            index.keys.push((head.key, head.offset));
        }
        if index
            .marks
            .last()
            .is_none_or(|(_, last)| position >= last + MARK_BYTES)
        {
            index.marks.push((head.offset, position));
            index.times.push((nanoseconds_to_key(head.at), head.offset));
        }
    }

    /// `None` when the index is in memory.
    pub(super) fn tables(&self, mark: u32, first: u64) -> Option<Tables> {
        let Lookup::Sealed {
            tables: at,
            keys,
            marks,
            ..
        } = self.lookup
        else {
            return None;
        };
        let bytes = |pairs| table::table_bytes(pairs).expect("checked when the trailer was read");
        let [key_seed, mark_seed, time_seed] = seeds(mark, first);
        let table = |at, pairs, seed| Table { at, pairs, seed };
        let marks_at = at + bytes(keys);
        Some(Tables {
            keys: table(at, keys, key_seed),
            marks: table(marks_at, marks, mark_seed),
            times: table(marks_at + bytes(marks), marks, time_seed),
        })
    }
}

impl Tables {
    /// Whether every block is what was written.
    pub(super) fn are_sound(&self, file: &dyn VfsFile) -> io::Result<bool> {
        for table in [&self.keys, &self.marks, &self.times] {
            match table.check(file) {
                Ok(()) => {}
                Err(Unreadable::Damaged(_)) => return Ok(false),
                Err(Unreadable::Io(error)) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Where the checksums of the three tables begin: a block in the wrong place does not fit.
fn seeds(mark: u32, first: u64) -> [u32; 3] {
    let segment = crc32c::crc32c_append(mark, &first.to_le_bytes());
    [1, 2, 3].map(|table: u8| crc32c::crc32c_append(segment, &[table]))
}
