//! Channel: whether events published to it are kept, and where it is published to.
//!
//! It creates nothing: all channels live in one log, and being part of the routing table is what makes one exist there.

mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use heddle_api::channel::Channel;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::dataplane::EntryState;
use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, DataPlane, Parts, Watches, resolve, routing};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Channels, &mut watches.channels, targets)
        .requeue_referrers(&mut watches.applications)
        .requeue_referrers(&mut watches.channels)
        .requeue_referrers(&mut watches.brokers);
    start.add_with_mesh(controller, view, parts);
}

fn targets(channel: &Channel) -> Vec<Target> {
    let namespace = channel.namespace().unwrap_or_default();
    let delivery = channel.spec.delivery.as_ref();
    Vec::from_iter(resolve::sink_target(delivery, &namespace))
}

fn view(plane: &dyn DataPlane, channel: &Channel, hasher: &mut DefaultHasher) {
    EntryState::ask(plane, &routing::entry("channel", channel)).hash(hasher);
}

#[derive(Debug)]
pub(crate) struct Channels;

impl Reconciler for Channels {
    type Kind = Channel;
    type World = World;
    const NAME: &'static str = field_manager::CHANNEL;
    const READS_OWN_STATUS: bool = false;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: Channel) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
