//! Status: what was observed of a Subscription, as conditions an operator can act on.

use heddle_api::conditions::{Condition, Status};
use heddle_api::subscription::{
    CONDITIONS, PhysicalSubscription, SubscriptionStatus, condition, reason,
};
use jiff::Timestamp;
use serde_json::Value;

use super::observe::World;
use crate::dataplane::{RoutingState, RoutingWords};
use crate::referenced::Referenced as _;
use crate::resolve::{Resolution, Resolved};

const WORDS: RoutingWords = RoutingWords {
    kind: "subscription",
    condition: condition::ADDED_TO_CHANNEL,
    not_yet: reason::NOT_ADDED_TO_CHANNEL,
    rejected: reason::NOT_ADDED_TO_CHANNEL,
};

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let subscription = &world.subscription;
    if subscription.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let sink = dead_letter_sink(world);
    let mut status = SubscriptionStatus {
        observed_generation: subscription.metadata.generation,
        conditions: (subscription.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        physical_subscription: physical(world, sink.as_ref()),
    };
    for condition in [
        references_resolved(world, sink.as_ref()),
        added_to_channel(world),
        channel_ready(world),
    ] {
        status.conditions.set(condition, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

/// The addresses that are known; what does not resolve leaves none behind.
fn physical(world: &World, sink: Option<&Resolution>) -> Option<PhysicalSubscription> {
    let known = |resolution: Option<&Resolution>| {
        let resolved = resolution.and_then(|resolution| resolution.as_ref().ok());
        resolved.cloned().map_or((None, None), |resolved| {
            (Some(resolved.uri), resolved.ca_certs)
        })
    };
    let (subscriber_uri, subscriber_ca_certs) = known(world.subscriber.as_ref());
    let (reply_uri, reply_ca_certs) = known(world.reply.as_ref());
    let (dead_letter_sink_uri, dead_letter_sink_ca_certs) = known(sink);
    let physical = PhysicalSubscription {
        subscriber_uri,
        subscriber_ca_certs,
        reply_uri,
        reply_ca_certs,
        dead_letter_sink_uri,
        dead_letter_sink_ca_certs,
    };
    (physical != PhysicalSubscription::default()).then_some(physical)
}

fn references_resolved(world: &World, sink: Option<&Resolution>) -> Condition {
    let type_ = condition::REFERENCES_RESOLVED;
    if let Err(why) = &world.channel {
        return Condition::unmet(type_, reason::CHANNEL_NOT_FOUND, why.as_str());
    }
    let parts = [
        (
            "subscriber",
            world.subscriber.as_ref(),
            reason::SUBSCRIBER_NOT_FOUND,
        ),
        ("reply", world.reply.as_ref(), reason::REPLY_NOT_FOUND),
        ("dead-letter sink", sink, reason::DEAD_LETTER_SINK_NOT_FOUND),
    ];
    for (part, resolution, reason) in parts {
        if let Some(Err(why)) = resolution {
            let message = format!("the {part} does not resolve: {why}");
            return Condition::unmet(type_, reason, message);
        }
    }
    Condition::met(type_)
}

fn added_to_channel(world: &World) -> Condition {
    if let (Err(why), RoutingState::Absent) = (&world.channel, &world.routed) {
        let message = format!("nothing is carried on: {why}");
        return Condition::unmet(WORDS.condition, WORDS.not_yet, message);
    }
    world.routed.condition(&WORDS)
}

fn channel_ready(world: &World) -> Condition {
    let type_ = condition::CHANNEL_READY;
    let channel = match &world.channel {
        Ok(channel) => channel.referenced_state(),
        Err(why) => return Condition::unmet(type_, reason::CHANNEL_NOT_FOUND, why.as_str()),
    };
    let message = format!(
        "Channel {} is not ready: {}",
        world.subscription.spec.channel.name, channel.ready.why
    );
    match channel.ready.status {
        Status::True => Condition::met(type_),
        Status::False => Condition::unmet(type_, reason::CHANNEL_NOT_READY, message),
        Status::Unknown => Condition::unknown(type_, reason::CHANNEL_NOT_READY, message),
    }
}

/// The sink in effect: the Subscription's own, or the Channel's where the Subscription leaves delivery to it.
fn dead_letter_sink(world: &World) -> Option<Resolution> {
    if !world.inherits_delivery() {
        return world.dead_letter_sink.clone();
    }
    let channel = world.channel.as_ref().ok()?;
    channel.spec.delivery.as_ref()?.dead_letter_sink.as_ref()?;
    let status = channel.status.clone().unwrap_or_default();
    Some(match status.dead_letter_sink_uri {
        Some(uri) => Ok(Resolved {
            uri,
            ..Resolved::default()
        }),
        None => Err("that of the channel has no address yet".to_owned()),
    })
}
