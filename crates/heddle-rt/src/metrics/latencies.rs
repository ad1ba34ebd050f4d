//! Latencies for people to read, counted in buckets of equal relative width.
//!
//! Below 128 every value has its own bucket; above, each power of two is divided into 64. A percentile is therefore off by
//! less than 1.6 % and a recording costs a shift and an addition.

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const PRECISION_BITS: u32 = 6;
const LINEAR: u64 = 1 << (PRECISION_BITS + 1);
/// Enough for any u64.
const BUCKETS: usize = ((64 - PRECISION_BITS as usize) + 1) << PRECISION_BITS;

/// How often each latency was seen, in constant memory.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// By nanoseconds.
    counts: Box<[u64]>,
    total: u64,
    max: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into(),
            total: 0,
            max: Duration::ZERO,
        }
    }
}

impl Latencies {
    pub fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.max = self.max.max(took);
    }

    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The latency that `share` of all recorded ones do not exceed; zero when there are none.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(highest(index)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    let index = (u64::from(shift) << PRECISION_BITS) + (value >> shift);
    usize::try_from(index).expect("below the number of buckets")
}

/// The largest value in a bucket.
fn highest(index: usize) -> u64 {
    let index = index as u64;
    if index < LINEAR {
        return index;
    }
    let shift = (index >> PRECISION_BITS) - 1;
    let base = index - (shift << PRECISION_BITS);
    ((base + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests;
