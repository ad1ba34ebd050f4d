use super::*;

/// How often was tested, and looked for leftovers, in an hour.
fn in_an_hour(period: Option<Duration>) -> (u32, u32) {
    let mut now = Duration::from_secs(7);
    let end = now + Duration::from_secs(3600);
    let mut schedule = SmokeSchedule::begin(period, now);
    let (mut tests, mut sweeps) = (0, 0);
    while now < end {
        now += schedule.pause(now);
        sweeps += 1;
        tests += u32::from(schedule.take_due(now));
    }
    (tests, sweeps)
}

#[test]
fn tests_are_run_when_they_are_due_and_leftovers_are_looked_for_meanwhile() {
    let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
    assert_eq!(in_an_hour(minutes(10)), (6, 60));
    assert_eq!(in_an_hour(minutes(1)), (60, 60));
    assert_eq!(in_an_hour(None), (0, 60), "switched off");
}

#[test]
fn failures_are_counted_in_a_row_and_a_success_ends_it() {
    let mut numbers = SmokeNumbers::default();
    assert!(
        !numbers.text().contains("heddle_smoke_last_seconds"),
        "nothing was tried yet"
    );
    let ended = |passed: bool| SmokeReport {
        passed,
        took_seconds: 1.5,
        ..SmokeReport::default()
    };
    for passed in [true, false, false] {
        numbers.count(&ended(passed));
    }
    let text = numbers.text();
    for line in [
        "heddle_smoke_runs_total{result=\"passed\"} 1\n",
        "heddle_smoke_runs_total{result=\"failed\"} 2\n",
        "heddle_smoke_failed_in_a_row 2\n",
        "heddle_smoke_last_seconds 1.5\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    numbers.count(&ended(true));
    assert!(numbers.text().contains("heddle_smoke_failed_in_a_row 0\n"));
}
