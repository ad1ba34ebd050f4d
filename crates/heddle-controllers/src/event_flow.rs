//! EventFlow: whether the events of one service reach a namespace, what is missing if not, and a clean end.
//!
//! It makes nothing: what flows share is made for all of them at once (see `eventing`). A flow is held by a finalizer
//! before anything is made for it, says what it sees, and is let go when nothing of it is left.
//!
//! ```text
//!   held ──> conditions, each from one object ──> Ready
//!   to go ──> claim gone, link gone (or another flow's) ──> what is pending ends ──> written down ──> let go
//! ```

mod leaving;
mod links;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _};
use std::time::Duration;

use heddle_api::broker::Claim;
use heddle_api::conditions::{READY, Status};
use heddle_api::event_flow::{EventFlowSpec, EventFlowStatus, condition};
use heddle_api::health::PlaneHealth;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, field_manager};
use heddle_api::{
    ApplicationMapping, Broker, Channel, Condition, Conditions, EventActivation, EventFlow,
    EventPolicy, HTTPSource, Subscription, names,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};
use serde_json::Value;

use crate::reconcile::{
    Controller, Ctx, Error, Notices, Reconciler, Step, StepName, referenced_state_changed,
};
use crate::references::Target;
use crate::watch::{Change, name_of};
use crate::{ControllerStart, DataPlane, Report, Watches};
#[cfg(test)]
pub(crate) use leaving::Leaving;
use links::Links;
#[cfg(test)]
pub(crate) use observe::Parts;
pub(crate) use observe::World;

const FLOW: StepName = "flow";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut crate::Parts) {
    let links = Links::new(&mut watches.subscriptions);
    let controller = Controller::new(EventFlows { links }, &mut watches.flows, targets)
        .requeue_referrers_on_change(&mut watches.mappings)
        .requeue_referrers(&mut watches.http_sources)
        .requeue_referrers(&mut watches.channels)
        .requeue_referrers(&mut watches.subscriptions)
        .requeue_referrers_of(&mut watches.subscriptions, pair)
        .requeue_referrers(&mut watches.brokers)
        .requeue_each_mapped(&mut watches.brokers, claimants)
        .requeue_referrers_on_change(&mut watches.policies)
        .requeue_referrers_on_change(&mut watches.activations)
        .requeue_referrers_on_change(&mut watches.namespaces);
    parts.push(controller.requeue_on_health_change(start.options.health.clone(), data_plane));
    start.add_with_mesh(controller, view, parts);
}

/// What the newest verdict says of the way that a flow's events take, if anybody has judged it.
fn data_plane(report: &Report, flow: &EventFlow) -> Option<PlaneHealth> {
    let namespace = flow.namespace().unwrap_or_default();
    let pair = (flow.spec.application.clone(), namespace);
    let found = report.pairs.get(&pair)?;
    Some(found.verdict.planes.data.clone()).filter(|_| flow.spec.health_check.enabled)
}

/// What is kept of a flow: what it refers to, and whether it is to go.
pub(crate) fn trim(flow: &EventFlow) -> EventFlow {
    let spec = &flow.spec;
    EventFlow {
        metadata: name_of(flow),
        spec: EventFlowSpec {
            application: spec.application.clone(),
            service_id: spec.service_id.clone(),
            source_ref: spec.source_ref.clone(),
            broker_ref: spec.broker_ref.clone(),
            health_check: spec.health_check.clone(),
            ..EventFlowSpec::default()
        },
        status: flow.status.as_ref().and_then(gist),
    }
}

/// What is kept of its status, if that is anything.
fn gist(status: &EventFlowStatus) -> Option<EventFlowStatus> {
    let kept = EventFlowStatus {
        link_name: status.link_name.clone(),
        conditions: judged(&status.conditions),
        ..EventFlowStatus::default()
    };
    (kept != EventFlowStatus::default()).then_some(kept)
}

/// What health goes by: whether it is ready, or why not, and whether it was ever linked.
fn judged(conditions: &Conditions) -> Conditions {
    let kept = [
        condition::LINK_READY.name,
        condition::HEARTBEAT_OK.name,
        READY,
    ];
    let kept = kept.iter().filter_map(|name| conditions.find(name));
    let kept = kept.map(|condition| {
        let told = condition.type_ == READY && condition.status != Status::True;
        Condition {
            type_: condition.type_.clone(),
            status: condition.status,
            reason: condition.reason.clone().filter(|_| told),
            message: condition.message.clone().filter(|_| told),
            ..Condition::default()
        }
    });
    kept.collect()
}

