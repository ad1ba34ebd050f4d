//! Phase: whether a bundle is offered, withdrawn, or may go, from everything that has a say in it. Pure.
//!
//! | what is so                                            | what follows             | may it be swept?    |
//! |-------------------------------------------------------|--------------------------|---------------------|
//! | somebody withdrew it                                  | Admin                    | yes                 |
//! | its registry is gone, or going                        | RegistryRemoved          | yes, without grace  |
//! | enough readings proved that it is gone                | what they say            | yes                 |
//! | somebody deleted it                                   | Admin                    | yes, without grace  |
//! | its registry cannot be read, and is set to hide       | HiddenByStalePolicy      | never               |
//! | otherwise, also when its registry cannot be read      | Live                     |                     |

use std::time::Duration;

use heddle_api::Registry;
use heddle_api::bundle::{BundlePhase, BundleStatus, Mark, MarkReason, Seen};
use heddle_api::registry::{RegistrySpec, StaleMode, StalePolicy};
use jiff::{SignedDuration, Timestamp};

use crate::operation::whole_seconds;

/// How often a bundle that waits for its last user is looked at, however quiet it is.
const PERIOD: Duration = Duration::from_secs(60);
/// Registries that are set to hide and say no more hide after the first failure.
const HIDE_AFTER_FAILURES: i32 = 1;

/// Everything that has a say in a bundle's phase.
#[derive(Debug, Clone)]
pub(crate) struct PhaseInputs {
    pub before: BundleStatus,
    /// Somebody withdrew it.
    pub is_withdrawn: bool,
    /// Somebody deleted it.
    pub is_deleted: bool,
    /// `None` if it is gone.
    pub registry: Option<RegistryView>,
    /// Whether anything refers to it; `None` if nobody looked, which counts as yes.
    pub is_used: Option<bool>,
}

/// A registry, as its bundles see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegistryView {
    pub is_leaving: bool,
    /// Since when it cannot be read; `None` if it can.
    pub stale_since: Option<Timestamp>,
    /// Whether it failed often enough to hide its bundles.
    is_hidden_by_failures: bool,
    /// After how long without success it hides its bundles.
    hide_after: Option<SignedDuration>,
    pub confirmations: i32,
    grace: SignedDuration,
}

pub(crate) fn view(registry: &Registry) -> RegistryView {
    let (spec, status) = (&registry.spec, registry.status.as_ref());
    let failures = status.and_then(|status| status.consecutive_failures);
    let failures = failures.unwrap_or_default();
    let last_success = status.and_then(|status| status.last_success.as_ref());
    let since = last_success.or(registry.metadata.creation_timestamp.as_ref());
    let since = since.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let (by_failures, hide_after) = limits(&spec.stale_policy);
    RegistryView {
        is_leaving: registry.metadata.deletion_timestamp.is_some(),
        stale_since: (failures > 0).then_some(since),
        is_hidden_by_failures: by_failures.is_some_and(|limit| failures >= limit),
        hide_after,
        confirmations: spec.removal_confirmations,
        grace: grace(spec),
    }
}

/// After how many failures, and after how long, bundles are hidden.
fn limits(policy: &StalePolicy) -> (Option<i32>, Option<SignedDuration>) {
    match policy.mode {
        StaleMode::Keep => (None, None),
        StaleMode::Hide => {
            let seconds = policy.hide_after_seconds.map(i64::from);
            let failures = match (policy.hide_after_failures, seconds) {
                (None, None) => Some(HIDE_AFTER_FAILURES),
                (failures, _) => failures,
            };
            (failures, seconds.map(SignedDuration::from_secs))
        }
    }
}

fn grace(spec: &RegistrySpec) -> SignedDuration {
    let seconds = spec.sweep_grace_seconds;
    let seconds = seconds.unwrap_or(spec.refresh_interval_seconds);
    SignedDuration::from_secs(i64::from(seconds))
}

impl RegistryView {
    /// When its bundles are hidden, if nothing changes; `None` if that never happens.
    fn hidden_from(&self) -> Option<Timestamp> {
        let since = self.stale_since?;
        if self.is_hidden_by_failures {
            return Some(since);
        }
        since.checked_add(self.hide_after?).ok()
    }
}

/// Why the bundle is withdrawn now, and which SyncRun found out.
fn reason(inputs: &PhaseInputs, now: Timestamp) -> Option<(MarkReason, Option<String>)> {
    if inputs.is_withdrawn {
        return Some((MarkReason::Admin, None));
    }
    let Some(registry) = (inputs.registry.as_ref()).filter(|registry| !registry.is_leaving) else {
        return Some((MarkReason::RegistryRemoved, None));
    };
    let seen: Option<&Seen> = inputs.before.seen.as_ref();
    let absence = seen.and_then(|seen| seen.absence.as_ref());
    if let Some(absence) = absence.filter(|absence| absence.readings >= registry.confirmations) {
        return Some((absence.reason, Some(absence.sync_run.clone())));
    }
    if inputs.is_deleted {
        return Some((MarkReason::Admin, None));
    }
    let is_hidden = registry.hidden_from().is_some_and(|from| from <= now);
    is_hidden.then_some((MarkReason::HiddenByStalePolicy, None))
}

