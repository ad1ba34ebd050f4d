//! `PUT` of a binding, and its rotation.
//!
//! A rotation is a bind with a predecessor: it takes over what that one was asked with, and is otherwise a binding like any
//! other. Many bindings of one instance may be made at once; none of them writes the instance.

use heddle_api::names;
use heddle_api::operation::{OperationKind, OriginatingIdentity, RevisionReference};
use heddle_api::service_binding::{InstanceReference, ServiceBinding, ServiceBindingSpec};
use heddle_api::service_instance::ServiceInstance;
use heddle_api::well_known;
use http::StatusCode;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::fetch_binding::described;
use super::{Accepted, Call, Decision, Deps, Fresh, OperationEnd, OsbAnswer, asked_anew, busy};
use crate::catalog::{Offering, Plan};
use crate::compare::{hash, same, same_object};
use crate::contact;
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::{CatalogView, check_pace};
use crate::ownership;
use crate::parameters::ParameterAction;
use crate::version::Version;
use crate::wire::body::Body;
use crate::wire::numbers::Exact;
use crate::wire::request::Bind;
use crate::wire::response::OsbResponse;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct BindInput<'a> {
    pub(crate) instance: &'a str,
    pub(crate) id: &'a str,
    /// The namespace whose front was asked.
    pub(crate) scope: Option<&'a str>,
    pub(crate) request: &'a Bind,
    pub(crate) asynchronous: bool,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

/// What exists.
#[derive(Debug, Default)]
pub(crate) struct LiveBinding {
    pub(crate) instance: Option<ServiceInstance>,
    pub(crate) binding: Option<ServiceBinding>,
    /// Whether another instance has a binding of that id.
    pub(crate) is_taken: bool,
    /// The binding that is named as predecessor, if it is one of the instance.
    pub(crate) predecessor: Option<ServiceBinding>,
}

pub(crate) async fn answer(
    deps: &Deps,
    call: &Call,
    instance: &str,
    id: &str,
    body: &Body,
) -> OsbAnswer {
    let request = Bind::parse(body)?;
    let input = BindInput {
        instance,
        id,
        scope: call.scope.as_deref(),
        request: &request,
        asynchronous: is_asynchronous(call),
        identity: call.identity.as_ref(),
    };
    let view = deps.catalog_view(call);
    let lock = deps.lock_id::<ServiceBinding>(call, id).await;
    let accepted = deps
        .write_under(
            lock,
            || read(deps, &input),
            |live, fresh| decide(live, &input, &view, fresh),
        )
        .await?;
    let (binding, status) = match accepted {
        Accepted::Done(binding) => {
            deps.contacts.note(&binding);
            return Ok(OsbResponse::ok(
                described(deps, &binding, call.version).await?,
            ));
        }
        Accepted::Created(binding) | Accepted::Replaced(binding) => (binding, StatusCode::CREATED),
        Accepted::Pending(binding) => (binding, StatusCode::OK),
    };
    let settled = deps.settle(binding, input.asynchronous).await;
    match settled.ended {
        OperationEnd::Succeeded(binding) => Ok(OsbResponse::new(
            status,
            described(deps, &binding, call.version).await?,
        )),
        _ => settled.unfinished(&format!("making binding {id}")),
    }
}

/// Platforms before 2.14 cannot ask again about a binding, whatever they say.
pub(crate) fn is_asynchronous(call: &Call) -> bool {
    call.query.accepts_incomplete && call.version >= Version::V2_14
}

/// Reads what a decision hangs on. There are platforms that take any refusal of a binding for final and clean up after a 5xx
/// only, so where it cannot be read whether an earlier request has made the binding, that is what they get.
async fn read(deps: &Deps, input: &BindInput<'_>) -> Result<LiveBinding, OsbError> {
    let live = read_all(deps, input).await;
    live.map_err(OsbError::about_existing)
}

