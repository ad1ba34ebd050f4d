//! Status: does the instance do what it is for, how far is its operation, and how is that in one word.

use std::time::Duration;

use heddle_api::conditions::{Condition, Conditions, Status};
use heddle_api::event_flow;
use heddle_api::operation::OperationState;
use heddle_api::service_instance::{
    Applied, CONDITIONS, Phase, ServiceInstanceStatus, condition, reason,
};
use heddle_api::{EventFlow, ServiceInstance};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::bundle;
use super::observe::World;
use super::plan::fates;
use crate::operation::{
    FailureReport, Fulfilment, OperationSubject as _, blocking, removes, since, whole_seconds,
};
use crate::referenced::Readiness;

pub(super) fn status(world: &World, now: Timestamp) -> ServiceInstanceStatus {
    if let Some(bundled) = &world.bundle {
        return bundle::status(world, bundled, now);
    }
    let instance = &world.instance;
    let before = instance.status.clone().unwrap_or_default();
    let mut status = ServiceInstanceStatus {
        observed_generation: instance.metadata.generation,
        conditions: conditions(world, &before.conditions, now),
        ..before
    };
    let fulfilment = fulfilment(world, &status.conditions);
    status.operation = world.progress(status.operation.as_ref(), &fulfilment, damage(world), now);
    tell_deadline(world, &mut status, now);
    if status.conditions.is_ready() {
        status.applied = Some(applied(instance, status.applied.take(), now));
    }
    status.phase = Some(phase(world, &status));
    status
}

/// When time alone would change what is said about the operation.
pub(super) fn requeue_after(world: &World, now: Timestamp) -> Option<Duration> {
    if let Some(bundled) = &world.bundle {
        return bundle::requeue_after(world, bundled, now);
    }
    let status = status(world, now);
    let fulfilment = fulfilment(world, &status.conditions);
    world.verdict_after(status.operation.as_ref(), &fulfilment, now)
}

fn conditions(world: &World, before: &Conditions, now: Timestamp) -> Conditions {
    let mut conditions = before.clone();
    if world.is_leaving() {
        let message = removal(world);
        let leaving = Condition::unmet(condition::PROVISIONED, reason::DEPROVISIONING, message);
        conditions.set(leaving, now);
    } else {
        conditions.set(offering_resolved(world), now);
        conditions.set(allowed(world), now);
        conditions.set(provisioned(world), now);
    }
    CONDITIONS.conclude(&mut conditions, now);
    conditions
}

fn offering_resolved(world: &World) -> Condition {
    if world.service().is_some() {
        return Condition::met(condition::OFFERING_RESOLVED);
    }
    let spec = &world.instance.spec;
    if let Some(revision) = &spec.revision_ref {
        let message = format!("BundleRevision {} has not been read yet", revision.name);
        return Condition::unknown(
            condition::OFFERING_RESOLVED,
            reason::AWAITING_CATALOG,
            message,
        );
    }
    let message = match (&world.pin, &world.application) {
        (None, _) => format!(
            "no Application offers service {} with plan {}; create one that does, or remove the instance",
            spec.service_id, spec.plan_id
        ),
        (Some(pin), None) => format!(
            "Application {} does not exist; create it, or remove the instance",
            pin.name
        ),
        (Some(pin), Some(_)) => format!(
            "Application {} has no service {}; add it, or remove the instance",
            pin.name, pin.service_id
        ),
    };
    let reason = match was_provisioned(&world.instance) {
        true => reason::SERVICE_WITHDRAWN,
        false => reason::SERVICE_UNKNOWN,
    };
    Condition::unmet(condition::OFFERING_RESOLVED, reason, message)
}

fn allowed(world: &World) -> Condition {
    let Some(pin) = &world.pin else {
        let message = "whether it may be used is not known before the service is";
        return Condition::unknown(condition::ALLOWED, reason::SERVICE_UNKNOWN, message);
    };
    let namespace = world.instance.namespace().unwrap_or_default();
    let (name, id) = (&pin.name, &pin.service_id);
    if world.is_allowed() {
        return Condition::met(condition::ALLOWED);
    }
    match world.mapping {
        None => {
            let message = format!(
                "ApplicationMapping {namespace}/{name} does not exist; create it to allow the service"
            );
            Condition::unmet(condition::ALLOWED, reason::MAPPING_MISSING, message)
        }
        Some(_) => {
            let message = format!(
                "ApplicationMapping {namespace}/{name} does not enable service {id}; add it there"
            );
            Condition::unmet(condition::ALLOWED, reason::SERVICE_NOT_ENABLED, message)
        }
    }
}