/// Where the bundle is in its life, and why and since when it is withdrawn if it is. Never `Sweeping`, unless it already
/// was and nothing speaks against it: that step is taken by [`is_to_sweep`].
pub(crate) fn phase(inputs: &PhaseInputs, now: Timestamp) -> (BundlePhase, Option<Mark>) {
    let Some((reason, sync_run)) = reason(inputs, now) else {
        return (BundlePhase::Live, None);
    };
    let earlier = inputs.before.mark.as_ref();
    let earlier = earlier.filter(|mark| mark.reason == reason);
    let mark = Mark {
        reason,
        since: earlier.map_or_else(|| whole_seconds(now), |mark| mark.since.clone()),
        sync_run: earlier.map_or(sync_run, |mark| mark.sync_run.clone()),
    };
    let was_sweeping = inputs.before.phase == BundlePhase::Sweeping;
    let goes_on = was_sweeping && is_sweepable(reason) && inputs.is_used != Some(true);
    let phase = if goes_on {
        BundlePhase::Sweeping
    } else {
        BundlePhase::Marked
    };
    (phase, Some(mark))
}

/// Whether a bundle that is withdrawn for this reason may ever be removed.
fn is_sweepable(reason: MarkReason) -> bool {
    match reason {
        MarkReason::HiddenByStalePolicy => false,
        MarkReason::RemovedFromRegistry
        | MarkReason::TagRemoved
        | MarkReason::NotABundle
        | MarkReason::Filtered
        | MarkReason::RegistryRemoved
        | MarkReason::Admin => true,
    }
}

/// When the bundle may begin to go if nothing uses it: `None` if it may not. The mark has to have been written before, so
/// that everybody had the chance to see it.
fn sweepable_from(inputs: &PhaseInputs, now: Timestamp) -> Option<Timestamp> {
    let (phase, mark) = phase(inputs, now);
    let mark = mark.filter(|mark| is_sweepable(mark.reason))?;
    let is_known =
        inputs.before.phase == BundlePhase::Marked && inputs.before.mark.as_ref() == Some(&mark);
    if phase != BundlePhase::Marked || !is_known {
        return None;
    }
    let nobody_waits = inputs.is_deleted || mark.reason == MarkReason::RegistryRemoved;
    let grace = match &inputs.registry {
        Some(registry) if !nobody_waits => registry.grace,
        _ => SignedDuration::ZERO,
    };
    Some(mark.since.0.saturating_add(grace).unwrap_or(Timestamp::MAX))
}

/// Whether somebody should look who uses the bundle: a costly question, asked only where the answer decides.
pub(crate) fn is_to_look(inputs: &PhaseInputs, now: Timestamp) -> bool {
    inputs.before.phase == BundlePhase::Sweeping
        || inputs.is_deleted
        || sweepable_from(inputs, now).is_some_and(|from| from <= now)
}

/// Whether the bundle is to be written as `Sweeping`.
pub(crate) fn is_to_sweep(inputs: &PhaseInputs, now: Timestamp) -> bool {
    inputs.is_used == Some(false) && sweepable_from(inputs, now).is_some_and(|from| from <= now)
}

/// Whether the bundle is to go: it was written as `Sweeping` before somebody looked for users, and there are none.
pub(crate) fn is_to_go(inputs: &PhaseInputs, now: Timestamp) -> bool {
    inputs.before.phase == BundlePhase::Sweeping
        && inputs.is_used == Some(false)
        && phase(inputs, now).0 == BundlePhase::Sweeping
}

/// When time alone changes something.
pub(crate) fn requeue_after(inputs: &PhaseInputs, now: Timestamp) -> Option<Duration> {
    let hidden_from = (inputs.registry.as_ref()).and_then(RegistryView::hidden_from);
    let ends = [hidden_from, sweepable_from(inputs, now)];
    let ends = ends.into_iter().flatten().filter(|end| *end > now);
    let next = ends.min().map(|end| end.duration_since(now).unsigned_abs());
    let is_late = sweepable_from(inputs, now).is_some_and(|from| from <= now);
    let is_sweeping = inputs.before.phase == BundlePhase::Sweeping;
    let waits = is_late || inputs.is_deleted || is_sweeping;
    next.or_else(|| waits.then_some(PERIOD))
}
