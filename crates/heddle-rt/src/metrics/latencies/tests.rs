//! Buckets are narrow and touch, and percentiles are near the truth.

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
    let mut latencies = Latencies::default();
    assert_eq!(latencies.percentile(0.5), Duration::ZERO);
    (1..=100).for_each(|nanos| latencies.record(Duration::from_nanos(nanos)));
    assert_eq!(latencies.percentile(0.5), Duration::from_nanos(50));
    assert_eq!(latencies.percentile(0.99), Duration::from_nanos(99));
    let other = latencies.clone();
    latencies.merge(&other);
    assert_eq!(latencies.percentile(1.0), Duration::from_nanos(100));
    latencies.clear();
    assert_eq!(latencies.percentile(0.5), Duration::ZERO);
}

#[test]
fn a_percentile_is_within_two_percent_of_the_truth_and_never_beyond_the_longest() {
    let mut latencies = Latencies::default();
    for micros in 1..=100_000 {
        latencies.record(Duration::from_micros(micros));
    }
    for (share, truth) in [
        (0.0001, 10.0),
        (0.5, 50_000.0),
        (0.99, 99_000.0),
        (1.0, 100_000.0),
    ] {
        let told = latencies.percentile(share).as_secs_f64() * 1e6;
        assert!(
            (truth..=truth * 1.016).contains(&told),
            "{share}: {told} for {truth}"
        );
    }
    assert_eq!(latencies.percentile(1.0), Duration::from_micros(100_000));
    latencies.record(Duration::MAX);
    assert_eq!(latencies.percentile(1.0), Duration::from_nanos(u64::MAX));
}
