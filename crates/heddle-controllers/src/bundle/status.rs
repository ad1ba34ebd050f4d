//! Status: phase and mark, the revision that new instances get, and what keeps a bundle from being offered.

use heddle_api::bundle::{BundlePhase, BundleStatus, CONDITIONS, Mark, condition, reason};
use heddle_api::conditions::{Condition, Severity};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::Value;

use super::observe::World;
use super::phase;

/// Users that are named; more are counted.
const NAMED_MAX: usize = 3;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    if world.is_released {
        return None;
    }
    let before = world.status();
    let (phase, mark) = phase::phase(&world.inputs(), now);
    let current = world.current();
    let mut status = BundleStatus {
        observed_generation: world.bundle.metadata.generation,
        phase,
        current_revision: current.map(ResourceExt::name_any),
        bundle_version: current.and_then(|revision| revision.spec.bundle_version.clone()),
        conditions: before.conditions,
        // Written by the controller of Registries.
        seen: None,
        mark,
    };
    for condition in [
        offered(world, phase, status.mark.as_ref()),
        revision_accepted(world),
        stale(world),
    ] {
        status.conditions.set(condition, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn offered(world: &World, phase: BundlePhase, mark: Option<&Mark>) -> Condition {
    let type_ = condition::OFFERED;
    if let (BundlePhase::Marked | BundlePhase::Sweeping, Some(mark)) = (phase, mark) {
        let mut message = format!("withdrawn: {:?}", mark.reason);
        if let Some(users) = world.users.as_ref().filter(|users| !users.is_empty()) {
            message = format!("{message}; kept for {}", named(users));
        }
        return Condition::unmet(type_, reason::WITHDRAWN, message);
    }
    if let Some(rival) = &world.rival {
        let message = format!("Bundle {rival} is older and has the same service id");
        return Condition::unmet(type_, reason::NAME_TAKEN, message);
    }
    if world.current().is_none() {
        let seen = world
            .bundle
            .status
            .as_ref()
            .and_then(|status| status.seen.as_ref());
        let message = match seen.and_then(|seen| seen.revision.as_ref()) {
            Some(revision) => format!(
                "BundleRevision {revision} is gone or going; the next reading of the registry makes it again"
            ),
            None => "no image of it can be used".to_owned(),
        };
        return Condition::unmet(type_, reason::NO_VALID_REVISION, message);
    }
    Condition::met(type_)
}

fn named(users: &[String]) -> String {
    let first: Vec<&str> = users.iter().take(NAMED_MAX).map(String::as_str).collect();
    let text = first.join(", ");
    match users.len().saturating_sub(NAMED_MAX) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn revision_accepted(world: &World) -> Condition {
    let type_ = condition::REVISION_ACCEPTED;
    let seen = world
        .bundle
        .status
        .as_ref()
        .and_then(|status| status.seen.as_ref());
    if let Some(why) = seen.and_then(|seen| seen.rejected.as_ref()) {
        return Condition::unmet(type_, reason::REVISION_REJECTED, why.clone());
    }
    let Some(current) = world.current() else {
        let message = "no revision of it is current";
        return Condition::unknown(type_, reason::NO_VALID_REVISION, message);
    };
    let twin = world.revisions.iter().find(|other| {
        other.spec.bundle_version.is_some()
            && other.spec.bundle_version == current.spec.bundle_version
            && other.spec.manifest_digest != current.spec.manifest_digest
    });
    match twin {
        None => Condition::met(type_),
        Some(twin) => {
            let version = twin.spec.bundle_version.as_deref().unwrap_or_default();
            let message = format!(
                "version {version} is also that of {}, another image",
                twin.spec.manifest_digest
            );
            Condition::unmet(type_, reason::VERSION_REUSED, message)
                .with_severity(Severity::Warning)
        }
    }
}

fn stale(world: &World) -> Condition {
    let type_ = condition::STALE;
    let registry = &world.bundle.spec.registry;
    let view = world.registry.as_ref().map(phase::view);
    let is_stale = view.is_some_and(|view| view.stale_since.is_some());
    let message = format!("Registry {registry} cannot be read; what it last said is in force");
    match is_stale {
        true => Condition {
            message: Some(message),
            ..Condition::met(type_)
        },
        false => Condition::unmet(
            type_,
            reason::REGISTRY_FRESH,
            format!("what Registry {registry} last said of it is in force"),
        ),
    }
}