fn provisioned(world: &World) -> Condition {
    let condition = condition::PROVISIONED;
    let object = format!(
        "EventFlow {}/{}",
        world.instance.namespace().unwrap_or_default(),
        world.instance.name_any()
    );
    let unmet = |reason, message| Condition::unmet(condition, reason, told(world, message));
    match (world.service(), &world.flow) {
        (None, None) => {
            let message = "what there is to make is not known before the service is";
            unmet(reason::IN_PROGRESS, message.to_owned())
        }
        (Some(service), None) if !service.sends_events() => Condition::met(condition),
        (Some(service), Some(flow)) if !service.sends_events() && !world.owns(flow) => {
            Condition::met(condition)
        }
        (Some(service), Some(_)) if !service.sends_events() => {
            let message = format!("{object} is being removed, since the service sends no events");
            unmet(reason::IN_PROGRESS, message)
        }
        (_, None) if !world.is_allowed() => {
            let message = format!("{object} is made as soon as the namespace may use the service");
            unmet(reason::IN_PROGRESS, message)
        }
        (_, None) => {
            let message =
                format!("{object} is not there yet; creating it is tried until it succeeds");
            unmet(reason::IN_PROGRESS, message)
        }
        (_, Some(flow)) if world.is_taken(flow) => {
            let message = format!("{object} belongs to another object; delete it");
            unmet(reason::FLOW_TAKEN, message)
        }
        (_, Some(flow)) if flow.metadata.deletion_timestamp.is_some() => {
            let message = format!("{object} is being removed and will be made again");
            unmet(reason::IN_PROGRESS, message)
        }
        (_, Some(flow)) => flow_ready(world, flow, &object),
    }
}

fn flow_ready(world: &World, flow: &EventFlow, object: &str) -> Condition {
    let condition = condition::PROVISIONED;
    if !is_as_asked(world, flow) {
        let message = told(world, format!("{object} is not yet as the spec asks"));
        return Condition::unmet(condition, reason::IN_PROGRESS, message);
    }
    let ready = readiness(flow);
    let message = told(world, format!("{object} is not ready: {}", ready.why));
    match ready.status {
        Status::True => Condition::met(condition),
        Status::False => Condition::unmet(condition, reason::FLOW_NOT_READY, message),
        Status::Unknown => Condition::unknown(condition, reason::FLOW_NOT_READY, message),
    }
}

fn readiness(flow: &EventFlow) -> Readiness {
    let generation = flow.metadata.generation;
    match &flow.status {
        Some(status) => Readiness::new(&status.conditions, status.observed_generation, generation),
        None => Readiness::new(&Conditions::default(), None, generation),
    }
}

/// Whether the flow has what the spec says about it; it has not while a step to change it fails.
fn is_as_asked(world: &World, flow: &EventFlow) -> bool {
    let spec = &world.instance.spec;
    world.owns(flow)
        && flow.spec.plan_id.as_ref() == Some(&spec.plan_id)
        && flow.spec.on_deprovision == spec.on_deprovision
}

pub(super) fn told(world: &World, message: String) -> String {
    world.with_trouble(message)
}

/// What a removal waits for.
pub(super) fn removal(world: &World) -> String {
    let namespace = world.instance.namespace().unwrap_or_default();
    let own = world.flow.as_ref().filter(|flow| world.owns(flow));
    let message = if let Some(first) = world.bindings.first() {
        let name = first.name_any();
        let going = heddle_api::counted_that(world.bindings.len(), "binding", "goes", "go");
        format!(
            "the instance is being removed; {going} first, such as ServiceBinding {namespace}/{name}"
        )
    } else if let Some(flow) = own {
        let pending = flow.status.as_ref().and_then(|status| status.pending);
        let pending = pending.map_or_else(String::new, |count| {
            format!(
                ", {}",
                heddle_api::counted_that(count, "event", "is pending", "are pending")
            )
        });
        format!(
            "the instance is being removed; EventFlow {namespace}/{} goes first{pending}",
            flow.name_any()
        )
    } else {
        "the instance is being removed".to_owned()
    };
    told(world, message)
}

