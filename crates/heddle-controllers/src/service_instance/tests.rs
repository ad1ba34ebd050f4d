use std::sync::Arc;

use heddle_api::application::{ApplicationSpec, Entry, Service};
use heddle_api::application_mapping::ApplicationMappingSpec;
use heddle_api::conditions::READY;
use heddle_api::event_flow::Ended;
use heddle_api::operation::{OperationKind, OperationProgress, OperationState};
use heddle_api::record::Record;
use heddle_api::service_instance::{ApplicationService, Phase, ServiceInstanceSpec};
use heddle_api::well_known::FINALIZER;
use heddle_api::{Application, ApplicationMapping, EventFlow, ServiceBinding, ServiceInstance};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::observe::World;
use super::{offer, plan, status};
use crate::operation::StepFailure;
use crate::operation::fixtures::{ACCEPTED, DEADLINE, at, metadata, request};
use crate::reconcile::Step;
use crate::watch::Change;

fn application(name: &str, services: &[(&str, &[&str])]) -> Application {
    let entry = |type_: &&str| Entry {
        type_: (*type_).to_owned(),
        target_url: Some("https://shop.example".to_owned()),
        ..Entry::default()
    };
    let service = |(id, entries): &(&str, &[&str])| Service {
        id: (*id).to_owned(),
        name: (*id).to_owned(),
        entries: entries.iter().map(entry).collect(),
        ..Service::default()
    };
    let spec = ApplicationSpec {
        services: services.iter().map(service).collect(),
        ..ApplicationSpec::default()
    };
    Application::new(name, spec)
}

/// An instance as the front writes it, of a service with the given entries, allowed in its namespace.
fn world(entries: &[&str]) -> World {
    let pin = ApplicationService {
        name: "shop".to_owned(),
        service_id: "orders".to_owned(),
    };
    let spec = ServiceInstanceSpec {
        instance_id: "I/1".to_owned(),
        service_id: "orders".to_owned(),
        plan_id: "orders-plan".to_owned(),
        application: Some(pin.clone()),
        operation: Some(request(OperationKind::Provision, "op-1")),
        ..ServiceInstanceSpec::default()
    };
    let mut instance = ServiceInstance::new("i", spec);
    instance.metadata = metadata("i");
    World {
        instance,
        now: at(ACCEPTED),
        pin: Some(pin),
        application: Some(application("shop", &[("orders", entries)])),
        bundle: None,
        mapping: Some(ApplicationMapping::new(
            "shop",
            ApplicationMappingSpec::default(),
        )),
        flow: None,
        bindings: Vec::new(),
        record: None,
        released: false,
        trouble: None,
    }
}

/// Carries the plan out the way a server would, and lets what is removed go unless a finalizer holds it.
fn settle(world: &mut World) {
    for step in plan::plan(world) {
        let step_name = step.step_name();
        match step {
            Step::Apply { object, .. } if step_name == super::RECORD => {
                let object: ConfigMap = serde_json::from_value(object).unwrap();
                world.record = Record::from_config_map(&object);
            }
            Step::Apply { mut object, .. } => {
                object["metadata"]["uid"] = json!("flow-uid");
                object["metadata"]["generation"] = json!(1);
                object["metadata"]["resourceVersion"] = json!("1");
                world.absorb(step_name, serde_json::from_value(object).ok());
            }
            Step::Delete { .. } if step_name == super::BINDING => drop(world.bindings.pop()),
            Step::Delete { .. } if step_name == super::DELETE => world.instance.leave(),
            Step::Delete { .. } => world.flow.as_mut().unwrap().leave(),
            other => {
                let Step::Swap { patch, .. } = other else {
                    unreachable!("no such step is planned: {other:?}");
                };
                let gone = json!([]) == patch["metadata"]["finalizers"];
                match step_name {
                    super::RELEASE => world.released = true,
                    super::FLOW_RELEASE => world.flow = world.flow.take().filter(|_| !gone),
                    _ => {
                        let mut live = serde_json::to_value(&world.instance).unwrap();
                        merge(&mut live, &patch);
                        world.instance = serde_json::from_value(live).unwrap();
                    }
                }
            }
        }
    }
}

