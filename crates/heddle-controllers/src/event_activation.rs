//! EventActivation: whether the events that it shows do flow.
//!
//! It creates nothing, and nothing depends on it: `eventing` makes the projection and owns its spec, and this repeats of
//! the flows behind it, which own the object, whether one of them is ready.

#[cfg(test)]
mod tests;

use heddle_api::conditions::{Condition, Status};
use heddle_api::event_activation::{CONDITIONS, EventActivationStatus, condition, reason};
use heddle_api::well_known::field_manager;
use heddle_api::{EventActivation, EventFlow};
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Reconciler};
use crate::referenced::Readiness;
use crate::references::Target;
use crate::{ControllerStart, Parts, Watches};

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Activations, &mut watches.activations, targets)
        .requeue_referrers_on_change(&mut watches.flows);
    start.add(controller, parts);
}

fn targets(activation: &EventActivation) -> Vec<Target> {
    let namespace = activation.namespace().unwrap_or_default();
    let target = |flow: &str| Target::of::<EventFlow>(&namespace, flow);
    flows(activation).into_iter().map(target).collect()
}

/// The flows behind a projection, by name.
fn flows(activation: &EventActivation) -> Vec<&str> {
    let owners = activation.metadata.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.kind == EventFlow::kind(&()))
        .map(|owner| owner.name.as_str())
        .collect()
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    activation: EventActivation,
    /// The flows behind it and how they are, up to the first that is ready.
    flows: Vec<(String, Readiness)>,
}

#[derive(Debug)]
pub(crate) struct Activations;

impl Reconciler for Activations {
    type Kind = EventActivation;
    type World = World;
    const NAME: &'static str = field_manager::EVENT_ACTIVATION;
    const READS_OWN_STATUS: bool = false;

    async fn observe(&self, ctx: &Ctx, activation: EventActivation) -> Result<World, Error> {
        let namespace = activation.namespace().unwrap_or_default();
        let mut found = Vec::new();
        for name in flows(&activation) {
            let Some(flow) = ctx.find::<EventFlow>(&namespace, name).await? else {
                continue;
            };
            let readiness = readiness(&flow);
            let is_ready = readiness.is_true();
            found.push((name.to_owned(), readiness));
            if is_ready {
                break;
            }
        }
        Ok(World {
            flows: found,
            activation,
        })
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        let activation = &world.activation;
        if activation.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let mut status = EventActivationStatus {
            observed_generation: activation.metadata.generation,
            conditions: (activation.status.as_ref())
                .map(|status| status.conditions.clone())
                .unwrap_or_default(),
        };
        status.conditions.set(flow_ready(world), now);
        CONDITIONS.conclude(&mut status.conditions, now);
        serde_json::to_value(status).ok()
    }
}

fn readiness(flow: &EventFlow) -> Readiness {
    let status = flow.status.clone().unwrap_or_default();
    let (seen, now) = (status.observed_generation, flow.metadata.generation);
    Readiness::new(&status.conditions, seen, now)
}

fn flow_ready(world: &World) -> Condition {
    let type_ = condition::FLOW_READY;
    let Some((name, readiness)) = world.flows.last() else {
        let message = "no EventFlow of the service is there any more; the projection goes as well";
        return Condition::unmet(type_, reason::FLOW_NOT_READY, message);
    };
    let message = format!("EventFlow {name} is not ready: {}", readiness.why);
    match readiness.status {
        Status::True => Condition::met(type_),
        Status::False => Condition::unmet(type_, reason::FLOW_NOT_READY, message),
        Status::Unknown => Condition::unknown(type_, reason::FLOW_NOT_READY, message),
    }
}
