//! Trigger: whether every matching event from now on will be sent, and where.
//!
//! It creates nothing. `Ready` is `True` only while the routing table in force was compiled from this very Trigger, its uid
//! and its generation. A subscriber that does not resolve leaves no address behind.

mod dependency;
mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use heddle_api::Broker;
use heddle_api::trigger::Trigger;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::dataplane::RoutingState;
use crate::reconcile::{Controller, Ctx, Error, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, DataPlane, Parts, Watches, resolve, routing};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Triggers, &mut watches.triggers, targets)
        .requeue_referrers(&mut watches.applications)
        .requeue_referrers(&mut watches.http_sources)
        .requeue_referrers(&mut watches.channels)
        .requeue_referrers(&mut watches.subscriptions)
        .requeue_referrers(&mut watches.brokers)
        .requeue_referrers(&mut watches.triggers);
    start.add_with_mesh(controller, view, parts);
}

/// Everything whose changes concern a Trigger.
fn targets(trigger: &Trigger) -> Vec<Target> {
    let namespace = trigger.namespace().unwrap_or_default();
    let spec = &trigger.spec;
    let mut targets = vec![Target::of::<Broker>(&namespace, &spec.broker)];
    targets.extend(resolve::target(&spec.subscriber, &namespace));
    targets.extend(resolve::sink_target(spec.delivery.as_ref(), &namespace));
    targets.extend(dependency::target(trigger));
    targets
}

fn view(plane: &dyn DataPlane, trigger: &Trigger, hasher: &mut DefaultHasher) {
    let key = routing::entry("trigger", trigger);
    (plane.base_url(), plane.consumer(&key), plane.rejected(&key)).hash(hasher);
}

fn routed(plane: Option<&dyn DataPlane>, trigger: &Trigger) -> RoutingState {
    let meta = &trigger.metadata;
    let key = routing::entry("trigger", trigger);
    RoutingState::ask(plane, &key, meta.uid.as_deref(), meta.generation)
}

#[derive(Debug)]
pub(crate) struct Triggers;

impl Reconciler for Triggers {
    type Kind = Trigger;
    type World = World;
    const NAME: &'static str = field_manager::TRIGGER;
    const READS_OWN_STATUS: bool = false;

    async fn observe(&self, ctx: &Ctx, object: Trigger) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
