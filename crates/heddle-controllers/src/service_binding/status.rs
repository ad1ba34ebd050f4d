//! Status: are there credentials, where, and how far is the operation.

use std::time::Duration;

use heddle_api::conditions::{Condition, Conditions};
use heddle_api::service_binding::{
    CONDITIONS, SecretReference, ServiceBindingStatus, condition, reason,
};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::bundle;
use super::credentials::{endpoints, secret_names};
use super::observe::World;
use crate::operation::{
    FailureReport, Fulfilment, OperationSubject as _, blocking, removes, since,
};

const NO_API: &str = "the service has no API, so there are no credentials; remove the binding";

pub(super) fn status(world: &World, now: Timestamp) -> ServiceBindingStatus {
    if let Some(bundled) = &world.bundle {
        return bundle::status(world, bundled, now);
    }
    let binding = &world.binding;
    let before = binding.status.clone().unwrap_or_default();
    let mut status = ServiceBindingStatus {
        observed_generation: binding.metadata.generation,
        conditions: conditions(world, &before.conditions, now),
        ..before
    };
    let fulfilment = fulfilment(world, &status.conditions);
    status.operation = world.progress(
        status.operation.as_ref(),
        &fulfilment,
        FailureReport::default(),
        now,
    );
    tell_deadline(world, &mut status, now);
    let secret = world.secret.as_ref().filter(|secret| world.owns(secret));
    status.secret_ref = secret.map(|secret| SecretReference {
        name: secret.name_any(),
    });
    if let Some(service) = &world.service {
        let names = secret_names(service).into_iter();
        status.sources = names.map(str::to_owned).collect();
    }
    match (secret, &world.service) {
        (None, _) => status.endpoints.clear(),
        (Some(_), Some(service)) => status.endpoints = endpoints(service),
        (Some(_), None) => {}
    }
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
        let message = told(world, "the binding is being removed");
        conditions.set(
            Condition::unmet(condition::BOUND, reason::UNBINDING, message),
            now,
        );
    } else {
        conditions.set(instance_ready(world), now);
        conditions.set(bound(world), now);
    }
    CONDITIONS.conclude(&mut conditions, now);
    conditions
}

pub(super) fn instance_ready(world: &World) -> Condition {
    let namespace = world.binding.namespace().unwrap_or_default();
    let object = format!(
        "ServiceInstance {namespace}/{}",
        world.binding.spec.instance_ref.name
    );
    let unmet = |reason, message| Condition::unmet(condition::INSTANCE_READY, reason, message);
    match &world.instance {
        None => unmet(
            reason::INSTANCE_NOT_FOUND,
            format!("{object} does not exist; provision it, or remove the binding"),
        ),
        Some(instance) if instance.metadata.deletion_timestamp.is_some() => unmet(
            reason::INSTANCE_NOT_READY,
            format!("{object} is being removed; remove the binding as well"),
        ),
        Some(_) if world.is_instance_ready() => Condition::met(condition::INSTANCE_READY),
        Some(_) => unmet(
            reason::INSTANCE_NOT_READY,
            format!("{object} is not ready and says itself why; the binding waits for it"),
        ),
    }
}

fn bound(world: &World) -> Condition {
    let unmet =
        |reason, message: &str| Condition::unmet(condition::BOUND, reason, told(world, message));
    let namespace = world.binding.namespace().unwrap_or_default();
    let object = format!("Secret {namespace}/{}", world.binding.name_any());
    if is_unbindable(world) {
        return unmet(reason::NOT_BINDABLE, NO_API);
    }
    match &world.secret {
        Some(secret) if !world.owns(secret) => {
            let message =
                format!("{object} is not the binding's; delete it, or bind under another id");
            unmet(reason::SECRET_TAKEN, &message)
        }
        _ if !world.missing_sources().is_empty() => {
            unmet(reason::CREDENTIALS_MISSING, &missing(world, &namespace))
        }
        Some(secret) if secret.metadata.deletion_timestamp.is_none() => {
            Condition::met(condition::BOUND)
        }
        _ => {
            let message =
                format!("{object} is not there yet; it is made as soon as the instance is ready");
            unmet(reason::IN_PROGRESS, &message)
        }
    }
}

/// Which Secrets are missing, and where they are looked for.
fn missing(world: &World, namespace: &str) -> String {
    let names = world.missing_sources();
    let (first, more) = (names.first().copied().unwrap_or_default(), names.len() - 1);
    let more = match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!(
        "the Application hands on Secret {INTEGRATION_NAMESPACE}/{first}{more}, which does not exist; create it there, or as {namespace}/{first} for this namespace alone"
    )
}

fn is_unbindable(world: &World) -> bool {
    world
        .service
        .as_ref()
        .is_some_and(|service| !service.has_api())
}

pub(super) fn told(world: &World, message: &str) -> String {
    world.with_trouble(message.to_owned())
}

fn fulfilment(world: &World, conditions: &Conditions) -> Fulfilment {
    let asked = removes(world.binding.spec.operation.as_ref());
    if world.is_leaving() {
        return match asked {
            false => Fulfilment::Hopeless("the binding was deleted".to_owned()),
            true if world.released => Fulfilment::Done(Some("removed".to_owned())),
            true => Fulfilment::Waiting(told(world, "the binding is being removed")),
        };
    }
    if conditions.is_ready() {
        return Fulfilment::Done(None);
    }
    if is_unbindable(world) {
        return Fulfilment::Hopeless(NO_API.to_owned());
    }
    let why = blocking(&CONDITIONS, conditions);
    let instance = world.instance.as_ref();
    let is_leaving = instance.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    if is_leaving {
        return Fulfilment::Hopeless(why);
    }
    let missing = conditions.find(condition::INSTANCE_READY.name);
    match missing.filter(|_| instance.is_none()).and_then(since) {
        Some(since) => Fulfilment::Refused { since, why },
        None => Fulfilment::Waiting(why),
    }
}

/// After the deadline the condition says so. Whatever else is wrong with it is more helpful to know.
fn tell_deadline(world: &World, status: &mut ServiceBindingStatus, now: Timestamp) {
    let waits = |unmet: &&Condition| unmet.reason.as_deref() == Some(reason::IN_PROGRESS.name);
    let unmet = status.conditions.find(condition::BOUND.name).filter(waits);
    world.tell_deadline(
        status.operation.as_ref(),
        unmet.cloned(),
        (condition::BOUND, reason::DEADLINE_REACHED),
        (&CONDITIONS, &mut status.conditions),
        now,
    );
}
