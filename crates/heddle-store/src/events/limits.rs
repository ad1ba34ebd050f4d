//! Every bound of the log, with what is usual.

/// Every bound of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An event of the largest size, with some room for what belongs to it. At most 16 MiB.
    pub record_bytes_max: usize,
    /// A segment is full at this size. A single write that is larger makes a larger segment.
    pub segment_bytes: u64,
    /// What may wait for the disk; more is refused as busy.
    pub pending_bytes_max: usize,
    /// Of recent records, kept in memory for readers.
    pub cache_bytes_max: usize,
    /// Of one write with one sync.
    pub batch_bytes_max: usize,
    /// How much of the next segment is filled with zeroes ahead of time; 0 is nothing.
    pub reserve_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes_max: 1536 * 1024 + 64 * 1024,
            segment_bytes: 64 * 1024 * 1024,
            pending_bytes_max: 16 * 1024 * 1024,
            cache_bytes_max: 32 * 1024 * 1024,
            batch_bytes_max: 4 * 1024 * 1024,
            reserve_bytes: 64 * 1024 * 1024,
        }
    }
}
