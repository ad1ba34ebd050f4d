//! Status: what was observed of a Channel, as conditions an operator can act on.

use heddle_api::channel::{CONDITIONS, ChannelStatus, condition, reason};
use heddle_api::conditions::Condition;
use heddle_api::duck::Addressable;
use jiff::Timestamp;
use serde_json::Value;

use super::observe::World;
use crate::dataplane::EntryState;
use crate::resolve::sink_resolved;
use crate::routing;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let channel = &world.channel;
    if channel.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let entry = routing::entry("channel", channel);
    let url = world.door.as_ref().and_then(|door| door.url(&entry));
    let mut status = ChannelStatus {
        observed_generation: channel.metadata.generation,
        conditions: (channel.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        address: url.map(|url| Addressable {
            url: Some(url),
            ..Addressable::default()
        }),
        dead_letter_sink_uri: (world.dead_letter_sink.clone())
            .and_then(Result::ok)
            .map(|sink| sink.uri),
        ..ChannelStatus::default()
    };
    for condition in [
        backing_channel_ready(world.door.as_ref()),
        addressable(world.door.as_ref()),
        sink_resolved(world.dead_letter_sink.as_ref()),
    ] {
        status.conditions.set(condition, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn backing_channel_ready(door: Option<&EntryState>) -> Condition {
    let type_ = condition::BACKING_CHANNEL_READY;
    match door {
        None => Condition::unknown(
            type_,
            reason::NO_MESH,
            "no mesh runs here that could keep the channel's events",
        ),
        Some(EntryState { log: Err(why), .. }) => Condition::unmet(
            type_,
            reason::LOG_UNAVAILABLE,
            format!("the event log refuses appends: {why}"),
        ),
        Some(EntryState {
            in_force: false, ..
        }) => Condition::unknown(
            type_,
            reason::NOT_YET_ROUTED,
            "the routing table in force does not have the channel yet",
        ),
        Some(_) => Condition::met(type_),
    }
}

fn addressable(door: Option<&EntryState>) -> Condition {
    let type_ = condition::ADDRESSABLE;
    match door {
        None => Condition::unknown(
            type_,
            reason::NO_MESH,
            "no mesh runs here that could accept events",
        ),
        Some(EntryState { base_url: None, .. }) => Condition::unmet(
            type_,
            reason::ADDRESS_MISSING,
            "the listener for events is not open",
        ),
        Some(_) => Condition::met(type_),
    }
}
