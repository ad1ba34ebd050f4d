//! The table of `PATCH`, and the order of its checks.

use super::*;
use crate::verbs::testing::{
    Fixed, STANDINGS, fresh, instance, instance_of, members, told, with_shelf,
};

fn request() -> Update {
    Update {
        service_id: "svc".to_owned(),
        ..Update::default()
    }
}

fn sized(size: i64) -> Update {
    Update {
        parameters: Some(members(json!({"size": size}))),
        ..request()
    }
}

fn decided(
    live: Option<&ServiceInstance>,
    request: &Update,
    asynchronous: bool,
) -> Result<Decision<ServiceInstance>, Refusal> {
    let ask = Ask {
        id: "i",
        request,
        asynchronous,
        identity: None,
    };
    with_shelf(&Fixed::default(), |shelf| {
        decide(live, &ask, shelf, &fresh())
    })
}

fn check(live: Option<&ServiceInstance>, request: &Update, asynchronous: bool, expected: &str) {
    let standing = live.map(Standing::of);
    assert_eq!(
        told(decided(live, request, asynchronous)),
        expected,
        "{standing:?}, {asynchronous}, {request:?}"
    );
}

fn replaced(live: &ServiceInstance, request: &Update) -> ServiceInstance {
    match decided(Some(live), request, true) {
        Ok(Decision::Replace(instance)) => *instance,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn every_state_meets_a_change() {
    check(None, &sized(2), true, "404 NotFound");
    for standing in STANDINGS {
        let live = instance("prompt", standing);
        let expected = match standing {
            Standing::MakeFailed | Standing::Ready | Standing::ChangeFailed => "replace update-new",
            Standing::Making | Standing::Changing | Standing::Removing | Standing::RemoveFailed => {
                "422 ConcurrencyError"
            }
        };
        for asynchronous in [true, false] {
            check(Some(&live), &sized(2), asynchronous, expected);
        }
    }
}

#[test]
fn the_same_change_is_the_same_operation_while_it_runs() {
    let live = instance("prompt", Standing::Ready);
    let mut running = replaced(&live, &sized(2));
    running.spec.operation.as_mut().unwrap().id = "op".to_owned();
    assert_eq!(
        Standing::of(&running),
        Standing::Ready,
        "the fixture's status speaks of the first operation"
    );
    running.spec.operation.as_mut().unwrap().id = "update-1".to_owned();
    check(Some(&running), &sized(2), true, "pending");
    check(Some(&running), &sized(3), true, "422 ConcurrencyError");
    check(Some(&running), &request(), true, "422 ConcurrencyError");
}

#[test]
fn what_changes_nothing_is_done_and_what_failed_is_tried_again() {
    for (standing, expected) in [
        (Standing::Ready, "done"),
        (Standing::MakeFailed, "replace update-new"),
        (Standing::ChangeFailed, "replace update-new"),
    ] {
        let live = instance("prompt", standing);
        check(Some(&live), &request(), true, expected);
        check(Some(&live), &sized(1), true, expected);
    }
}

#[test]
fn pace_comes_before_everything_that_depends_on_the_content() {
    let live = instance("patient", Standing::Ready);
    check(Some(&live), &request(), false, "422 AsyncRequired");
    let mut wrong = Update {
        service_id: "other".to_owned(),
        plan_id: Some("nothing".to_owned()),
        parameters: Some(members(json!({"size": "x"}))),
        maintenance_version: Some("9".to_owned()),
        ..Update::default()
    };
    check(Some(&live), &wrong, false, "400 BadRequest");
    wrong.service_id = "svc".to_owned();
    check(Some(&live), &wrong, false, "400 NotOffered");
    wrong.plan_id = None;
    check(Some(&live), &wrong, false, "422 AsyncRequired");
    check(Some(&live), &wrong, true, "400 BadRequest");
    wrong.parameters = Some(members(json!({"size": 5})));
    check(Some(&live), &wrong, true, "422 MaintenanceInfoConflict");
    wrong.maintenance_version = Some("1.0.0".to_owned());
    check(Some(&live), &wrong, true, "replace update-new");
}

#[test]
fn a_plan_is_changed_only_where_the_one_that_is_left_allows_it() {
    let to = |plan: &str| Update {
        plan_id: Some(plan.to_owned()),
        ..request()
    };
    check(
        Some(&instance("prompt", Standing::Ready)),
        &to("patient"),
        true,
        "replace update-new",
    );
    let mut fixed = to("fixed-two");
    fixed.service_id = "fixed".to_owned();
    let live = instance_of("fixed", "fixed-one", Standing::Ready);
    check(Some(&live), &fixed, true, "422 PlanChangeNotSupported");
    let mut withdrawn = to("old-two");
    withdrawn.service_id = "old".to_owned();
    let live = instance_of("old", "old-one", Standing::Ready);
    check(Some(&live), &withdrawn, true, "400 NotOffered");
    withdrawn.plan_id = Some("old-one".to_owned());
    withdrawn.parameters = Some(members(json!({"size": 2})));
    check(Some(&live), &withdrawn, true, "replace update-new");
    let live = instance_of("svc", "forgotten", Standing::Ready);
    check(
        Some(&live),
        &to("prompt"),
        true,
        "422 PlanChangeNotSupported",
    );
    check(Some(&live), &sized(2), false, "replace update-new");
}

#[test]
fn after_a_failed_change_what_is_left_away_is_what_is_in_force() {
    let mut live = instance("prompt", Standing::ChangeFailed);
    live.spec.plan_id = "app".to_owned();
    live.spec.parameters = members(json!({"size": 9, "more": 1}));
    let wanted = replaced(
        &live,
        &Update {
            parameters: Some(members(json!({"color": "red"}))),
            ..request()
        },
    );
    assert_eq!(wanted.spec.plan_id, "prompt");
    assert_eq!(
        Value::from(wanted.spec.parameters),
        json!({"size": 1, "color": "red"})
    );
}

#[test]
fn a_new_plan_brings_its_own_maintenance_version() {
    let live = instance("prompt", Standing::Ready);
    let wanted = replaced(
        &live,
        &Update {
            plan_id: Some("patient".to_owned()),
            ..request()
        },
    );
    assert_eq!(wanted.spec.maintenance_info.unwrap().version, "1.0.0");
    let mut behind = instance("patient", Standing::Ready);
    behind.spec.maintenance_info.as_mut().unwrap().version = "0.9.0".to_owned();
    let passing = replaced(&behind, &sized(2));
    assert_eq!(
        passing.spec.maintenance_info.unwrap().version,
        "0.9.0",
        "nobody asked for maintenance"
    );
    let asked = Update {
        maintenance_version: Some("1.0.0".to_owned()),
        ..request()
    };
    assert_eq!(
        replaced(&behind, &asked)
            .spec
            .maintenance_info
            .unwrap()
            .version,
        "1.0.0"
    );
}

#[test]
fn a_context_alone_is_remembered_without_an_operation_where_that_is_allowed() {
    let moved = Update {
        context: Some(members(json!({"instance_name": "new"}))),
        ..request()
    };
    let live = instance("prompt", Standing::Ready);
    check(Some(&live), &moved, true, "replace without operation");
    let wanted = replaced(&live, &moved);
    assert_eq!(wanted.spec.context["instance_name"], json!("new"));
    check(Some(&wanted), &moved, true, "done");
    let mut fixed = moved;
    fixed.service_id = "fixed".to_owned();
    check(
        Some(&instance_of("fixed", "fixed-one", Standing::Ready)),
        &fixed,
        true,
        "done",
    );
}
