//! The table of `PUT`, and the order of its checks.

use super::*;
use crate::verbs::testing::{Fixed, STANDINGS, fresh, instance, members, told, with_shelf};
use serde_json::json;

fn request(plan_id: &str) -> Provision {
    Provision {
        service_id: "svc".to_owned(),
        plan_id: plan_id.to_owned(),
        organization_guid: "org".to_owned(),
        space_guid: "space".to_owned(),
        parameters: members(json!({"size": 1})),
        ..Provision::default()
    }
}

fn decided(
    live: Option<&ServiceInstance>,
    request: &Provision,
    asynchronous: bool,
) -> Result<Decision<ServiceInstance>, Refusal> {
    let ask = Ask {
        id: "i",
        namespace: "team-a",
        request,
        asynchronous,
        identity: None,
    };
    with_shelf(&Fixed::default(), |shelf| {
        decide(live, &ask, shelf, &fresh())
    })
}

fn check(live: Option<&ServiceInstance>, request: &Provision, asynchronous: bool, expected: &str) {
    let standing = live.map(Standing::of);
    assert_eq!(
        told(decided(live, request, asynchronous)),
        expected,
        "{standing:?}, {asynchronous}, {request:?}"
    );
}

#[test]
fn every_state_meets_an_equal_and_a_different_request() {
    let different = Provision {
        parameters: members(json!({"size": 2})),
        ..request("prompt")
    };
    for standing in STANDINGS {
        let live = instance("prompt", standing);
        let (equal, other) = match standing {
            Standing::Making => ("pending", "409 Conflict"),
            Standing::MakeFailed => ("replace provision-new", "409 Conflict"),
            Standing::Ready | Standing::ChangeFailed => ("done", "409 Conflict"),
            Standing::Changing => ("422 ConcurrencyError", "409 Conflict"),
            Standing::Removing | Standing::RemoveFailed => {
                ("422 ConcurrencyError", "422 ConcurrencyError")
            }
        };
        for asynchronous in [true, false] {
            check(Some(&live), &request("prompt"), asynchronous, equal);
            check(Some(&live), &different, asynchronous, other);
        }
    }
    check(None, &request("prompt"), true, "create provision-new");
    check(None, &request("prompt"), false, "create provision-new");
}

#[test]
fn a_patient_plan_wants_a_platform_that_asks_again_unless_there_is_nothing_to_wait_for() {
    check(None, &request("patient"), true, "create provision-new");
    check(None, &request("patient"), false, "422 AsyncRequired");
    for (standing, expected) in [
        (Standing::Making, "422 AsyncRequired"),
        (Standing::MakeFailed, "422 AsyncRequired"),
        (Standing::Ready, "done"),
    ] {
        check(
            Some(&instance("patient", standing)),
            &request("patient"),
            false,
            expected,
        );
    }
}

#[test]
fn equal_means_equal_in_what_identifies_a_request() {
    let live = instance("prompt", Standing::Ready);
    let change = |change: &dyn Fn(&mut Provision)| {
        let mut request = request("prompt");
        change(&mut request);
        told(decided(Some(&live), &request, true))
    };
    assert_eq!(
        change(&|request| request.parameters = members(json!({"size": 1.0}))),
        "done"
    );
    assert_eq!(
        change(&|request| request.context = members(json!({"platform": "x", "instance_name": "n"}))),
        "done"
    );
    assert_eq!(
        change(&|request| request.maintenance_version = Some("9".to_owned())),
        "done"
    );
    assert_eq!(
        change(&|request| request.service_id = "other".to_owned()),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.plan_id = "patient".to_owned()),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.organization_guid = "other".to_owned()),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.space_guid = "other".to_owned()),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.parameters = Map::new()),
        "409 Conflict"
    );
}

#[test]
fn after_a_failed_change_both_the_old_and_the_new_are_equal() {
    let mut live = instance("prompt", Standing::ChangeFailed);
    live.spec.parameters = members(json!({"size": 2}));
    check(Some(&live), &request("prompt"), true, "done");
    let new = Provision {
        parameters: members(json!({"size": 2})),
        ..request("prompt")
    };
    check(Some(&live), &new, true, "done");
}

#[test]
fn the_catalog_comes_before_parameters_and_these_before_maintenance_and_pace() {
    let mut wrong = Provision {
        service_id: "nobody".to_owned(),
        plan_id: "nothing".to_owned(),
        parameters: members(json!({"size": "x"})),
        maintenance_version: Some("9.9.9".to_owned()),
        ..request("patient")
    };
    check(None, &wrong, false, "400 NotOffered");
    wrong.service_id = "svc".to_owned();
    check(None, &wrong, false, "400 NotOffered");
    wrong.plan_id = "fixed-one".to_owned();
    check(None, &wrong, false, "400 NotOffered");
    wrong.plan_id = "patient".to_owned();
    check(None, &wrong, false, "400 BadRequest");
    wrong.parameters = members(json!({"size": 1}));
    check(None, &wrong, false, "422 MaintenanceInfoConflict");
    wrong.maintenance_version = Some("1.0.0".to_owned());
    check(None, &wrong, false, "422 AsyncRequired");
    check(None, &wrong, true, "create provision-new");
    let none = Provision {
        maintenance_version: Some("1.0.0".to_owned()),
        ..request("prompt")
    };
    check(None, &none, true, "422 MaintenanceInfoConflict");
}

#[test]
fn a_withdrawn_plan_answers_repeats_and_takes_nothing_new() {
    let mut live = instance("prompt", Standing::Ready);
    (live.spec.service_id, live.spec.plan_id) = ("old".to_owned(), "old-one".to_owned());
    live.status.as_mut().unwrap().applied = None;
    let request = Provision {
        service_id: "old".to_owned(),
        plan_id: "old-one".to_owned(),
        ..request("")
    };
    check(Some(&live), &request, true, "done");
    check(None, &request, true, "400 NotOffered");
}

#[test]
fn nothing_is_called_unknown_before_the_catalog_was_read() {
    let offers = Fixed {
        ready: false,
        ..Fixed::default()
    };
    let request = Provision {
        service_id: "nobody".to_owned(),
        ..request("x")
    };
    let ask = Ask {
        id: "i",
        namespace: "team-a",
        request: &request,
        asynchronous: true,
        identity: None,
    };
    let decision = with_shelf(&offers, |shelf| decide(None, &ask, shelf, &fresh()));
    assert_eq!(told(decision), "422 ConcurrencyError");
}

#[test]
fn a_new_instance_carries_everything_that_later_requests_and_controllers_need() {
    let Ok(Decision::Create(made)) = decided(None, &request("patient"), true) else {
        unreachable!("it is created");
    };
    let mut made = made;
    let operation = made.spec.operation.as_mut().unwrap();
    operation.request_hash = format!("of {} digits", operation.request_hash.len());
    insta::assert_yaml_snapshot!(made, @r#"
    apiVersion: heddle.dev/v1alpha1
    kind: ServiceInstance
    metadata:
      annotations:
        heddle.dev/last-contact: "2027-01-15T08:00:00Z"
      finalizers:
        - heddle.dev/broker
      name: i
      namespace: team-a
    spec:
      instanceID: i
      serviceID: svc
      planID: patient
      parameters:
        size: 1
      organizationGUID: org
      spaceGUID: space
      maintenanceInfo:
        version: 1.0.0
      application:
        name: shop
        serviceID: orders
      onDeprovision: drain
      operation:
        id: provision-new
        kind: provision
        requestHash: of 64 digits
        acceptedAt: "2027-01-15T08:00:00Z"
        deadline: "2027-01-15T08:15:00Z"
    "#);
}
