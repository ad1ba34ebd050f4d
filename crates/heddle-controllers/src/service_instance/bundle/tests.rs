use heddle_api::action::{Outcome, RunEnd, RunState};
use heddle_api::operation::{OperationKind, OperationProgress};
use heddle_api::service_instance::ServiceInstanceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::operation::fixtures::{ACCEPTED, action_deps, at, metadata, request, revision};
use crate::service_instance::{plan, status as statuses};

/// An instance as the front writes it, pinned to a revision whose image is kept.
fn world() -> World {
    let reference = RevisionReference {
        name: "r1".to_owned(),
        digest: "sha256:1".to_owned(),
        bundle_version: Some("1.0.0".to_owned()),
    };
    let spec = ServiceInstanceSpec {
        instance_id: "I/1".to_owned(),
        service_id: "db".to_owned(),
        plan_id: "small".to_owned(),
        revision_ref: Some(reference.clone()),
        operation: Some(request(OperationKind::Provision, "op-1")),
        ..ServiceInstanceSpec::default()
    };
    let mut instance = ServiceInstance::new("i", spec);
    instance.metadata = metadata("i");
    let revision = revision(&json!([{"name": "small"}, {"name": "large"}]));
    let deps = action_deps(reference, revision);
    World {
        instance,
        now: at(ACCEPTED),
        pin: None,
        application: None,
        mapping: None,
        bundle: Some(BundledInstance {
            deps: Some(deps),
            offered: None,
            secret: None,
        }),
        flow: None,
        bindings: Vec::new(),
        record: None,
        released: false,
        trouble: None,
    }
}

fn deps(world: &mut World) -> &mut ActionDeps {
    world.bundle.as_mut().unwrap().deps.as_mut().unwrap()
}

/// Looks, and keeps the status as the server would.
fn look(world: &mut World, second: i64) -> OperationProgress {
    world.now = at(second);
    let status = statuses::status(world, at(second));
    let operation = status.operation.clone();
    world.instance.status = Some(status);
    operation.unwrap()
}

fn ends(world: &mut World, outcome: Outcome, credentials: Option<Value>) {
    let credentials = credentials.map(|value| value.as_object().cloned().unwrap());
    deps(world).run = Some(RunState::Ended(Box::new(RunEnd {
        outcome,
        dashboard_url: None,
        log_tail: String::new(),
    })));
    deps(world).credentials = Some(Ok(credentials));
}

fn leaves(world: &mut World) {
    world.instance.spec.operation = Some(request(OperationKind::Deprovision, "op-2"));
    world.instance.metadata.deletion_timestamp = Some(Time(at(ACCEPTED + 1)));
}

fn step_names(world: &World) -> Vec<&'static str> {
    plan::plan(world).iter().map(Step::step_name).collect()
}

#[test]
fn nothing_is_started_that_is_not_written_down() {
    let mut world = world();
    assert!(
        runner_command(&world).is_none(),
        "the server knows of no run yet"
    );
    look(&mut world, ACCEPTED);
    let announced = world.instance.status.clone().unwrap().run.unwrap();
    let Some(RunnerCommand::Start(run)) = runner_command(&world) else {
        panic!("{:?}", runner_command(&world));
    };
    assert_eq!(run.id, announced.id);
    assert_eq!(run.instance, "u1");
    // However often it is looked at, it is one run.
    look(&mut world, ACCEPTED + 5);
    assert_eq!(
        world.instance.status.clone().unwrap().run.unwrap(),
        announced
    );
}

#[test]
fn an_end_is_written_down_when_what_was_handed_out_is_kept_and_forgotten_after_that() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    let credentials = json!({"password": "hush"});
    ends(&mut world, Outcome::Succeeded, Some(credentials.clone()));
    let steps = plan::plan(&world);
    let [Step::Apply { object, .. }] = &steps[..] else {
        panic!("{steps:?}");
    };
    look(&mut world, ACCEPTED + 1);
    assert!(is_under_way(&world.instance), "the Secret is not there");
    assert!(runner_command(&world).is_none(), "and nothing is forgotten");
    let secret: Secret = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(content(&secret), credentials.as_object().cloned());
    world.bundle.as_mut().unwrap().secret = Some(secret);
    assert_eq!(
        look(&mut world, ACCEPTED + 2).state,
        OperationState::Succeeded
    );
    assert!(matches!(
        runner_command(&world),
        Some(RunnerCommand::Forget { instance: None, .. })
    ));
    assert_eq!(step_names(&world), Vec::<&str>::new());
    deps(&mut world).run = Some(RunState::Unheard);
    assert!(
        runner_command(&world).is_none(),
        "what is over is not started again"
    );
    assert!(!format!("{world:?}").contains("hush"));
}

