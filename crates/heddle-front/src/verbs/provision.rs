//! `PUT` of an instance.
//!
//! What exists is looked at before the catalog: a repeated request must be answered as the first was, also when the plan
//! has been withdrawn in between.
//!
//! An instance of a bundle is pinned to the bundle's current revision in the write that accepts it. The bundle is then read once
//! more: whoever sweeps a bundle marks it so first and looks for instances afterwards, so either the sweeper sees the instance
//! or we see the mark. What is asked for before its registry was read for the first time is accepted without a pin, and the
//! instance's controller finds it or gives up.

use heddle_api::bundle::{Bundle, BundlePhase};
use heddle_api::operation::{
    MaintenanceInfo, OperationKind, OperationRequest, OriginatingIdentity, RevisionReference,
};
use heddle_api::service_instance::{ApplicationService, ServiceInstance, ServiceInstanceSpec};
use heddle_api::{names, well_known};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Accepted, Call, Decision, Deps, Fresh, OperationEnd, OsbAnswer, asked_anew, busy};
use crate::catalog::{Backing, Plan};
use crate::compare::{hash, same_object};
use crate::contact;
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::{CatalogView, check_pace};
use crate::ownership;
use crate::parameters::ParameterAction;
use crate::route::is_namespace;
use crate::wire::body::Body;
use crate::wire::request::Provision;
use crate::wire::response::OsbResponse;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct ProvisionInput<'a> {
    pub(crate) id: &'a str,
    /// The namespace whose front was asked.
    pub(crate) scope: Option<&'a str>,
    /// Where a new instance goes.
    pub(crate) namespace: &'a str,
    pub(crate) request: &'a Provision,
    pub(crate) asynchronous: bool,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
    /// How many instances may wait for the catalog.
    pub(crate) awaiting_max: usize,
}

/// What exists.
#[derive(Debug, Default)]
pub(crate) struct LiveInstance {
    pub(crate) instance: Option<ServiceInstance>,
    /// How many instances wait for the catalog.
    pub(crate) awaiting: usize,
}

pub(crate) async fn answer(deps: &Deps, call: &Call, id: &str, body: &Body) -> OsbAnswer {
    let request = Provision::parse(body)?;
    let named = call.scope.as_deref().or_else(|| request.namespace());
    let namespace = named.unwrap_or(&deps.settings.namespace);
    if !is_namespace(namespace) {
        return Err(OsbError::Invalid(
            "context.namespace is not the name of a namespace".to_owned(),
        ));
    }
    let asynchronous = call.query.accepts_incomplete;
    let input = ProvisionInput {
        id,
        scope: call.scope.as_deref(),
        namespace,
        request: &request,
        asynchronous,
        identity: call.identity.as_ref(),
        awaiting_max: deps.settings.awaiting_catalog_max,
    };
    let view = deps.catalog_view(call);
    let census = deps.offers.census();
    let read = async || {
        let instance = deps.objects.instance(call.scope.as_deref(), id).await?;
        let awaiting = census.awaiting();
        Ok(LiveInstance { instance, awaiting })
    };
    let lock = deps.lock_id::<ServiceInstance>(call, id).await;
    let accepted = deps
        .write_under(lock, read, |live, fresh| decide(live, &input, &view, fresh))
        .await?;
    if let Accepted::Created(instance) = &accepted {
        census.expect(instance);
        if let Some(revision) = &instance.spec.revision_ref {
            confirm(deps, &view, instance, revision).await?;
        }
    }
    let (instance, status) = match accepted {
        Accepted::Done(instance) => {
            deps.contacts.note(&instance);
            return Ok(OsbResponse::ok(described(&instance)));
        }
        Accepted::Created(instance) | Accepted::Replaced(instance) => {
            (instance, StatusCode::CREATED)
        }
        Accepted::Pending(instance) => (instance, StatusCode::OK),
    };
    let settled = deps.settle(instance, asynchronous).await;
    match settled.ended {
        OperationEnd::Succeeded(instance) => Ok(OsbResponse::new(status, described(&instance))),
        _ => settled.unfinished(&format!("making instance {id}")),
    }
}

