//! The table of `PUT` of a binding, the order of its checks, and rotation.

use super::*;
use crate::catalog::testing as bundles;
use crate::parameters::Validators;
use crate::verbs::testing::{
    Fixed, STANDINGS, binding, fresh, instance, instance_of, members, now, told, unusable_instance,
    with_catalog,
};
use heddle_api::bundle::BundlePhase;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn request(plan_id: &str) -> Bind {
    Bind {
        service_id: Some("svc".to_owned()),
        plan_id: Some(plan_id.to_owned()),
        ..Bind::default()
    }
}

fn decided(
    live: &LiveBinding,
    request: &Bind,
    asynchronous: bool,
) -> Result<Decision<ServiceBinding>, OsbError> {
    let input = BindInput {
        instance: "i",
        id: "b",
        scope: None,
        request,
        asynchronous,
        identity: None,
    };
    with_catalog(&Fixed::default(), |view| {
        decide(live, &input, view, &fresh())
    })
}

fn check(live: &LiveBinding, request: &Bind, asynchronous: bool, expected: &str) {
    assert_eq!(
        told(decided(live, request, asynchronous)),
        expected,
        "{asynchronous}, {request:?}, {live:?}"
    );
}

fn on(instance: ServiceInstance) -> LiveBinding {
    LiveBinding {
        instance: Some(instance),
        ..LiveBinding::default()
    }
}

/// The states that a binding can be in.
const OF_BINDINGS: [Lifecycle; 5] = [
    Lifecycle::Making,
    Lifecycle::MakeFailed,
    Lifecycle::Ready,
    Lifecycle::Removing,
    Lifecycle::RemoveFailed,
];

#[test]
fn every_state_of_a_binding_meets_an_equal_and_a_different_request() {
    for lifecycle in OF_BINDINGS {
        let live = LiveBinding {
            binding: Some(binding("prompt", lifecycle)),
            ..on(instance("prompt", Lifecycle::Ready))
        };
        let (equal, other) = match lifecycle {
            Lifecycle::Making => ("pending", "409 Conflict"),
            Lifecycle::MakeFailed => ("replace bind-new", "409 Conflict"),
            Lifecycle::Ready => ("done", "409 Conflict"),
            _ => ("422 ConcurrencyError", "422 ConcurrencyError"),
        };
        check(&live, &request("prompt"), true, equal);
        check(&live, &request("prompt"), false, equal);
        // Another plan is a conflict before it is a plan that the instance does not have, or that nobody has.
        check(&live, &request("patient"), true, other);
        check(&live, &request("nothing"), true, other);
    }
}

#[test]
fn every_state_of_an_instance_meets_a_new_binding() {
    check(
        &LiveBinding::default(),
        &request("prompt"),
        true,
        "404 NotFound",
    );
    for lifecycle in STANDINGS {
        let expected = match lifecycle {
            Lifecycle::Ready | Lifecycle::ChangeFailed => "create bind-new",
            _ => "422 ConcurrencyError",
        };
        check(
            &on(instance("prompt", lifecycle)),
            &request("prompt"),
            false,
            expected,
        );
    }
    let broken = unusable_instance("prompt", Lifecycle::ChangeFailed);
    check(
        &on(broken),
        &request("prompt"),
        true,
        "422 ConcurrencyError",
    );
}

#[test]
fn the_checks_come_in_one_order() {
    let absent = LiveBinding::default();
    check(&absent, &request("nothing"), false, "400 PlanUnknown");
    check(&absent, &request("patient"), false, "404 NotFound");
    let live = on(instance("prompt", Lifecycle::Making));
    check(&live, &request("patient"), false, "400 BadRequest");
    let mut fixed = request("fixed-one");
    fixed.service_id = Some("fixed".to_owned());
    check(
        &on(instance_of("fixed", "fixed-one", Lifecycle::Making)),
        &fixed,
        false,
        "400 BadRequest",
    );
    let busy = on(instance("app", Lifecycle::Making));
    check(&busy, &request("app"), false, "422 RequiresApp");
    let mut app = request("app");
    app.bind_resource = members(json!({"app_guid": "a"}));
    check(&busy, &app, false, "422 ConcurrencyError");
    let mut wrong = request("patient");
    wrong.parameters = members(json!({"role": "root"}));
    check(
        &on(instance("patient", Lifecycle::Making)),
        &wrong,
        false,
        "400 BadRequest",
    );
    wrong.parameters = members(json!({"role": "reader"}));
    check(
        &on(instance("patient", Lifecycle::Making)),
        &wrong,
        false,
        "422 ConcurrencyError",
    );
    check(
        &on(instance("patient", Lifecycle::Ready)),
        &wrong,
        false,
        "422 AsyncRequired",
    );
    check(
        &on(instance("patient", Lifecycle::Ready)),
        &wrong,
        true,
        "create bind-new",
    );
}

#[test]
fn an_instance_whose_plan_is_withdrawn_or_forgotten_can_be_bound() {
    for (service, plan) in [("old", "old-one"), ("svc", "forgotten")] {
        let mut request = request(plan);
        request.service_id = Some(service.to_owned());
        check(
            &on(instance_of(service, plan, Lifecycle::Ready)),
            &request,
            false,
            "create bind-new",
        );
    }
}

