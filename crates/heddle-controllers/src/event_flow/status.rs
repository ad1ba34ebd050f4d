//! Status: each part of a flow as one condition, in words that name the object, what is expected of it and who acts.

use heddle_api::conditions::{Condition, ConditionType, Reason, Status};
use heddle_api::event_flow::{CONDITIONS, EventFlowStatus, condition, reason};
use heddle_api::health::HealthStatus;
use heddle_api::well_known::{INJECTION_LABEL, INTEGRATION_NAMESPACE};
use heddle_api::{Broker, Channel, EventFlow, EventPolicy, HTTPSource, names};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt as _};
use serde_json::Value;

use super::observe::{World, serves};
use super::{leaving, link_name, source};
use crate::eventing::{allowed, is_name};
use crate::referenced::{Readiness, Referenced};

/// Said where a flow has to wait for the controller that works for all flows of its namespace.
const WITHOUT_HELP: &str = "it is made without help as soon as the flow is allowed";

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let flow = &world.flow;
    // It has just been let go.
    flow.metadata.uid.as_ref()?;
    if world.leaving.is_some() {
        return serde_json::to_value(leaving::status(world)?).ok();
    }
    serde_json::to_value(of_parts(world, now)).ok()
}

/// Whether a flow that stays would be told to be ready, and was not so before.
pub(super) fn turns_ready(world: &World) -> bool {
    let status = world.flow.status.as_ref();
    let was = status.is_some_and(|status| status.conditions.is_ready());
    !was && of_parts(world, world.now).conditions.is_ready()
}

