//! Shares of delays, and the words around them.

use super::*;

#[test]
fn a_share_is_the_nearest_of_those_that_were_measured() {
    let hundred: Vec<u64> = (1..=100).map(|ms| ms * 1000).collect();
    let found = Delays::of_sorted(&hundred);
    assert_eq!(
        (found.p50_ms, found.p95_ms, found.max_ms),
        (Some(50.0), Some(95.0), Some(100.0))
    );
    let found = Delays::of_sorted(&[1_000, 2_000, 9_000]);
    assert_eq!((found.p50_ms, found.p95_ms), (Some(2.0), Some(9.0)));
    let found = Delays::of_sorted(&[7]);
    assert_eq!((found.p50_ms, found.max_ms), (Some(0.007), Some(0.007)));
    assert_eq!(Delays::of_sorted(&[]), Delays::default());
}

#[test]
fn what_waits_makes_it_the_least_that_it_can_be() {
    let mut found = Delays::of_sorted(&[12_300, 12_300]);
    assert_eq!(found.in_words(DelayMeasure::P95), "12 ms");
    found.waiting = 1;
    assert_eq!(found.in_words(DelayMeasure::P95), "≥ 12 ms");
    assert_eq!(Delays::default().in_words(DelayMeasure::Max), "–");
}

#[test]
fn delays_are_in_the_unit_that_fits() {
    for (ms, expected) in [
        (0.0, "0.0 ms"),
        (0.51, "0.5 ms"),
        (9.96, "10 ms"),
        (212.4, "212 ms"),
        (1_240.0, "1.2 s"),
        (61_000.0, "61 s"),
        (600_000.0, "10 min"),
    ] {
        assert_eq!(milliseconds(ms), expected);
    }
}

#[test]
fn the_answer_says_what_was_not_looked_at() {
    let mut map = DelayMap {
        examined: 7,
        columns: vec![DelayColumn::default(); 4],
        ..DelayMap::default()
    };
    assert_eq!(map.in_words(), ["all 7 events of that time were looked at"]);
    map.columns[1].partial = true;
    map.left_out = 1;
    map.clock_set_back = 2;
    assert_eq!(
        map.in_words(),
        [
            "7 events were looked at; in 1 of 4 pieces of that time the newest ones only, or none",
            "1 row or more left out",
            "2 deliveries seem to have ended before they began, since a clock was set back; they have no delay",
        ]
    );
}

#[test]
fn names_are_read_as_they_are_written() {
    for rows in DelayRows::ALL {
        assert_eq!(DelayRows::read(rows.name()), Some(rows));
        assert_eq!(serde_json::to_value(rows).unwrap(), rows.name());
    }
    for measure in DelayMeasure::ALL {
        assert_eq!(DelayMeasure::read(measure.name()), Some(measure));
        assert_eq!(serde_json::to_value(measure).unwrap(), measure.name());
    }
    assert_eq!(DelayRows::read("namespace"), None);
}

#[test]
fn levels_are_in_order_and_have_words() {
    assert_eq!(
        [
            level(0.0),
            level(2.9),
            level(3.0),
            level(250.0),
            level(f64::MAX)
        ],
        [0, 0, 1, 4, 7]
    );
    assert_eq!(level_in_words(0), "below 3 ms");
    assert_eq!(level_in_words(4), "100 ms to 300 ms");
    assert_eq!(level_in_words(7), "10 s and more");
    for (delay, slower) in [(0.5, 200.5), (5.0, 205.0), (40.0, 240.0), (90.0, 290.0)] {
        assert!(level(slower) > level(delay), "{delay}");
    }
}
