use heddle_api::event_policy::{EventPolicy, EventPolicyStatus};
use jiff::Timestamp;
use serde_json::json;

use super::observe::{Subject, World};
use super::{status, targets};
use crate::references::Target;

fn policy(spec: serde_json::Value) -> EventPolicy {
    let policy = json!({
        "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
        "metadata": {"name": "p", "namespace": "team", "generation": 4}, "spec": spec,
    });
    serde_json::from_value(policy).unwrap()
}

fn world() -> World {
    World {
        policy: policy(json!({})),
        subjects: vec![
            Ok(Subject::Place("channel/hub/shop".to_owned())),
            Ok(Subject::Publisher("application/shop".to_owned())),
        ],
        asks_who: Some(true),
    }
}

fn read(world: &World) -> EventPolicyStatus {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    serde_json::from_value(status).unwrap()
}

fn check(world: &World, expected: [&str; 4]) {
    let found: Vec<String> = (read(world).conditions.iter())
        .map(|one| {
            let reason = one.reason.as_deref().unwrap_or_default();
            format!("{}={:?} {reason}", one.type_, one.status)
        })
        .map(|text| text.trim_end().to_owned())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn each_condition_of_a_policy_has_one_cause() {
    let [asked, resolved, valid, ready] = [
        "AuthenticationEnabled=True",
        "SubjectsResolved=True",
        "FiltersValid=True",
        "Ready=True",
    ];
    check(&world(), [asked, resolved, valid, ready]);
    let open = World {
        asks_who: Some(false),
        ..world()
    };
    check(
        &open,
        [
            "AuthenticationEnabled=False AuthenticationDisabled",
            resolved,
            valid,
            "Ready=False AuthenticationDisabled",
        ],
    );
    let alone = World {
        asks_who: None,
        ..world()
    };
    check(
        &alone,
        [
            "AuthenticationEnabled=Unknown NoMesh",
            resolved,
            valid,
            "Ready=Unknown NoMesh",
        ],
    );
    let mut missing = world();
    missing
        .subjects
        .push(Err("there is no channel/hub/other".to_owned()));
    check(
        &missing,
        [
            asked,
            "SubjectsResolved=False SubjectNotFound",
            valid,
            "Ready=False SubjectNotFound",
        ],
    );
    let mut garbled = world();
    garbled.policy = policy(json!({"filters": [{"cesql": "(("}]}));
    check(
        &garbled,
        [
            asked,
            resolved,
            "FiltersValid=False FilterInvalid",
            "Ready=False FilterInvalid",
        ],
    );
}

#[test]
fn a_policy_about_links_is_enforced_where_nobody_is_asked() {
    let mut world = World {
        asks_who: Some(false),
        ..world()
    };
    world.subjects.truncate(1);
    assert!(read(&world).conditions.is_ready());
}

#[test]
fn the_subjects_are_those_that_exist() {
    let mut world = world();
    world
        .subjects
        .insert(1, Err("there is no Application".to_owned()));
    let status = read(&world);
    assert_eq!(status.from, ["channel/hub/shop", "application/shop"]);
    assert_eq!(status.observed_generation, Some(4));
}

#[test]
fn a_policy_is_woken_by_whom_it_names() {
    let policy = policy(json!({"from": [
        {"ref": {"kind": "Channel", "namespace": "hub", "name": "shop"}},
        {"ref": {"kind": "Broker", "name": "own"}},
        {"ref": {"kind": "Application", "namespace": "ignored", "name": "crm"}},
        {"sub": "application/web"},
        {"sub": "application/web-*"},
        {"sub": "somebody"},
    ]}));
    let expected = [
        Target::new("Channel", "hub", "shop"),
        Target::new("Broker", "team", "own"),
        Target::new("Application", "", "crm"),
        Target::new("Application", "", "web"),
    ];
    assert_eq!(targets(&policy), expected);
}
