//! Nothing unfinished is ever forgotten, however old or large.

use super::*;

fn segments(count: u64) -> Vec<SegmentInfo> {
    (0..count)
        .map(|number| SegmentInfo {
            first: number * 10 + 1,
            next: number * 10 + 11,
            last_at: Timestamp::from_second(i64::try_from(number).unwrap() * 3600).unwrap(),
            bytes: 100,
            sealed: number + 1 < count,
        })
        .collect()
}

fn check(age_hours: u64, bytes_max: u64, single: &[Offset], from: Offset, expected: &[Offset]) {
    let retention = Retention {
        age_max: Duration::from_secs(age_hours * 3600),
        bytes_max,
    };
    let needed = Needed {
        single: single.iter().copied().collect(),
        from,
    };
    let now = Timestamp::from_second(10 * 3600).unwrap();
    assert_eq!(removable(&segments(5), &retention, &needed, now), expected);
}

#[test]
fn old_and_finished_segments_go() {
    check(7, u64::MAX, &[], 1000, &[1, 11, 21]);
}

#[test]
fn the_segment_in_use_stays() {
    check(0, 0, &[], 1000, &[1, 11, 21, 31]);
}

#[test]
fn one_unfinished_event_keeps_its_segment_and_no_other() {
    check(0, 0, &[15], 1000, &[1, 21, 31]);
}

#[test]
fn a_consumer_behind_keeps_everything_from_its_floor_on() {
    check(0, 0, &[], 25, &[1, 11]);
}

#[test]
fn a_full_log_lets_the_oldest_go_first_and_only_as_many_as_needed() {
    check(1000, 350, &[], 1000, &[1, 11]);
}

#[test]
fn finished_events_make_room_before_their_time_and_no_more_than_is_missing() {
    let retention = Retention {
        age_max: Duration::from_secs(3600),
        bytes_max: 1000,
    };
    assert_eq!(retention.giving(0, 500), retention);
    assert_eq!(retention.giving(120, 500).bytes_max, 380);
    assert_eq!(retention.giving(900, 500).bytes_max, 0);
    let generous = Retention {
        bytes_max: 300,
        ..retention
    };
    assert_eq!(generous.giving(120, 500).bytes_max, 300);
}