/// Looks once more at the bundle and the revision of an instance that was just created, and takes the instance back if one
/// of them is on its way out: the bundle is swept, or the catalog was behind and its revision is no longer the current one.
/// If that cannot be found out, the platform is told so that it cleans up.
async fn confirm(
    deps: &Deps,
    view: &CatalogView<'_>,
    instance: &ServiceInstance,
    revision: &RevisionReference,
) -> Result<(), OsbError> {
    let Some(name) = view.bundle_of(revision) else {
        return Ok(());
    };
    let unknown = |error: kube::Error| {
        tracing::warn!(%error, bundle = name, "cannot tell whether a bundle is still there");
        OsbError::Unavailable
    };
    let bundle = deps.objects.bundle(name).await.map_err(unknown)?;
    let pinned = deps.objects.revision(&revision.name).await;
    let pinned = pinned.map_err(unknown)?;
    let is_pinned = pinned.is_some_and(|found| found.metadata.deletion_timestamp.is_none());
    let error = match is_leaving(bundle.as_ref()) {
        true => view.withdrawn(&instance.spec.service_id),
        false if is_pinned => return Ok(()),
        false => OsbError::Busy(format!(
            "service {} has just changed to another revision",
            instance.spec.service_id
        )),
    };
    deps.objects.take_back(instance).await.map_err(unknown)?;
    Err(error)
}

/// Whether nothing may refer to a bundle any more. One that is only marked stays as long as something does.
fn is_leaving(bundle: Option<&Bundle>) -> bool {
    bundle.is_none_or(|bundle| {
        let status = bundle.status.as_ref();
        status.is_some_and(|status| status.phase == BundlePhase::Sweeping)
    })
}

pub(crate) fn decide(
    live: &LiveInstance,
    input: &ProvisionInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    match &live.instance {
        Some(instance) => decide_again(instance, input, view, fresh),
        None if view.is_awaited(&input.request.service_id) => {
            decide_awaited(live.awaiting, input, view, fresh)
        }
        None => decide_new(input, view, fresh),
    }
}

/// Nobody knows the service, and a registry that may have it was not read yet: neither yes nor no can be said.
fn decide_awaited(
    awaiting: usize,
    input: &ProvisionInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    if !input.asynchronous {
        let what = format!("waiting for registry {}", view.unread().join(", "));
        return Err(OsbError::AsyncRequired { what });
    }
    if awaiting >= input.awaiting_max {
        return Err(OsbError::Crowded(format!(
            "service {} is not known yet, and {} for registry {} already",
            input.request.service_id,
            heddle_api::counted_that(awaiting, "instance", "waits", "wait"),
            view.unread().join(", ")
        )));
    }
    Ok(Decision::Create(Box::new(made(input, None, fresh))))
}

fn decide_again(
    instance: &ServiceInstance,
    input: &ProvisionInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let lifecycle = Lifecycle::of(instance);
    if matches!(lifecycle, Lifecycle::Removing | Lifecycle::RemoveFailed) {
        return Err(busy(instance));
    }
    if let Some(attribute) = difference(instance, input.request) {
        return Err(OsbError::Conflict {
            what: instance.title(),
            attribute,
        });
    }
    let spec = &instance.spec;
    let found = view.find_in(spec.revision_ref.as_ref(), &spec.service_id, &spec.plan_id);
    let plan = found.map(|(_, plan)| plan);
    let paced = || {
        check_pace(plan.map(|plan| plan.instances), input.asynchronous, || {
            format!("making {}", instance.title())
        })
    };
    match lifecycle {
        Lifecycle::Ready | Lifecycle::ChangeFailed => {
            Ok(Decision::Done(Box::new(instance.clone())))
        }
        Lifecycle::Making => {
            paced()?;
            Ok(Decision::Pending(Box::new(instance.clone())))
        }
        Lifecycle::MakeFailed => {
            paced()?;
            let operation =
                fresh.operation(OperationKind::Provision, request_hash(input.request), plan);
            Ok(Decision::Replace(asked_anew(
                instance,
                operation,
                input.identity,
            )))
        }
        Lifecycle::Changing | Lifecycle::Removing | Lifecycle::RemoveFailed => Err(busy(instance)),
    }
}

fn decide_new(
    input: &ProvisionInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let request = input.request;
    let (_, plan) = view.offered(&request.service_id, &request.plan_id)?;
    view.check(Some(plan), ParameterAction::Create, &request.parameters)?;
    check_maintenance(
        &request.plan_id,
        Some(plan),
        request.maintenance_version.as_deref(),
    )?;
    check_pace(Some(plan.instances), input.asynchronous, || {
        format!("making {}", title::<ServiceInstance>(input.id))
    })?;
    Ok(Decision::Create(Box::new(made(input, Some(plan), fresh))))
}

