//! The table of `PATCH`, and the order of its checks.

use super::*;
use crate::catalog::testing::{self as bundles, plan_id};
use crate::parameters::Validators;
use crate::verbs::testing::{
    Fixed, STANDINGS, fresh, instance, instance_of, members, told, with_catalog,
};
use heddle_api::bundle::BundlePhase;

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
) -> Result<Decision<ServiceInstance>, OsbError> {
    let input = UpdateInput {
        id: "i",
        request,
        asynchronous,
        identity: None,
    };
    with_catalog(&Fixed::default(), |view| {
        decide(live, &input, view, &fresh())
    })
}

fn check(live: Option<&ServiceInstance>, request: &Update, asynchronous: bool, expected: &str) {
    let lifecycle = live.map(Lifecycle::of);
    assert_eq!(
        told(decided(live, request, asynchronous)),
        expected,
        "{lifecycle:?}, {asynchronous}, {request:?}"
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
    for lifecycle in STANDINGS {
        let live = instance("prompt", lifecycle);
        let expected = match lifecycle {
            Lifecycle::MakeFailed | Lifecycle::Ready | Lifecycle::ChangeFailed => {
                "replace update-new"
            }
            Lifecycle::Making
            | Lifecycle::Changing
            | Lifecycle::Removing
            | Lifecycle::RemoveFailed => "422 ConcurrencyError",
        };
        for asynchronous in [true, false] {
            check(Some(&live), &sized(2), asynchronous, expected);
        }
    }
}

#[test]
fn the_same_change_is_the_same_operation_while_it_runs() {
    let live = instance("prompt", Lifecycle::Ready);
    let mut running = replaced(&live, &sized(2));
    running.spec.operation.as_mut().unwrap().id = "op".to_owned();
    assert_eq!(
        Lifecycle::of(&running),
        Lifecycle::Ready,
        "the fixture's status speaks of the first operation"
    );
    running.spec.operation.as_mut().unwrap().id = "update-1".to_owned();
    check(Some(&running), &sized(2), true, "pending");
    check(Some(&running), &sized(3), true, "422 ConcurrencyError");
    check(Some(&running), &request(), true, "422 ConcurrencyError");
}

#[test]
fn what_changes_nothing_is_done_and_what_failed_is_tried_again() {
    for (lifecycle, expected) in [
        (Lifecycle::Ready, "done"),
        (Lifecycle::MakeFailed, "replace update-new"),
        (Lifecycle::ChangeFailed, "replace update-new"),
    ] {
        let live = instance("prompt", lifecycle);
        check(Some(&live), &request(), true, expected);
        check(Some(&live), &sized(1), true, expected);
    }
}

#[test]
fn pace_comes_before_everything_that_depends_on_the_content() {
    let live = instance("patient", Lifecycle::Ready);
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
    check(Some(&live), &wrong, false, "400 PlanUnknown");
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
        Some(&instance("prompt", Lifecycle::Ready)),
        &to("patient"),
        true,
        "replace update-new",
    );
    let mut fixed = to("fixed-two");
    fixed.service_id = "fixed".to_owned();
    let live = instance_of("fixed", "fixed-one", Lifecycle::Ready);
    check(Some(&live), &fixed, true, "422 PlanChangeNotSupported");
    let mut withdrawn = to("old-two");
    withdrawn.service_id = "old".to_owned();
    let live = instance_of("old", "old-one", Lifecycle::Ready);
    check(Some(&live), &withdrawn, true, "400 NotOffered");
    withdrawn.plan_id = Some("old-one".to_owned());
    withdrawn.parameters = Some(members(json!({"size": 2})));
    check(Some(&live), &withdrawn, true, "replace update-new");
    let live = instance_of("svc", "forgotten", Lifecycle::Ready);
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
    let mut live = instance("prompt", Lifecycle::ChangeFailed);
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
    let live = instance("prompt", Lifecycle::Ready);
    let wanted = replaced(
        &live,
        &Update {
            plan_id: Some("patient".to_owned()),
            ..request()
        },
    );
    assert_eq!(wanted.spec.maintenance_info.unwrap().version, "1.0.0");
    let mut behind = instance("patient", Lifecycle::Ready);
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
    let live = instance("prompt", Lifecycle::Ready);
    check(Some(&live), &moved, true, "replace without operation");
    let wanted = replaced(&live, &moved);
    assert_eq!(wanted.spec.context["instance_name"], json!("new"));
    check(Some(&wanted), &moved, true, "done");
    let mut fixed = moved;
    fixed.service_id = "fixed".to_owned();
    check(
        Some(&instance_of("fixed", "fixed-one", Lifecycle::Ready)),
        &fixed,
        true,
        "done",
    );
}

/// An instance of `db`'s plan, pinned to its first revision.
fn of_bundle(plan: &str, lifecycle: Lifecycle) -> ServiceInstance {
    let mut live = instance_of("id-of-db", &plan_id(plan), lifecycle);
    let reference = RevisionReference {
        name: "db-1".to_owned(),
        digest: "sha256:db-1".to_owned(),
        bundle_version: Some("1.0.0".to_owned()),
    };
    let version = Some(MaintenanceInfo {
        version: "1.0.0".to_owned(),
    });
    live.spec.revision_ref = Some(reference.clone());
    live.spec.maintenance_info.clone_from(&version);
    let applied = live
        .status
        .as_mut()
        .and_then(|status| status.applied.as_mut());
    if let Some(applied) = applied {
        applied.revision_ref = Some(reference);
        applied.maintenance_info = version;
    }
    live
}

