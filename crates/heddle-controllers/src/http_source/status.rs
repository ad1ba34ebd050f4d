//! Status: what was observed of an HTTPSource, as conditions an operator can act on.

use heddle_api::conditions::Condition;
use heddle_api::http_source::{CONDITIONS, HTTPSourceStatus, condition, reason};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::observe::World;
use crate::referenced::Referenced as _;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let source = &world.source;
    if source.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let (sink_provided, sink_uri) = sink(world);
    let mut status = HTTPSourceStatus {
        observed_generation: source.metadata.generation,
        conditions: (source.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        sink_uri,
    };
    status.conditions.set(sink_provided, now);
    status.conditions.set(deployed(world), now);
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn sink(world: &World) -> (Condition, Option<String>) {
    let type_ = condition::SINK_PROVIDED;
    let namespace = world.source.namespace().unwrap_or_default();
    let object = format!("Channel {namespace}/{}", world.source.name_any());
    let unmet = |reason, message| (Condition::unmet(type_, reason, message), None);
    let Some(channel) = world
        .channel
        .as_ref()
        .map(|channel| channel.referenced_state())
    else {
        return unmet(reason::SINK_NOT_FOUND, format!("{object} does not exist"));
    };
    if channel.leaving {
        return unmet(reason::SINK_NOT_FOUND, format!("{object} is being deleted"));
    }
    match channel.address.and_then(|address| address.url) {
        Some(url) => (Condition::met(type_), Some(url)),
        None => unmet(
            reason::EMPTY_SINK_URI,
            format!("{object} has no address: {}", channel.ready.why),
        ),
    }
}

fn deployed(world: &World) -> Condition {
    let type_ = condition::DEPLOYED;
    match &world.open {
        None => Condition::unknown(
            type_,
            reason::NO_MESH,
            "no mesh runs here that could accept events",
        ),
        Some(Ok(())) => Condition::met(type_),
        Some(Err(why)) => Condition::unmet(
            type_,
            reason::SERVICE_NOT_READY,
            format!(
                "events of {} are not accepted: {why}",
                world.source.spec.source
            ),
        ),
    }
}
