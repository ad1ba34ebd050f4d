//! Looking through stored events from the newest to the oldest, for questions that no index answers.
//!
//! A log is read forwards, so it is gone through in chunks: the newest first, each from its start to its end, none across the
//! border of two segments. A segment that is known not to have what is looked for (`hints.rs`) is passed over. Nothing is
//! held between two slices, and each slice runs aside; whoever no longer waits lets the look end there. What was not looked
//! at is never said not to exist.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::Error;
use super::hints::{HintWord, Hints};
use crate::log::{Log, Offset, Record, SegmentInfo};

/// Records of the first chunk. How large they are is not known before they were read, so chunks grow and shrink until they
/// are of this many bytes.
const CHUNK_RECORDS: u64 = 512;
pub(super) const CHUNK_RECORDS_MAX: u64 = 1 << 16;
const CHUNK_BYTES: Range<usize> = 2 << 20..8 << 20;
/// What one slice reads.
const READ_BYTES: usize = 1 << 20;
/// What one look reads before it answers: about a second's worth.
pub(super) const LOOK_BYTES_MAX: usize = 256 << 20;

/// Somebody who looks at records.
pub(super) trait Look {
    /// The next record of the chunk.
    fn record(&mut self, record: Record);

    /// The chunk is over; the next one is older.
    fn chunk(&mut self) -> Result<ControlFlow<()>, Error>;

    /// While there is more to do about a chunk, down to where it was done. `chunk` is called again, in a slice of its own.
    fn unfinished(&self) -> Option<Offset> {
        None
    }
}

/// A look that is under way.
pub(super) struct LookBack<L> {
    log: Arc<dyn Log>,
    hints: Arc<Hints>,
    /// Oldest first, as they were when the look began.
    segments: Vec<SegmentInfo>,
    /// What every event has that is looked for.
    words: Vec<HintWord>,
    /// Whether one of the words is enough.
    any_word: bool,
    start: Offset,
    /// Everything from here on was looked at, but for the rest of `chunk`.
    end: Offset,
    /// Where the look began.
    top: Offset,
    chunk: Range<Offset>,
    chunk_bytes: usize,
    records: u64,
    records_max: u64,
    bytes: usize,
    /// The segment that was found to be worth reading.
    worth: Option<Offset>,
    pub(super) look: L,
}

/// How a look stands after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookState {
    Going,
    /// Everything was looked at.
    Through,
    /// Whoever looks has seen enough. Nothing older was looked at.
    Enough,
}

impl<L: Look> LookBack<L> {
    pub(super) fn new(
        log: Arc<dyn Log>,
        hints: Arc<Hints>,
        range: Range<Offset>,
        words: Vec<HintWord>,
        look: L,
    ) -> Self {
        let bounds = log.bounds();
        let end = range.end.min(bounds.end);
        Self {
            segments: log.segments(),
            log,
            hints,
            words,
            any_word: false,
            start: range.start.max(bounds.start),
            end,
            top: end,
            chunk: end..end,
            chunk_bytes: 0,
            records: CHUNK_RECORDS,
            records_max: CHUNK_RECORDS_MAX,
            bytes: 0,
            worth: None,
            look,
        }
    }

    /// Looks for what has any one of the words.
    pub(super) fn for_any_word(mut self) -> Self {
        self.any_word = true;
        self
    }

    /// Lets no chunk have more records than this.
    pub(super) fn in_chunks_of(mut self, records_max: u64) -> Self {
        self.records_max = records_max;
        self.records = self.records.min(records_max);
        self
    }

    /// What was looked at so far.
    pub(super) fn looked_at(&self) -> Range<Offset> {
        let from = match self.look.unfinished() {
            Some(done) if self.chunk.is_empty() => done,
            _ if self.chunk.is_empty() => self.end,
            _ => self.chunk.end,
        };
        from.max(self.start).min(self.top)..self.top
    }

    /// How many bytes were read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// One slice of it. Blocks.
    pub(super) fn slice(&mut self) -> Result<LookState, Error> {
        if self.chunk.is_empty() && self.look.unfinished().is_some() {
            return self.conclude_chunk();
        }
        if self.chunk.is_empty() && !self.begin_chunk() {
            return Ok(LookState::Through);
        }
        let batch = self.log.read(self.chunk.start, READ_BYTES)?;
        for record in batch.records {
            if record.offset >= self.chunk.end {
                break;
            }
            self.chunk_bytes += record.payload.len();
            self.look.record(record);
        }
        let is_stuck = batch.next <= self.chunk.start;
        self.chunk.start = if is_stuck {
            self.chunk.end
        } else {
            batch.next.min(self.chunk.end)
        };
        if !self.chunk.is_empty() {
            return Ok(LookState::Going);
        }
        self.end_chunk()
    }

    fn end_chunk(&mut self) -> Result<LookState, Error> {
        let read = std::mem::take(&mut self.chunk_bytes);
        self.records = match read {
            read if read < CHUNK_BYTES.start => (self.records * 2).min(self.records_max),
            read if read < CHUNK_BYTES.end => self.records,
            _ => (self.records / 2).max(1),
        };
        self.bytes += read;
        self.chunk = self.end..self.end;
        self.conclude_chunk()
    }

    fn conclude_chunk(&mut self) -> Result<LookState, Error> {
        let enough = self.look.chunk()?.is_break();
        Ok(match self.end > self.start {
            _ if !enough && self.look.unfinished().is_some() => LookState::Going,
            false => LookState::Through,
            true if enough => LookState::Enough,
            true => LookState::Going,
        })
    }

    fn may_have(&self, segment: &SegmentInfo) -> bool {
        if !self.any_word {
            return self.hints.may_have(segment, &self.words);
        }
        let mut words = self.words.chunks(1);
        words.any(|word| self.hints.may_have(segment, word))
    }

    /// Finds the next chunk that is worth reading, if there is one.
    fn begin_chunk(&mut self) -> bool {
        while self.end > self.start {
            let below = self.segments.iter().rev();
            let Some(segment) = below.copied().find(|segment| segment.first < self.end) else {
                self.end = self.start;
                break;
            };
            // Places between two segments were let go.
            self.end = self.end.min(segment.next.max(segment.first));
            if self.end <= segment.first {
                continue;
            }
            if self.worth != Some(segment.first) {
                if !self.may_have(&segment) {
                    self.end = segment.first;
                    continue;
                }
                self.worth = Some(segment.first);
            }
            if self.end <= self.start {
                break;
            }
            let from = self.end.saturating_sub(self.records);
            self.chunk = from.max(segment.first).max(self.start)..self.end;
            self.end = self.chunk.start;
            return true;
        }
        self.end = self.end.max(self.start);
        false
    }
}