fn on_bundle(
    db: heddle_api::Bundle,
    live: &ServiceInstance,
    change: impl FnOnce(&mut Update),
) -> Result<Decision<ServiceInstance>, OsbError> {
    let offers = bundles::offers(db);
    let mut request = Update {
        service_id: "id-of-db".to_owned(),
        ..Update::default()
    };
    change(&mut request);
    let input = UpdateInput {
        id: "i",
        request: &request,
        asynchronous: true,
        identity: None,
    };
    let validators = Validators::default();
    let view = CatalogView::new(&offers, None, &validators);
    decide(Some(live), &input, &view, &fresh())
}

#[test]
fn an_instance_of_a_bundle_is_changed_by_the_revision_it_has_also_when_that_is_withdrawn() {
    let live = of_bundle("small", Lifecycle::Ready);
    let sized = |size: i64| {
        move |request: &mut Update| request.parameters = Some(members(json!({"size": size})))
    };
    for db in [
        bundles::bundle("db", 1, "db-2"),
        bundles::marked(bundles::bundle("db", 1, "db-2"), BundlePhase::Marked),
    ] {
        // The current revision would not take a size below 10.
        let Ok(Decision::Replace(wanted)) = on_bundle(db.clone(), &live, sized(2)) else {
            unreachable!("it may change");
        };
        assert_eq!(wanted.spec.revision_ref, live.spec.revision_ref);
        assert_eq!(wanted.spec.maintenance_info, live.spec.maintenance_info);
        let fixed =
            |request: &mut Update| request.parameters = Some(members(json!({"secret": "x"})));
        assert_eq!(
            told(on_bundle(db, &live, fixed)),
            "400 BadRequest",
            "it is not updatable"
        );
    }
    let old = of_bundle("old", Lifecycle::Ready);
    assert_eq!(
        told(on_bundle(bundles::bundle("db", 1, "db-2"), &old, sized(2))),
        "replace update-new",
        "a plan that is no more can be changed where it is"
    );
}

#[test]
fn a_version_that_is_asked_for_moves_an_instance_to_the_current_revision() {
    let live = of_bundle("small", Lifecycle::Ready);
    let version = |version: &'static str| {
        move |request: &mut Update| request.maintenance_version = Some(version.to_owned())
    };
    let db = || bundles::bundle("db", 1, "db-2");
    let Ok(Decision::Replace(wanted)) = on_bundle(db(), &live, version("2.0.0")) else {
        unreachable!("it is an upgrade");
    };
    assert_eq!(wanted.spec.revision_ref.unwrap().name, "db-2");
    assert_eq!(wanted.spec.maintenance_info.unwrap().version, "2.0.0");
    assert_eq!(
        told(on_bundle(db(), &live, version("1.0.0"))),
        "422 MaintenanceInfoConflict"
    );
    assert_eq!(
        told(on_bundle(db(), &live, version("9.0.0"))),
        "422 MaintenanceInfoConflict"
    );
    // What is withdrawn has no newer version, and its own is the one it has.
    let gone = || bundles::marked(db(), BundlePhase::Marked);
    assert_eq!(
        told(on_bundle(gone(), &live, version("2.0.0"))),
        "422 MaintenanceInfoConflict"
    );
    assert_eq!(told(on_bundle(gone(), &live, version("1.0.0"))), "done");
    // After a failed upgrade the same request tries again, and what is in force is the old one.
    let mut failed = of_bundle("small", Lifecycle::ChangeFailed);
    failed.spec.revision_ref.as_mut().unwrap().name = "db-2".to_owned();
    let Ok(Decision::Replace(wanted)) = on_bundle(db(), &failed, |request| {
        request.parameters = Some(members(json!({"size": 2})));
    }) else {
        unreachable!("it may change");
    };
    assert_eq!(wanted.spec.revision_ref.unwrap().name, "db-1");
}

#[test]
fn plans_of_a_bundle_are_changed_only_as_its_author_allows() {
    let to = |plan: &str| {
        let plan_id = plan_id(plan);
        move |request: &mut Update| request.plan_id = Some(plan_id)
    };
    let db = || bundles::bundle("db", 1, "db-2");
    let small = of_bundle("small", Lifecycle::Ready);
    let Ok(Decision::Replace(wanted)) = on_bundle(db(), &small, to("large")) else {
        unreachable!("it is allowed");
    };
    assert_eq!(wanted.spec.plan_id, plan_id("large"));
    assert_eq!(
        wanted.spec.revision_ref.unwrap().name,
        "db-2",
        "a new plan is the current one"
    );
    let large = of_bundle("large", Lifecycle::Ready);
    assert_eq!(
        told(on_bundle(db(), &large, to("small"))),
        "422 PlanChangeNotSupported"
    );
    assert_eq!(
        told(on_bundle(db(), &small, to("old"))),
        "422 PlanChangeNotSupported",
        "it is withdrawn"
    );
    assert_eq!(
        told(on_bundle(db(), &small, to("never"))),
        "400 PlanUnknown"
    );
    let gone = bundles::marked(db(), BundlePhase::Marked);
    let error = on_bundle(gone, &small, to("large")).unwrap_err();
    assert_eq!(
        (error.status().as_u16(), error.word()),
        (422, "PlanChangeNotSupported")
    );
    assert!(error.to_string().contains("hub-db"), "{error}");
}