fn of_parts(world: &World, now: Timestamp) -> EventFlowStatus {
    let flow = &world.flow;
    let known = flow.status.as_ref();
    let address = world
        .broker
        .as_ref()
        .and_then(|broker| broker.referenced_state().address);
    let mut status = EventFlowStatus {
        observed_generation: flow.metadata.generation,
        conditions: known
            .map(|known| known.conditions.clone())
            .unwrap_or_default(),
        sink_uri: address.and_then(|address| address.url),
        link_name: earlier_link(world),
        last_heartbeat: known.and_then(|known| known.last_heartbeat.clone()),
        ..EventFlowStatus::default()
    };
    for condition in [
        is_allowed(world),
        source_ready(world),
        channel_ready(world),
        activation_projected(world),
        link_ready(world),
        broker_ready(world),
        policy_ready(world),
    ] {
        status.conditions.set(condition, now);
    }
    if let Some(heartbeat) = heartbeat_ok(world) {
        let passed = heartbeat.status == Status::True;
        if status.conditions.set(heartbeat, now) && passed {
            status.last_heartbeat = Some(Time(now));
        }
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    status
}

/// Nothing is said before synthetic events were sent; from then on it stays, which is how it is known that they were.
fn heartbeat_ok(world: &World) -> Option<Condition> {
    let type_ = condition::HEARTBEAT_OK;
    let heartbeat = world.heartbeat.as_ref()?;
    match (heartbeat.health, heartbeat.reason.as_str()) {
        (HealthStatus::Healthy, "HeartbeatOK") => Some(Condition::met(type_)),
        // It is slow, and it arrives.
        (HealthStatus::Degraded, _) => Some(Condition::met(type_)),
        (HealthStatus::Healthy, _) => None,
        (HealthStatus::Unhealthy, _) => {
            let hop = heartbeat.hop.as_deref().unwrap_or("the way");
            let evidence = heartbeat.evidence.as_deref().unwrap_or(&heartbeat.message);
            let message = format!("synthetic events do not get past {hop}: {evidence}");
            Some(Condition::unmet(type_, reason::HEARTBEAT_MISSING, message))
        }
        (HealthStatus::Unknown, _) => {
            let message = heartbeat.message.clone();
            Some(Condition::unknown(
                type_,
                reason::HEARTBEAT_PENDING,
                message,
            ))
        }
    }
}

fn is_allowed(world: &World) -> Condition {
    match allowed(world.parts.mapping.as_ref(), &world.flow) {
        Ok(()) => Condition::met(condition::ALLOWED),
        Err((reason, message)) => Condition::unmet(condition::ALLOWED, reason, message),
    }
}

fn source_ready(world: &World) -> Condition {
    let type_ = condition::SOURCE_READY;
    if let Some(other) =
        (world.flow.spec.source_ref.as_ref()).filter(|source| source.kind != HTTPSource::kind(&()))
    {
        let message = format!(
            "{} {} cannot be a source; name an HTTPSource in spec.sourceRef, or remove the field",
            other.kind, other.name
        );
        return Condition::unmet(type_, reason::SOURCE_MISSING, message);
    }
    let (namespace, name) = source(&world.flow);
    let object = format!("HTTPSource {namespace}/{name}");
    let Some(source) = there(world.parts.source.as_ref()) else {
        let application = &world.flow.spec.application;
        let message = format!(
            "{object} does not exist; it comes with Application {application}, which the flow waits for"
        );
        return Condition::unmet(type_, reason::SOURCE_MISSING, message);
    };
    readiness(type_, reason::SOURCE_NOT_READY, &object, source)
}

fn channel_ready(world: &World) -> Condition {
    let type_ = condition::CHANNEL_READY;
    let application = &world.flow.spec.application;
    let object = format!("Channel {INTEGRATION_NAMESPACE}/{application}");
    let Some(channel) = there(world.parts.channel.as_ref()) else {
        let message = format!(
            "{object} does not exist; it comes with Application {application}, which the flow waits for"
        );
        return Condition::unmet(type_, reason::CHANNEL_MISSING, message);
    };
    readiness(type_, reason::CHANNEL_NOT_READY, &object, channel)
}

fn activation_projected(world: &World) -> Condition {
    let type_ = condition::ACTIVATION_PROJECTED;
    let activation = there(world.parts.activation.as_ref());
    if activation.is_some_and(|activation| is_owner(&world.flow, activation)) {
        return Condition::met(type_);
    }
    let name = names::activation(&world.flow.spec.service_id);
    let message = format!(
        "EventActivation {}/{name} does not show the flow yet; {WITHOUT_HELP}",
        namespace(world)
    );
    Condition::unmet(type_, reason::PROJECTION_FAILED, message)
}

fn link_ready(world: &World) -> Condition {
    let type_ = condition::LINK_READY;
    let Some(link) = there(world.link.as_ref()) else {
        let message = format!(
            "Subscription {INTEGRATION_NAMESPACE}/{} is not there yet; {WITHOUT_HELP}",
            link_name(&world.flow)
        );
        return Condition::unmet(type_, reason::LINK_MISSING, message);
    };
    let object = format!("Subscription {INTEGRATION_NAMESPACE}/{}", link.name_any());
    let (namespace, spec) = (namespace(world), &world.flow.spec);
    let broker = &spec.broker_ref.name;
    if !serves(link, &world.flow) {
        let message = format!(
            "{object} does not lead from Channel {} to Broker {namespace}/{broker}; \
             delete it unless it is turned there within a moment",
            spec.application
        );
        return Condition::unmet(type_, reason::LINK_NOT_READY, message);
    }
    readiness(type_, reason::LINK_NOT_READY, &object, link)
}

/// The name of a link that was there before. It is remembered when the link is gone: events may still be on their way
/// over it.
fn earlier_link(world: &World) -> Option<String> {
    if !world.is_linked() {
        return super::taken_in(&world.flow).map(str::to_owned);
    }
    let name = world.link.as_ref().map(|link| link.name_any());
    name.filter(|name| *name != link_name(&world.flow))
}

fn broker_ready(world: &World) -> Condition {
    let type_ = condition::BROKER_READY;
    let (namespace, name) = (namespace(world), &world.flow.spec.broker_ref.name);
    let object = format!("Broker {namespace}/{name}");
    if world.parts.is_disabled {
        let message = format!(
            "label {INJECTION_LABEL} of namespace {namespace} is disabled, which forbids {object}; \
             remove the label to let events in"
        );
        return Condition::unmet(type_, reason::INJECTION_DISABLED, message);
    }
    if !is_name(name) {
        let message = format!("no Broker can be called {name:?}; correct spec.brokerRef.name");
        return Condition::unmet(type_, reason::BROKER_MISSING, message);
    }
    match &world.broker {
        None => {
            let message = format!("{object} does not exist; it is created without help");
            Condition::unmet(type_, reason::BROKER_MISSING, message)
        }
        Some(broker) if broker.metadata.deletion_timestamp.is_some() => {
            let message = format!(
                "{object} is being removed; another is created without help once it is gone"
            );
            Condition::unmet(type_, reason::BROKER_MISSING, message)
        }
        Some(_) if !world.is_claimed() => {
            let message =
                format!("{object} exists and is not claimed by the flow yet; that needs no help");
            Condition::unmet(type_, reason::BROKER_NOT_READY, message)
        }
        Some(broker) => readiness(type_, reason::BROKER_NOT_READY, &object, broker),
    }
}

/// That the policy exists as it has to is all a flow asks of it; a link that is ready was let in by it.
fn policy_ready(world: &World) -> Condition {
    let type_ = condition::POLICY_READY;
    let policy = there(world.parts.policy.as_ref());
    if policy.is_some_and(|policy| admits(policy, &world.flow)) {
        return Condition::met(type_);
    }
    let message = format!(
        "EventPolicy {}/{} does not let the Application's Channel into the Broker yet; {WITHOUT_HELP}",
        namespace(world),
        names::policy(&world.flow.spec.application)
    );
    Condition::unmet(type_, reason::POLICY_NOT_READY, message)
}

fn admits(policy: &EventPolicy, flow: &EventFlow) -> bool {
    let (to, from) = (policy.spec.to.iter(), policy.spec.from.iter());
    let mut to = to.filter_map(|target| target.reference.as_ref());
    let mut from = from.filter_map(|publisher| publisher.reference.as_ref());
    to.any(|to| to.kind == Broker::kind(&()) && to.name == flow.spec.broker_ref.name)
        && from.any(|from| {
            from.kind == Channel::kind(&())
                && from.name == flow.spec.application
                && from.namespace.as_deref() == Some(INTEGRATION_NAMESPACE)
        })
}

fn readiness<K: Referenced>(
    type_: ConditionType,
    reason: Reason,
    object: &str,
    part: &K,
) -> Condition {
    let Readiness { status, why } = part.referenced_state().ready;
    let message = format!("{object} is not ready: {why}");
    match status {
        Status::True => Condition::met(type_),
        Status::False => Condition::unmet(type_, reason, message),
        Status::Unknown => Condition::unknown(type_, reason, message),
    }
}

fn is_owner<K: Resource>(flow: &EventFlow, object: &K) -> bool {
    let mut owners = object.owner_references().iter();
    owners.any(|owner| Some(&owner.uid) == flow.metadata.uid.as_ref())
}

/// What is on its way out counts as gone.
fn there<K: Resource>(object: Option<&K>) -> Option<&K> {
    object.filter(|object| object.meta().deletion_timestamp.is_none())
}

fn namespace(world: &World) -> String {
    world.flow.namespace().unwrap_or_default()
}
