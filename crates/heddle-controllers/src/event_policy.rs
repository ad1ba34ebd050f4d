//! EventPolicy: who it is about, and whether it is enforced.
//!
//! It creates nothing. The mesh compiles policies into its table by itself; this controller says which subjects a policy
//! stands for, which of them do not exist, and whether publishers are asked who they are. Links between namespaces need a
//! policy in any case, so one that is about no publisher is enforced even where nobody is asked.

mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use heddle_api::Application;
use heddle_api::event_policy::{APPLICATION_SUBJECT, EventPolicy};
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, DataPlane, Parts, Watches};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Policies, &mut watches.policies, targets)
        .requeue_referrers_on_existence(&mut watches.applications)
        .requeue_referrers_on_existence(&mut watches.http_sources)
        .requeue_referrers_on_existence(&mut watches.channels)
        .requeue_referrers_on_existence(&mut watches.subscriptions)
        .requeue_referrers_on_existence(&mut watches.brokers)
        .requeue_referrers_on_existence(&mut watches.triggers);
    start.add_with_mesh(controller, view, parts);
}

/// Everything whose coming and going concerns a policy.
fn targets(policy: &EventPolicy) -> Vec<Target> {
    let namespace = policy.namespace().unwrap_or_default();
    let one = |from: &heddle_api::event_policy::Publisher| match (&from.reference, &from.sub) {
        (Some(reference), _) if reference.kind == "Application" => {
            Some(Target::of::<Application>("", &reference.name))
        }
        (Some(reference), _) => {
            let namespace = reference.namespace.as_deref().unwrap_or(&namespace);
            Some(Target::new(&reference.kind, namespace, &reference.name))
        }
        (None, Some(sub)) => named_application(sub).map(|name| Target::of::<Application>("", name)),
        (None, None) => None,
    };
    policy.spec.from.iter().filter_map(one).collect()
}

/// The Application that a subject names, if it names exactly one.
fn named_application(sub: &str) -> Option<&str> {
    let name = sub.strip_prefix(APPLICATION_SUBJECT)?;
    (!name.ends_with('*')).then_some(name)
}

fn view(plane: &dyn DataPlane, _: &EventPolicy, hasher: &mut DefaultHasher) {
    plane.asks_who().hash(hasher);
}

#[derive(Debug)]
pub(crate) struct Policies;

impl Reconciler for Policies {
    type Kind = EventPolicy;
    type World = World;
    const NAME: &'static str = field_manager::EVENT_POLICY;
    const READS_OWN_STATUS: bool = false;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: EventPolicy) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