fn merge(live: &mut Value, patch: &Value) {
    match (live, patch) {
        (Value::Object(live), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(live.entry(key).or_insert(Value::Null), value);
            }
        }
        (live, patch) => *live = patch.clone(),
    }
}

trait Leaves {
    fn leave(&mut self);
}

impl<K: kube::Resource> Leaves for K {
    fn leave(&mut self) {
        self.meta_mut().deletion_timestamp = Some(Time(at(ACCEPTED + 1)));
    }
}

fn step_names(world: &World) -> Vec<&'static str> {
    plan::plan(world).iter().map(Step::step_name).collect()
}

/// Says of the flow that its controller finds it so.
fn flow_is(world: &mut World, ready: &str) {
    let status = json!({"observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": ready, "reason": "ChannelMissing", "message": "Channel kyma-integration/shop does not exist",
    }]});
    world.flow.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
}

/// Looks, and keeps the status as the server would.
fn look(world: &mut World, second: i64) -> OperationProgress {
    let status = status::status(world, at(second));
    world.instance.status = Some(status.clone());
    assert_eq!(
        status::status(world, at(second)),
        status,
        "a second look says the same"
    );
    status.operation.unwrap()
}

fn ready(world: &World) -> String {
    let status = world.instance.status.as_ref().unwrap();
    let ready = status.conditions.find(READY).unwrap();
    let reason = ready.reason.as_ref().map(|reason| format!(":{reason}"));
    format!("{:?}{}", ready.status, reason.unwrap_or_default())
}

fn phase(world: &World) -> Phase {
    world.instance.status.as_ref().unwrap().phase.unwrap()
}

#[test]
fn a_service_with_events_gets_one_flow_and_the_operation_ends_when_it_is_ready() {
    let mut world = world(&["Events", "API"]);
    assert_eq!(step_names(&world), [super::FLOW]);
    settle(&mut world);
    assert!(step_names(&world).is_empty(), "{:?}", plan::plan(&world));
    let flow = world.flow.as_ref().unwrap();
    assert_eq!(
        (flow.name_any(), flow.namespace().unwrap()),
        ("i".to_owned(), "team-a".to_owned())
    );
    assert_eq!(
        (
            flow.spec.application.as_str(),
            flow.spec.service_id.as_str()
        ),
        ("shop", "orders")
    );
    assert_eq!(flow.spec.instance_id.as_deref(), Some("I/1"));
    assert_eq!(flow.owner_references()[0].uid, "u1");
    assert_eq!(look(&mut world, ACCEPTED).state, OperationState::InProgress);
    assert_eq!(
        (ready(&world).as_str(), phase(&world)),
        ("Unknown:FlowNotReady", Phase::Provisioning)
    );
    flow_is(&mut world, "False");
    let told = look(&mut world, ACCEPTED + 5);
    assert_eq!(told.state, OperationState::InProgress);
    let line = told.description.unwrap();
    for part in [
        "Provisioned",
        "since",
        "EventFlow team-a/i",
        "ChannelMissing",
        "Channel kyma-integration/shop",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    flow_is(&mut world, "True");
    assert_eq!(
        look(&mut world, ACCEPTED + 9).state,
        OperationState::Succeeded
    );
    assert_eq!(
        (ready(&world).as_str(), phase(&world)),
        ("True", Phase::Running)
    );
    let applied = world
        .instance
        .status
        .as_ref()
        .unwrap()
        .applied
        .clone()
        .unwrap();
    assert_eq!(
        (applied.plan_id.as_str(), applied.since),
        ("orders-plan", Some(Time(at(ACCEPTED + 9))))
    );
}

#[test]
fn a_service_with_an_api_only_needs_nothing_and_is_done_at_once() {
    let mut world = world(&["API"]);
    assert!(step_names(&world).is_empty());
    assert_eq!(look(&mut world, ACCEPTED).state, OperationState::Succeeded);
    assert_eq!(phase(&world), Phase::Running);
}

#[test]
fn a_service_that_stops_sending_events_loses_its_flow() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    world.application = Some(application("shop", &[("orders", &["API"])]));
    let steps = plan::plan(&world);
    assert!(
        matches!(&steps[..], [Step::Delete { uid, .. }] if uid == "flow-uid"),
        "{steps:?}"
    );
    // One that merely cannot be found keeps it: that may be an accident.
    world.application = None;
    assert!(step_names(&world).is_empty());
}

