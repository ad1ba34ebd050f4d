//! Planted slopes are found within a quarter; where there is none, nothing is said.

use super::*;

const MINUTE: u64 = 60;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Numbers that are the same each time, from -1 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
    }
}

/// A number looked at every second for so long, and how it is at the end.
fn seen(length: u64, value: impl Fn(f64) -> f64) -> (Trend, Duration, f64) {
    let mut trend = Trend::default();
    for second in 0..=length {
        trend.look(seconds(second), value(second as f64));
    }
    (trend, seconds(length), value(length as f64))
}

fn assert_near(found: Option<Forecast>, truth: f64, what: &str) {
    let found = found.unwrap_or_else(|| panic!("{what}: nothing is said"));
    let part = found.in_s / truth;
    assert!(
        (0.75..=1.25).contains(&part),
        "{what}: {found:?} and not {truth}"
    );
}

#[test]
fn a_disk_is_full_when_it_was_planted_to_be_within_a_quarter() {
    // Bytes a second, and how much of what is taken scatters.
    for (taken, scatter) in [(50e3, 0.0), (2e6, 20e6), (120e6, 2e9)] {
        for seed in 0..20 {
            let mut noise = Noise(seed);
            let scattered: Vec<f64> = (0..=600).map(|_| noise.next() * scatter).collect();
            let free = |second: f64| 400e9 - taken * second + scattered[second as usize];
            let (trend, now, value) = seen(10 * MINUTE, free);
            let usable = value - 20e9;
            if usable / taken > HORIZON.as_secs_f64() {
                assert_eq!(disk_full(&trend, now, value as u64, usable as u64), None);
                continue;
            }
            let found = disk_full(&trend, now, value as u64, usable as u64);
            assert_near(found, usable / taken, &format!("{taken} B/s, seed {seed}"));
        }
    }
}

#[test]
fn a_backlog_is_done_when_it_was_planted_to_be_within_a_quarter() {
    for (left, done, scatter) in [
        (600.0, 0.5, 5.0),
        (90_000.0, 40.0, 2_000.0),
        (5e6, 1_200.0, 50_000.0),
    ] {
        for seed in 0..20 {
            let mut noise = Noise(seed);
            let scattered: Vec<f64> = (0..=600).map(|_| noise.next() * scatter).collect();
            let pending = |second: f64| left + done * (600.0 - second) + scattered[second as usize];
            let (trend, now, value) = seen(10 * MINUTE, pending);
            let found = backlog_done(&trend, now, value as u64);
            assert_near(found, left / done, &format!("{done}/s, seed {seed}"));
        }
    }
}

#[test]
fn what_fills_in_steps_is_forecast_too() {
    // Segments are made ahead of time: 64 MB every 20 seconds.
    let free = |second: f64| 100e9 - (second / 20.0).floor() * 64e6;
    let (trend, now, value) = seen(10 * MINUTE, free);
    assert_near(
        disk_full(&trend, now, value as u64, value as u64),
        value / 3.2e6,
        "steps",
    );
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    let silent = |what: &str, length: u64, value: &dyn Fn(f64) -> f64| {
        let (trend, now, last) = seen(length, value);
        assert_eq!(
            disk_full(&trend, now, last as u64, last as u64),
            None,
            "{what}"
        );
        assert_eq!(backlog_done(&trend, now, last as u64), None, "{what}");
    };
    silent("no time", 0, &|_| 1e9);
    silent("half a minute", 30, &|second| 1e9 - 1e6 * second);
    silent("nothing moves", 600, &|_| 1e9);
    silent("it rises", 600, &|second| 1e9 + 1e6 * second);
    silent("up and down", 600, &|second| {
        1e9 + 1e8 * (second / 60.0).sin()
    });
    silent("too far away", 600, &|second| 1e15 - second);
    silent("freed in between", 600, &|second| match second {
        second if second < 300.0 => 1e9 - 1e6 * second,
        second => 2e9 - 1e6 * second,
    });
    let empty = Trend::default();
    assert_eq!(backlog_done(&empty, seconds(100), 5), None);
}

