//! BundleRevision: kept here as long as something needs it, and collected when nothing does.
//!
//! The image of a revision that an instance or binding refers to is fetched, verified and kept, so that actions run without
//! the registry, and after it has forgotten the image. A revision goes when it is not the one that new instances get,
//! nothing refers to it, and enough newer unused ones are kept; or when its bundle is gone and nothing refers to it.
//!
//! Removal has two steps, and each side of the race writes before it reads: deletion is written down, then users are looked
//! for, and only then the finalizer is released; who pins a revision writes the pin, and then looks whether the revision
//! is there and stays. A revision that is deleted while something refers to it therefore waits.

mod keep;
mod observe;
pub(crate) mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use heddle_api::bundle_revision::reason;
use heddle_api::well_known::field_manager;
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::bundle_index::BundleIndex;
use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler, Step, StepName};
use crate::references::Target;
use crate::usage::{self, Known};
use crate::watch::Change;
use crate::{ControllerStart, Parts, Watches};
use keep::Keeper;
pub(crate) use observe::World;

const HOLD: StepName = "hold";
const DELETE: StepName = "delete";
const RELEASE: StepName = "release";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let keeper = Arc::new(Keeper::new(&start.options));
    let revisions = Revisions {
        users: Known::new(watches),
        bundle_index: BundleIndex::new(watches),
        keeper: Arc::clone(&keeper),
    };
    let controller = Controller::new(revisions, &mut watches.revisions, targets)
        .requeue_referrers_of(&mut watches.bundles, moved)
        .requeue_referrers_of(&mut watches.revisions, siblings)
        .requeue_referrers_of(&mut watches.registries, settings)
        .requeue_referrers_of(&mut watches.instances, |change| {
            turned(change, usage::of_instance)
        })
        .requeue_referrers_of(&mut watches.bindings, |change| {
            turned(change, usage::of_binding)
        });
    start.add(controller, parts);
    parts.push(keep::tidy(start.ctx::<Revisions>(), keeper).boxed());
}

fn targets(revision: &BundleRevision) -> Vec<Target> {
    vec![
        Target::of::<Bundle>("", &revision.spec.bundle),
        Target::of::<Registry>("", &revision.spec.registry),
        // Who uses a revision refers to it by this.
        Target::of::<BundleRevision>("", &revision.name_any()),
    ]
}

/// A bundle is gone, or another revision of it is current.
fn moved(change: &Change<'_, Bundle>) -> Vec<Target> {
    let needs = |bundle: &Bundle| {
        let status = bundle.status.clone().unwrap_or_default();
        let seen = status.seen.and_then(|seen| seen.revision);
        (status.current_revision, seen)
    };
    if let Change::Applied {
        old: Some(old),
        new,
        ..
    } = change
        && needs(old) == needs(new)
    {
        return Vec::new();
    }
    vec![Target::of::<Bundle>("", &change.object().name_any())]
}

/// There is one more unused revision of a bundle, perhaps one too many.
fn siblings(change: &Change<'_, BundleRevision>) -> Vec<Target> {
    match change {
        Change::Applied { old: None, new, .. } => vec![Target::of::<Bundle>("", &new.spec.bundle)],
        _ => Vec::new(),
    }
}

/// How much is kept, and how it is fetched.
fn settings(change: &Change<'_, Registry>) -> Vec<Target> {
    // Annotations ask for readings, which are none of a revision's business.
    let settings = |registry: &Registry| {
        let metadata = &registry.metadata;
        (metadata.generation, metadata.deletion_timestamp.clone())
    };
    if let Change::Applied {
        old: Some(old),
        new,
        ..
    } = change
        && settings(old) == settings(new)
    {
        return Vec::new();
    }
    vec![Target::of::<Registry>("", &change.object().name_any())]
}

/// The revisions that an instance or binding has begun or ceased to refer to.
fn turned<K>(change: &Change<'_, K>, uses: fn(&K) -> Vec<Target>) -> Vec<Target> {
    let new = uses(change.object());
    let old = match change {
        Change::Applied { old: Some(old), .. } => uses(old),
        _ => return new,
    };
    let came = new.iter().filter(|target| !old.contains(target));
    let went = old.iter().filter(|target| !new.contains(target));
    came.chain(went).cloned().collect()
}

#[derive(Debug)]
pub(crate) struct Revisions {
    users: Known,
    bundle_index: BundleIndex,
    keeper: Arc<Keeper>,
}

impl Reconciler for Revisions {
    type Kind = BundleRevision;
    type World = World;
    const NAME: &'static str = field_manager::BUNDLE_REVISION;
    const NOTICES: Notices = Notices {
        // Most revisions are never used.
        usual: &[reason::NOT_FETCHED],
        ..Notices::PLAIN
    };

    async fn observe(&self, ctx: &Ctx, object: BundleRevision) -> Result<World, Error> {
        observe::observe(ctx, &self.users, &self.bundle_index, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn on_applied(&self, world: &mut World, step_name: StepName, answer: Option<DynamicObject>) {
        world.absorb(step_name, answer);
    }

    async fn call_out(&self, ctx: &Ctx, world: &mut World) -> Result<(), Error> {
        self.keeper.keep(ctx, world).await;
        Ok(())
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        self.keeper.requeue_after(world, now)
    }
}