#[test]
fn the_three_ends_of_a_deadline() {
    // Ready before.
    let mut early = world(&["Events"]);
    settle(&mut early);
    flow_is(&mut early, "True");
    assert_eq!(
        look(&mut early, DEADLINE - 1).state,
        OperationState::Succeeded
    );
    // Not ready by then: failed, naming what blocks it, and the condition says that the work goes on.
    let mut late = world(&["Events"]);
    settle(&mut late);
    flow_is(&mut late, "False");
    assert_eq!(look(&mut late, ACCEPTED).state, OperationState::InProgress);
    assert_eq!(
        status::requeue_after(&late, at(ACCEPTED))
            .unwrap()
            .as_secs(),
        3_240
    );
    let failed = look(&mut late, DEADLINE);
    assert_eq!(failed.state, OperationState::Failed);
    assert!(
        failed
            .description
            .as_ref()
            .unwrap()
            .contains("ChannelMissing"),
        "{failed:?}"
    );
    assert_eq!(
        (ready(&late).as_str(), phase(&late)),
        ("False:DeadlineReached", Phase::Failed)
    );
    assert_eq!(status::requeue_after(&late, at(DEADLINE)), None);
    assert!(
        step_names(&late).is_empty(),
        "the flow stays and is worked on"
    );
    // Ready after: the instance is, the operation stays what the platform was told.
    let mut healed = late.clone();
    flow_is(&mut healed, "True");
    assert_eq!(
        look(&mut healed, DEADLINE + 60).state,
        OperationState::Failed
    );
    assert_eq!(
        (ready(&healed).as_str(), phase(&healed)),
        ("True", Phase::Running)
    );
    // Asked again with the same attributes: a new operation, done at once.
    healed.instance.spec.operation = Some(request(OperationKind::Provision, "op-2"));
    let again = look(&mut healed, DEADLINE + 70);
    assert_eq!(
        (again.id.as_str(), again.state),
        ("op-2", OperationState::Succeeded)
    );
    // Removed after: everything goes.
    late.instance.leave();
    assert_eq!(step_names(&late), [super::FLOW]);
}