#[test]
fn numbers_that_only_scatter_are_no_trend() {
    let mut said = 0;
    for seed in 0..1_000 {
        let mut noise = Noise(seed);
        let scattered: Vec<f64> = (0..=600).map(|_| 1_000.0 + 500.0 * noise.next()).collect();
        let (trend, now, value) = seen(600, |second| scattered[second as usize]);
        said += usize::from(trend.slope(now, value).is_some());
    }
    assert!(said <= 10, "{said} of 1000");
}

#[test]
fn a_clock_that_jumps_begins_anew() {
    let falls = |second: f64| 10_000.0 - 10.0 * second;
    for jump in [seconds(0), seconds(100_000)] {
        let (mut trend, _, _) = seen(600, falls);
        trend.look(jump, 500.0);
        assert_eq!(trend.slope(jump, 500.0), None, "{jump:?}");
        let mut now = jump;
        for step in 0..10_u64 {
            now = jump + seconds(15 * step);
            trend.look(now, 500.0 - step as f64);
        }
        let slope = trend.slope(now, 491.0).unwrap();
        assert!((slope.per_second + 1.0 / 15.0).abs() < 1e-6, "{slope:?}");
    }
    // Who asks long after the last look, or before it, is told nothing.
    let (trend, _, value) = seen(600, falls);
    assert_eq!(trend.slope(seconds(1_000), value), None);
    assert_eq!(trend.slope(seconds(300), value), None);
}

#[test]
fn what_is_remembered_is_bounded() {
    let (trend, now, value) = seen(99_990, |second| second);
    assert_eq!(trend.looks.len(), LOOKS_MAX);
    assert_eq!(trend.slope(now, value).unwrap().over, seconds(600));
}

#[test]
fn retries_run_out_after_what_is_left_of_the_schedule() {
    let doubled = |failed: u32| seconds(1 << failed.min(9));
    let event = FailingEvent {
        place: 48_211,
        failed: 3,
        attempts: 6,
        next_in: seconds(5),
        attempt: Duration::from_millis(800),
    };
    // Attempt 4 in 5 s, then 16 s, attempt 5, 32 s, attempt 6.
    let found = dead_letters_begin(&event, doubled).unwrap();
    assert!((found.in_s - 55.0).abs() < f64::EPSILON, "{found:?}");
    assert_eq!(
        found.in_words(),
        "dead letters begin in about 55 s, if it goes on failing: the event at place 48211 failed 3 of 6 attempts and has 3 left, 800 ms each"
    );
    for silent in [
        FailingEvent { failed: 0, ..event },
        FailingEvent { failed: 6, ..event },
        FailingEvent { failed: 9, ..event },
        FailingEvent {
            attempts: u32::MAX,
            ..event
        },
        FailingEvent {
            attempts: 9_000,
            ..event
        },
    ] {
        assert_eq!(dead_letters_begin(&silent, doubled), None, "{silent:?}");
    }
    let last = FailingEvent {
        failed: 5,
        next_in: Duration::ZERO,
        attempt: Duration::ZERO,
        ..event
    };
    let found = dead_letters_begin(&last, doubled).unwrap();
    assert!(
        found
            .in_words()
            .starts_with("dead letters begin any moment, "),
        "{found:?}"
    );
}

#[test]
fn a_forecast_says_what_it_rests_on() {
    let (trend, now, value) = seen(600, |second| 90e9 - 1.2e6 * second);
    let found = disk_full(&trend, now, value as u64, value as u64).unwrap();
    assert_eq!(
        found.in_words(),
        "the disk is full in about 20 h, at 1.2 MB/s over the last 10 min"
    );
    let (trend, now, value) = seen(300, |second| 90_000.0 - 120.0 * second);
    let found = backlog_done(&trend, now, value as u64).unwrap();
    assert_eq!(
        found.in_words(),
        "the backlog is done in about 7 min, 120/s more leave it than come, over the last 5 min"
    );
    let text = serde_json::to_value(&found).unwrap();
    assert_eq!(text["event"], "backlogDone");
}
