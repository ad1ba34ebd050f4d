//! What waits for the disk: buffers that producers fill and the writer takes whole.
//!
//! A producer holds the lock for as long as it takes to give its records their offsets and to copy
//! them; everything else is done before. A buffer becomes one write and one sync, and then, without
//! another copy, the memory that recent records are read from.
//! Invariant: the records of one append are in one buffer, one after the other.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::appending::{AppendReply, Promise};
use super::format::{self, Head};
use super::{AppendError, Draft, Limits};

/// The smallest buffer: a few small records.
const BUFFER_BYTES_MIN: usize = 4 * 1024;

/// Records on their way, one behind the other as they will be on disk.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) first: u64,
    pub(super) bytes: Vec<u8>,
    /// Where each record begins.
    pub(super) positions: Vec<u32>,
    /// The checksum of the last record.
    pub(super) chain: u32,
    pub(super) promise: Promise,
}

impl Buffer {
    pub(super) fn next(&self) -> u64 {
        self.first + self.positions.len() as u64
    }
}

/// Whether appends are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    Open,
    Closed,
    Poisoned(Arc<str>),
}

impl Intake {
    fn refusal(&self) -> Option<AppendError> {
        match self {
            Self::Open => None,
            Self::Closed => Some(AppendError::Closed),
            Self::Poisoned(reason) => Some(AppendError::Poisoned(reason.clone())),
        }
    }
}

/// The end of the log as producers see it: ahead of the disk.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) intake: Intake,
    pub(super) buffers: VecDeque<Buffer>,
    /// In the buffers and in the one being written.
    pub(super) bytes: usize,
    pub(super) seal: bool,
    /// The writer may end when nothing waits.
    pub(super) closing: bool,
    /// The writer sleeps and wants to be woken.
    pub(super) idle: bool,
    mark: u32,
    next: u64,
    chain: u32,
    last_at: i64,
    /// How large the buffer before was: the next one is probably like it.
    usual_bytes: usize,
    usual_records: usize,
}

impl Pending {
    pub(super) fn new(mark: u32, next: u64, chain: u32, last_at: i64) -> Self {
        Self {
            intake: Intake::Open,
            buffers: VecDeque::new(),
            bytes: 0,
            seal: false,
            closing: false,
            idle: false,
            mark,
            next,
            chain,
            last_at,
            usual_bytes: BUFFER_BYTES_MIN,
            usual_records: 0,
        }
    }

    /// Takes the drafts in, all of them. `sums` are the checksums of their payloads.
    pub(super) fn push(
        &mut self,
        drafts: &[Draft<'_>],
        sums: &[u32],
        at: i64,
        limits: &Limits,
    ) -> Result<(Range<u64>, Arc<AppendReply>), AppendError> {
        if let Some(refusal) = self.intake.refusal() {
            return Err(refusal);
        }
        let bytes = drafts.iter().map(Draft::record_bytes).sum();
        if self.bytes + bytes > limits.pending_bytes_max {
            return Err(AppendError::Busy);
        }
        self.bytes += bytes;
        // Time as the log tells it never goes back, whatever the clock does.
        self.last_at = self.last_at.max(at);
        let (mark, at, first) = (self.mark, self.last_at, self.next);
        let mut chain = self.chain;
        let buffer = self.buffer(bytes, limits);
        for (number, (draft, sum)) in drafts.iter().zip(sums).enumerate() {
            let position = u32::try_from(buffer.bytes.len()).expect("pending bytes are few");
            let head = Head {
                crc: *sum,
                length: u32::try_from(draft.payload_bytes()).expect("the caller checked it"),
                chain,
                offset: buffer.next(),
                at,
                key: draft.key,
                stream: draft.stream,
                index: u32::try_from(buffer.positions.len()).expect("fewer than bytes"),
                more: u32::try_from(drafts.len() - number - 1).expect("fewer than bytes"),
            };
            buffer.positions.push(position);
            chain = format::write_record(&mut buffer.bytes, mark, &head, &draft.parts);
        }
        buffer.chain = chain;
        let answer = buffer.promise.answer();
        self.next = buffer.next();
        self.chain = chain;
        Ok((first..self.next, answer))
    }

    /// The buffer with room for so many bytes.
    fn buffer(&mut self, bytes: usize, limits: &Limits) -> &mut Buffer {
        let fits = |last: &Buffer| last.bytes.len() + bytes <= limits.batch_bytes_max;
        if !self.buffers.back().is_some_and(fits) {
            self.buffers.push_back(Buffer {
                first: self.next,
                bytes: Vec::with_capacity(self.usual_bytes.max(bytes)),
                positions: Vec::with_capacity(self.usual_records),
                chain: self.chain,
                promise: Promise::default(),
            });
        }
        self.buffers.back_mut().expect("there is one now")
    }

    /// The next buffer to write. Its bytes count until [`Pending::done`].
    pub(super) fn take(&mut self) -> Option<Buffer> {
        let buffer = self.buffers.pop_front()?;
        self.usual_bytes = buffer.bytes.len().max(BUFFER_BYTES_MIN);
        self.usual_records = buffer.positions.len();
        Some(buffer)
    }

    pub(super) fn done(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Forgets all that waits and goes on behind what is safe. Returns who has to be told.
    pub(super) fn reset(&mut self, next: u64, chain: u32) -> Vec<Buffer> {
        let refused: Vec<_> = self.buffers.drain(..).collect();
        self.bytes -= refused
            .iter()
            .map(|buffer| buffer.bytes.len())
            .sum::<usize>();
        (self.next, self.chain) = (next, chain);
        refused
    }
}
