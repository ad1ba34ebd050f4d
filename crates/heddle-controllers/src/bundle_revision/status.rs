//! Status: whether the image is kept here, and why not if it is not.

use heddle_api::bundle_revision::{BundleRevisionStatus, CONDITIONS, condition, reason};
use heddle_api::bundle_source::FetchError;
use heddle_api::conditions::Condition;
use jiff::Timestamp;
use serde_json::Value;

use super::observe::World;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    if world.is_released {
        return None;
    }
    let mut status = world.revision.status.clone().unwrap_or_default();
    status.observed_generation = world.revision.metadata.generation;
    if let Some(cached) = cached(world, &status) {
        status.conditions.set(cached, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

/// `None` to leave it as it is: a failure is told until the next attempt, whenever somebody looks.
fn cached(world: &World, before: &BundleRevisionStatus) -> Option<Condition> {
    let type_ = condition::CACHED;
    let Some(is_kept) = world.is_kept else {
        let message = "no store of bundles runs here that could keep the image";
        return Some(Condition::unknown(type_, reason::NO_BUNDLES, message));
    };
    if is_kept {
        return Some(Condition::met(type_));
    }
    if let Some(trouble) = &world.trouble {
        let reason = match trouble {
            FetchError::Mismatch(_) => reason::DIGEST_MISMATCH,
            FetchError::Refused(_) => reason::IMAGE_REFUSED,
            FetchError::Unavailable(_) => reason::FETCH_FAILED,
        };
        return Some(Condition::unmet(type_, reason, trouble.to_string()));
    }
    let is_told = before.conditions.find(type_.name).is_some_and(|known| {
        let reason = known.reason.as_deref();
        let failures = [
            reason::FETCH_FAILED,
            reason::IMAGE_REFUSED,
            reason::DIGEST_MISMATCH,
        ];
        failures.iter().any(|failure| Some(failure.name) == reason)
    });
    if is_told && world.is_used(&world.revision) {
        return None;
    }
    let message = "no instance needs the image yet";
    Some(Condition::unmet(type_, reason::NOT_FETCHED, message))
}