#[test]
fn what_people_have_to_allow_is_waited_for_a_minute() {
    type Spoil = fn(&mut World);
    let table: [(Spoil, &str, bool); 4] = [
        (|world| world.mapping = None, "False:MappingMissing", true),
        (
            |world| world.mapping.as_mut().unwrap().spec.services = Some(Vec::new()),
            "False:ServiceNotEnabled",
            true,
        ),
        (
            |world| world.application = None,
            "False:ServiceUnknown",
            false,
        ),
        (
            |world| world.application = Some(application("shop", &[("other", &["Events"])])),
            "False:ServiceUnknown",
            false,
        ),
    ];
    for (spoil, expected, repeatable) in table {
        let mut world = world(&["Events"]);
        spoil(&mut world);
        assert!(
            step_names(&world).is_empty(),
            "nothing is begun: {expected}"
        );
        assert_eq!(
            look(&mut world, ACCEPTED + 3).state,
            OperationState::InProgress
        );
        assert_eq!(
            (ready(&world).as_str(), phase(&world)),
            (expected, Phase::Provisioning)
        );
        assert_eq!(
            status::requeue_after(&world, at(ACCEPTED + 3))
                .unwrap()
                .as_secs(),
            60
        );
        let mut allowed = world.clone();
        let failed = look(&mut world, ACCEPTED + 63);
        assert_eq!(failed.state, OperationState::Failed, "{expected}");
        assert!(failed.description.unwrap().contains("shop"));
        assert_eq!(
            (ready(&world).as_str(), phase(&world)),
            (expected, Phase::Failed)
        );
        // The same for an update of what once worked; only a missing service makes repeating useless.
        allowed.instance.spec.operation = Some(request(OperationKind::Update, "op-2"));
        let failed = look(&mut allowed, ACCEPTED + 63);
        assert_eq!(failed.state, OperationState::Failed);
        assert_eq!(
            (failed.instance_usable, failed.update_repeatable),
            (Some(false), Some(repeatable))
        );
        // Put right in the end, it is made in the end.
        let fixed = self::world(&["Events"]);
        (world.mapping, world.application) = (fixed.mapping, fixed.application);
        assert_eq!(step_names(&world), [super::FLOW]);
    }
}

#[test]
fn healing_after_success_dips_and_recovers_and_the_operation_stays_succeeded() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    flow_is(&mut world, "True");
    look(&mut world, ACCEPTED);
    let applied = world.instance.status.clone().unwrap().applied;
    flow_is(&mut world, "False");
    assert_eq!(
        look(&mut world, DEADLINE + 9).state,
        OperationState::Succeeded
    );
    assert_eq!(
        (ready(&world).as_str(), phase(&world)),
        ("False:FlowNotReady", Phase::Degraded)
    );
    world.flow = None;
    assert_eq!(
        step_names(&world),
        [super::FLOW],
        "somebody deleted it: made again"
    );
    settle(&mut world);
    flow_is(&mut world, "True");
    assert_eq!(
        look(&mut world, DEADLINE + 20).state,
        OperationState::Succeeded
    );
    assert_eq!(phase(&world), Phase::Running);
    assert_eq!(world.instance.status.clone().unwrap().applied, applied);
    world.application = None;
    look(&mut world, DEADLINE + 30);
    assert_eq!(ready(&world), "False:ServiceWithdrawn");
}

#[test]
fn what_is_in_force_changes_when_an_update_succeeds() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    flow_is(&mut world, "True");
    look(&mut world, ACCEPTED);
    world.instance.spec.plan_id = "big".to_owned();
    world.instance.spec.operation = Some(request(OperationKind::Update, "op-2"));
    let plan_in_force = |world: &World| {
        world
            .instance
            .status
            .clone()
            .unwrap()
            .applied
            .unwrap()
            .plan_id
    };
    // Not yet told to the flow, which goes on working with what it knew.
    assert_eq!(
        look(&mut world, ACCEPTED + 5).state,
        OperationState::InProgress
    );
    assert_eq!(
        (plan_in_force(&world).as_str(), phase(&world)),
        ("orders-plan", Phase::Provisioning)
    );
    let mut failing = world.clone();
    let failed = look(&mut failing, DEADLINE);
    assert_eq!(
        (failed.instance_usable, failed.update_repeatable),
        (Some(true), Some(true))
    );
    assert_eq!(plan_in_force(&failing), "orders-plan");
    settle(&mut world);
    flow_is(&mut world, "True");
    assert_eq!(
        look(&mut world, ACCEPTED + 9).state,
        OperationState::Succeeded
    );
    assert_eq!(plan_in_force(&world), "big");
}

