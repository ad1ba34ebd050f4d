//! `PATCH` of an instance.
//!
//! What a request leaves away stays as it is. Parameters are laid over those in force, member by member at the top; `null`
//! takes a member away. After a failed change, what is in force is what was before it.
//!
//! An instance of a bundle is changed by the revision that it is pinned to, which may be withdrawn. It moves to the current
//! revision when the platform asks for that, by the version it names or by another plan, and never in passing.

use heddle_api::operation::{
    MaintenanceInfo, OperationKind, OriginatingIdentity, RevisionReference,
};
use heddle_api::service_instance::ServiceInstance;
use serde_json::{Map, Value, json};

use super::provision::check_maintenance;
use super::{Accepted, Call, Decision, Deps, Fresh, OperationEnd, OsbAnswer, asked_anew, busy};
use crate::catalog::{Backing, Offering, Plan};
use crate::compare::{hash, same_object};
use crate::contact;
use crate::error::{Lapse, OsbError};
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::{CatalogView, check_pace};
use crate::parameters::{ParameterAction, merged};
use crate::wire::body::Body;
use crate::wire::request::Update;
use crate::wire::response::OsbResponse;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct UpdateInput<'a> {
    pub(crate) id: &'a str,
    pub(crate) request: &'a Update,
    pub(crate) asynchronous: bool,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

pub(crate) async fn answer(deps: &Deps, call: &Call, id: &str, body: &Body) -> OsbAnswer {
    let request = Update::parse(body)?;
    let asynchronous = call.query.accepts_incomplete;
    let input = UpdateInput {
        id,
        request: &request,
        asynchronous,
        identity: call.identity.as_ref(),
    };
    let accepted = deps.write_instance(call, id, |live, view, fresh| {
        decide(live, &input, view, fresh)
    });
    let instance = match accepted.await? {
        Accepted::Done(instance) => {
            deps.contacts.note(&instance);
            return Ok(OsbResponse::ok(Map::new()));
        }
        Accepted::Created(instance)
        | Accepted::Replaced(instance)
        | Accepted::Pending(instance) => instance,
    };
    let settled = deps.settle(instance, asynchronous).await;
    match settled.ended {
        OperationEnd::Succeeded(_) => Ok(OsbResponse::ok(Map::new())),
        _ => settled.unfinished(&format!("changing instance {id}")),
    }
}

/// What an instance is made of, as far as it can change.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    plan_id: String,
    parameters: Map<String, Value>,
    maintenance: Option<MaintenanceInfo>,
    revision: Option<RevisionReference>,
}

impl Shape {
    /// What is in force, or will be.
    fn of(instance: &ServiceInstance, lifecycle: Lifecycle) -> Self {
        let applied = instance
            .status
            .as_ref()
            .and_then(|status| status.applied.as_ref());
        match applied.filter(|_| lifecycle == Lifecycle::ChangeFailed) {
            Some(applied) => Self {
                plan_id: applied.plan_id.clone(),
                parameters: applied.parameters.clone(),
                maintenance: applied.maintenance_info.clone(),
                revision: applied.revision_ref.clone(),
            },
            None => Self {
                plan_id: instance.spec.plan_id.clone(),
                parameters: instance.spec.parameters.clone(),
                maintenance: instance.spec.maintenance_info.clone(),
                revision: instance.spec.revision_ref.clone(),
            },
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.plan_id == other.plan_id
            && self.maintenance == other.maintenance
            && self.revision == other.revision
            && same_object(&self.parameters, &other.parameters)
    }
}

pub(crate) fn decide(
    live: Option<&ServiceInstance>,
    input: &UpdateInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let request = input.request;
    let instance = live.ok_or_else(|| OsbError::NotFound {
        what: title::<ServiceInstance>(input.id),
    })?;
    let lifecycle = Lifecycle::of(instance);
    let before = Shape::of(instance, lifecycle);
    let target = target(instance, &before, request, view)?;
    let plan = target.map(|(_, plan)| plan);
    check_pace(plan.map(|plan| plan.instances), input.asynchronous, || {
        format!("changing {}", instance.title())
    })?;
    check_plan_change(instance, &before, request, view)?;
    if let Some(parameters) = &request.parameters {
        view.check(plan, ParameterAction::Update, parameters)?;
    }
    let plan_id = request.plan_id.as_deref().unwrap_or(&before.plan_id);
    check_maintenance(plan_id, plan, request.maintenance_version.as_deref())?;

    let hash = request_hash(request);
    match lifecycle {
        Lifecycle::Changing
            if instance
                .requested()
                .is_some_and(|asked| asked.request_hash == hash) =>
        {
            return Ok(Decision::Pending(Box::new(instance.clone())));
        }
        Lifecycle::Making | Lifecycle::Changing | Lifecycle::Removing | Lifecycle::RemoveFailed => {
            return Err(busy(instance));
        }
        Lifecycle::Ready | Lifecycle::MakeFailed | Lifecycle::ChangeFailed => {}
    }
    let after = shape_after(&before, request, plan);
    let told = instance.requested().map(|asked| asked.request_hash == hash);
    let is_exact = request.exact.is_plain() || told == Some(true);
    if lifecycle == Lifecycle::Ready && is_exact && after.is(&before) {
        let allowed = target.is_some_and(|(offering, _)| offering.allow_context_updates);
        return Ok(unchanged(
            instance,
            request.context.as_ref().filter(|_| allowed),
            fresh,
        ));
    }
    let operation = fresh.operation(OperationKind::Update, hash, plan);
    let mut wanted = asked_anew(instance, operation, input.identity);
    wanted.spec.plan_id = after.plan_id;
    wanted.spec.parameters = after.parameters;
    wanted.spec.maintenance_info = after.maintenance;
    wanted.spec.revision_ref = after.revision;
    if let Some(context) = &request.context {
        wanted.spec.context = context.clone();
    }
    Ok(Decision::Replace(wanted))
}

/// The plan that the instance is to have. One that it has already may be unknown by now; a new one must be on offer.
fn target<'a>(
    instance: &ServiceInstance,
    before: &Shape,
    request: &Update,
    view: &'a CatalogView<'_>,
) -> Result<Option<(&'a Offering, &'a Plan)>, OsbError> {
    if request.service_id != instance.spec.service_id {
        let text = format!(
            "service_id is not that of {}, which never changes",
            instance.title()
        );
        return Err(OsbError::Invalid(text));
    }
    let service_id = &request.service_id;
    match &request.plan_id {
        Some(plan_id) if *plan_id != before.plan_id && *plan_id != instance.spec.plan_id => {
            offered(instance, before, plan_id, view).map(Some)
        }
        plan_id => {
            let plan_id = plan_id.as_ref().unwrap_or(&before.plan_id);
            // A version is one of the catalog's; everything else is about what the instance has.
            let now = view
                .find(service_id, plan_id)
                .filter(|(_, plan)| !plan.withdrawn);
            let upgrade = now.filter(|_| request.maintenance_version.is_some());
            let pinned = || view.find_in(before.revision.as_ref(), service_id, plan_id);
            Ok(upgrade.or_else(pinned))
        }
    }
}