async fn read_all(deps: &Deps, input: &BindInput<'_>) -> Result<LiveBinding, OsbError> {
    let (objects, scope) = (&deps.objects, input.scope);
    let instance = objects.instance(scope, input.instance).await?;
    let namespace = instance.as_ref().and_then(|instance| instance.namespace());
    let place = namespace.as_deref().or(scope);
    let binding = objects.binding_in(place, scope, input.instance, input.id);
    let binding = binding.await?;
    let is_taken = match &binding {
        Some(_) => false,
        None => objects.any_binding(scope, input.id).await?.is_some(),
    };
    let predecessor = match &input.request.predecessor {
        Some(id) => objects.binding_in(place, scope, input.instance, id).await?,
        None => None,
    };
    Ok(LiveBinding {
        instance,
        binding,
        is_taken,
        predecessor,
    })
}

pub(crate) fn decide(
    live: &LiveBinding,
    input: &BindInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceBinding>, OsbError> {
    if let Some(binding) = &live.binding {
        return decide_again(binding, input, view, fresh);
    }
    if live.is_taken {
        return Err(OsbError::Conflict {
            what: title::<ServiceBinding>(input.id),
            attribute: "instance",
        });
    }
    let instance = live.instance.as_ref();
    let (service_id, plan_id) = ids(input.request, instance);
    let found = known(instance, service_id, plan_id, view)?;
    let instance = instance.ok_or_else(|| OsbError::NotFound {
        what: title::<ServiceInstance>(input.instance),
    })?;
    let plan = found.map(|(_, plan)| plan);
    check_plan(instance, found, service_id, plan_id)?;
    let resource = live
        .predecessor
        .as_ref()
        .map_or(&input.request.bind_resource, |from| {
            &from.spec.bind_resource
        });
    if plan.is_some_and(|plan| plan.requires_app) && !resource.contains_key("app_guid") {
        return Err(OsbError::RequiresApp {
            plan: plan_id.to_owned(),
        });
    }
    let predecessor = check_rotation(live, input, plan, fresh.now)?;
    if predecessor.is_none() {
        view.check(plan, ParameterAction::Bind, &input.request.parameters)?;
    }
    check_instance(instance)?;
    check_pace(plan.map(|plan| plan.bindings), input.asynchronous, || {
        format!("making {}", title::<ServiceBinding>(input.id))
    })?;
    Ok(Decision::Create(Box::new(made(
        input,
        instance,
        predecessor,
        plan,
        fresh,
    ))))
}

fn decide_again(
    binding: &ServiceBinding,
    input: &BindInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceBinding>, OsbError> {
    let lifecycle = Lifecycle::of(binding);
    if matches!(lifecycle, Lifecycle::Removing | Lifecycle::RemoveFailed) {
        return Err(busy(binding));
    }
    if let Some(attribute) = difference(binding, input.request) {
        return Err(OsbError::Conflict {
            what: binding.title(),
            attribute,
        });
    }
    let plan = view.plan(&binding.spec.plan_id);
    let paced = || {
        check_pace(plan.map(|plan| plan.bindings), input.asynchronous, || {
            format!("making {}", binding.title())
        })
    };
    match lifecycle {
        Lifecycle::Making | Lifecycle::Changing => {
            paced()?;
            Ok(Decision::Pending(Box::new(binding.clone())))
        }
        Lifecycle::MakeFailed => {
            paced()?;
            let hash = request_hash(&binding.spec, &input.request.exact);
            let operation = fresh.operation(OperationKind::Bind, hash, plan);
            Ok(Decision::Replace(asked_anew(
                binding,
                operation,
                input.identity,
            )))
        }
        Lifecycle::Ready
        | Lifecycle::ChangeFailed
        | Lifecycle::Removing
        | Lifecycle::RemoveFailed => Ok(Decision::Done(Box::new(binding.clone()))),
    }
}

/// Service and plan of a binding: as they are given, or as its instance has them.
fn ids<'a>(request: &'a Bind, instance: Option<&'a ServiceInstance>) -> (&'a str, &'a str) {
    let own = instance.map(|instance| (&instance.spec.service_id, plan_of(instance)));
    let service_id = request
        .service_id
        .as_ref()
        .or_else(|| own.map(|(service_id, _)| service_id));
    let plan_id = request
        .plan_id
        .as_ref()
        .or_else(|| own.map(|(_, plan_id)| plan_id));
    (
        service_id.map_or("", String::as_str),
        plan_id.map_or("", String::as_str),
    )
}

/// The plan in force.
fn plan_of(instance: &ServiceInstance) -> &String {
    let applied = instance
        .status
        .as_ref()
        .and_then(|status| status.applied.as_ref());
    applied.map_or(&instance.spec.plan_id, |applied| &applied.plan_id)
}

/// The revision in force, for bundles.
fn revision_of(instance: &ServiceInstance) -> Option<&RevisionReference> {
    let status = instance.status.as_ref();
    let applied = status.and_then(|status| status.applied.as_ref());
    let in_force = applied.and_then(|applied| applied.revision_ref.as_ref());
    in_force.or(instance.spec.revision_ref.as_ref())
}

/// What the catalog knows of the plan. An instance that has it is proof enough that it exists.
fn known<'a>(
    instance: Option<&ServiceInstance>,
    service_id: &str,
    plan_id: &str,
    view: &'a CatalogView<'_>,
) -> Result<Option<(&'a Offering, &'a Plan)>, OsbError> {
    let revision = instance.and_then(revision_of);
    let found = view.find_in(revision, service_id, plan_id);
    let had = instance.is_some_and(|instance| is_plan_of(instance, service_id, plan_id));
    // A rotation that leaves both to an instance which is not there has nothing to be looked up.
    let unsaid = service_id.is_empty() || plan_id.is_empty();
    if found.is_none() && !had && !unsaid {
        return Err(view.why_not(service_id, plan_id, false));
    }
    Ok(found)
}