#[test]
fn the_one_word_follows_from_operation_readiness_and_heartbeat() {
    use OperationKind::{Deprovision, Provision, Update};
    use OperationState::{Failed, InProgress, Succeeded};
    let kinds = [(Provision, false), (Update, true), (Deprovision, true)];
    for (kind, applied) in kinds {
        for state in [InProgress, Succeeded, Failed] {
            for (flow, heartbeat) in [
                ("True", "True"),
                ("True", "False"),
                ("False", "True"),
                ("False", "False"),
            ] {
                let mut world = world(&["Events"]);
                settle(&mut world);
                if applied {
                    flow_is(&mut world, "True");
                    look(&mut world, ACCEPTED);
                }
                flow_is(&mut world, flow);
                let conditions = json!([
                    {"type": "HeartbeatOK", "status": heartbeat},
                    {"type": "Ready", "status": flow},
                ]);
                let flow_status = world.flow.as_mut().unwrap().status.as_mut().unwrap();
                flow_status.conditions = serde_json::from_value(conditions).unwrap();
                world.instance.spec.operation = Some(request(kind, "op-2"));
                let mut before = world.instance.status.clone().unwrap_or_default();
                before.operation = Some(OperationProgress {
                    id: "op-2".to_owned(),
                    kind,
                    state,
                    description: None,
                    attempts: None,
                    finished_at: None,
                    instance_usable: None,
                    update_repeatable: None,
                });
                world.instance.status = Some(before);
                look(&mut world, ACCEPTED + 1);
                let expected = match (kind, state, flow, heartbeat) {
                    (Deprovision, Failed, ..) => Phase::Failed,
                    (Deprovision, ..) => Phase::Deprovisioning,
                    (_, _, "True", "True") => Phase::Running,
                    (_, _, "True", _) => Phase::Degraded,
                    (_, Failed, ..) => Phase::Failed,
                    (Update, Succeeded, ..) => Phase::Degraded,
                    _ => Phase::Provisioning,
                };
                assert_eq!(
                    phase(&world),
                    expected,
                    "{kind:?} {state:?} flow {flow} heartbeat {heartbeat}"
                );
            }
        }
    }
}

#[test]
fn a_hand_written_instance_is_held_then_pinned_then_made() {
    let mut world = world(&["Events"]);
    world.instance.metadata.finalizers = None;
    world.instance.spec.application = None;
    world.instance.spec.operation = None;
    for expected in [super::HOLD, super::PIN, super::FLOW] {
        assert_eq!(step_names(&world), [expected]);
        settle(&mut world);
    }
    assert!(step_names(&world).is_empty());
    assert_eq!(world.instance.spec.application, world.pin);
    flow_is(&mut world, "True");
    let status = status::status(&world, at(ACCEPTED));
    assert_eq!(
        (status.operation, status.phase),
        (None, Some(Phase::Running))
    );
    assert_eq!(status::requeue_after(&world, at(ACCEPTED)), None);
}

#[test]
fn an_offering_is_the_oldest_applications() {
    let made = |name: &str, services: &[(&str, &[&str])], second: i64| {
        let mut application = application(name, services);
        application.metadata.creation_timestamp = Some(Time(at(second)));
        application
    };
    let mut whole = made("crm", &[("contacts", &["API"])], 9);
    whole.spec.compass_metadata = Some(heddle_api::application::CompassMetadata {
        application_id: "crm-id".to_owned(),
        authentication: None,
    });
    let mut leaving = made("a", &[("orders", &["API"])], 1);
    leaving.leave();
    let orders: (&str, &[&str]) = ("orders", &["API"]);
    let all = [
        made("young", &[orders], 8),
        made("old", &[orders], 5),
        made("old-b", &[orders], 5),
        whole,
        leaving,
    ];
    let found = |service: &str, plan: &str| {
        let found = offer::resolve(&all, service, plan);
        found.map(|pin| format!("{}/{}", pin.name, pin.service_id))
    };
    assert_eq!(
        found("orders", "orders-plan").as_deref(),
        Some("old/orders")
    );
    assert_eq!(found("crm-id", "contacts").as_deref(), Some("crm/contacts"));
    assert_eq!(found("crm-id", "orders"), None);
    assert_eq!(found("unknown", "orders"), None);
}

