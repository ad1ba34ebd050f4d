//! Eventing: what the flows of one namespace share, and when none of them needs it any more.
//!
//! ```text
//!   Application's Channel ──link──> Broker <── claims: one per flow, one for the namespace's label
//!   (kyma-integration)       │         ^
//!                            └─ EventPolicy lets it in        EventActivation shows it to older tools
//! ```
//! The key is the Namespace, so that one reconcile at a time decides for all its flows and there is no race to lose between
//! one that comes and one that goes. Everything is worked out anew from one look at the namespace; what is there already
//! under the right labels is taken in rather than made twice.
//!
//! A look costs what there is to see, so a namespace with many flows is looked at less often while they come (see `pace`).
//!
//! Promises: a flow has things made for it only while it is held by its finalizer, so that nothing outlives it unseen; a
//! claim goes only after the link that it stood for; what nobody marked as heddle's is changed where it has to be, and
//! never removed. Claims are written here and nowhere else; that a Broker without claims goes is left to the controller
//! of Brokers, and what a flow's conditions are to that of EventFlows.

mod label;
mod links;
mod observe;
mod pace;
mod plan;
#[cfg(test)]
mod tests;
mod wanted;

use std::time::Duration;

use heddle_api::well_known::{BROKER_NAMESPACE_LABEL, field_manager};
use heddle_api::{Application, EventFlow, Subscription};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Reconciler, Step, StepName};
use crate::references::{Index, Target};
use crate::watch::{Change, Watched};
use crate::{ControllerStart, Parts, Watches};
pub(crate) use label::is_disabled;
pub(crate) use links::{goes_only_to, goes_when_unneeded};
pub(crate) use observe::World;
use pace::Pace;
pub(crate) use wanted::{allowed, is_name, succeeds};

const BROKER: StepName = "broker";
const LABEL: StepName = "label";
const LINK: StepName = "link";
const POLICY: StepName = "policy";
const ACTIVATION: StepName = "activation";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let flows: Index<EventFlow> = Index::new();
    {
        let flows = flows.clone();
        (watches.flows).on_change(move |change| flows.update(change, application));
    }
    let controller = Controller::new(Eventing::default(), &mut watches.namespaces, |_| Vec::new())
        .requeue_each_mapped(&mut watches.flows, its_namespace)
        .requeue_each_mapped(&mut watches.mappings, its_namespace)
        .requeue_each_mapped(&mut watches.brokers, its_namespace)
        .requeue_each_mapped(&mut watches.policies, its_namespace)
        .requeue_each_mapped(&mut watches.activations, its_namespace)
        .requeue_each_mapped(&mut watches.subscriptions, fed_namespaces)
        .requeue_each_mapped(&mut watches.applications, move |change| {
            users(change, &flows)
        });
    start.add(controller, parts);
}

fn application(flow: &EventFlow) -> Vec<Target> {
    vec![Target::of::<Application>("", &flow.spec.application)]
}

/// What a status says decides nothing here.
fn its_namespace<K: Watched>(change: &Change<'_, K>) -> Vec<ObjectRef<Namespace>> {
    let namespace = change.object().namespace().filter(|_| change.is_written());
    namespace
        .iter()
        .map(|namespace| ObjectRef::new(namespace))
        .collect()
}

/// The namespaces that a link says it feeds, or said so before somebody changed its label.
fn fed_namespaces(change: &Change<'_, Subscription>) -> Vec<ObjectRef<Namespace>> {
    if !change.is_written() {
        return Vec::new();
    }
    let old = match change {
        Change::Applied { old, .. } => *old,
        _ => None,
    };
    let states = old.into_iter().chain([change.object()]);
    let fed = states.filter_map(|link| link.labels().get(BROKER_NAMESPACE_LABEL));
    fed.map(|namespace| ObjectRef::new(namespace)).collect()
}

/// The namespaces into which the events of an Application flow: they show the names of its services.
fn users(change: &Change<'_, Application>, flows: &Index<EventFlow>) -> Vec<ObjectRef<Namespace>> {
    if !change.is_written() {
        return Vec::new();
    }
    let referrers = flows.referrers(&**change.object());
    let namespaces = referrers
        .iter()
        .filter_map(|flow| flow.namespace.as_deref());
    namespaces.map(ObjectRef::new).collect()
}

/// Whether another controller has the last word on an object.
fn is_controlled<K: Resource>(object: &K) -> bool {
    let owners = object.owner_references();
    owners.iter().any(|owner| owner.controller == Some(true))
}

fn is_leaving<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

#[derive(Debug, Default)]
pub(crate) struct Eventing {
    pace: Pace,
}

impl Reconciler for Eventing {
    type Kind = Namespace;
    type World = World;
    const NAME: &'static str = field_manager::EVENTING;

    fn defer(&self, ctx: &Ctx, namespace: &Namespace) -> Option<Duration> {
        self.pace.rest(&ctx.options.clock, &namespace.name_any())
    }

    async fn observe(&self, ctx: &Ctx, object: Namespace) -> Result<World, Error> {
        let (clock, name) = (&ctx.options.clock, object.name_any());
        let begun = clock.monotonic();
        let world = observe::observe(ctx, object).await?;
        self.pace.took(begun, clock, name, world.flows.len());
        Ok(world)
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    /// A Namespace's status is the API server's. How far its flows have come is theirs to say.
    fn status(&self, _: &World, _: Timestamp) -> Option<Value> {
        None
    }
}
