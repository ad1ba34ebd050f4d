use std::time::Duration;

use heddle_api::Registry;
use heddle_api::bundle::{Absence, BundlePhase, BundleStatus, Mark, MarkReason, Seen};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::phase::{self, PhaseInputs, is_to_go, is_to_look, is_to_sweep, requeue_after};

/// When everything below happens.
const NOW: i64 = 100_000;
const GRACE: i64 = 600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn registry(spec: Value, status: Value) -> Registry {
    let mut object = json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry",
        "metadata": {"name": "hub", "creationTimestamp": at(NOW - 50_000).to_string()},
        "spec": {"type": "apiv2", "url": "http://r.example"}, "status": status,
    });
    object["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

/// A live bundle of a registry that can be read.
fn inputs(change: impl FnOnce(&mut PhaseInputs)) -> PhaseInputs {
    let mut inputs = PhaseInputs {
        before: BundleStatus::default(),
        is_withdrawn: false,
        is_deleted: false,
        registry: Some(phase::view(&registry(
            json!({}),
            json!({"consecutiveFailures": 0}),
        ))),
        is_used: None,
    };
    change(&mut inputs);
    inputs
}

fn absent(readings: i32) -> impl Fn(&mut PhaseInputs) {
    move |inputs| {
        inputs.before.seen = Some(Seen {
            absence: Some(Absence {
                reason: MarkReason::TagRemoved,
                readings,
                sync_run: "run-1".to_owned(),
            }),
            ..Seen::default()
        });
    }
}

/// Written down as withdrawn, for so long.
fn marked(reason: MarkReason, seconds: i64) -> impl Fn(&mut PhaseInputs) {
    move |inputs| {
        inputs.before.phase = BundlePhase::Marked;
        inputs.before.mark = Some(Mark {
            reason,
            since: Time(at(NOW - seconds)),
            sync_run: Some("run-1".to_owned()),
        });
    }
}

fn sweeping(inputs: &mut PhaseInputs) {
    absent(1)(inputs);
    marked(MarkReason::TagRemoved, GRACE)(inputs);
    inputs.before.phase = BundlePhase::Sweeping;
}

fn with(view: Registry) -> impl Fn(&mut PhaseInputs) {
    move |inputs| inputs.registry = Some(phase::view(&view))
}

fn why(inputs: &PhaseInputs) -> Option<MarkReason> {
    phase::phase(inputs, at(NOW)).1.map(|mark| mark.reason)
}

/// A registry that failed so often, and was last read an hour ago.
fn failing(policy: Value, failures: i32) -> Registry {
    let status = json!({
        "consecutiveFailures": failures, "lastSuccess": at(NOW - 3_600).to_string(),
    });
    registry(json!({"stalePolicy": policy}), status)
}

#[test]
fn every_reason_withdraws_and_nothing_else_does() {
    let leaving = {
        let mut registry = registry(json!({}), json!({}));
        registry.metadata.deletion_timestamp = Some(Time(at(NOW)));
        registry
    };
    let keep = json!({"mode": "keep"});
    let cases: Vec<(&str, PhaseInputs, Option<MarkReason>)> = vec![
        ("all is well", inputs(|_| {}), None),
        ("absent", inputs(absent(1)), Some(MarkReason::TagRemoved)),
        (
            "withdrawn",
            inputs(|s| s.is_withdrawn = true),
            Some(MarkReason::Admin),
        ),
        (
            "deleted",
            inputs(|s| s.is_deleted = true),
            Some(MarkReason::Admin),
        ),
        (
            "no registry",
            inputs(|s| s.registry = None),
            Some(MarkReason::RegistryRemoved),
        ),
        (
            "registry goes",
            inputs(with(leaving)),
            Some(MarkReason::RegistryRemoved),
        ),
        ("a failure", inputs(with(failing(keep.clone(), 1))), None),
        ("a hundred failures", inputs(with(failing(keep, 100))), None),
    ];
    for (what, inputs, expected) in cases {
        assert_eq!(why(&inputs), expected, "{what}");
        let (phase, _) = phase::phase(&inputs, at(NOW));
        let is_live = phase == BundlePhase::Live;
        assert_eq!(is_live, expected.is_none(), "{what}");
    }
}

#[test]
fn an_absence_counts_when_it_is_confirmed() {
    let patient = |readings: i32| {
        inputs(|s| {
            absent(readings)(s);
            with(registry(json!({"removalConfirmations": 2}), json!({})))(s);
        })
    };
    assert_eq!(why(&patient(1)), None);
    assert_eq!(why(&patient(2)), Some(MarkReason::TagRemoved));
}

#[test]
fn a_registry_hides_after_its_limit_and_not_before() {
    let hidden = |policy: Value, failures: i32| {
        why(&inputs(with(failing(policy, failures)))) == Some(MarkReason::HiddenByStalePolicy)
    };
    let by_number = json!({"mode": "hide", "hideAfterFailures": 3});
    let told: Vec<bool> = (0..5)
        .map(|failures| hidden(by_number.clone(), failures))
        .collect();
    assert_eq!(told, [false, false, false, true, true]);
    let by_time = |seconds: i32| json!({"mode": "hide", "hideAfterSeconds": seconds});
    assert!(!hidden(by_time(3_601), 9));
    assert!(hidden(by_time(3_600), 1));
    assert!(!hidden(by_time(3_600), 0), "it was read since");
    let at_once = json!({"mode": "hide"});
    assert!(hidden(at_once.clone(), 1) && !hidden(at_once, 0));
    // Somebody looks when the time has come.
    let later = inputs(with(failing(by_time(3_700), 1)));
    assert_eq!(
        requeue_after(&later, at(NOW)),
        Some(Duration::from_secs(100))
    );
}

#[test]
fn a_mark_keeps_its_time_while_its_reason_stays() {
    let kept = inputs(|s| {
        absent(1)(s);
        marked(MarkReason::TagRemoved, 50)(s);
    });
    let mark = phase::phase(&kept, at(NOW)).1.unwrap();
    assert_eq!(
        (mark.since.0, mark.sync_run.as_deref()),
        (at(NOW - 50), Some("run-1"))
    );
    let other = inputs(|s| {
        absent(1)(s);
        marked(MarkReason::HiddenByStalePolicy, 50)(s);
    });
    let mark = phase::phase(&other, at(NOW)).1.unwrap();
    assert_eq!(
        mark.since.0,
        at(NOW),
        "time in hiding is not time without use"
    );
}

#[test]
fn a_bundle_is_swept_when_it_is_withdrawn_unused_and_its_grace_is_over() {
    let swept = |seconds: i64, is_used: Option<bool>| {
        let inputs = inputs(|s| {
            absent(1)(s);
            marked(MarkReason::TagRemoved, seconds)(s);
            s.is_used = is_used;
        });
        (is_to_look(&inputs, at(NOW)), is_to_sweep(&inputs, at(NOW)))
    };
    assert_eq!(swept(GRACE - 1, Some(false)), (false, false));
    assert_eq!(swept(GRACE, None), (true, false), "nobody looked");
    assert_eq!(swept(GRACE, Some(true)), (true, false));
    assert_eq!(swept(GRACE, Some(false)), (true, true));
    let waiting = inputs(|s| {
        absent(1)(s);
        marked(MarkReason::TagRemoved, GRACE - 40)(s);
    });
    assert_eq!(
        requeue_after(&waiting, at(NOW)),
        Some(Duration::from_secs(40))
    );
}

#[test]
fn nothing_is_swept_before_its_mark_was_written() {
    let unwritten = inputs(|s| {
        s.registry = None;
        s.is_used = Some(false);
    });
    assert!(!is_to_sweep(&unwritten, at(NOW)));
    let of_another = inputs(|s| {
        s.registry = None;
        s.is_used = Some(false);
        marked(MarkReason::TagRemoved, 10 * GRACE)(s);
    });
    assert!(
        !is_to_sweep(&of_another, at(NOW)),
        "the written mark is another"
    );
    let written = inputs(|s| {
        s.registry = None;
        s.is_used = Some(false);
        marked(MarkReason::RegistryRemoved, 0)(s);
    });
    assert!(
        is_to_sweep(&written, at(NOW)),
        "who removed the registry does not want to wait"
    );
}

#[test]
fn what_is_hidden_is_never_swept() {
    let hidden = inputs(|s| {
        with(failing(json!({"mode": "hide"}), 9))(s);
        marked(MarkReason::HiddenByStalePolicy, 1_000_000)(s);
        s.is_used = Some(false);
    });
    assert_eq!(why(&hidden), Some(MarkReason::HiddenByStalePolicy));
    assert!(!is_to_look(&hidden, at(NOW)) && !is_to_sweep(&hidden, at(NOW)));
    let caught = inputs(|s| {
        with(failing(json!({"mode": "hide"}), 9))(s);
        marked(MarkReason::HiddenByStalePolicy, 1_000_000)(s);
        s.before.phase = BundlePhase::Sweeping;
        s.is_used = Some(false);
    });
    assert!(
        !is_to_go(&caught, at(NOW)),
        "its absence was taken back while it was swept"
    );
    assert_eq!(phase::phase(&caught, at(NOW)).0, BundlePhase::Marked);
}

#[test]
fn a_sweep_ends_with_removal_or_with_whoever_turned_up() {
    let used = |is_used: Option<bool>| {
        inputs(|s| {
            sweeping(s);
            s.is_used = is_used;
        })
    };
    assert!(is_to_look(&used(None), at(NOW)));
    assert!(!is_to_go(&used(None), at(NOW)));
    assert!(is_to_go(&used(Some(false)), at(NOW)));
    assert!(!is_to_go(&used(Some(true)), at(NOW)));
    assert_eq!(
        phase::phase(&used(Some(true)), at(NOW)).0,
        BundlePhase::Marked
    );
    let seen_again = inputs(|s| {
        sweeping(s);
        s.before.seen = Some(Seen::default());
        s.is_used = Some(false);
    });
    assert!(!is_to_go(&seen_again, at(NOW)));
    assert_eq!(
        phase::phase(&seen_again, at(NOW)),
        (BundlePhase::Live, None)
    );
}

#[test]
fn a_deleted_bundle_goes_without_grace_and_keeps_the_reason_it_had() {
    let deleted = |is_used: bool| {
        inputs(|s| {
            s.is_deleted = true;
            marked(MarkReason::Admin, 0)(s);
            s.is_used = Some(is_used);
        })
    };
    assert!(is_to_sweep(&deleted(false), at(NOW)));
    assert!(!is_to_sweep(&deleted(true), at(NOW)));
    assert!(requeue_after(&deleted(true), at(NOW)).is_some());
    let swept = inputs(|s| {
        sweeping(s);
        s.is_deleted = true;
    });
    assert_eq!(why(&swept), Some(MarkReason::TagRemoved));
}
