//! Conditions keep their time, their order and their verdict.

use super::*;

const FIRST: ConditionType = ConditionType {
    name: "First",
    meaning: "",
    reasons: &[BROKEN, SLOW],
};
const SECOND: ConditionType = ConditionType {
    name: "Second",
    meaning: "",
    reasons: &[BROKEN, SLOW],
};
const EXTRA: ConditionType = ConditionType {
    name: "Extra",
    meaning: "",
    reasons: &[BROKEN],
};
const BROKEN: Reason = Reason {
    name: "Broken",
    meaning: "",
};
const SLOW: Reason = Reason {
    name: "Slow",
    meaning: "",
};
const SET: ConditionSet = ConditionSet {
    dependents: &[FIRST, SECOND],
    informational: &[EXTRA],
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Sets the given conditions, concludes, and compares `Ready` as `status reason`.
fn check(conditions: &[Condition], expected: &str) {
    let mut all = Conditions::default();
    for condition in conditions {
        all.set(condition.clone(), at(1));
    }
    SET.conclude(&mut all, at(1));
    let ready = all.find(READY).unwrap();
    let text = format!(
        "{:?} {}",
        ready.status,
        ready.reason.as_deref().unwrap_or("-")
    );
    assert_eq!(text, expected, "{conditions:?}");
    assert_eq!(all.iter().last().unwrap().type_, READY);
}

#[test]
fn false_beats_unknown_beats_true_and_the_first_failing_condition_gives_the_reason() {
    let met = Condition::met;
    let unmet = |type_, reason| Condition::unmet(type_, reason, "text");
    let unknown = |type_, reason| Condition::unknown(type_, reason, "text");

    check(&[met(FIRST), met(SECOND)], "True -");
    check(&[met(FIRST), unmet(SECOND, SLOW)], "False Slow");
    check(
        &[unknown(FIRST, SLOW), unmet(SECOND, BROKEN)],
        "False Broken",
    );
    check(&[unmet(SECOND, SLOW), unmet(FIRST, BROKEN)], "False Broken");
    check(&[met(FIRST), unknown(SECOND, SLOW)], "Unknown Slow");
    check(&[met(SECOND)], "Unknown NotYetObserved");
    check(&[], "Unknown NotYetObserved");
    check(&[unmet(SECOND, SLOW)], "False Slow");
    check(&[met(FIRST), met(SECOND), unmet(EXTRA, BROKEN)], "True -");
}

#[test]
fn the_time_of_transition_moves_only_with_the_status() {
    let mut all = Conditions::default();
    let time = |all: &Conditions| {
        all.find("First")
            .unwrap()
            .last_transition_time
            .clone()
            .unwrap()
            .0
    };

    assert!(all.set(Condition::unmet(FIRST, SLOW, "one"), at(10)));
    assert!(all.set(Condition::unmet(FIRST, BROKEN, "two"), at(20)));
    assert_eq!(time(&all), at(10));
    assert!(!all.set(Condition::unmet(FIRST, BROKEN, "two"), at(30)));
    assert!(all.set(Condition::met(FIRST), at(40)));
    assert_eq!(time(&all), at(40));
}

#[test]
fn ready_keeps_its_own_time_and_not_that_of_the_condition_it_follows() {
    let mut all = Conditions::default();
    all.set(Condition::unmet(FIRST, SLOW, ""), at(10));
    SET.conclude(&mut all, at(10));
    all.set(Condition::met(FIRST), at(20));
    all.set(Condition::unmet(SECOND, SLOW, ""), at(20));
    SET.conclude(&mut all, at(20));
    assert_eq!(
        all.find(READY).unwrap().last_transition_time,
        Some(Time(at(10)))
    );
}

#[test]
fn conditions_are_shown_in_the_declared_order_whatever_order_they_were_set_in() {
    let mut all = Conditions::default();
    SET.conclude(&mut all, at(1));
    for type_ in [EXTRA, SECOND, FIRST] {
        all.set(Condition::met(type_), at(1));
    }
    SET.conclude(&mut all, at(1));
    let names: Vec<_> = all
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(names, ["First", "Second", "Extra", "Ready"]);
}

#[test]
fn a_condition_survives_the_wire_unchanged() {
    let mut all = Conditions::default();
    let now: Timestamp = "2026-03-01T12:00:00.987654321Z".parse().unwrap();
    all.set(
        Condition::unmet(FIRST, SLOW, "text").with_severity(Severity::Warning),
        now,
    );
    let json = serde_json::to_value(&all).unwrap();
    assert_eq!(json[0]["lastTransitionTime"], "2026-03-01T12:00:00Z");
    assert_eq!(serde_json::from_value::<Conditions>(json).unwrap(), all);
}

#[test]
fn a_condition_that_no_longer_applies_can_be_forgotten() {
    let mut all = Conditions::default();
    all.set(Condition::met(FIRST), at(1));
    assert!(all.remove("First"));
    assert!(!all.remove("First"));
    assert!(all.is_empty());
}
