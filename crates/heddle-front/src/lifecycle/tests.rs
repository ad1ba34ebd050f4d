//! Every way in which an object can stand.

use super::*;
use crate::verbs::testing::{STANDINGS, binding, instance, now, ready};
use heddle_api::service_instance::ServiceInstanceStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

#[test]
fn an_operation_that_no_controller_has_seen_is_in_progress_whatever_the_status_says() {
    for lifecycle in STANDINGS {
        let mut object = instance("prompt", lifecycle);
        object.spec.operation.as_mut().unwrap().id = "newer".to_owned();
        let kind = object.requested().unwrap().kind;
        let expected = match kind {
            OperationKind::Provision => Lifecycle::Making,
            OperationKind::Update => Lifecycle::Changing,
            _ => Lifecycle::Removing,
        };
        assert_eq!(Lifecycle::of(&object), expected, "{lifecycle:?}");
        assert_eq!(Report::of(&object, now()).state, Report::IN_PROGRESS);
    }
}

#[test]
fn what_is_brought_about_after_a_failure_is_ready() {
    let mut object = instance("prompt", Lifecycle::MakeFailed);
    object.status.as_mut().unwrap().conditions = ready();
    assert_eq!(
        Lifecycle::of(&object),
        Lifecycle::MakeFailed,
        "the conditions are of another generation"
    );
    object.status.as_mut().unwrap().observed_generation = Some(1);
    assert_eq!(Lifecycle::of(&object), Lifecycle::Ready);
}

#[test]
fn an_object_that_somebody_wrote_by_hand_is_ready_when_its_conditions_say_so() {
    let mut object = instance("prompt", Lifecycle::Ready);
    object.spec.operation = None;
    object.status = None;
    assert_eq!(Lifecycle::of(&object), Lifecycle::Making);
    assert_eq!(Report::of(&object, now()).state, Report::IN_PROGRESS);
    object.status = Some(ServiceInstanceStatus {
        conditions: ready(),
        observed_generation: Some(1),
        ..ServiceInstanceStatus::default()
    });
    assert_eq!(Lifecycle::of(&object), Lifecycle::Ready);
    assert_eq!(Report::of(&object, now()).state, Report::SUCCEEDED);
}

#[test]
fn an_object_that_somebody_deletes_is_being_removed() {
    let mut object = instance("prompt", Lifecycle::Ready);
    object.metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(Lifecycle::of(&object), Lifecycle::Removing);
    let report = Report::of(&object, now());
    assert_eq!(report.state, Report::IN_PROGRESS);
    assert!(report.description.unwrap().contains("not by its platform"));
}

#[test]
fn a_failed_change_of_what_never_was_in_force_is_a_failed_making() {
    let mut object = instance("prompt", Lifecycle::ChangeFailed);
    object.status.as_mut().unwrap().applied = None;
    assert_eq!(Lifecycle::of(&object), Lifecycle::MakeFailed);
}

#[test]
fn the_longer_an_operation_takes_the_less_often_it_is_asked_about() {
    let object = binding("prompt", Lifecycle::Making);
    for (age, seconds) in [(0, 1), (9, 1), (10, 5), (60, 15), (600, 60), (86_400, 60)] {
        let later = now() + jiff::SignedDuration::from_secs(age);
        assert_eq!(
            Report::of(&object, later).retry_seconds,
            Some(seconds),
            "after {age} s"
        );
    }
    assert_eq!(
        Report::of(&binding("prompt", Lifecycle::Ready), now()).retry_seconds,
        None
    );
}

#[test]
fn whether_an_instance_is_usable_is_told_only_where_it_is_asked_for() {
    for (lifecycle, usable, repeatable) in [
        (Lifecycle::MakeFailed, None, None),
        (Lifecycle::ChangeFailed, Some(false), Some(false)),
        (Lifecycle::RemoveFailed, Some(false), None),
        (Lifecycle::Ready, None, None),
    ] {
        let mut object = instance("prompt", lifecycle);
        let progress = object.status.as_mut().unwrap().operation.as_mut().unwrap();
        (progress.instance_usable, progress.update_repeatable) = (Some(false), Some(false));
        let report = Report::of(&object, now());
        assert_eq!(
            (report.instance_usable, report.update_repeatable),
            (usable, repeatable),
            "{lifecycle:?}"
        );
    }
}