#[test]
fn a_namesake_of_another_owner_is_never_touched() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    for owner in world.flow.as_mut().unwrap().owner_references_mut() {
        owner.uid = "another".to_owned();
    }
    assert!(step_names(&world).is_empty());
    look(&mut world, ACCEPTED);
    assert_eq!(ready(&world), "False:FlowTaken");
    world.instance.leave();
    assert_eq!(
        step_names(&world),
        [super::RECORD, super::RELEASE],
        "nor is it waited for"
    );
}

/// Everything a removal does, one reconcile after the other. The flow's own controller finds nothing left of it.
fn remove(world: &mut World) -> Vec<Vec<&'static str>> {
    let mut rounds = Vec::new();
    while !world.released {
        let step_names = step_names(world);
        let stuck = step_names.is_empty();
        rounds.push(step_names);
        if stuck {
            return rounds;
        }
        settle(world);
        let flow = world.flow.as_mut();
        if let Some(flow) = flow.filter(|flow| flow.metadata.deletion_timestamp.is_some()) {
            let_go(flow);
        }
    }
    rounds
}

fn let_go(flow: &mut EventFlow) {
    flow.finalizers_mut().retain(|name| name != FINALIZER);
}

fn leaving(world: &mut World) {
    world.instance.spec.operation = Some(request(OperationKind::Deprovision, "op-9"));
    world.bindings = vec![ServiceBinding::new("b", Default::default())];
    world.bindings[0].metadata.uid = Some("b-uid".to_owned());
}

#[test]
fn a_removal_takes_bindings_then_the_flow_and_leaves_a_record() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    leaving(&mut world);
    let last: &[&str] = &[super::RECORD, super::FLOW_RELEASE, super::RELEASE];
    assert_eq!(
        remove(&mut world),
        [&[super::DELETE], &[super::BINDING], &[super::FLOW], last]
    );
    let told = look(&mut world, ACCEPTED + 5);
    assert_eq!(
        (told.id.as_str(), told.state),
        ("op-9", OperationState::Succeeded)
    );
    let record = world.record.unwrap();
    assert_eq!(
        record.operation.as_ref().map(|o| (o.id.as_str(), o.state)),
        Some(("op-9", OperationState::Succeeded))
    );
    assert_eq!(record.namespace, "team-a");
}

#[test]
fn a_removal_needs_nothing_that_could_be_gone() {
    for bits in 0..8 {
        let mut world = world(&["Events"]);
        settle(&mut world);
        world.application = world.application.filter(|_| bits & 1 == 0);
        world.mapping = world.mapping.filter(|_| bits & 2 == 0);
        world.flow = world.flow.filter(|_| bits & 4 == 0);
        world.pin = None;
        leaving(&mut world);
        assert!(
            !remove(&mut world).iter().any(Vec::is_empty),
            "case {bits} is stuck"
        );
    }
    // Deleted by hand: no operation is made up.
    let mut world = world(&["Events"]);
    world.instance.leave();
    remove(&mut world);
    assert_eq!(world.record.as_ref().unwrap().operation, None);
    assert_eq!(
        look(&mut world, ACCEPTED).state,
        OperationState::Failed,
        "what was under way ended"
    );
}

