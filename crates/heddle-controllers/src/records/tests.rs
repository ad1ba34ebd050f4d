use heddle_api::operation::{OperationKind, OperationProgress, OperationState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn record(operation: Option<&str>, gone_at: i64) -> Record {
    Record {
        about: About::Instance("i".to_owned()),
        namespace: "team-a".to_owned(),
        front: None,
        operation: operation.map(|id| OperationProgress {
            id: id.to_owned(),
            kind: OperationKind::Deprovision,
            state: OperationState::Succeeded,
            description: None,
            attempts: None,
            finished_at: None,
            instance_usable: None,
            update_repeatable: None,
        }),
        gone_at: Time(at(gone_at)),
    }
}

#[test]
fn a_record_is_kept_for_a_week_and_not_longer() {
    let object = record(None, 1_000).to_config_map();
    assert!(!is_old(&object, at(1_000 + KEPT_SECONDS)));
    assert!(is_old(&object, at(1_001 + KEPT_SECONDS)));
    let mut unreadable = object;
    unreadable.data = None;
    assert!(
        !is_old(&unreadable, at(i64::from(u32::MAX))),
        "nobody knows how old it is"
    );
    unreadable.metadata.creation_timestamp = Some(Time(at(5_000)));
    assert!(!is_old(&unreadable, at(5_000 + KEPT_SECONDS)));
    assert!(is_old(&unreadable, at(5_001 + KEPT_SECONDS)));
}

#[test]
fn a_tombstone_is_kept_for_a_month_and_not_longer() {
    let tombstone = Tombstone {
        service_id: "s".to_owned(),
        name: "n".to_owned(),
        registry: "hub".to_owned(),
        image: "r:latest".to_owned(),
        reason: heddle_api::bundle::MarkReason::TagRemoved,
        withdrawn_at: Time(at(500)),
        gone_at: Time(at(1_000)),
    };
    let object = tombstone.to_config_map();
    assert!(!is_old(&object, at(1_000 + tombstone::KEPT_SECONDS)));
    assert!(is_old(&object, at(1_001 + tombstone::KEPT_SECONDS)));
}

#[test]
fn a_record_of_the_same_operation_is_left_as_it_is() {
    let request = |id: &str| OperationRequest {
        id: id.to_owned(),
        kind: OperationKind::Deprovision,
        request_hash: "h".to_owned(),
        accepted_at: Time(at(0)),
        deadline: None,
    };
    let (first, second) = (record(Some("1"), 10), record(Some("1"), 20));
    let writes = |request: Option<&OperationRequest>, known: Option<&Record>| {
        step("record", &second, request, known).is_some()
    };
    assert!(!writes(Some(&request("1")), Some(&first)));
    assert!(writes(Some(&request("2")), Some(&first)));
    assert!(writes(Some(&request("1")), Some(&record(None, 10))));
    assert!(writes(Some(&request("1")), None));
    assert!(writes(None, Some(&first)));
}