/// After a failed change a platform may think of either plan.
fn is_plan_of(instance: &ServiceInstance, service_id: &str, plan_id: &str) -> bool {
    let plans = [instance.spec.plan_id.as_str(), plan_of(instance).as_str()];
    instance.spec.service_id == service_id && plans.contains(&plan_id)
}

fn check_plan(
    instance: &ServiceInstance,
    found: Option<(&Offering, &Plan)>,
    service_id: &str,
    plan_id: &str,
) -> Result<(), OsbError> {
    if !is_plan_of(instance, service_id, plan_id) {
        let text = format!(
            "{} is not of service {service_id} and plan {plan_id}",
            instance.title()
        );
        return Err(OsbError::Invalid(text));
    }
    let bindable = found.is_none_or(|(offering, plan)| plan.bindable.unwrap_or(offering.bindable));
    if !bindable {
        return Err(OsbError::Invalid(format!(
            "plan {plan_id} has nothing to bind to"
        )));
    }
    Ok(())
}

fn check_rotation<'a>(
    live: &'a LiveBinding,
    input: &BindInput<'_>,
    plan: Option<&Plan>,
    now: Timestamp,
) -> Result<Option<&'a ServiceBinding>, OsbError> {
    let Some(id) = &input.request.predecessor else {
        return Ok(None);
    };
    let refuse = |why: &str| {
        Err(OsbError::Invalid(format!(
            "binding {id} cannot be succeeded by another: {why}"
        )))
    };
    if !plan.is_some_and(|plan| plan.binding_rotatable) {
        return refuse("its plan does not say that bindings can be rotated");
    }
    let Some(predecessor) = &live.predecessor else {
        return refuse("the instance has no such binding");
    };
    let expires = predecessor
        .status
        .as_ref()
        .and_then(|status| status.expires_at.as_ref());
    if expires.is_some_and(|expires| expires.0 <= now) {
        return refuse("it has expired");
    }
    if Lifecycle::of(predecessor) != Lifecycle::Ready {
        return refuse("it is not in force");
    }
    Ok(Some(predecessor))
}

