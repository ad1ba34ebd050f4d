//! Plan: before a reading its record, after it what it brought, and the end of a Registry that has no bundles left.

use heddle_api::bundle::Seen;
use heddle_api::conditions::{Condition, Conditions, Reason};
use heddle_api::sync_run::{CONDITIONS, SyncRunStatus, condition, reason};
use heddle_api::well_known::{FINALIZER, MANAGED_BY, MANAGED_BY_LABEL, REGISTRY_LABEL};
use heddle_api::{Bundle, BundleRevision, Registry, SyncRun, names};
use jiff::Timestamp;
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::observe::{Outcome, Run, World};
use super::{BUNDLE, HOLD, RELEASE, REVISION, RUN, RUN_END, RUN_REMOVAL, RUN_STATE, SEEN};
use crate::operation::whole_seconds;
use crate::reconcile::Step;

/// Records of readings that are kept, the one under way included.
const RUNS_MAX: usize = 20;

pub(super) fn plan(world: &World) -> Vec<Step> {
    let registry = &world.registry;
    if registry.metadata.deletion_timestamp.is_some() {
        // Its bundles are withdrawn for want of it, and go when nothing uses them.
        let release = Step::release(RELEASE, registry, FINALIZER);
        return release
            .into_iter()
            .filter(|_| world.bundles.is_empty())
            .collect();
    }
    // Held before there is anything of it that could be left behind.
    let mut steps: Vec<Step> = Step::hold(HOLD, registry, FINALIZER).into_iter().collect();
    if let Some(run) = &world.run {
        steps.extend(world.runs.iter().filter_map(|run| interrupted(run, world)));
        steps.extend(old(&world.runs));
        steps.push(begun(run, registry));
        let status = state(
            run,
            None,
            Condition::unknown(
                condition::COMPLETED,
                reason::RUNNING,
                "the registry is being read",
            ),
        );
        steps.push(Step::state::<SyncRun>(RUN_STATE, &run.name, &status));
    }
    steps
}

/// What a reading brought. A revision that no bundle names is of no use and would be collected, so it is named before it is
/// made; the bundle stays with the one it has until then. Nothing is known to be gone before what replaces it is there.
pub(super) fn conclude(world: &World) -> Vec<Step> {
    let (Some(run), Some(outcome)) = (&world.run, &world.outcome) else {
        return Vec::new();
    };
    let judged = &outcome.judged;
    let registry = world.registry.name_any();
    let bundles = judged.new_bundles.iter();
    let bundles = bundles.map(|(name, spec)| made::<Bundle>(BUNDLE, name, &registry, json!(spec)));
    let seen = judged.seen.iter().map(|(name, seen)| saw(name, seen));
    let revisions = judged.new_revisions.iter();
    let revisions = revisions
        .map(|(name, spec)| made::<BundleRevision>(REVISION, name, &registry, json!(spec)));
    let absent = judged.absent.iter().map(|(name, seen)| saw(name, seen));
    bundles
        .chain(seen)
        .chain(revisions)
        .chain(absent)
        .chain([ended(run, outcome)])
        .collect()
}

fn saw(bundle: &str, seen: &Seen) -> Step {
    Step::state::<Bundle>(SEEN, bundle, &json!({"seen": seen}))
}

/// A bundle or revision, held from its first moment.
fn made<K: Resource<DynamicType = ()>>(
    step_name: crate::reconcile::StepName,
    name: &str,
    registry: &str,
    spec: Value,
) -> Step {
    let mut metadata = metadata(name, registry);
    metadata["finalizers"] = json!([FINALIZER]);
    let object = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "spec": spec,
    });
    Step::create::<K>(step_name, object)
}

fn metadata(name: &str, registry: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            REGISTRY_LABEL: names::registry_label(registry), MANAGED_BY_LABEL: MANAGED_BY,
        },
    })
}

/// Runs go with their Registry.
fn begun(run: &Run, registry: &Registry) -> Step {
    let mut metadata = metadata(&run.name, &registry.name_any());
    metadata["ownerReferences"] = json!(registry.controller_owner_ref(&()).as_slice());
    let object = json!({
        "apiVersion": SyncRun::api_version(&()), "kind": SyncRun::kind(&()), "metadata": metadata,
        "spec": {"registry": registry.name_any(), "cause": run.cause},
    });
    Step::create::<SyncRun>(RUN, object)
}

fn ended(run: &Run, outcome: &Outcome) -> Step {
    let end = match &outcome.trouble {
        None => Condition::met(condition::COMPLETED),
        Some(trouble) => Condition::unmet(condition::COMPLETED, reason::FAILED, trouble.message()),
    };
    let status = state(run, Some(outcome), end);
    Step::state::<SyncRun>(RUN_END, &run.name, &status)
}

fn state(run: &Run, outcome: Option<&Outcome>, completed: Condition) -> Value {
    let mut status = SyncRunStatus {
        observed_generation: Some(1),
        started_at: Some(whole_seconds(run.began)),
        ..SyncRunStatus::default()
    };
    if let Some(outcome) = outcome {
        let judged = &outcome.judged;
        let counts = judged.counts;
        status.finished_at = Some(whole_seconds(outcome.ended));
        status.present = Some(counts.present);
        status.absent = Some(counts.absent);
        status.unknown = Some(counts.unknown);
        status.added = Some(counts.added);
        status.updated = Some(counts.updated);
        status.marked = Some(counts.marked);
        status.unmarked = Some(counts.unmarked);
        status.requests = Some(i64::try_from(outcome.requests).unwrap_or(i64::MAX));
        status.findings.clone_from(&judged.findings);
        status.errors.clone_from(&judged.errors);
    }
    let now = outcome.map_or(run.began, |outcome| outcome.ended);
    status.conditions = conditions(completed, now);
    json!(status)
}

fn conditions(completed: Condition, now: Timestamp) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.set(completed, now);
    CONDITIONS.conclude(&mut conditions, now);
    conditions
}

/// A run that is over in no known way: another begins, so nobody works on it any more.
fn interrupted(run: &SyncRun, world: &World) -> Option<Step> {
    let status = run.status.clone().unwrap_or_default();
    let known: Option<Reason> = [reason::FAILED, reason::INTERRUPTED]
        .into_iter()
        .find(|known| {
            let completed = status.conditions.find(condition::COMPLETED.name);
            completed.and_then(|completed| completed.reason.as_deref()) == Some(known.name)
        });
    if status.conditions.is_true(condition::COMPLETED.name) || known.is_some() {
        return None;
    }
    let now = world.run.as_ref()?.began;
    let end = Condition::unmet(
        condition::COMPLETED,
        reason::INTERRUPTED,
        "the server stopped before the reading ended, or could not write what came of it",
    );
    let status = SyncRunStatus {
        conditions: conditions(end, now),
        finished_at: Some(whole_seconds(now)),
        ..status
    };
    Some(Step::state::<SyncRun>(
        RUN_STATE,
        &run.name_any(),
        &json!(status),
    ))
}

/// The oldest runs, as far as there are too many with the one that begins.
fn old(runs: &[SyncRun]) -> Vec<Step> {
    let mut runs: Vec<&SyncRun> = runs.iter().collect();
    runs.sort_by_key(|run| (run.creation_timestamp(), run.name_any()));
    let surplus = (runs.len() + 1).saturating_sub(RUNS_MAX);
    let surplus = runs.into_iter().take(surplus);
    surplus
        .filter_map(|run| Step::remove(RUN_REMOVAL, Some(run)))
        .collect()
}