#[test]
fn a_flow_that_still_drains_is_waited_for_and_its_counts_are_told() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    leaving(&mut world);
    world.bindings.clear();
    while !step_names(&world).is_empty() {
        settle(&mut world);
    }
    assert!(!world.released, "the flow's own controller is not done");
    let flow_status = json!({"observedGeneration": 1, "pending": 4});
    world.flow.as_mut().unwrap().status = serde_json::from_value(flow_status).unwrap();
    let waiting = look(&mut world, ACCEPTED + 2);
    assert_eq!(
        (waiting.state, phase(&world)),
        (OperationState::InProgress, Phase::Deprovisioning)
    );
    assert!(
        waiting
            .description
            .unwrap()
            .contains("4 events are pending")
    );
    let late = {
        let mut world = world.clone();
        (look(&mut world, DEADLINE), phase(&world))
    };
    assert_eq!(
        (late.0.state, late.0.instance_usable, late.1),
        (OperationState::Failed, Some(false), Phase::Failed)
    );
    let flow = world.flow.as_mut().unwrap();
    let_go(flow);
    flow.status.as_mut().unwrap().ended = Some(Ended {
        delivered: 3,
        dead_lettered: 1,
        discarded: 0,
    });
    // A crash after each write of the last reconcile: the record stays the one that has the counts.
    assert_eq!(
        step_names(&world),
        [super::RECORD, super::FLOW_RELEASE, super::RELEASE]
    );
    settle(&mut world);
    let record = world.record.clone().unwrap();
    let line = record.operation.unwrap().description.unwrap();
    assert!(
        line.contains("3 were delivered, 1 became dead letters, 0 were discarded"),
        "{line}"
    );
    assert_eq!(step_names(&world), [super::RELEASE]);
}

#[test]
fn a_flow_that_somebody_deletes_is_let_go_and_made_again() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    world.flow.as_mut().unwrap().leave();
    assert!(step_names(&world).is_empty());
    let_go(world.flow.as_mut().unwrap());
    assert_eq!(step_names(&world), [super::FLOW_RELEASE]);
    settle(&mut world);
    assert_eq!(step_names(&world), [super::FLOW]);
}

#[test]
fn a_failed_step_is_told_with_how_often_it_was_tried() {
    let mut world = world(&["Events"]);
    world.trouble = Some(StepFailure {
        step_name: super::FLOW,
        error: "the disk is full".to_owned(),
        attempts: 8,
    });
    let told = look(&mut world, ACCEPTED);
    assert_eq!(told.attempts, Some(8));
    let line = told.description.unwrap();
    assert!(
        line.contains("step flow was tried 8 times") && line.contains("the disk is full"),
        "{line}"
    );
}

#[test]
fn everything_that_concerns_an_instance_wakes_it() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    let key = super::of_flow(world.flow.as_ref().unwrap()).unwrap();
    assert_eq!(
        (key.name.as_str(), key.namespace.as_deref()),
        ("i", Some("team-a"))
    );
    let application = Arc::new(world.application.clone().unwrap());
    let emptied = Arc::new(self::application("shop", &[]));
    let offered = super::offers(&Change::between(Some(&application), &emptied));
    let concerned = |instance: &ServiceInstance| {
        super::targets(instance)
            .iter()
            .any(|target| offered.contains(target))
    };
    assert!(concerned(&world.instance));
    world.instance.spec.application = None;
    assert!(
        concerned(&world.instance),
        "one that is not pinned yet knows only ids"
    );
    world.instance.spec.service_id = "other".to_owned();
    assert!(!concerned(&world.instance));
}

#[test]
fn a_status_says_since_when_and_moves_no_times_without_a_reason() {
    let mut world = world(&["Events"]);
    settle(&mut world);
    flow_is(&mut world, "False");
    let first = look(&mut world, ACCEPTED);
    let later = at(ACCEPTED) + SignedDuration::from_secs(600);
    let second = status::status(&world, later).operation.unwrap();
    assert_eq!(
        first, second,
        "time alone changes nothing before the deadline"
    );
    let flow: &mut EventFlow = world.flow.as_mut().unwrap();
    flow.metadata.generation = Some(2);
    look(&mut world, ACCEPTED + 700);
    assert_eq!(
        ready(&world),
        "Unknown:FlowNotReady",
        "what it says is about an earlier generation"
    );
}
