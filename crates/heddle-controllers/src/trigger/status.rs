//! Status: what was observed of a Trigger, as conditions an operator can act on.

use heddle_api::conditions::{Condition, Status};
use heddle_api::trigger::{CONDITIONS, TriggerStatus, condition, reason};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::dependency::DependencyState;
use super::observe::World;
use crate::dataplane::{RoutingState, RoutingWords};
use crate::referenced::Referenced as _;
use crate::resolve::{Resolution, Resolved, sink_resolved};

const WORDS: RoutingWords = RoutingWords {
    kind: "trigger",
    condition: condition::SUBSCRIPTION_READY,
    not_yet: reason::NOT_YET_ROUTED,
    rejected: reason::FILTER_INVALID,
};

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let trigger = &world.trigger;
    if trigger.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut status = TriggerStatus {
        observed_generation: trigger.metadata.generation,
        conditions: (trigger.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        ..TriggerStatus::default()
    };
    if let Ok(subscriber) = world.subscriber.clone() {
        status.subscriber_uri = Some(subscriber.uri);
        status.subscriber_ca_certs = subscriber.ca_certs;
        status.subscriber_audience = subscriber.audience;
    }
    let sink = dead_letter_sink(world);
    if let Some(Ok(sink)) = sink.clone() {
        status.dead_letter_sink_uri = Some(sink.uri);
        status.dead_letter_sink_ca_certs = sink.ca_certs;
        status.dead_letter_sink_audience = sink.audience;
    }
    for condition in [
        broker_ready(world),
        subscription_ready(world),
        dependency_ready(&world.dependency),
        subscriber_resolved(&world.subscriber),
        sink_resolved(sink.as_ref()),
    ] {
        status.conditions.set(condition, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn broker_name(world: &World) -> String {
    let namespace = world.trigger.namespace().unwrap_or_default();
    format!("Broker {namespace}/{}", world.trigger.spec.broker)
}

fn broker_ready(world: &World) -> Condition {
    let (type_, object) = (condition::BROKER_READY, broker_name(world));
    let Some(broker) = world
        .broker
        .as_ref()
        .map(|broker| broker.referenced_state())
    else {
        let message = format!("{object} does not exist; create it, or name another");
        return Condition::unmet(type_, reason::BROKER_NOT_FOUND, message);
    };
    if broker.leaving {
        let message = format!("{object} is being deleted");
        return Condition::unmet(type_, reason::BROKER_NOT_FOUND, message);
    }
    let message = format!("{object} is not ready: {}", broker.ready.why);
    match broker.ready.status {
        Status::True => Condition::met(type_),
        Status::False => Condition::unmet(type_, reason::BROKER_NOT_READY, message),
        Status::Unknown => Condition::unknown(type_, reason::BROKER_NOT_READY, message),
    }
}

fn subscription_ready(world: &World) -> Condition {
    // Without a Broker there is nothing to choose from, which is more helpful to know than that a table is old.
    let broker = world
        .broker
        .as_ref()
        .map(|broker| broker.referenced_state());
    if world.routed == RoutingState::Absent && broker.is_none_or(|broker| broker.leaving) {
        let message = format!("nothing is routed before {} exists", broker_name(world));
        return Condition::unmet(WORDS.condition, WORDS.not_yet, message);
    }
    world.routed.condition(&WORDS)
}

fn dependency_ready(dependency: &DependencyState) -> Condition {
    match dependency {
        DependencyState::Met => Condition::met(condition::DEPENDENCY_READY),
        DependencyState::Unmet(why) => Condition::unmet(
            condition::DEPENDENCY_READY,
            reason::DEPENDENCY_NOT_READY,
            why.as_str(),
        ),
    }
}

fn subscriber_resolved(subscriber: &Resolution) -> Condition {
    match subscriber {
        Ok(_) => Condition::met(condition::SUBSCRIBER_RESOLVED),
        Err(why) => Condition::unmet(
            condition::SUBSCRIBER_RESOLVED,
            reason::SUBSCRIBER_NOT_FOUND,
            format!("the subscriber does not resolve: {why}"),
        ),
    }
}

/// The sink in effect: the Trigger's own, or the Broker's where the Trigger leaves delivery to it.
fn dead_letter_sink(world: &World) -> Option<Resolution> {
    if !world.inherits_delivery() {
        return world.dead_letter_sink.clone();
    }
    let broker = world.broker.as_ref()?;
    broker.spec.delivery.as_ref()?.dead_letter_sink.as_ref()?;
    let status = broker.status.clone().unwrap_or_default();
    Some(match status.dead_letter_sink_uri {
        Some(uri) => Ok(Resolved {
            uri,
            ca_certs: status.dead_letter_sink_ca_certs,
            audience: status.dead_letter_sink_audience,
        }),
        None => Err(format!("that of {} has no address yet", broker_name(world))),
    })
}
