//! Numbers of the event log for metrics.

use std::time::Duration;

use crate::stats::{Histogram, SECONDS, WRITES};

/// What has happened since the log was opened, and how much it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct EventStats {
    /// Records made safe.
    pub records_count: u64,
    /// Their bytes on disk.
    pub bytes_count: u64,
    pub syncs_count: u64,
    /// Writes refused because the disk was full or had failed.
    pub refusals_count: u64,
    /// Records per write.
    pub batch_records: Histogram,
    /// Time to make a write safe.
    pub sync_seconds: Histogram,
    /// Places that were found damaged, also while opening.
    pub damaged_count: u64,
    /// What recovery cut off: a write that was never acknowledged.
    pub torn_bytes: u64,
    pub segments_count: usize,
    /// Of all segments.
    pub segments_bytes: u64,
    /// Waiting for the disk.
    pub pending_bytes: usize,
    /// Held in memory for readers.
    pub cache_bytes: usize,
}

#[derive(Debug)]
pub(super) struct Counters {
    records: u64,
    bytes: u64,
    pub(super) refusals: u64,
    pub(super) torn_bytes: u64,
    batch_records: Histogram,
    sync_seconds: Histogram,
}

impl Counters {
    pub(super) fn new(torn_bytes: u64) -> Self {
        Self {
            records: 0,
            bytes: 0,
            refusals: 0,
            torn_bytes,
            batch_records: Histogram::new(WRITES),
            sync_seconds: Histogram::new(SECONDS),
        }
    }

    pub(super) fn synced(&mut self, records: usize, bytes: usize, took: Duration) {
        self.records += records as u64;
        self.bytes += bytes as u64;
        #[expect(clippy::cast_precision_loss, reason = "writes are small")]
        self.batch_records.add(records as f64);
        self.sync_seconds.add(took.as_secs_f64());
    }

    pub(super) fn stats(&self) -> EventStats {
        EventStats {
            records_count: self.records,
            bytes_count: self.bytes,
            syncs_count: self.sync_seconds.count(),
            refusals_count: self.refusals,
            batch_records: self.batch_records.clone(),
            sync_seconds: self.sync_seconds.clone(),
            damaged_count: 0,
            torn_bytes: self.torn_bytes,
            segments_count: 0,
            segments_bytes: 0,
            pending_bytes: 0,
            cache_bytes: 0,
        }
    }
}
