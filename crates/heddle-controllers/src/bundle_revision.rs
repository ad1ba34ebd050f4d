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

use crate::kin::Kin;
use crate::machine::{Beats, Controller, Ctx, Error, News, Step, Ticket};
use crate::references::Target;
use crate::usage::{self, Known};
use crate::watch::Change;
use crate::{Hubs, Parts, Start};
use keep::Keeper;
pub(crate) use observe::World;

const HOLD: Ticket = "hold";
const DELETE: Ticket = "delete";
const RELEASE: Ticket = "release";

pub(crate) fn start(start: &Start, hubs: &mut Hubs, parts: &mut Parts) {
    let keeper = Arc::new(Keeper::new(&start.options));
    let revisions = Revisions {
        users: Known::new(hubs),
        kin: Kin::new(hubs),
        keeper: Arc::clone(&keeper),
    };
    let controller = Controller::new(revisions, &mut hubs.revisions, targets)
        .follows_by(&mut hubs.bundles, moved)
        .follows_by(&mut hubs.revisions, siblings)
        .follows_by(&mut hubs.registries, settings)
        .follows_by(&mut hubs.instances, |change| {
            turned(change, usage::of_instance)
        })
        .follows_by(&mut hubs.bindings, |change| {
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
    kin: Kin,
    keeper: Arc<Keeper>,
}

impl Beats for Revisions {
    type Kind = BundleRevision;
    type World = World;
    const NAME: &'static str = field_manager::BUNDLE_REVISION;
    const NEWS: News = News {
        // Most revisions are never used.
        usual: &[reason::NOT_FETCHED],
        ..News::PLAIN
    };

    async fn observe(&self, ctx: &Ctx, object: BundleRevision) -> Result<World, Error> {
        observe::observe(ctx, &self.users, &self.kin, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn absorb(&self, world: &mut World, ticket: Ticket, answer: Option<DynamicObject>) {
        world.absorb(ticket, answer);
    }

    async fn reach_out(&self, ctx: &Ctx, world: &mut World) -> Result<(), Error> {
        self.keeper.keep(ctx, world).await;
        Ok(())
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn again(&self, world: &World, now: Timestamp) -> Option<Duration> {
        self.keeper.again(world, now)
    }
}
