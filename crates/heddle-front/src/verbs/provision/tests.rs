//! The table of `PUT`, and the order of its checks.

use super::*;
use crate::catalog::LiveOffers;
use crate::catalog::testing as bundles;
use crate::parameters::Validators;
use crate::verbs::testing::{
    Fixed, STANDINGS, fresh, instance, instance_of, members, told, with_catalog,
};
use heddle_api::bundle::BundlePhase;
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

fn input(request: &Provision, asynchronous: bool) -> ProvisionInput<'_> {
    ProvisionInput {
        id: "i",
        scope: None,
        namespace: "team-a",
        request,
        asynchronous,
        identity: None,
        awaiting_max: 2,
    }
}

fn decided(
    live: Option<&ServiceInstance>,
    request: &Provision,
    asynchronous: bool,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let input = input(request, asynchronous);
    let live = LiveInstance {
        instance: live.cloned(),
        awaiting: 0,
    };
    with_catalog(&Fixed::default(), |view| {
        decide(&live, &input, view, &fresh())
    })
}

fn check(live: Option<&ServiceInstance>, request: &Provision, asynchronous: bool, expected: &str) {
    let lifecycle = live.map(Lifecycle::of);
    assert_eq!(
        told(decided(live, request, asynchronous)),
        expected,
        "{lifecycle:?}, {asynchronous}, {request:?}"
    );
}

