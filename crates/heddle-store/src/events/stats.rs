//! Numbers of the event log for metrics.

use std::time::Duration;

use heddle_rt::metrics::HistogramSnapshot;

use crate::stats::SyncHistograms;

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
    pub batch_records: HistogramSnapshot,
    /// Time to make a write safe.
    pub sync_seconds: HistogramSnapshot,
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
pub(super) struct AppendCounters {
    records: u64,
    bytes: u64,
    pub(super) refusals: u64,
    pub(super) torn_bytes: u64,
    batches: SyncHistograms,
}

impl AppendCounters {
    pub(super) fn new(torn_bytes: u64) -> Self {
        Self {
            records: 0,
            bytes: 0,
            refusals: 0,
            torn_bytes,
            batches: SyncHistograms::default(),
        }
    }

    pub(super) fn synced(&mut self, records: usize, bytes: usize, took: Duration) {
        self.records += records as u64;
        self.bytes += bytes as u64;
        self.batches.record(records, took);
    }

    pub(super) fn stats(&self) -> EventStats {
        let (batch_records, sync_seconds) = self.batches.snapshots();
        EventStats {
            records_count: self.records,
            bytes_count: self.bytes,
            syncs_count: sync_seconds.count(),
            refusals_count: self.refusals,
            batch_records,
            sync_seconds,
            damaged_count: 0,
            torn_bytes: self.torn_bytes,
            segments_count: 0,
            segments_bytes: 0,
            pending_bytes: 0,
            cache_bytes: 0,
        }
    }
}