/// The instance as it is asked for, pinned to what stands behind its plan. Without one, it is for its controller to find.
fn made(input: &ProvisionInput<'_>, plan: Option<&Plan>, fresh: &Fresh) -> ServiceInstance {
    let request = input.request;
    let (application, revision_ref) = match plan.map(|plan| &plan.backing) {
        Some(Backing::Application {
            name, service_id, ..
        }) => {
            let pinned = ApplicationService {
                name: name.clone(),
                service_id: service_id.clone(),
            };
            (Some(pinned), None)
        }
        Some(Backing::Bundle { revision, .. }) => (None, Some(revision.clone())),
        None => (None, None),
    };
    let version = match plan {
        Some(plan) => plan.maintenance_version.as_ref(),
        None => request.maintenance_version.as_ref(),
    };
    let spec = ServiceInstanceSpec {
        instance_id: input.id.to_owned(),
        service_id: request.service_id.clone(),
        plan_id: request.plan_id.clone(),
        parameters: request.parameters.clone(),
        context: request.context.clone(),
        organization_guid: Some(request.organization_guid.clone()),
        space_guid: Some(request.space_guid.clone()),
        originating_identity: input.identity.cloned(),
        maintenance_info: version.cloned().map(|version| MaintenanceInfo { version }),
        application,
        revision_ref,
        operation: Some(fresh.operation(OperationKind::Provision, request_hash(request), plan)),
        ..ServiceInstanceSpec::default()
    };
    let mut instance = ServiceInstance::new(&names::instance(input.id), spec);
    instance.metadata.namespace = Some(input.namespace.to_owned());
    instance.metadata.finalizers = Some(vec![well_known::FINALIZER.to_owned()]);
    ownership::stamp(&mut instance.metadata, input.scope);
    contact::stamp(&mut instance, fresh.now);
    instance
}

/// The first attribute in which an instance is not what is asked for. After a failed change the platform may think of it as
/// it was before or as it should have become.
fn difference(instance: &ServiceInstance, request: &Provision) -> Option<&'static str> {
    let spec = &instance.spec;
    let applied = instance
        .status
        .as_ref()
        .and_then(|status| status.applied.as_ref());
    // What a float cannot hold was lost when the instance was written, but not for the hash of the request.
    let is_provision = |asked: &&OperationRequest| asked.kind == OperationKind::Provision;
    let asked = instance.requested().filter(is_provision);
    let told = asked.map(|asked| asked.request_hash == request_hash(request));
    let is_exact = |known: &Map<String, Value>| request.exact.matches(known, told);
    let wanted = (&spec.plan_id, &spec.parameters);
    let in_force = applied.map(|applied| (&applied.plan_id, &applied.parameters));
    let mut states = std::iter::once(wanted).chain(in_force);
    let guid =
        |known: &Option<String>, given: &str| known.as_ref().is_some_and(|known| known != given);
    if spec.service_id != request.service_id {
        Some("service_id")
    } else if guid(&spec.organization_guid, &request.organization_guid) {
        Some("organization_guid")
    } else if guid(&spec.space_guid, &request.space_guid) {
        Some("space_guid")
    } else if states.any(|(plan, parameters)| {
        *plan == request.plan_id
            && same_object(parameters, &request.parameters)
            && is_exact(parameters)
    }) {
        None
    } else if spec.plan_id != request.plan_id {
        Some("plan_id")
    } else {
        Some("set of parameters")
    }
}

/// A version that is asked for must be the one that the catalog shows, also where it shows none.
pub(crate) fn check_maintenance(
    plan_id: &str,
    plan: Option<&Plan>,
    asked: Option<&str>,
) -> Result<(), OsbError> {
    let has = plan.and_then(|plan| plan.maintenance_version.as_deref());
    match asked {
        Some(asked) if has != Some(asked) => Err(OsbError::MaintenanceConflict {
            plan: plan_id.to_owned(),
            has: has.map_or_else(
                || "no maintenance version".to_owned(),
                |has| format!("maintenance version {has}"),
            ),
        }),
        _ => Ok(()),
    }
}

fn request_hash(request: &Provision) -> String {
    hash(&json!([
        request.service_id,
        request.plan_id,
        request.organization_guid,
        request.space_guid,
        request.exact.or(&request.parameters),
    ]))
}

/// What is shown of an instance that exists.
fn described(instance: &ServiceInstance) -> Map<String, Value> {
    let url = instance
        .status
        .as_ref()
        .and_then(|status| status.dashboard_url.as_deref());
    let member = url.map(|url| ("dashboard_url".to_owned(), Value::from(url)));
    member.into_iter().collect()
}

#[cfg(test)]
mod tests;
