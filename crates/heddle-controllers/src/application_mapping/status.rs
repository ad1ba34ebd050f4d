//! Status: does this mapping enable anything, and if not, what would have to change.

use heddle_api::application::Application;
use heddle_api::application_mapping::{
    ApplicationMapping, ApplicationMappingStatus, CONDITIONS, condition, reason,
};
use heddle_api::conditions::Condition;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::observe::World;

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let mapping = &world.mapping;
    if mapping.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut status = ApplicationMappingStatus {
        observed_generation: mapping.metadata.generation,
        conditions: mapping
            .status
            .as_ref()
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        enabled_service_count: Some(enabled_count(world)),
    };
    status.conditions.set(application_found(world), now);
    status.conditions.set(services_resolved(world), now);
    status.conditions.set(namespace_usable(world), now);
    CONDITIONS.conclude(&mut status.conditions, now);
    serde_json::to_value(status).ok()
}

/// Services that are both enabled here and offered there; the others enable nothing.
fn enabled_count(world: &World) -> i32 {
    let offered = world.application.iter().flat_map(offered_ids);
    let count = offered.filter(|id| world.mapping.spec.enables(id)).count();
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn offered_ids(application: &Application) -> impl Iterator<Item = &str> {
    let rejected = application
        .status
        .iter()
        .flat_map(|status| &status.rejected_services);
    let rejected: Vec<&str> = rejected.map(|service| service.id.as_str()).collect();
    application
        .spec
        .services
        .iter()
        .map(|service| service.id.as_str())
        .filter(move |id| !rejected.contains(id))
}

fn application_found(world: &World) -> Condition {
    let name = world.mapping.name_any();
    match &world.application {
        None => {
            let message = format!(
                "there is no Application {name}; create it, or name the mapping after one that exists"
            );
            Condition::unmet(
                condition::APPLICATION_FOUND,
                reason::APPLICATION_NOT_FOUND,
                message,
            )
        }
        Some(application) if application.metadata.deletion_timestamp.is_some() => {
            let message = format!(
                "Application {name} is being deleted; delete the mapping as well, or create it again"
            );
            Condition::unmet(
                condition::APPLICATION_FOUND,
                reason::APPLICATION_TERMINATING,
                message,
            )
        }
        Some(_) => Condition::met(condition::APPLICATION_FOUND),
    }
}

fn services_resolved(world: &World) -> Condition {
    let Some(application) = &world.application else {
        let message = "which services it offers is not known before the Application exists";
        return Condition::unknown(
            condition::SERVICES_RESOLVED,
            reason::APPLICATION_NOT_FOUND,
            message,
        );
    };
    let offered: Vec<&str> = offered_ids(application).collect();
    let unresolved: Vec<&str> = named_ids(&world.mapping)
        .filter(|id| !offered.contains(id))
        .collect();
    let name = application.name_any();
    if world
        .mapping
        .spec
        .services
        .as_ref()
        .is_some_and(Vec::is_empty)
    {
        let message = "spec.services is an empty list, which enables nothing; remove the field to enable all services";
        return Condition::unmet(
            condition::SERVICES_RESOLVED,
            reason::NOTHING_ENABLED,
            message,
        );
    }
    if !unresolved.is_empty() {
        let known = |id: &&str| {
            application
                .spec
                .services
                .iter()
                .any(|service| service.id == **id)
        };
        let (invalid, unknown): (Vec<&str>, Vec<&str>) =
            unresolved.into_iter().partition(|id| known(id));
        let (reason, ids, why) = if unknown.is_empty() {
            (
                reason::SERVICE_NOT_OFFERED,
                invalid,
                "rejects (see its status)",
            )
        } else {
            (reason::SERVICE_NOT_FOUND, unknown, "does not have")
        };
        let message = format!(
            "the mapping names services that Application {name} {why}: {}",
            ids.join(", ")
        );
        return Condition::unmet(condition::SERVICES_RESOLVED, reason, message);
    }
    if offered.is_empty() {
        let message = format!("Application {name} offers no service that could be enabled");
        return Condition::unmet(
            condition::SERVICES_RESOLVED,
            reason::NOTHING_OFFERED,
            message,
        );
    }
    Condition::met(condition::SERVICES_RESOLVED)
}

fn named_ids(mapping: &ApplicationMapping) -> impl Iterator<Item = &str> {
    mapping
        .spec
        .services
        .iter()
        .flatten()
        .map(|service| service.id.as_str())
}

fn namespace_usable(world: &World) -> Condition {
    if !world.namespace_terminating {
        return Condition::met(condition::NAMESPACE_ACTIVE);
    }
    let namespace = world.mapping.namespace().unwrap_or_default();
    let message = format!("namespace {namespace} is being deleted, and the mapping with it");
    Condition::unmet(
        condition::NAMESPACE_ACTIVE,
        reason::NAMESPACE_TERMINATING,
        message,
    )
}