fn was_provisioned(instance: &ServiceInstance) -> bool {
    instance
        .status
        .as_ref()
        .is_some_and(|status| status.applied.is_some())
}

fn fulfilment(world: &World, conditions: &Conditions) -> Fulfilment {
    let request = world.instance.spec.operation.as_ref();
    if world.is_leaving() {
        return match removes(request) {
            // Deleted by hand while something else was under way.
            false => Fulfilment::Hopeless("the instance was deleted".to_owned()),
            true if world.released => Fulfilment::Done(Some(fates(ended(world)))),
            true => Fulfilment::Waiting(removal(world)),
        };
    }
    if conditions.is_ready() {
        return Fulfilment::Done(None);
    }
    let why = blocking(&CONDITIONS, conditions);
    let refusals = [condition::OFFERING_RESOLVED, condition::ALLOWED];
    let refusals = refusals
        .iter()
        .filter_map(|refusal| conditions.find(refusal.name));
    let refusals = refusals.filter(|refusal| refusal.status == Status::False);
    match refusals.filter_map(since).min() {
        Some(since) => Fulfilment::Refused { since, why },
        None => Fulfilment::Waiting(why),
    }
}

/// What became of pending events: from the flow while it is there, from the record afterwards.
fn ended(world: &World) -> Option<event_flow::Ended> {
    world.flow.as_ref()?.status.as_ref()?.ended
}

/// What is left if the operation fails now.
fn damage(world: &World) -> FailureReport {
    let works = match (world.service(), &world.flow) {
        (Some(service), _) if !service.sends_events() => true,
        (_, Some(flow)) => world.owns(flow) && readiness(flow).is_true(),
        _ => false,
    };
    let in_force = was_provisioned(&world.instance) && world.is_allowed() && works;
    FailureReport {
        usable: in_force && !world.is_leaving(),
        // A service that is gone stays gone, however often it is asked for.
        repeatable: world.service().is_some(),
    }
}

fn tell_deadline(world: &World, status: &mut ServiceInstanceStatus, now: Timestamp) {
    let unmet = status.conditions.find(condition::PROVISIONED.name).cloned();
    let reached = (condition::PROVISIONED, reason::DEADLINE_REACHED);
    let conditions = (&CONDITIONS, &mut status.conditions);
    world.tell_deadline(status.operation.as_ref(), unmet, reached, conditions, now);
}

pub(super) fn applied(
    instance: &ServiceInstance,
    before: Option<Applied>,
    now: Timestamp,
) -> Applied {
    let spec = &instance.spec;
    let since = before.as_ref().and_then(|before| before.since.clone());
    let applied = Applied {
        plan_id: spec.plan_id.clone(),
        parameters: spec.parameters.clone(),
        maintenance_info: spec.maintenance_info.clone(),
        revision_ref: spec.revision_ref.clone(),
        since,
    };
    match before {
        Some(before) if before == applied => applied,
        _ => Applied {
            since: Some(whole_seconds(now)),
            ..applied
        },
    }
}

pub(super) fn phase(world: &World, status: &ServiceInstanceStatus) -> Phase {
    let failed = status
        .operation
        .as_ref()
        .is_some_and(|o| o.state == OperationState::Failed);
    let ended = status
        .operation
        .as_ref()
        .is_none_or(|o| o.state != OperationState::InProgress);
    let flow = world.flow.as_ref().and_then(|flow| flow.status.as_ref());
    let heartbeat = flow.and_then(|flow| {
        flow.conditions
            .find(event_flow::condition::HEARTBEAT_OK.name)
    });
    let silent = heartbeat.is_some_and(|heartbeat| heartbeat.status == Status::False);
    if world.is_leaving() {
        let asked = removes(world.instance.spec.operation.as_ref());
        return if failed && asked {
            Phase::Failed
        } else {
            Phase::Deprovisioning
        };
    }
    match status.conditions.is_ready() {
        true if silent => Phase::Degraded,
        true => Phase::Running,
        false if failed => Phase::Failed,
        false if ended && status.applied.is_some() => Phase::Degraded,
        false => Phase::Provisioning,
    }
}
