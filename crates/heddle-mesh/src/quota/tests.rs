//! Where a quota cuts.

use heddle_rt::Clock;

use super::*;
use crate::log::memory::MemoryLog;

fn segments(bytes: &[u64]) -> Vec<SegmentInfo> {
    let count = bytes.len() as u64;
    (0..)
        .zip(bytes)
        .map(|(number, bytes)| SegmentInfo {
            first: number * 10 + 1,
            next: number * 10 + 11,
            last_at: Timestamp::UNIX_EPOCH,
            bytes: *bytes,
            sealed: number + 1 < count,
        })
        .collect()
}

#[test]
fn whole_segments_are_kept_and_the_newest_always() {
    let log = segments(&[100, 100, 100, 40]);
    for (bytes, cut) in [
        (1000, 1),
        (340, 1),
        (339, 11),
        (140, 21),
        (139, 31),
        (0, 31),
    ] {
        assert_eq!(first_within(&log, bytes), cut, "{bytes}");
    }
    assert_eq!(first_within(&[], 10), 0);
}

fn limit(quota: Quota) -> Option<Limit> {
    let log = MemoryLog::new(Clock::system());
    let now = Timestamp::from_second(100_000).unwrap();
    quota.limit(&log, &segments(&[1 << 20, 1 << 20, 1 << 20, 1]), now)
}

#[test]
fn without_bounds_there_is_no_limit() {
    assert_eq!(limit(Quota::default()), None);
}

#[test]
fn the_stricter_bound_cuts_and_says_why() {
    let bytes_max = Some((2 << 20) + 1);
    let by_bytes = limit(Quota {
        bytes_max,
        age_max: None,
    });
    let by_bytes = by_bytes.unwrap();
    assert_eq!((by_bytes.cut, by_bytes.eased), (11, 21));
    assert!(by_bytes.reason.contains("2 MiB"), "{}", by_bytes.reason);
    // The log in memory is empty: whatever the time, it is found at the very beginning.
    let both = limit(Quota {
        bytes_max,
        age_max: Some(Duration::from_secs(7200)),
    });
    assert_eq!(both, Some(by_bytes));
}

#[test]
fn an_age_is_said_in_hours_when_it_can_be() {
    assert_eq!(age_in_words(Duration::from_secs(7200)), "2 h");
    assert_eq!(age_in_words(Duration::from_secs(90)), "90 s");
}
