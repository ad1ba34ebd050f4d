//! Latencies, counted in buckets of equal relative width.
//!
//! Below 128 every value has its own bucket; above, each power of two is divided into 64. A percentile is therefore off by
//! less than 1.6 % and a recording costs a shift and an addition.

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const PRECISION_BITS: u32 = 6;
const LINEAR: u64 = 1 << (PRECISION_BITS + 1);
/// Enough for any u64.
const BUCKETS: usize = ((64 - PRECISION_BITS as usize) + 1) << PRECISION_BITS;

/// How often each latency was seen. Unit: whatever is recorded, here nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }
}

impl Histogram {
    pub(super) fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The value that `share` of all recorded ones do not exceed; zero when there are none.
    pub(super) fn percentile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(highest(index));
            }
        }
        Duration::ZERO
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
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_into_a_bucket_that_is_narrow() {
        let mut value: u64 = 1;
        let mut last = 0;
        while value < u64::MAX / 3 {
            let top = highest(bucket(value));
            assert!(top >= value, "{value} is above its bucket {top}");
            assert!((top - value) * 64 <= value, "{value} is far below {top}");
            assert!(bucket(value) >= last);
            last = bucket(value);
            value = value * 3 / 2 + 1;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
        assert_eq!(highest(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn neighbouring_buckets_touch() {
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket(highest(index)), index);
            assert_eq!(bucket(highest(index) + 1), index + 1);
        }
    }

    #[test]
    fn percentiles_count_from_below() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), Duration::ZERO);
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.percentile(0.5), Duration::from_nanos(50));
        assert_eq!(histogram.percentile(0.99), Duration::from_nanos(99));
        let other = histogram.clone();
        histogram.merge(&other);
        assert_eq!(histogram.percentile(1.0), Duration::from_nanos(100));
        histogram.clear();
        assert_eq!(histogram.percentile(0.5), Duration::ZERO);
    }
}
