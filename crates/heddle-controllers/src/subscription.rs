//! Subscription: whether every event of a Channel from now on will be carried on, and to where.
//!
//! It creates nothing. `Ready` is `True` only while the routing table in force was compiled from this very Subscription, its
//! uid and its generation.

mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use heddle_api::Channel;
use heddle_api::subscription::Subscription;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::dataplane::RoutingState;
use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, DataPlane, Parts, Watches, resolve, routing};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Subscriptions, &mut watches.subscriptions, targets)
        .requeue_referrers(&mut watches.applications)
        .requeue_referrers(&mut watches.channels)
        .requeue_referrers(&mut watches.brokers);
    start.add_with_mesh(controller, view, parts);
}

/// Everything whose changes concern a Subscription.
fn targets(subscription: &Subscription) -> Vec<Target> {
    let namespace = subscription.namespace().unwrap_or_default();
    let spec = &subscription.spec;
    let destinations = [spec.subscriber.as_ref(), spec.reply.as_ref()];
    let mut targets = vec![Target::of::<Channel>(&namespace, &spec.channel.name)];
    targets.extend(
        destinations
            .into_iter()
            .flatten()
            .filter_map(|destination| resolve::target(destination, &namespace)),
    );
    targets.extend(resolve::sink_target(spec.delivery.as_ref(), &namespace));
    targets
}

fn view(plane: &dyn DataPlane, subscription: &Subscription, hasher: &mut DefaultHasher) {
    let key = routing::entry("subscription", subscription);
    (plane.base_url(), plane.consumer(&key), plane.rejected(&key)).hash(hasher);
}

fn routed(plane: Option<&dyn DataPlane>, subscription: &Subscription) -> RoutingState {
    let meta = &subscription.metadata;
    let key = routing::entry("subscription", subscription);
    RoutingState::ask(plane, &key, meta.uid.as_deref(), meta.generation)
}

#[derive(Debug)]
pub(crate) struct Subscriptions;

impl Reconciler for Subscriptions {
    type Kind = Subscription;
    type World = World;
    const NAME: &'static str = field_manager::SUBSCRIPTION;
    const READS_OWN_STATUS: bool = false;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: Subscription) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
