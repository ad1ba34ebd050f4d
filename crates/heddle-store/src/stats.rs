//! Numbers for metrics.

use std::time::Duration;

use heddle_rt::metrics::{Histogram, HistogramSnapshot};

use crate::ResourceVersion;

/// How the store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Serving,
    /// No room on the disk. Goes on by itself when there is.
    Full,
    /// Too little of something else that the system gives, such as descriptors. Goes on by itself when there is.
    Exhausted(String),
    /// The disk failed. Reads work; writes need a restart.
    Poisoned(String),
}

/// What has happened since the store was opened, and how much it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    pub version: ResourceVersion,
    pub objects_count: usize,
    pub tombstones_count: usize,
    /// Groups made safe, each with one sync.
    pub commits_count: u64,
    /// Batches that were part of one.
    pub batches_count: u64,
    pub conflicts_count: u64,
    /// Batches refused because the disk was full or had failed.
    pub refusals_count: u64,
    /// Writes per group.
    pub group_writes: HistogramSnapshot,
    /// Time to make a group safe.
    pub commit_seconds: HistogramSnapshot,
    pub history_count: usize,
    pub history_bytes: usize,
    pub watchers_count: usize,
    /// Batches that wait for the writer.
    pub queue_count: usize,
}

const WRITES: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
];
const SECONDS: &[f64] = &[
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
];

/// How much was made safe with one sync, and how long that took.
#[derive(Debug)]
pub(crate) struct SyncHistograms {
    writes: Histogram,
    seconds: Histogram,
}

impl Default for SyncHistograms {
    fn default() -> Self {
        Self {
            writes: Histogram::of_counts(WRITES),
            seconds: Histogram::of_seconds(SECONDS),
        }
    }
}

impl SyncHistograms {
    pub(crate) fn record(&self, writes: usize, took: Duration) {
        self.writes.record(writes as u64);
        self.seconds.observe(took);
    }

    /// The writes of each sync, and its time.
    pub(crate) fn snapshots(&self) -> (HistogramSnapshot, HistogramSnapshot) {
        (self.writes.snapshot(), self.seconds.snapshot())
    }
}

/// What the writer counts.
#[derive(Debug, Default)]
pub(crate) struct CommitCounters {
    pub(crate) conflicts: u64,
    pub(crate) refusals: u64,
    commits: u64,
    batches: u64,
    groups: SyncHistograms,
}

impl CommitCounters {
    pub(crate) fn committed(&mut self, batches: usize, writes: usize, took: Duration) {
        self.commits += 1;
        self.batches += batches as u64;
        self.groups.record(writes, took);
    }

    pub(crate) fn fill(&self, stats: &mut Stats) {
        stats.commits_count = self.commits;
        stats.batches_count = self.batches;
        stats.conflicts_count = self.conflicts;
        stats.refusals_count = self.refusals;
        (stats.group_writes, stats.commit_seconds) = self.groups.snapshots();
    }
}
