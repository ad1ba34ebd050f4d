//! Status: the subjects of a policy, and whether it means anything.

use heddle_api::conditions::Condition;
use heddle_api::event_policy::{CONDITIONS, EventPolicyStatus, condition, reason};
use heddle_api::filter;
use jiff::Timestamp;
use serde_json::Value;

use super::observe::{Subject, World};

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let policy = &world.policy;
    if policy.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let known = world.subjects.iter().flatten();
    let mut status = EventPolicyStatus {
        observed_generation: policy.metadata.generation,
        conditions: (policy.status.as_ref())
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        from: known
            .map(|subject| match subject {
                Subject::Publisher(name) | Subject::Place(name) => name.clone(),
            })
            .collect(),
    };
    for condition in [
        authentication_enabled(world),
        subjects_resolved(world),
        filters_valid(world),
    ] {
        status.conditions.set(condition, now);
    }
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

fn authentication_enabled(world: &World) -> Condition {
    let type_ = condition::AUTHENTICATION_ENABLED;
    let mut known = world.subjects.iter().flatten();
    let about_publishers = known.any(|subject| matches!(subject, Subject::Publisher(_)));
    match world.asks_who {
        None => {
            let message = "no mesh runs here that could enforce the policy";
            Condition::unknown(type_, reason::NO_MESH, message)
        }
        Some(false) if about_publishers => Condition::unmet(
            type_,
            reason::AUTHENTICATION_DISABLED,
            "the listener for events accepts publishers without credentials; set eventsRequireIdentity to have the policy enforced",
        ),
        Some(_) => Condition::met(type_),
    }
}

fn subjects_resolved(world: &World) -> Condition {
    let missing: Vec<&str> = (world.subjects.iter())
        .filter_map(|subject| subject.as_ref().err().map(String::as_str))
        .collect();
    if missing.is_empty() {
        return Condition::met(condition::SUBJECTS_RESOLVED);
    }
    let message = format!("{}; create it, or correct spec.from", missing.join("; "));
    Condition::unmet(
        condition::SUBJECTS_RESOLVED,
        reason::SUBJECT_NOT_FOUND,
        message,
    )
}

fn filters_valid(world: &World) -> Condition {
    let faults = filter::check(&world.policy.spec.filters);
    let Some(fault) = faults.first() else {
        return Condition::met(condition::FILTERS_VALID);
    };
    let message = format!(
        "the policy allows nothing: spec.filters{}: {}",
        fault.path, fault.message
    );
    Condition::unmet(condition::FILTERS_VALID, reason::FILTER_INVALID, message)
}