#[test]
fn equal_means_equal_in_what_identifies_a_binding() {
    let mut existing = binding("prompt", Lifecycle::Ready);
    existing.spec.bind_resource = members(json!({"app_guid": "a", "app_annotations": {"x": "1"}}));
    existing.spec.parameters = members(json!({"n": 1}));
    let live = LiveBinding {
        binding: Some(existing),
        ..LiveBinding::default()
    };
    let change = |change: &dyn Fn(&mut Bind)| {
        let mut request = request("prompt");
        request.bind_resource = members(json!({"app_guid": "a"}));
        request.parameters = members(json!({"n": 1.0}));
        change(&mut request);
        told(decided(&live, &request, true))
    };
    assert_eq!(change(&|_| {}), "done");
    assert_eq!(
        change(&|request| request.context = members(json!({"platform": "x"}))),
        "done"
    );
    assert_eq!(
        change(&|request| request.bind_resource = members(json!({"app_guid": "b"}))),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.parameters = Map::new()),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.predecessor = Some("a".to_owned())),
        "409 Conflict"
    );
    assert_eq!(
        change(&|request| request.service_id = Some("other".to_owned())),
        "409 Conflict"
    );
}

fn rotation() -> (LiveBinding, Bind) {
    let mut predecessor = binding("patient", Lifecycle::Ready);
    predecessor.spec.binding_id = "a".to_owned();
    predecessor.spec.parameters = members(json!({"role": "reader"}));
    predecessor.spec.bind_resource = members(json!({"app_guid": "app"}));
    let live = LiveBinding {
        predecessor: Some(predecessor),
        ..on(instance("patient", Lifecycle::Ready))
    };
    let request = Bind {
        predecessor: Some("a".to_owned()),
        ..Bind::default()
    };
    (live, request)
}

#[test]
fn a_rotation_takes_over_what_its_predecessor_was_asked_with() {
    let (live, mut request) = rotation();
    for ids in [false, true] {
        if ids {
            (request.service_id, request.plan_id) =
                (Some("svc".to_owned()), Some("patient".to_owned()));
        }
        let Ok(Decision::Create(made)) = decided(&live, &request, true) else {
            unreachable!("it is created");
        };
        assert_eq!(
            (made.spec.service_id.as_str(), made.spec.plan_id.as_str()),
            ("svc", "patient")
        );
        assert_eq!(made.spec.predecessor_binding_id.as_deref(), Some("a"));
        assert_eq!(made.spec.parameters["role"], json!("reader"));
        assert_eq!(made.spec.bind_resource["app_guid"], json!("app"));
        let again = LiveBinding {
            binding: Some(*made),
            ..LiveBinding::default()
        };
        check(&again, &request, true, "pending");
    }
}

#[test]
fn only_a_binding_in_force_of_the_same_instance_and_of_a_plan_that_allows_it_is_rotated() {
    let (mut live, request) = rotation();
    live.predecessor = None;
    check(&live, &request, true, "400 BadRequest");
    let (mut live, request) = rotation();
    live.predecessor = Some(binding("patient", Lifecycle::Removing));
    check(&live, &request, true, "400 BadRequest");
    let (mut live, request) = rotation();
    live.predecessor
        .as_mut()
        .unwrap()
        .status
        .as_mut()
        .unwrap()
        .expires_at = Some(Time(now()));
    check(&live, &request, true, "400 BadRequest");
    let (mut live, request) = rotation();
    live.instance = Some(instance("prompt", Lifecycle::Ready));
    check(&live, &request, true, "400 BadRequest");
    let (mut live, request) = rotation();
    live.instance = None;
    check(&live, &request, true, "404 NotFound");
}

#[test]
fn a_binding_has_the_revision_in_force_and_its_schema() {
    let offers = bundles::offers(bundles::marked(
        bundles::bundle("db", 1, "db-2"),
        BundlePhase::Marked,
    ));
    let plan_id = bundles::plan_id("old");
    let mut instance = instance_of("id-of-db", &plan_id, Lifecycle::ChangeFailed);
    let reference = |name: &str| RevisionReference {
        name: name.to_owned(),
        digest: format!("sha256:{name}"),
        bundle_version: None,
    };
    // An upgrade failed: what is asked for is not what is there.
    instance.spec.revision_ref = Some(reference("db-2"));
    let status = instance.status.as_mut().unwrap();
    status.applied.as_mut().unwrap().revision_ref = Some(reference("db-1"));
    let live = on(instance);
    let decided = |role: &str| {
        let mut request = request(&plan_id);
        request.service_id = Some("id-of-db".to_owned());
        request.parameters = members(json!({"role": role}));
        let input = BindInput {
            instance: "i",
            id: "b",
            scope: None,
            request: &request,
            asynchronous: true,
            identity: None,
        };
        let validators = Validators::default();
        let view = CatalogView::new(&offers, None, &validators);
        decide(&live, &input, &view, &fresh())
    };
    let Ok(Decision::Create(made)) = decided("reader") else {
        unreachable!("a withdrawn bundle can be bound");
    };
    assert_eq!(made.spec.revision_ref, Some(reference("db-1")));
    assert_eq!(told(decided("nobody")), "400 BadRequest");
}
