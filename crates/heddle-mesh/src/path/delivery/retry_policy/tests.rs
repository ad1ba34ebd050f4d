//! Schedules as tables.

use proptest::prelude::*;

use super::*;

fn spec(change: impl FnOnce(&mut DeliverySpec)) -> DeliverySpec {
    let mut spec = DeliverySpec::default();
    change(&mut spec);
    spec
}

fn policy(change: impl FnOnce(&mut DeliverySpec)) -> RetryPolicy {
    RetryPolicy::from_spec(&spec(change)).unwrap()
}

#[test]
fn what_is_absent_has_its_default_whatever_else_is_set() {
    assert_eq!(policy(|_| ()), RetryPolicy::default());
    let only_timeout = policy(|spec| spec.timeout = Some("PT5S".to_owned()));
    let expected = RetryPolicy {
        timeout: Duration::from_secs(5),
        ..RetryPolicy::default()
    };
    assert_eq!(only_timeout, expected);
    assert_eq!(policy(|spec| spec.retry = Some(0)).retry_max, 0);
}

#[test]
fn durations_are_read_as_iso_8601_writes_them() {
    let table = [
        ("PT0.2S", 200),
        ("PT0,2S", 200),
        ("PT1M30S", 90_000),
        ("PT0.5H", 1_800_000),
        ("P1D", 86_400_000),
        ("P1W", 604_800_000),
        ("P1DT1H", 90_000_000),
        ("PT0S", 0),
    ];
    for (text, millis) in table {
        let read = policy(|spec| spec.backoff_delay = Some(text.to_owned())).delay;
        assert_eq!(read, Duration::from_millis(millis), "{text}");
    }
}

#[test]
fn a_duration_that_means_nothing_is_named_with_its_field() {
    for text in [
        "",
        "P",
        "PT",
        "5 seconds",
        "-PT5S",
        "P1M",
        "P1Y",
        "PT5X",
        "0.2",
    ] {
        let refused =
            RetryPolicy::from_spec(&spec(|spec| spec.backoff_delay = Some(text.to_owned())));
        assert_eq!(refused.unwrap_err().field, "backoffDelay", "{text:?}");
    }
    let refused = RetryPolicy::from_spec(&spec(|spec| spec.timeout = Some("PT0S".to_owned())));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "delivery.timeout is \"PT0S\", which is no time at all"
    );
}

/// The pauses of a schedule in milliseconds, checked to be within the jitter and then without it.
fn pauses(policy: &RetryPolicy) -> Vec<u128> {
    let chance = Chance::seeded(1);
    let pause = |failed| policy.pause(failed, None, &chance);
    (1..)
        .map_while(|failed| Some((failed, pause(failed)?)))
        .map(|(failed, pause)| {
            let scheduled = policy.scheduled(failed);
            assert!(pause >= scheduled && pause <= scheduled + scheduled / 10);
            scheduled.as_millis()
        })
        .collect()
}

#[test]
fn pauses_grow_as_documented_and_end_after_the_last_retry() {
    let exponential = policy(|spec| spec.retry = Some(14));
    assert_eq!(
        pauses(&exponential),
        [
            200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600,
            600_000, 600_000
        ]
    );
    let linear = policy(|spec| {
        spec.retry = Some(4);
        spec.backoff_policy = Some(BackoffPolicy::Linear);
        spec.backoff_delay = Some("PT250S".to_owned());
    });
    assert_eq!(pauses(&linear), [250_000, 500_000, 600_000, 600_000]);
    assert_eq!(pauses(&policy(|spec| spec.retry = Some(0))), [0_u128; 0]);
}

#[test]
fn a_delay_longer_than_the_usual_cap_is_its_own_cap() {
    let patient = policy(|spec| {
        spec.retry = Some(2);
        spec.backoff_delay = Some("PT1H".to_owned());
    });
    assert_eq!(pauses(&patient), [3_600_000, 3_600_000]);
}

#[test]
fn retry_after_lengthens_a_pause_within_its_bound_and_never_shortens_it() {
    let chance = Chance::seeded(2);
    let pause = |policy: &RetryPolicy, asked| {
        let asked = Some(Duration::from_secs(asked));
        policy.pause(1, asked, &chance).unwrap()
    };
    let usual = policy(|_| ());
    assert_eq!(pause(&usual, 7), Duration::from_secs(7));
    assert!(pause(&usual, 0) >= DELAY_DEFAULT);
    assert_eq!(pause(&usual, u64::MAX), RETRY_AFTER_MAX_DEFAULT);
    let deaf = policy(|spec| spec.retry_after_max = Some("PT0S".to_owned()));
    assert!(pause(&deaf, 7) < Duration::from_secs(1));
    assert_eq!(usual.pause(11, Some(Duration::from_secs(7)), &chance), None);
}

#[test]
fn a_schedule_can_be_read_aloud() {
    let check = |expected: &str, change: fn(&mut DeliverySpec)| {
        assert_eq!(policy(change).in_words(), expected);
    };
    check(
        "up to 10 more attempts after 0.2 s, 0.4 s, … 102.4 s (204.6 s in all), then dead letter",
        |_| (),
    );
    check("one attempt, then dead letter", |spec| {
        spec.retry = Some(0);
    });
    check("one more attempt after 0.2 s, then dead letter", |spec| {
        spec.retry = Some(1);
    });
    check(
        "up to 3 more attempts after 2 s, 4 s, 6 s (12 s in all), then dead letter",
        |spec| {
            spec.retry = Some(3);
            spec.backoff_policy = Some(BackoffPolicy::Linear);
            spec.backoff_delay = Some("PT2S".to_owned());
        },
    );
    check(
        "up to 2147483647 more attempts after 0 s, 0 s, … 0 s (0 s in all), then dead letter",
        |spec| {
            spec.retry = Some(i32::MAX);
            spec.backoff_delay = Some("PT0S".to_owned());
        },
    );
}

proptest! {
    #[test]
    fn all_pauses_together_are_the_sum_of_each(
        retry_max in 0_u32..200,
        millis in 0_u64..2_000_000,
        linear: bool,
    ) {
        let delay = Duration::from_millis(millis);
        let policy = RetryPolicy {
            retry_max,
            delay,
            cap: CAP.max(delay),
            backoff: if linear { BackoffPolicy::Linear } else { BackoffPolicy::Exponential },
            ..RetryPolicy::default()
        };
        let sum: Duration = (1..=retry_max).map(|step| policy.scheduled(step)).sum();
        prop_assert_eq!(policy.scheduled_in_all(), sum);
    }

    #[test]
    fn no_schedule_overflows(retry in 0..=i32::MAX, seconds: u64, failed: u32, asked: u64) {
        let delay = Duration::from_secs(seconds);
        for backoff in [BackoffPolicy::Linear, BackoffPolicy::Exponential] {
            let policy = RetryPolicy {
                retry_max: retry.unsigned_abs(),
                delay,
                cap: CAP.max(delay),
                backoff,
                ..RetryPolicy::default()
            };
            let pause = policy.pause(failed, Some(Duration::from_secs(asked)), &Chance::seeded(3));
            prop_assert_eq!(pause.is_none(), failed > policy.retry_max);
            prop_assert!(policy.in_words().ends_with("then dead letter"));
        }
    }
}
