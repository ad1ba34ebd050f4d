//! Bundle: offered, withdrawn or on its way out, and the only place where bundles are deleted.
//!
//! ```text
//!   Live <──seen again── Marked ──nothing uses it, grace over──> Sweeping ──nobody turned up──> tombstone, gone
//!     └──a reason──────────^  ^──────────somebody turned up────────┘
//! ```
//! A platform may ask for an instance while its bundle is being swept. Each side writes before it reads: the front makes
//! the instance and then looks at the bundle, this controller writes `Sweeping` and then looks for instances. So at least
//! one sees the other: either the front takes its instance back, or the bundle stays. Both reads are live.
//!
//! Promises: a bundle that something refers to is not removed, whoever asks for it; what is hidden only because its registry
//! cannot be read is not removed; every removal goes through a mark and leaves a tombstone. What is in the registry is told
//! by the controller of Registries, in `status.seen`, which is not written here.

mod observe;
pub(crate) mod phase;
mod plan;
#[cfg(test)]
mod race;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use heddle_api::bundle::condition;
use heddle_api::well_known::field_manager;
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;

use crate::bundle_index::BundleIndex;
use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler, Step, StepName};
use crate::references::Target;
use crate::usage::{self, Known, offering};
use crate::watch::Change;
use crate::{ControllerStart, Parts, Watches};
use observe::World;

const HOLD: StepName = "hold";
const SWEEP: StepName = "sweep";
const TOMBSTONE: StepName = "tombstone";
const DELETE: StepName = "delete";
const RELEASE: StepName = "release";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let numbers = start.options.numbers.clone();
    (watches.bundles).on_change(move |change| match change {
        Change::Applied { old, new, .. } => numbers.bundle(old.map(|old| &**old), new),
        Change::Listed(bundle) => numbers.bundle(None, bundle),
        Change::Deleted(bundle) => numbers.bundle_gone(bundle),
    });
    let bundles = Bundles {
        users: Known::new(watches),
        bundle_index: BundleIndex::new(watches),
    };
    let controller = Controller::new(bundles, &mut watches.bundles, targets)
        .requeue_referrers_of(&mut watches.registries, moved)
        .requeue_referrers_of(&mut watches.instances, |change| {
            left(change, usage::of_instance)
        })
        .requeue_referrers_of(&mut watches.bindings, |change| {
            left(change, usage::of_binding)
        })
        .requeue_referrers_of(&mut watches.bundles, rivals)
        .requeue_mapped(&mut watches.revisions, of_revision);
    start.add(controller, parts);
}

fn targets(bundle: &Bundle) -> Vec<Target> {
    vec![
        Target::of::<Registry>("", &bundle.spec.registry),
        offering(&bundle.spec.service_id),
    ]
}

/// A registry is read every few minutes; its bundles need to know only when that changes something for them.
fn moved(change: &Change<'_, Registry>) -> Vec<Target> {
    if let Change::Applied {
        old: Some(old),
        new,
        ..
    } = change
        && phase::view(old) == phase::view(new)
    {
        return Vec::new();
    }
    vec![Target::of::<Registry>("", &change.object().name_any())]
}

/// The last user of a bundle may have gone.
fn left<K>(change: &Change<'_, K>, uses: fn(&K) -> Vec<Target>) -> Vec<Target> {
    match change {
        Change::Deleted(user) => uses(user),
        _ => Vec::new(),
    }
}

/// A bundle of the same offering came, went, or is in another phase.
fn rivals(change: &Change<'_, Bundle>) -> Vec<Target> {
    let phase = |bundle: &Bundle| bundle.status.as_ref().map(|status| status.phase);
    let is_news = match change {
        Change::Applied {
            old: Some(old),
            new,
            ..
        } => phase(old) != phase(new),
        Change::Listed(_) => false,
        Change::Applied { old: None, .. } | Change::Deleted(_) => true,
    };
    let offering = || offering(&change.object().spec.service_id);
    is_news.then(offering).into_iter().collect()
}

fn of_revision(revision: &BundleRevision) -> Option<ObjectRef<Bundle>> {
    Some(ObjectRef::new(&revision.spec.bundle))
}

#[derive(Debug)]
pub(crate) struct Bundles {
    users: Known,
    bundle_index: BundleIndex,
}

impl Reconciler for Bundles {
    type Kind = Bundle;
    type World = World;
    const NAME: &'static str = field_manager::BUNDLE;
    /// What readings say is written by the controller of Registries.
    const FOREIGN_FIELDS: &'static [&'static str] = &["seen"];
    const NOTICES: Notices = Notices {
        also: &[condition::REVISION_ACCEPTED],
        usual: &[],
        phases: &[(
            "Sweeping",
            "nothing uses the withdrawn bundle, so it is being removed",
        )],
        ..Notices::PLAIN
    };

    async fn observe(&self, ctx: &Ctx, object: Bundle) -> Result<World, Error> {
        observe::observe(ctx, &self.users, &self.bundle_index, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn on_applied(&self, world: &mut World, step_name: StepName, answer: Option<DynamicObject>) {
        world.absorb(step_name, answer);
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        phase::requeue_after(&world.inputs(), now)
    }
}
