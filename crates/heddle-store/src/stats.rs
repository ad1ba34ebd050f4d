//! Numbers for metrics.

use std::time::Duration;

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
    pub group_writes: Histogram,
    /// Time to make a group safe.
    pub commit_seconds: Histogram,
    pub history_count: usize,
    pub history_bytes: usize,
    pub watchers_count: usize,
    /// Batches that wait for the writer.
    pub queue_count: usize,
}

/// Counts by upper bound, as Prometheus wants them.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub bounds: &'static [f64],
    /// One per bound, and one more for what is beyond; not cumulative.
    pub counts: Vec<u64>,
    pub sum: f64,
}

pub(crate) const WRITES: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
];
pub(crate) const SECONDS: &[f64] = &[
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
];

impl Default for Histogram {
    fn default() -> Self {
        Self::new(WRITES)
    }
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    pub(crate) fn add(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// What the writer counts.
#[derive(Debug)]
pub(crate) struct Counters {
    commits: u64,
    batches: u64,
    pub(crate) conflicts: u64,
    pub(crate) refusals: u64,
    group_writes: Histogram,
    commit_seconds: Histogram,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            commits: 0,
            batches: 0,
            conflicts: 0,
            refusals: 0,
            group_writes: Histogram::new(WRITES),
            commit_seconds: Histogram::new(SECONDS),
        }
    }
}

impl Counters {
    pub(crate) fn committed(&mut self, batches: usize, writes: usize, took: Duration) {
        self.commits += 1;
        self.batches += batches as u64;
        #[expect(clippy::cast_precision_loss, reason = "groups are small")]
        self.group_writes.add(writes as f64);
        self.commit_seconds.add(took.as_secs_f64());
    }

    pub(crate) fn fill(&self, stats: &mut Stats) {
        stats.commits_count = self.commits;
        stats.batches_count = self.batches;
        stats.conflicts_count = self.conflicts;
        stats.refusals_count = self.refusals;
        stats.group_writes = self.group_writes.clone();
        stats.commit_seconds = self.commit_seconds.clone();
    }
}
