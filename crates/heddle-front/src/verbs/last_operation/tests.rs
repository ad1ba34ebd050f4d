//! What is told about something that is gone.

use super::*;
use heddle_api::operation::{OperationProgress, OperationState};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn record(by_platform: bool) -> Record {
    let operation = OperationProgress {
        id: "deprovision-1".to_owned(),
        kind: OperationKind::Deprovision,
        state: OperationState::Succeeded,
        description: Some("2 events drained".to_owned()),
        attempts: None,
        finished_at: None,
        instance_usable: None,
        update_repeatable: None,
    };
    Record {
        about: About::Instance("i".to_owned()),
        namespace: "team-a".to_owned(),
        front: None,
        operation: by_platform.then_some(operation),
        gone_at: Time(Timestamp::UNIX_EPOCH),
    }
}

#[test]
fn a_removal_that_ended_has_succeeded_or_is_gone_as_the_setting_wants() {
    // The last three are what clients send that do not keep what they were given.
    for operation in [
        Some("deprovision-1"),
        Some("unbind-1"),
        None,
        Some("deprovision"),
        Some("provision"),
    ] {
        let report = after(&record(true), operation, DeletedPoll::Succeeded).unwrap();
        assert_eq!(
            (report.state, report.description.as_deref()),
            (Report::SUCCEEDED, Some("2 events drained"))
        );
        assert_eq!(after(&record(true), operation, DeletedPoll::Gone), None);
    }
    let report = after(&record(false), None, DeletedPoll::Succeeded).unwrap();
    assert_eq!(report.state, Report::SUCCEEDED);
}

#[test]
fn making_something_that_was_removed_has_failed() {
    for operation in ["provision-1", "update-1", "bind-1"] {
        for setting in [DeletedPoll::Succeeded, DeletedPoll::Gone] {
            let report = after(&record(true), Some(operation), setting).unwrap();
            assert_eq!(report.state, Report::FAILED, "{operation}");
        }
    }
}

#[test]
fn an_answer_has_no_empty_members_and_none_that_the_version_does_not_know() {
    let report = || Report {
        instance_usable: Some(true),
        update_repeatable: Some(false),
        retry_seconds: Some(5),
        ..Report::plain(Report::FAILED, Some(""))
    };
    assert_eq!(
        Value::from(shown(report(), Version::V2_15).body),
        json!({"state": "failed"})
    );
    let answer = shown(report(), Version::V2_16);
    assert_eq!(
        Value::from(answer.body),
        json!({"state": "failed", "instance_usable": true, "update_repeatable": false})
    );
    assert_eq!(answer.retry_seconds, Some(5));
}
