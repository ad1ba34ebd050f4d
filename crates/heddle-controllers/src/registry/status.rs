//! Status: how the last reading went, what is suspected, and how many bundles there are.

use heddle_api::conditions::{Condition, Reason, Status};
use heddle_api::evidence::Trouble;
use heddle_api::registry::{CONDITIONS, RegistryStatus, condition, reason};
use jiff::Timestamp;
use serde_json::Value;

use super::due;
use super::observe::{Outcome, World};
use crate::operation::whole_seconds;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    if world.is_released {
        return None;
    }
    let registry = &world.registry;
    let mut status = registry.status.clone().unwrap_or_default();
    status.observed_generation = registry.metadata.generation;
    status.live_bundle_count = Some(world.counts.live);
    status.marked_bundle_count = Some(world.counts.withdrawn);
    // A reading that could not be written down completely did not take place.
    if let (Some(outcome), true) = (&world.outcome, world.is_concluded) {
        take_in(&mut status, world, outcome);
        status.conditions.set(reachable(outcome), now);
        let stale = stale(&status, outcome);
        status.conditions.set(stale, now);
    }
    if !world.is_served {
        let message = "no store of bundles runs here that could read the registry";
        let unknown = Condition::unknown(condition::REACHABLE, reason::NO_BUNDLES, message);
        status.conditions.set(unknown, now);
    }
    let converged = converged(&status, registry.metadata.generation);
    status.conditions.set(converged, now);
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn take_in(status: &mut RegistryStatus, world: &World, outcome: &Outcome) {
    status.last_sync_run = world.run.as_ref().map(|run| run.name.clone());
    status.last_reading = Some(whole_seconds(outcome.ended));
    status.answered_request = due::request(&world.registry).map(str::to_owned);
    status.suspicion.clone_from(&outcome.judged.suspicion);
    if outcome.is_success() {
        status.last_success = Some(whole_seconds(outcome.ended));
        status.consecutive_failures = Some(0);
        status.converged_generation = world.registry.metadata.generation;
    } else {
        let failures = status.consecutive_failures.unwrap_or_default();
        status.consecutive_failures = Some(failures.saturating_add(1));
    }
}

fn reachable(outcome: &Outcome) -> Condition {
    match &outcome.trouble {
        None => Condition::met(condition::REACHABLE),
        Some(trouble) => Condition::unmet(condition::REACHABLE, why(trouble), trouble.message()),
    }
}

fn why(trouble: &Trouble) -> Reason {
    match trouble {
        Trouble::Unreachable(_) => reason::UNREACHABLE,
        Trouble::AuthenticationFailed(_) => reason::AUTHENTICATION_FAILED,
        Trouble::ListingIncomplete(_) => reason::LISTING_INCOMPLETE,
        Trouble::Misconfigured(_) => reason::MISCONFIGURED,
    }
}

fn stale(status: &RegistryStatus, outcome: &Outcome) -> Condition {
    if outcome.is_success() {
        let message = "its offerings are those of the last reading";
        return Condition::unmet(condition::STALE, reason::FRESH, message);
    }
    let message = match &status.last_success {
        Some(_) => "its offerings are those of the last reading that succeeded",
        None => "it was never read",
    };
    Condition {
        message: Some(message.to_owned()),
        ..Condition::met(condition::STALE)
    }
}

fn converged(status: &RegistryStatus, generation: Option<i64>) -> Condition {
    let type_ = condition::CONVERGED;
    if let Some(suspicion) = &status.suspicion {
        let message = format!(
            "{} disappeared at once, in {} so far; nothing is withdrawn before that is confirmed by \
             further readings, or approved as {}",
            heddle_api::counted(suspicion.count, "bundle"),
            heddle_api::counted(suspicion.readings, "reading"),
            suspicion.id
        );
        return Condition::unmet(type_, reason::SUSPECTED_MASS_REMOVAL, message);
    }
    if status.converged_generation.is_some() && status.converged_generation == generation {
        return Condition::met(type_);
    }
    let message = match status.conditions.find(condition::REACHABLE.name) {
        Some(reachable) if reachable.status == Status::False => {
            "it could not be read as it is configured"
        }
        _ => "it is read for the first time as it is configured",
    };
    Condition::unmet(type_, reason::NEVER_READ, message)
}