#[test]
fn every_state_meets_an_equal_and_a_different_request() {
    let different = Provision {
        parameters: members(json!({"size": 2})),
        ..request("prompt")
    };
    for lifecycle in STANDINGS {
        let live = instance("prompt", lifecycle);
        let (equal, other) = match lifecycle {
            Lifecycle::Making => ("pending", "409 Conflict"),
            Lifecycle::MakeFailed => ("replace provision-new", "409 Conflict"),
            Lifecycle::Ready | Lifecycle::ChangeFailed => ("done", "409 Conflict"),
            Lifecycle::Changing => ("422 ConcurrencyError", "409 Conflict"),
            Lifecycle::Removing | Lifecycle::RemoveFailed => {
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
    for (lifecycle, expected) in [
        (Lifecycle::Making, "422 AsyncRequired"),
        (Lifecycle::MakeFailed, "422 AsyncRequired"),
        (Lifecycle::Ready, "done"),
    ] {
        check(
            Some(&instance("patient", lifecycle)),
            &request("patient"),
            false,
            expected,
        );
    }
}

#[test]
fn equal_means_equal_in_what_identifies_a_request() {
    type Change = fn(&mut Provision);
    let live = instance("prompt", Lifecycle::Ready);
    let changes: [(Change, &str); 8] = [
        (
            |request| request.parameters = members(json!({"size": 1.0})),
            "done",
        ),
        (
            |request| request.context = members(json!({"platform": "x", "instance_name": "n"})),
            "done",
        ),
        (
            |request| request.maintenance_version = Some("9".to_owned()),
            "done",
        ),
        (
            |request| request.service_id = "other".to_owned(),
            "409 Conflict",
        ),
        (
            |request| request.plan_id = "patient".to_owned(),
            "409 Conflict",
        ),
        (
            |request| request.organization_guid = "other".to_owned(),
            "409 Conflict",
        ),
        (
            |request| request.space_guid = "other".to_owned(),
            "409 Conflict",
        ),
        (|request| request.parameters = Map::new(), "409 Conflict"),
    ];
    for (change, expected) in changes {
        let mut request = request("prompt");
        change(&mut request);
        check(Some(&live), &request, true, expected);
    }
}

#[test]
fn after_a_failed_change_both_the_old_and_the_new_are_equal() {
    let mut live = instance("prompt", Lifecycle::ChangeFailed);
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
    check(None, &wrong, false, "400 ServiceUnknown");
    wrong.service_id = "svc".to_owned();
    check(None, &wrong, false, "400 PlanUnknown");
    wrong.plan_id = "fixed-one".to_owned();
    check(None, &wrong, false, "400 PlanUnknown");
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
    let mut live = instance("prompt", Lifecycle::Ready);
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
    let input = input(&request, true);
    let live = LiveInstance::default();
    let decision = with_catalog(&offers, |view| decide(&live, &input, view, &fresh()));
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
        heddle.dev/osb-front: /v2
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

/// What becomes of a request for a bundle's plan, with nothing there.
fn on_bundle(
    offers: &LiveOffers,
    request: &Provision,
    asynchronous: bool,
    awaiting: usize,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let input = input(request, asynchronous);
    let live = LiveInstance {
        instance: None,
        awaiting,
    };
    let validators = Validators::default();
    let view = CatalogView::new(offers, None, &validators);
    decide(&live, &input, &view, &fresh())
}

fn of_service(service_id: &str, plan_id: &str) -> Provision {
    Provision {
        service_id: service_id.to_owned(),
        parameters: members(json!({"size": 20})),
        ..request(plan_id)
    }
}

#[test]
fn an_instance_of_a_bundle_is_pinned_when_it_is_accepted() {
    let offers = bundles::offers(bundles::bundle("db", 1, "db-2"));
    let request = of_service("id-of-db", &bundles::plan_id("small"));
    let Ok(Decision::Create(made)) = on_bundle(&offers, &request, true, 0) else {
        unreachable!("it is created");
    };
    let revision = made.spec.revision_ref.as_ref().unwrap();
    assert_eq!(
        (revision.name.as_str(), revision.digest.as_str()),
        ("db-2", "sha256:db-2")
    );
    assert_eq!(revision.bundle_version.as_deref(), Some("2.0.0"));
    assert_eq!(
        made.spec.maintenance_info.as_ref().unwrap().version,
        "2.0.0"
    );
    assert_eq!(made.spec.application, None);
    assert_eq!(
        told(on_bundle(&offers, &request, false, 0)),
        "422 AsyncRequired"
    );
    let small = Provision {
        parameters: members(json!({"size": 2})),
        ..request.clone()
    };
    assert_eq!(told(on_bundle(&offers, &small, true, 0)), "400 BadRequest");
    let unheard = Provision {
        parameters: members(json!({"other": 2})),
        ..request.clone()
    };
    assert_eq!(
        told(on_bundle(&offers, &unheard, true, 0)),
        "400 BadRequest"
    );
    let stale = Provision {
        maintenance_version: Some("1.0.0".to_owned()),
        ..request
    };
    assert_eq!(
        told(on_bundle(&offers, &stale, true, 0)),
        "422 MaintenanceInfoConflict"
    );
}

#[test]
fn a_platform_with_an_old_catalog_is_told_what_happened_and_what_to_do() {
    let db = || bundles::bundle("db", 1, "db-2");
    let small = bundles::plan_id("small");
    let check = |offers: &LiveOffers, service: &str, plan: &str, word: &str, texts: &[&str]| {
        for asynchronous in [true, false] {
            let error = on_bundle(offers, &of_service(service, plan), asynchronous, 0).unwrap_err();
            assert_eq!((error.status().as_u16(), error.word()), (400, word));
            assert!(error.is_out_of_sync());
            let text = error.to_string();
            for part in texts {
                assert!(text.contains(part), "{part:?} in {text:?}");
            }
        }
    };
    let again = "fetch the catalog again";
    for phase in [BundlePhase::Marked, BundlePhase::Sweeping] {
        let offers = bundles::offers(bundles::marked(db(), phase));
        let parts = [
            "hub-db",
            "id-of-db",
            "registry hub",
            "2027-01-15T08:00:00Z",
            "its tag is gone",
            again,
        ];
        check(&offers, "id-of-db", &small, "ServiceWithdrawn", &parts);
        check(&offers, "id-of-db", "any", "ServiceWithdrawn", &parts);
    }
    let offers = bundles::offers(db());
    check(
        &offers,
        "id-of-gone",
        "any",
        "ServiceWithdrawn",
        &["hub-id-of-gone", "its repository is gone", again],
    );
    check(
        &offers,
        "id-of-db",
        &bundles::plan_id("old"),
        "PlanWithdrawn",
        &["plan old", "hub-db", "registry hub", again],
    );
    check(
        &offers,
        "id-of-db",
        "never",
        "PlanUnknown",
        &["hub-db", "never", again],
    );
    check(&offers, "never", "any", "ServiceUnknown", &["never", again]);
}

#[test]
fn what_a_registry_may_yet_have_is_waited_for_within_bounds() {
    let offers = bundles::offers(bundles::bundle("db", 1, "db-2"));
    let unread = bundles::registry("slow", false);
    offers.take_registries(vec![kube::runtime::watcher::Event::Apply(unread)]);
    let unknown = Provision {
        maintenance_version: Some("3.0.0".to_owned()),
        ..of_service("later", "any")
    };
    let Ok(Decision::Create(made)) = on_bundle(&offers, &unknown, true, 1) else {
        unreachable!("it is accepted");
    };
    assert_eq!(
        (&made.spec.application, &made.spec.revision_ref),
        (&None, &None)
    );
    assert_eq!(
        made.spec.maintenance_info.as_ref().unwrap().version,
        "3.0.0"
    );
    assert!(made.is_unresolved());
    assert_eq!(
        told(on_bundle(&offers, &unknown, false, 0)),
        "422 AsyncRequired"
    );
    let crowded = on_bundle(&offers, &unknown, true, 2)
        .unwrap_err()
        .into_answer(crate::version::Version::NEWEST);
    assert_eq!(crowded.status.as_u16(), 429);
    assert!(crowded.retry_seconds.is_some());
    // What is known is served as ever, and so is what is known to be gone.
    let known = of_service("id-of-db", &bundles::plan_id("small"));
    assert_eq!(
        told(on_bundle(&offers, &known, true, 9)),
        "create provision-new"
    );
    assert_eq!(
        told(on_bundle(&offers, &of_service("id-of-gone", "x"), true, 0)),
        "400 ServiceWithdrawn"
    );
    assert_eq!(
        told(on_bundle(&offers, &of_service("id-of-db", "x"), true, 0)),
        "400 PlanUnknown"
    );
}

#[test]
fn a_repeated_request_is_answered_from_the_instance_whatever_became_of_the_bundle() {
    let offers = bundles::offers(bundles::marked(
        bundles::bundle("db", 1, "db-2"),
        BundlePhase::Sweeping,
    ));
    for (service, plan) in [
        ("id-of-db", bundles::plan_id("small")),
        ("id-of-gone", "x".to_owned()),
        ("never", "x".to_owned()),
    ] {
        for (lifecycle, expected) in [(Lifecycle::Making, "pending"), (Lifecycle::Ready, "done")] {
            let request = Provision {
                parameters: members(json!({"size": 1})),
                ..of_service(service, &plan)
            };
            let input = input(&request, true);
            let live = LiveInstance {
                instance: Some(instance_of(service, &plan, lifecycle)),
                awaiting: 0,
            };
            let validators = Validators::default();
            let view = CatalogView::new(&offers, None, &validators);
            assert_eq!(
                told(decide(&live, &input, &view, &fresh())),
                expected,
                "{service}"
            );
        }
    }
}

#[test]
fn only_what_is_being_swept_or_gone_takes_an_instance_back() {
    let db = || bundles::bundle("db", 1, "db-2");
    assert!(is_leaving(None));
    assert!(is_leaving(Some(&bundles::marked(
        db(),
        BundlePhase::Sweeping
    ))));
    assert!(
        !is_leaving(Some(&bundles::marked(db(), BundlePhase::Marked))),
        "it was pinned before"
    );
    assert!(!is_leaving(Some(&db())));
}
