//! Bytes of the event log: records, and the header and trailer of the file they are in.
//!
//! ```text
//!   segment  header │ record │ record │ … │ (sealed: tables │ trailer)
//!   record   mark u32 │ crc u32 │ length u32 │ chain u32 │ offset u64 │ at i64 │ key u64 │
//!            stream u32 │ index u32 │ more u32 │ layout u16 │ 0 u16 │ payload │ zeroes to 8 bytes
//!   header   magic u64 │ crc u32 │ mark u32 │ layout u32 │ chain u32 │ first u64 │ zeroes to 64 bytes
//!   trailer  magic u64 │ crc u32 │ mark u32 │ layout u32 │ chain u32 │ first u64 │ next u64 │
//!            records u64 │ first_at i64 │ last_at i64 │ end u64 │ tables u64 │ keys u64 │ marks u64
//! ```
//! Numbers are little-endian. The mark is the log's own number: bytes of another log, or bytes that
//! somebody put into a payload to look like a record, do not carry it. `chain` is the checksum of
//! the record before, so a stale or misplaced record is told from the right one. `index` counts the
//! records before it in the same write, `more` the records after it in the same append: together
//! they tell a write that power loss tore from bytes that decayed later.
//!
//! The checksum covers the payload first and the header after it. The payload is summed up before
//! its offset is known, outside of every lock.
//! Invariant: no length is believed before it is compared with a bound.

/// The layout of everything here and in the tables. A higher number is refused, not guessed at.
pub(super) const LAYOUT: u32 = 1;

pub(super) const RECORD_HEADER_BYTES: usize = 56;
pub(super) const SEGMENT_HEADER_BYTES: usize = 64;
pub(super) const TRAILER_BYTES: usize = 96;

/// No payload was ever longer, whatever the limits were then; a length beyond it is damage.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Records begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"heddle/s");
const TRAILER_MAGIC: u64 = u64::from_le_bytes(*b"heddle/t");

/// What a record says about itself, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) crc: u32,
    pub(super) length: u32,
    pub(super) chain: u32,
    pub(super) offset: u64,
    pub(super) at: i64,
    pub(super) key: u64,
    pub(super) stream: u32,
    pub(super) index: u32,
    pub(super) more: u32,
}

impl Head {
    /// Reads a header, or finds that these bytes are none. Whether the payload fits is not known yet.
    pub(super) fn decode(bytes: &[u8], mark: u32) -> Option<Self> {
        let bytes = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
        let head = Self {
            crc: u32_at(bytes, 4),
            length: u32_at(bytes, 8),
            chain: u32_at(bytes, 12),
            offset: u64_at(bytes, 16),
            at: i64_at(bytes, 24),
            key: u64_at(bytes, 32),
            stream: u32_at(bytes, 40),
            index: u32_at(bytes, 44),
            more: u32_at(bytes, 48),
        };
        let sound = u32_at(bytes, 0) == mark
            && u32_at(bytes, 52) == LAYOUT
            && head.length as usize <= PAYLOAD_BYTES_MAX;
        sound.then_some(head)
    }

    /// Whether header and payload are what was written; `record` begins with the header.
    pub(super) fn verify(&self, record: &[u8]) -> bool {
        let end = RECORD_HEADER_BYTES + self.length as usize;
        let (Some(rest), Some(payload)) = (
            record.get(8..RECORD_HEADER_BYTES),
            record.get(RECORD_HEADER_BYTES..end),
        ) else {
            return false;
        };
        crc32c::crc32c_append(crc32c::crc32c(payload), rest) == self.crc
    }

    /// Room on disk, with header and alignment.
    pub(super) fn record_bytes(&self) -> usize {
        record_bytes(self.length as usize)
    }

    /// The first offset of the write this record was part of.
    pub(super) fn write_first(&self) -> u64 {
        self.offset.saturating_sub(u64::from(self.index))
    }
}

/// Room a record takes, with header and alignment.
pub(super) const fn record_bytes(payload: usize) -> usize {
    (RECORD_HEADER_BYTES + payload).next_multiple_of(ALIGNMENT)
}

/// The first half of a record's checksum.
pub(super) fn payload_checksum(parts: &[&[u8]; 2]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(parts[0]), parts[1])
}

