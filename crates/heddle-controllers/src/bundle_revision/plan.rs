//! Plan: held from the start, deleted when it is of no use, let go when it is certain that it is of none.

use heddle_api::BundleRevision;
use heddle_api::registry::RegistrySpec;
use heddle_api::well_known::FINALIZER;
use kube::ResourceExt as _;

use super::observe::World;
use super::{DELETE, HOLD, RELEASE};
use crate::reconcile::Step;

/// Unused revisions that are kept of a bundle whose registry is gone: none, since nothing new comes from there.
const HISTORY_WITHOUT_REGISTRY: usize = 0;

pub(crate) fn plan(world: &World) -> Vec<Step> {
    let revision = &world.revision;
    // Nothing is removed on the word of a cache.
    let looked = world.usage.is_some();
    let step = if revision.metadata.deletion_timestamp.is_some() {
        // Somebody may have pinned it before they could see that it is to go.
        Step::release(RELEASE, revision, FINALIZER).filter(|_| looked && !is_needed(world))
    } else if looked && is_surplus(world) {
        Step::remove_unchanged(DELETE, Some(revision))
    } else {
        Step::hold(HOLD, revision, FINALIZER)
    };
    step.into_iter().collect()
}

/// Whether a revision that is to go has to wait. One that is only about to become current need not: the bundle does not
/// take one that goes, and the next reading makes it again.
fn is_needed(world: &World) -> bool {
    let status = world
        .bundle
        .as_ref()
        .and_then(|bundle| bundle.status.as_ref());
    let current = status.and_then(|status| status.current_revision.as_ref());
    world.is_used(&world.revision) || current == Some(&world.revision.name_any())
}

/// Whether the revision is of no use: not current, used by nobody, and not among the newest of those.
pub(super) fn is_surplus(world: &World) -> bool {
    let is_unused =
        |revision: &BundleRevision| !world.is_current(revision) && !world.is_used(revision);
    if !is_unused(&world.revision) {
        return false;
    }
    if world.bundle.is_none() {
        return true;
    }
    let spec = world.registry.as_ref().map(|registry| &registry.spec);
    let history = spec.map_or(HISTORY_WITHOUT_REGISTRY, |spec: &RegistrySpec| {
        usize::try_from(spec.revision_history).unwrap_or_default()
    });
    let age = |revision: &BundleRevision| (revision.creation_timestamp(), revision.name_any());
    let unused = world.siblings.iter().filter(|other| is_unused(other));
    let newer = unused.filter(|other| age(other) > age(&world.revision));
    newer.count() >= history
}
