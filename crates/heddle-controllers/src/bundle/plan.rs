//! Plan: held from the start, written as `Sweeping` before it goes, and remembered before it is gone.

use heddle_api::bundle::{BundlePhase, Mark};
use heddle_api::tombstone::Tombstone;
use heddle_api::well_known::FINALIZER;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::observe::World;
use super::phase;
use super::{DELETE, HOLD, RELEASE, SWEEP, TOMBSTONE};
use crate::operation::whole_seconds;
use crate::reconcile::Step;
use heddle_api::offer::bundle::{Origin, name};

pub(super) fn plan(world: &World) -> Vec<Step> {
    let (bundle, inputs) = (&world.bundle, world.inputs());
    if phase::is_to_go(&inputs, world.now) {
        return removal(world);
    }
    if phase::is_to_sweep(&inputs, world.now) {
        // Exactly the state that was looked at: whoever sees it again in the meantime wins.
        let status = json!({"phase": BundlePhase::Sweeping});
        let sweep = Step::swap_status(SWEEP, bundle, &status);
        return sweep.into_iter().collect();
    }
    Step::hold(HOLD, bundle, FINALIZER).into_iter().collect()
}

/// The only place where bundles are deleted.
fn removal(world: &World) -> Vec<Step> {
    let bundle = &world.bundle;
    let gone = match bundle.metadata.deletion_timestamp {
        // The finalizer stays for another reconcile, which looks for users again.
        None => Step::remove_unchanged(DELETE, Some(bundle)),
        Some(_) => Step::release(RELEASE, bundle, FINALIZER),
    };
    tombstone(world).into_iter().chain(gone).collect()
}

fn tombstone(world: &World) -> Option<Step> {
    let spec = &world.bundle.spec;
    let mark: Mark = world.status().mark?;
    let known = world.tombstone.as_ref();
    if known.is_some_and(|known| known.withdrawn_at == mark.since && known.reason == mark.reason) {
        return None;
    }
    let called = world.current().and_then(|revision| {
        let name = revision.spec.description.get("name");
        name.and_then(Value::as_str)
    });
    let tags = (world.registry.as_ref()).map(|registry| registry.spec.tags.clone());
    let origin = Origin {
        registry: &spec.registry,
        repository: &spec.repository,
        track: &spec.track,
        is_default_track: spec.track == tags.unwrap_or_default().default,
    };
    let tombstone = Tombstone {
        service_id: spec.service_id.clone(),
        name: called.map_or_else(|| spec.repository.clone(), |called| name(&origin, called)),
        registry: spec.registry.clone(),
        image: format!("{}:{}", spec.repository, spec.track),
        reason: mark.reason,
        withdrawn_at: mark.since,
        gone_at: whole_seconds(world.now),
    };
    let wanted = json!(tombstone.to_config_map());
    Step::ensure::<ConfigMap>(TOMBSTONE, wanted, None)
}
