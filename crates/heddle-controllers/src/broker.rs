//! Broker: whether events published to it are kept and chosen from, where it is published to, and when it goes.
//!
//! It creates nothing: the events of all brokers are in one log, and being part of the routing table is what makes one
//! exist there. A Broker of a class that is not served here is told so, for nobody else would.
//!
//! A Broker that heddle made for others goes when nobody claims it any more, no Trigger chooses from it, nothing is
//! pending and a while has passed; until then `Retained` says what keeps it. It is removed in exactly the state in which
//! all that was seen, so a claim that is made in the meantime keeps it. Who claims it is written by `eventing`, `Retained`
//! and the removal are decided here, and neither writes what the other does.

mod observe;
mod retention;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use std::time::Duration;

use heddle_api::Trigger;
use heddle_api::broker::Broker;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;

use crate::dataplane::EntryState;
use crate::reconcile::{Controller, Ctx, Error, Reconciler, Step, StepName};
use crate::references::Target;
use crate::watch::Change;
use crate::{ControllerStart, DataPlane, Parts, Watches, resolve, routing};
pub(crate) use observe::World;
#[cfg(test)]
pub(crate) use retention::Unclaimed;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Brokers, &mut watches.brokers, targets)
        .requeue_referrers(&mut watches.applications)
        .requeue_referrers(&mut watches.channels)
        .requeue_referrers(&mut watches.brokers)
        .requeue_each_mapped(&mut watches.triggers, chosen_from);
    start.add_with_mesh(controller, view, parts);
}

fn targets(broker: &Broker) -> Vec<Target> {
    let namespace = broker.namespace().unwrap_or_default();
    let delivery = broker.spec.delivery.as_ref();
    Vec::from_iter(resolve::sink_target(delivery, &namespace))
}

/// The Broker that a Trigger has begun or ceased to choose from.
fn chosen_from(change: &Change<'_, Trigger>) -> Vec<ObjectRef<Broker>> {
    if let Change::Applied { old: Some(_), .. } = change {
        // Which Broker it is never changes.
        return Vec::new();
    }
    let trigger = change.object();
    let namespace = trigger.namespace().unwrap_or_default();
    vec![ObjectRef::new(&trigger.spec.broker).within(&namespace)]
}

fn view(plane: &dyn DataPlane, broker: &Broker, hasher: &mut DefaultHasher) {
    EntryState::ask(plane, &routing::entry("broker", broker)).hash(hasher);
}

#[derive(Debug)]
pub(crate) struct Brokers;

impl Reconciler for Brokers {
    type Kind = Broker;
    type World = World;
    const NAME: &'static str = field_manager::BROKER;

    async fn observe(&self, ctx: &Ctx, object: Broker) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        retention::removal(world).into_iter().collect()
    }

    /// The one step there is removes it.
    fn on_applied(&self, world: &mut World, _: StepName, _: Option<DynamicObject>) {
        world.is_removed = true;
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        retention::requeue_after(world, now)
    }
}
