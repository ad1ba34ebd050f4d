//! When a registry is to be read, and why. Pure, given what this process remembers.

use std::time::Duration;

use heddle_api::Registry;
use heddle_api::sync_run::SyncCause;
use heddle_api::well_known::{APPROVED_ANNOTATION, SYNC_ANNOTATION};
use jiff::Timestamp;
use kube::ResourceExt as _;

/// What this process remembers of its last reading of a registry. A process that remembers none has just started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Name of its SyncRun.
    pub run: String,
    pub cause: SyncCause,
    /// Of the settings that were read by, successfully or not.
    pub generation: Option<i64>,
    /// Version of the Secret that was read with.
    pub secret: Option<String>,
    /// The approval that was seen.
    pub approved: Option<String>,
    /// When the next reading is due if nothing happens.
    pub next: Timestamp,
}

/// Why the registry has to be read now, if it has to. Several reasons at once are one reading.
pub(super) fn cause(
    registry: &Registry,
    secret: Option<&str>,
    memory: Option<&Memory>,
    now: Timestamp,
) -> Option<SyncCause> {
    if registry.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = registry.status.as_ref();
    let last_run = status.and_then(|status| status.last_sync_run.as_ref());
    let Some(memory) = memory else {
        return Some(match last_run {
            Some(_) => SyncCause::Startup,
            None => SyncCause::ConfigChange,
        });
    };
    if last_run != Some(&memory.run) {
        // What came of it could not be written down.
        return Some(memory.cause);
    }
    let answered = status.and_then(|status| status.answered_request.as_deref());
    let asked = request(registry).is_some_and(|request| Some(request) != answered);
    let suspicion = status.and_then(|status| status.suspicion.as_ref());
    let is_approved = suspicion.is_some_and(|suspicion| approval(registry) == Some(&suspicion.id))
        && memory.approved.as_deref() != approval(registry);
    if asked || is_approved {
        Some(SyncCause::Manual)
    } else if registry.metadata.generation != memory.generation
        || memory.secret.as_deref() != secret
    {
        Some(SyncCause::ConfigChange)
    } else {
        (memory.next <= now).then_some(SyncCause::Interval)
    }
}

/// How long until the next reading is due.
pub(super) fn requeue_after(memory: Option<&Memory>, now: Timestamp) -> Option<Duration> {
    let left = memory?.next.duration_since(now);
    Some(Duration::try_from(left).unwrap_or_default())
}

/// The request for a reading that somebody left at the Registry.
pub(super) fn request(registry: &Registry) -> Option<&str> {
    let annotations = registry.annotations();
    annotations.get(SYNC_ANNOTATION).map(String::as_str)
}

/// The suspicion that somebody approved.
pub(super) fn approval(registry: &Registry) -> Option<&str> {
    let annotations = registry.annotations();
    annotations.get(APPROVED_ANNOTATION).map(String::as_str)
}
