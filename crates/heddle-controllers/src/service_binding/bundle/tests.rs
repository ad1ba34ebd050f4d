use heddle_api::action::{RunEnd, RunState};
use heddle_api::operation::{OperationKind, OperationState};
use heddle_api::service_binding::{InstanceReference, ServiceBindingSpec};
use heddle_api::service_instance::{Applied, ServiceInstanceSpec, ServiceInstanceStatus};
use heddle_api::well_known::FINALIZER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;
use crate::operation::fixtures::{ACCEPTED, action_deps, at, metadata, request, revision};
use crate::reconcile::Step;
use crate::service_binding::credentials::Sources;
use crate::service_binding::{plan, status as statuses};

/// A binding of an instance that is in force.
fn world() -> World {
    let mut instance = ServiceInstance::new("i", ServiceInstanceSpec::default());
    instance.metadata.uid = Some("u-i".to_owned());
    instance.status = Some(ServiceInstanceStatus {
        applied: Some(Applied {
            plan_id: "small".to_owned(),
            ..Applied::default()
        }),
        ..ServiceInstanceStatus::default()
    });
    let reference = RevisionReference {
        name: "r1".to_owned(),
        ..RevisionReference::default()
    };
    let spec = ServiceBindingSpec {
        binding_id: "B/1".to_owned(),
        instance_ref: InstanceReference {
            name: "i".to_owned(),
        },
        revision_ref: Some(reference.clone()),
        operation: Some(request(OperationKind::Bind, "op-1")),
        ..ServiceBindingSpec::default()
    };
    let mut binding = ServiceBinding::new("b", spec);
    binding.metadata = metadata("b");
    let revision = revision(&json!([{"name": "small"}]));
    World {
        binding,
        now: at(ACCEPTED),
        instance: Some(instance),
        service: None,
        bundle: Some(BundledBinding {
            deps: action_deps(reference, revision),
            provision: json!({"admin": "root"}).as_object().cloned(),
        }),
        sources: Sources::default(),
        secret: None,
        record: None,
        released: false,
        trouble: None,
    }
}

fn look(world: &mut World, second: i64) -> OperationState {
    world.now = at(second);
    let status = statuses::status(world, at(second));
    let state = status.operation.as_ref().unwrap().state;
    world.binding.status = Some(status);
    state
}

fn ends(world: &mut World, outcome: Outcome, credentials: Option<Value>) {
    let deps = &mut world.bundle.as_mut().unwrap().deps;
    deps.run = Some(RunState::Ended(Box::new(RunEnd {
        outcome,
        dashboard_url: None,
        log_tail: String::new(),
    })));
    deps.credentials = Some(Ok(credentials.and_then(|value| value.as_object().cloned())));
}

fn forgotten(world: &mut World) {
    world.bundle.as_mut().unwrap().deps.run = Some(RunState::Unheard);
}

/// Carries out the step that makes the Secret.
fn kept(world: &mut World) -> Map<String, Value> {
    let steps = plan::plan(world);
    let [Step::Apply { object, .. }] = &steps[..] else {
        panic!("{steps:?}");
    };
    let mut secret: Secret = serde_json::from_value(object.clone()).unwrap();
    secret.metadata.uid = Some("u-s".to_owned());
    secret.metadata.resource_version = Some("1".to_owned());
    assert_eq!(secret.finalizers(), [FINALIZER]);
    let credentials = content(&secret).unwrap();
    world.secret = Some(secret);
    credentials
}

#[test]
fn a_binding_waits_while_something_runs_for_its_instance() {
    let mut world = world();
    let run = json!({
        "id": "run-1", "action": "update", "attempt": 1, "startedAt": "2030-01-01T00:00:00Z",
    });
    let instance = world.instance.as_mut().unwrap();
    instance.status.as_mut().unwrap().run = serde_json::from_value(run).unwrap();
    look(&mut world, ACCEPTED);
    assert!(!is_under_way(&world.binding));
    let instance = world.instance.as_mut().unwrap();
    instance.status.as_mut().unwrap().run = None;
    look(&mut world, ACCEPTED + 1);
    assert!(is_under_way(&world.binding));
}

#[test]
fn what_bind_hands_out_is_kept_before_it_is_told_and_told_before_it_is_forgotten() {
    for (outcome, handed, expected) in [
        (
            Outcome::Succeeded,
            Some(json!({"user": "b"})),
            json!({"user": "b"}),
        ),
        (Outcome::Succeeded, None, json!({})),
        (Outcome::NothingToDo, None, json!({"admin": "root"})),
    ] {
        let mut world = world();
        look(&mut world, ACCEPTED);
        assert!(matches!(
            runner_command(&world),
            Some(RunnerCommand::Start(_))
        ));
        ends(&mut world, outcome, handed);
        assert_eq!(look(&mut world, ACCEPTED + 1), OperationState::InProgress);
        assert!(runner_command(&world).is_none());
        assert_eq!(Value::Object(kept(&mut world)), expected);
        assert_eq!(look(&mut world, ACCEPTED + 2), OperationState::Succeeded);
        assert!(matches!(
            runner_command(&world),
            Some(RunnerCommand::Forget { .. })
        ));
        forgotten(&mut world);
        assert!(runner_command(&world).is_none());
        assert_eq!(plan::plan(&world), []);
        assert!(!format!("{world:?}").contains("root"));
    }
}

#[test]
fn credentials_go_after_unbind_has_heard_them() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    ends(&mut world, Outcome::Succeeded, Some(json!({"user": "b"})));
    kept(&mut world);
    look(&mut world, ACCEPTED + 1);
    forgotten(&mut world);
    world.binding.spec.operation = Some(request(OperationKind::Unbind, "op-2"));
    world.binding.metadata.deletion_timestamp = Some(Time(at(ACCEPTED + 2)));
    look(&mut world, ACCEPTED + 2);
    let Some(RunnerCommand::Start(run)) = runner_command(&world) else {
        panic!("{:?}", runner_command(&world));
    };
    assert_eq!(run.variables["_apb_bind_creds"], json!({"user": "b"}));
    assert_eq!(run.instance, "u-i");
    assert_eq!(plan::plan(&world), []);
    ends(&mut world, Outcome::Succeeded, None);
    look(&mut world, ACCEPTED + 3);
    assert_eq!(plan::plan(&world), [], "not forgotten");
    forgotten(&mut world);
    let step_names: Vec<_> = plan::plan(&world).iter().map(Step::step_name).collect();
    assert_eq!(
        step_names,
        ["secret-release", "secret", "record", "release"]
    );
}

#[test]
fn a_binding_goes_with_an_instance_that_is_gone() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    ends(&mut world, Outcome::Succeeded, None);
    kept(&mut world);
    look(&mut world, ACCEPTED + 1);
    forgotten(&mut world);
    world.instance = None;
    world.binding.metadata.deletion_timestamp = Some(Time(at(ACCEPTED + 2)));
    look(&mut world, ACCEPTED + 2);
    assert!(runner_command(&world).is_none());
    assert!(is_through(&world, world.bundle.as_ref().unwrap()));
    assert!(removal_note(&world).contains("the instance does not exist"));
}
