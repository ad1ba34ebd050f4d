//! The most recent records, in memory, as they were written: no reading and no copying.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::Record;
use super::format::{Head, RECORD_HEADER_BYTES};

/// One write.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) first: u64,
    pub(super) bytes: Bytes,
    pub(super) positions: Vec<u32>,
    pub(super) mark: u32,
    /// How much memory it holds.
    pub(super) held_bytes: usize,
}

impl Written {
    pub(super) fn next(&self) -> u64 {
        self.first + self.positions.len() as u64
    }

    pub(super) fn heads(&self) -> impl Iterator<Item = (Head, u64)> + '_ {
        self.positions.iter().map(|position| {
            let start = *position as usize;
            (self.head(start), start as u64)
        })
    }

    fn head(&self, start: usize) -> Head {
        Head::decode(&self.bytes[start..], self.mark).expect("it was encoded by this process")
    }

    fn record(&self, start: usize) -> Record {
        let head = self.head(start);
        let payload = start + RECORD_HEADER_BYTES;
        Record::of(
            &head,
            self.bytes.slice(payload..payload + head.length as usize),
        )
    }
}

/// The last writes, oldest first, without a gap.
#[derive(Debug)]
pub(super) struct Cache {
    writes: VecDeque<Arc<Written>>,
    pub(super) bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            writes: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds a write and returns those there is no room for any more, to be let go of elsewhere.
    pub(super) fn push(&mut self, written: Arc<Written>) -> Vec<Arc<Written>> {
        self.bytes += written.held_bytes;
        self.writes.push_back(written);
        let mut dropped = Vec::new();
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.writes.pop_front()
        {
            self.bytes -= oldest.held_bytes;
            dropped.push(oldest);
        }
        dropped
    }

    /// Lets go of everything before `next`: it was removed, or something after it was.
    pub(super) fn forget(&mut self, next: u64) -> Vec<Arc<Written>> {
        let gone = self.writes.partition_point(|written| written.first < next);
        let gone: Vec<_> = self.writes.drain(..gone).collect();
        self.bytes -= gone.iter().map(|written| written.held_bytes).sum::<usize>();
        gone
    }

    /// The writes from the one with `from` on, as many as hold so many bytes.
    pub(super) fn from(&self, from: u64, bytes_max: usize) -> Vec<Arc<Written>> {
        let start = self
            .writes
            .partition_point(|written| written.next() <= from);
        let mut found = Vec::new();
        let mut bytes = 0;
        for written in self.writes.range(start..) {
            if found.is_empty() && written.first > from {
                return found;
            }
            // Of the first one a part may be before `from`, so one more than needed is taken.
            if bytes > bytes_max {
                break;
            }
            if !found.is_empty() {
                bytes += written.bytes.len();
            }
            found.push(written.clone());
        }
        found
    }
}

/// The records from `from` on, until their payloads have so many bytes. At least one.
pub(super) fn records(writes: &[Arc<Written>], from: u64, bytes_max: usize) -> Vec<Record> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for written in writes {
        let skipped = usize::try_from(from.saturating_sub(written.first)).expect("in this write");
        for position in &written.positions[skipped..] {
            if bytes >= bytes_max && !found.is_empty() {
                return found;
            }
            let record = written.record(*position as usize);
            bytes += record.payload.len();
            found.push(record);
        }
    }
    found
}