#[test]
fn an_end_that_was_not_asked_for_its_credentials_waits_for_the_next_look() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    ends(&mut world, Outcome::Succeeded, None);
    // It ended between two looks of one reconcile.
    deps(&mut world).credentials = None;
    look(&mut world, ACCEPTED + 1);
    assert!(is_under_way(&world.instance));
    let soon = statuses::requeue_after(&world, at(ACCEPTED + 1)).unwrap();
    assert!(soon.as_secs() <= 1);
}

#[test]
fn what_was_announced_and_never_began_goes_without_a_trace() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    leaves(&mut world);
    assert_eq!(
        step_names(&world),
        Vec::<&str>::new(),
        "first it is withdrawn"
    );
    look(&mut world, ACCEPTED + 1);
    assert_eq!(world.instance.status.clone().unwrap().run, None);
    assert_eq!(step_names(&world), ["record", "release"]);
}

#[test]
fn an_instance_is_held_until_deprovision_is_over_and_forgotten() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    ends(&mut world, Outcome::Succeeded, None);
    look(&mut world, ACCEPTED + 1);
    deps(&mut world).run = Some(RunState::Unheard);
    leaves(&mut world);
    look(&mut world, ACCEPTED + 2);
    let run = world.instance.status.clone().unwrap().run.unwrap();
    assert_eq!(run.action, Action::Deprovision);
    assert!(matches!(
        runner_command(&world),
        Some(RunnerCommand::Start(_))
    ));
    assert_eq!(step_names(&world), Vec::<&str>::new());
    deps(&mut world).run = Some(RunState::Running { progress: None });
    assert_eq!(step_names(&world), Vec::<&str>::new());
    ends(&mut world, Outcome::Succeeded, None);
    assert_eq!(step_names(&world), Vec::<&str>::new(), "not written down");
    look(&mut world, ACCEPTED + 3);
    assert_eq!(step_names(&world), Vec::<&str>::new(), "not forgotten");
    let Some(RunnerCommand::Forget { instance, .. }) = runner_command(&world) else {
        panic!("{:?}", runner_command(&world));
    };
    assert_eq!(instance.as_deref(), Some("u1"));
    deps(&mut world).run = Some(RunState::Unheard);
    assert_eq!(step_names(&world), ["record", "release"]);
}

#[test]
fn deprovision_waits_for_the_bindings() {
    let mut world = world();
    world.instance.status = Some(ServiceInstanceStatus {
        applied: Some(Applied::default()),
        ..ServiceInstanceStatus::default()
    });
    leaves(&mut world);
    world.bindings = vec![heddle_api::ServiceBinding::new("b", Default::default())];
    look(&mut world, ACCEPTED + 1);
    assert_eq!(world.instance.status.clone().unwrap().run, None);
    world.bindings.clear();
    look(&mut world, ACCEPTED + 2);
    assert!(is_under_way(&world.instance));
}

#[test]
fn a_change_by_hand_is_an_update_of_its_own() {
    let mut world = world();
    look(&mut world, ACCEPTED);
    ends(&mut world, Outcome::Succeeded, None);
    look(&mut world, ACCEPTED + 1);
    deps(&mut world).run = Some(RunState::Unheard);
    assert_eq!(
        world.instance.status.as_ref().unwrap().phase,
        Some(heddle_api::service_instance::Phase::Running)
    );
    world.instance.spec.plan_id = "large".to_owned();
    world.instance.metadata.generation = Some(2);
    look(&mut world, ACCEPTED + 2);
    let run = world.instance.status.clone().unwrap().run.unwrap();
    assert_eq!(run.action, Action::Update);
    // Its operation was told to have succeeded; that is not taken back.
    let operation = world.instance.status.clone().unwrap().operation.unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
}