/// Appends a record and returns its checksum. `head.crc` is that of the payload alone.
pub(super) fn write_record(out: &mut Vec<u8>, mark: u32, head: &Head, parts: &[&[u8]; 2]) -> u32 {
    let mut bytes = [0; RECORD_HEADER_BYTES];
    put(&mut bytes, 0, &mark.to_le_bytes());
    put(&mut bytes, 8, &head.length.to_le_bytes());
    put(&mut bytes, 12, &head.chain.to_le_bytes());
    put(&mut bytes, 16, &head.offset.to_le_bytes());
    put(&mut bytes, 24, &head.at.to_le_bytes());
    put(&mut bytes, 32, &head.key.to_le_bytes());
    put(&mut bytes, 40, &head.stream.to_le_bytes());
    put(&mut bytes, 44, &head.index.to_le_bytes());
    put(&mut bytes, 48, &head.more.to_le_bytes());
    put(&mut bytes, 52, &LAYOUT.to_le_bytes());
    let crc = crc32c::crc32c_append(head.crc, &bytes[8..]);
    put(&mut bytes, 4, &crc.to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(parts[0]);
    out.extend_from_slice(parts[1]);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    crc
}

/// What reading a part of known length gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded<T> {
    Fine(T),
    /// Sound, and of a layout this release does not know.
    Newer(u32),
    Damaged,
}

/// The beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) mark: u32,
    /// The checksum of the last record before this segment.
    pub(super) chain: u32,
    pub(super) first: u64,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        put(&mut bytes, 24, &self.first.to_le_bytes());
        finish(&mut bytes, SEGMENT_MAGIC, self.mark, self.chain);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Decoded<Self> {
        opened(bytes, SEGMENT_MAGIC, || Self {
            mark: u32_at(bytes, 12),
            chain: u32_at(bytes, 20),
            first: u64_at(bytes, 24),
        })
    }
}

/// The end of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) mark: u32,
    /// The checksum of the last record.
    pub(super) chain: u32,
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) records: u64,
    pub(super) first_at: i64,
    pub(super) last_at: i64,
    /// Where the records end.
    pub(super) end: u64,
    /// Where the tables begin.
    pub(super) tables: u64,
    pub(super) keys: u64,
    pub(super) marks: u64,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        put(&mut bytes, 24, &self.first.to_le_bytes());
        put(&mut bytes, 32, &self.next.to_le_bytes());
        put(&mut bytes, 40, &self.records.to_le_bytes());
        put(&mut bytes, 48, &self.first_at.to_le_bytes());
        put(&mut bytes, 56, &self.last_at.to_le_bytes());
        put(&mut bytes, 64, &self.end.to_le_bytes());
        put(&mut bytes, 72, &self.tables.to_le_bytes());
        put(&mut bytes, 80, &self.keys.to_le_bytes());
        put(&mut bytes, 88, &self.marks.to_le_bytes());
        finish(&mut bytes, TRAILER_MAGIC, self.mark, self.chain);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; TRAILER_BYTES]) -> Decoded<Self> {
        opened(bytes, TRAILER_MAGIC, || Self {
            mark: u32_at(bytes, 12),
            chain: u32_at(bytes, 20),
            first: u64_at(bytes, 24),
            next: u64_at(bytes, 32),
            records: u64_at(bytes, 40),
            first_at: i64_at(bytes, 48),
            last_at: i64_at(bytes, 56),
            end: u64_at(bytes, 64),
            tables: u64_at(bytes, 72),
            keys: u64_at(bytes, 80),
            marks: u64_at(bytes, 88),
        })
    }
}

/// Writes what headers and trailers have in common, the checksum last.
fn finish(bytes: &mut [u8], magic: u64, mark: u32, chain: u32) {
    put(bytes, 0, &magic.to_le_bytes());
    put(bytes, 12, &mark.to_le_bytes());
    put(bytes, 16, &LAYOUT.to_le_bytes());
    put(bytes, 20, &chain.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[12..]);
    put(bytes, 8, &crc.to_le_bytes());
}

fn opened<T>(bytes: &[u8], magic: u64, read: impl FnOnce() -> T) -> Decoded<T> {
    if u64_at(bytes, 0) != magic || u32_at(bytes, 8) != crc32c::crc32c(&bytes[12..]) {
        return Decoded::Damaged;
    }
    match u32_at(bytes, 16) {
        LAYOUT => Decoded::Fine(read()),
        newer => Decoded::Newer(newer),
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        *bytes[at..]
            .first_chunk()
            .expect("the caller checked the length"),
    )
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        *bytes[at..]
            .first_chunk()
            .expect("the caller checked the length"),
    )
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(
        *bytes[at..]
            .first_chunk()
            .expect("the caller checked the length"),
    )
}

#[cfg(test)]
mod tests;