/// Only what stands still can be bound to.
fn check_instance(instance: &ServiceInstance) -> Result<(), OsbError> {
    let usable = instance
        .progress()
        .and_then(|progress| progress.instance_usable)
        != Some(false);
    match Lifecycle::of(instance) {
        Lifecycle::Ready => Ok(()),
        Lifecycle::ChangeFailed if usable => Ok(()),
        _ => Err(busy(instance)),
    }
}

fn made(
    input: &BindInput<'_>,
    instance: &ServiceInstance,
    predecessor: Option<&ServiceBinding>,
    plan: Option<&Plan>,
    fresh: &Fresh,
) -> ServiceBinding {
    let request = input.request;
    let (service_id, plan_id) = ids(request, Some(instance));
    let (parameters, bind_resource) = match predecessor {
        Some(from) => (&from.spec.parameters, &from.spec.bind_resource),
        None => (&request.parameters, &request.bind_resource),
    };
    let mut spec = ServiceBindingSpec {
        binding_id: input.id.to_owned(),
        instance_ref: InstanceReference {
            name: instance.name_any(),
        },
        service_id: service_id.to_owned(),
        plan_id: plan_id.to_owned(),
        parameters: parameters.clone(),
        context: request.context.clone(),
        bind_resource: bind_resource.clone(),
        predecessor_binding_id: request.predecessor.clone(),
        originating_identity: input.identity.cloned(),
        revision_ref: revision_of(instance).cloned(),
        operation: None,
        earlier_operations: Vec::new(),
    };
    let hash = request_hash(&spec, &request.exact);
    spec.operation = Some(fresh.operation(OperationKind::Bind, hash, plan));
    let mut binding = ServiceBinding::new(&names::binding(input.id), spec);
    binding.metadata.namespace = instance.namespace();
    binding.metadata.finalizers = Some(vec![well_known::FINALIZER.to_owned()]);
    let label = (well_known::INSTANCE_LABEL.to_owned(), instance.name_any());
    binding.metadata.labels = Some([label].into());
    ownership::stamp(&mut binding.metadata, input.scope);
    contact::stamp(&mut binding, fresh.now);
    binding
}

/// The first attribute in which a binding is not what is asked for. A rotation has taken the rest from its predecessor.
fn difference(binding: &ServiceBinding, request: &Bind) -> Option<&'static str> {
    let spec = &binding.spec;
    let other =
        |given: &Option<String>, has: &String| given.as_ref().is_some_and(|given| given != has);
    let rotated = request.predecessor.is_some();
    let asked = binding
        .requested()
        .filter(|asked| asked.kind == OperationKind::Bind);
    let told = asked.map(|asked| asked.request_hash == request_hash(spec, &request.exact));
    let is_same = request.exact.matches(&spec.parameters, told)
        && same_object(&spec.parameters, &request.parameters);
    if other(&request.service_id, &spec.service_id) {
        Some("service_id")
    } else if other(&request.plan_id, &spec.plan_id) {
        Some("plan_id")
    } else if request.predecessor != spec.predecessor_binding_id {
        Some("predecessor_binding_id")
    } else if !rotated && !is_same {
        Some("set of parameters")
    } else if !rotated
        && !same(
            &lasting(&spec.bind_resource),
            &lasting(&request.bind_resource),
        )
    {
        Some("bind_resource")
    } else {
        None
    }
}

/// What identifies the thing that is bound to; annotations of it come and go.
fn lasting(resource: &Map<String, Value>) -> Value {
    let lasting = resource
        .iter()
        .filter(|(key, _)| !key.ends_with("_annotations"));
    lasting
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn request_hash(spec: &ServiceBindingSpec, exact: &Exact) -> String {
    hash(&json!([
        spec.instance_ref.name,
        spec.service_id,
        spec.plan_id,
        exact.or(&spec.parameters),
        lasting(&spec.bind_resource),
        spec.predecessor_binding_id,
    ]))
}

#[cfg(test)]
mod tests;