/// A plan that an instance may change to. That a bundle has withdrawn it is no mistake in the request.
fn offered<'a>(
    instance: &ServiceInstance,
    before: &Shape,
    plan_id: &str,
    view: &'a CatalogView<'_>,
) -> Result<(&'a Offering, &'a Plan), OsbError> {
    let service_id = &instance.spec.service_id;
    view.offered(service_id, plan_id)
        .map_err(|error| match error {
            OsbError::OutOfSync {
                lapse: Lapse::ServiceWithdrawn | Lapse::PlanWithdrawn,
                text,
            } => OsbError::PlanChange {
                instance: instance.spec.instance_id.clone(),
                from: before.plan_id.clone(),
                to: plan_id.to_owned(),
                why: text,
            },
            other => other,
        })
}

fn check_plan_change(
    instance: &ServiceInstance,
    before: &Shape,
    request: &Update,
    view: &CatalogView<'_>,
) -> Result<(), OsbError> {
    let Some(to) = request.plan_id.as_ref().filter(|to| **to != before.plan_id) else {
        return Ok(());
    };
    let from = view.find_in(
        before.revision.as_ref(),
        &request.service_id,
        &before.plan_id,
    );
    let leaves = |offering: &Offering, plan: &Plan| match &plan.backing {
        Backing::Application { .. } => plan.plan_updateable.unwrap_or(offering.plan_updateable),
        Backing::Bundle { updates_to, .. } => updates_to.contains(to),
    };
    let why = match from {
        Some((offering, plan)) if leaves(offering, plan) => return Ok(()),
        Some(_) => "the plan it has cannot be left for that one; make a new instance",
        None => "the plan it has is not known any more",
    };
    Err(OsbError::PlanChange {
        instance: instance.spec.instance_id.clone(),
        from: before.plan_id.clone(),
        to: to.clone(),
        why: why.to_owned(),
    })
}

fn shape_after(before: &Shape, request: &Update, plan: Option<&Plan>) -> Shape {
    let plan_id = request
        .plan_id
        .clone()
        .unwrap_or_else(|| before.plan_id.clone());
    let current = plan.and_then(|plan| plan.maintenance_version.clone());
    let moves = plan_id != before.plan_id || request.maintenance_version.is_some();
    let over = request.parameters.as_ref();
    Shape {
        parameters: over.map_or_else(
            || before.parameters.clone(),
            |over| merged(&before.parameters, over),
        ),
        // An implementation is replaced when somebody asks for that, or for another plan, and not in passing.
        maintenance: if moves {
            current.map(|version| MaintenanceInfo { version })
        } else {
            before.maintenance.clone()
        },
        revision: match plan.and_then(|plan| plan.backing.revision()) {
            Some(revision) if moves => Some(revision.clone()),
            _ => before.revision.clone(),
        },
        plan_id,
    }
}

/// Nothing to do, except perhaps to remember where in the platform the instance is now.
fn unchanged(
    instance: &ServiceInstance,
    context: Option<&Map<String, Value>>,
    fresh: &Fresh,
) -> Decision<ServiceInstance> {
    let mut instance = Box::new(instance.clone());
    match context {
        Some(context) if !same_object(context, &instance.spec.context) => {
            instance.spec.context = context.clone();
            contact::stamp(&mut *instance, fresh.now);
            Decision::Replace(instance)
        }
        _ => Decision::Done(instance),
    }
}

fn request_hash(request: &Update) -> String {
    hash(&json!([
        request.plan_id,
        request
            .parameters
            .as_ref()
            .map(|parameters| request.exact.or(parameters)),
        request.maintenance_version
    ]))
}

#[cfg(test)]
mod tests;
