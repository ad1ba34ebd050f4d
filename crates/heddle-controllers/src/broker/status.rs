//! Status: what was observed of a Broker, as conditions an operator can act on.

use heddle_api::broker::{BrokerStatus, CONDITIONS, condition, reason};
use heddle_api::conditions::{Condition, ConditionType};
use heddle_api::duck::Addressable;
use jiff::Timestamp;
use serde_json::Value;

use super::observe::World;
use super::retention;
use crate::dataplane::EntryState;
use crate::resolve::sink_resolved;
use crate::routing;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let broker = &world.broker;
    if broker.metadata.deletion_timestamp.is_some() || world.is_removed {
        return None;
    }
    let entry = routing::entry("broker", broker);
    let door = world.door.as_ref().filter(|_| world.foreign.is_none());
    let url = door.and_then(|door| door.url(&entry));
    let mut status = BrokerStatus {
        observed_generation: broker.metadata.generation,
        observed_settings: Some(broker.spec.settings()),
        conditions: (broker.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        address: url.map(|url| Addressable {
            url: Some(url),
            ..Addressable::default()
        }),
        ..BrokerStatus::default()
    };
    if let Some(Ok(sink)) = world.dead_letter_sink.clone() {
        status.dead_letter_sink_uri = Some(sink.uri);
        status.dead_letter_sink_ca_certs = sink.ca_certs;
        status.dead_letter_sink_audience = sink.audience;
    }
    let promises = match (&world.foreign, &world.door) {
        (Some(why), _) => not_served(why),
        (None, None) => without_mesh(),
        (None, Some(door)) => promises(door),
    };
    for condition in promises {
        status.conditions.set(condition, now);
    }
    status
        .conditions
        .set(sink_resolved(world.dead_letter_sink.as_ref()), now);
    match retention::retained(world) {
        Some(retained) => status.conditions.set(retained, now),
        None => status.conditions.remove(condition::RETAINED.name),
    };
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

/// What only a mesh can promise.
const PROMISES: [ConditionType; 4] = [
    condition::INGRESS_READY,
    condition::TRIGGER_CHANNEL_READY,
    condition::FILTER_READY,
    condition::ADDRESSABLE,
];

fn not_served(why: &str) -> [Condition; 4] {
    PROMISES.map(|type_| Condition::unmet(type_, reason::CLASS_NOT_SERVED, why))
}

fn without_mesh() -> [Condition; 4] {
    let unknown = |type_: ConditionType| {
        Condition::unknown(
            type_,
            reason::NO_MESH,
            "no mesh runs here that could serve the broker",
        )
    };
    PROMISES.map(unknown)
}

fn promises(door: &EntryState) -> [Condition; 4] {
    let (ingress, addressable) = if door.base_url.is_some() {
        (
            Condition::met(condition::INGRESS_READY),
            Condition::met(condition::ADDRESSABLE),
        )
    } else {
        let message = "the listener for events is not open";
        (
            Condition::unmet(condition::INGRESS_READY, reason::LISTENER_CLOSED, message),
            Condition::unmet(condition::ADDRESSABLE, reason::ADDRESS_MISSING, message),
        )
    };
    let channel = match &door.log {
        Ok(()) => Condition::met(condition::TRIGGER_CHANNEL_READY),
        Err(why) => Condition::unmet(
            condition::TRIGGER_CHANNEL_READY,
            reason::LOG_UNAVAILABLE,
            format!("the event log refuses appends: {why}"),
        ),
    };
    let filter = if door.in_force {
        Condition::met(condition::FILTER_READY)
    } else {
        Condition::unknown(
            condition::FILTER_READY,
            reason::ROUTES_STALE,
            "the routing table in force does not have the broker yet",
        )
    };
    [ingress, channel, filter, addressable]
}