/// Everything whose changes concern a flow.
fn targets(flow: &EventFlow) -> Vec<Target> {
    let namespace = flow.namespace().unwrap_or_default();
    let (spec, application) = (&flow.spec, &flow.spec.application);
    let (source_namespace, source) = source(flow);
    vec![
        Target::of::<ApplicationMapping>(&namespace, application),
        Target::of::<HTTPSource>(source_namespace, source),
        Target::of::<Channel>(INTEGRATION_NAMESPACE, application),
        Target::of::<EventActivation>(&namespace, &names::activation(&spec.service_id)),
        Target::of::<Subscription>(INTEGRATION_NAMESPACE, &link_name(flow)),
        Target::new(PAIR, &namespace, application),
        Target::of::<Broker>(&namespace, &spec.broker_ref.name),
        Target::of::<EventPolicy>(&namespace, &names::policy(application)),
        Target::of::<Namespace>("", &namespace),
    ]
}

/// An Application and a namespace, as something to refer to: links that were taken in have names of their own.
const PAIR: &str = "Application in a namespace";

fn pair(change: &Change<'_, Subscription>) -> Vec<Target> {
    let pair = links::pair(change.object()).filter(|_| referenced_state_changed(change));
    pair.map(|(application, namespace)| Target::new(PAIR, namespace, application))
        .into_iter()
        .collect()
}

/// The flows whose claim on a Broker came or went. All others are not concerned by that.
fn claimants(change: &Change<'_, Broker>) -> Vec<ObjectRef<EventFlow>> {
    let Change::Applied {
        old: Some(old),
        new,
        ..
    } = change
    else {
        return Vec::new();
    };
    // A namesake's claim is another.
    let claims = |broker: &Broker| -> BTreeSet<(String, String)> {
        let claims = broker.spec.claims.iter();
        claims
            .filter(|claim| claim.kind.as_deref() == Some(&EventFlow::kind(&())))
            .filter_map(|claim: &Claim| Some((claim.name.clone()?, claim.uid.clone())))
            .collect()
    };
    let namespace = new.namespace().unwrap_or_default();
    let (then, now) = (claims(old), claims(new));
    let turned = then.symmetric_difference(&now);
    turned
        .map(|(name, _)| ObjectRef::new(name).within(&namespace))
        .collect()
}

/// Namespace and name of the HTTPSource that the events come from.
fn source(flow: &EventFlow) -> (&str, &str) {
    match &flow.spec.source_ref {
        Some(source) => (
            source.namespace.as_deref().unwrap_or(INTEGRATION_NAMESPACE),
            &source.name,
        ),
        None => (INTEGRATION_NAMESPACE, &flow.spec.application),
    }
}

/// Name of the link, unless one was there before.
fn link_name(flow: &EventFlow) -> String {
    let namespace = flow.namespace().unwrap_or_default();
    let spec = &flow.spec;
    names::link_to(&spec.application, &namespace, &spec.broker_ref.name)
}

/// Name of the link, if one was there before.
fn taken_in(flow: &EventFlow) -> Option<&str> {
    flow.status.as_ref()?.link_name.as_deref()
}

/// How the mesh knows the link.
fn link_key(flow: &EventFlow) -> String {
    let name = taken_in(flow).map_or_else(|| link_name(flow), str::to_owned);
    format!("subscription/{INTEGRATION_NAMESPACE}/{name}")
}

/// Only a flow that goes asks the mesh; all others go by what the parts say of themselves.
fn view(plane: &dyn DataPlane, flow: &EventFlow, hasher: &mut DefaultHasher) {
    if flow.metadata.deletion_timestamp.is_some() {
        plane.consumer(&link_key(flow)).is_some().hash(hasher);
    }
}

#[derive(Debug, Default)]
pub(crate) struct EventFlows {
    links: Links,
}

impl Reconciler for EventFlows {
    type Kind = EventFlow;
    type World = World;
    const NAME: &'static str = field_manager::EVENT_FLOW;
    const READS_OWN_STATUS: bool = false;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: EventFlow) -> Result<World, Error> {
        observe::observe(ctx, &self.links, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn on_applied(&self, world: &mut World, _: StepName, answer: Option<DynamicObject>) {
        world.absorb(answer);
    }

    async fn call_out(&self, ctx: &Ctx, world: &mut World) -> Result<(), Error> {
        leaving::give_up(ctx, world).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        leaving::requeue_after(world, now)
    }
}
