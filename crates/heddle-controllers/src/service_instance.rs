//! ServiceInstance: what a platform asked for through OSB, made so and kept so.
//!
//! A service that sends events means one EventFlow, named like the instance and owned by it; a service that has only an
//! API means nothing to make; a bundle means that its actions run (see `bundle`). The OSB front writes the accepted operation into the spec; this controller says in the
//! status how far it has come. An operation fails only when its time is over or when somebody has to act first, and even
//! then the work goes on.
//!
//! ```text
//!   removal:   delete ──> bindings go ──> flow goes, or deprovision runs ──> record ──> finalizer released
//! ```
//! Removal asks for nothing that could be missing: no Application, no mapping, no label of the namespace.

mod bundle;
mod catalog;
mod observe;
mod offer;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use heddle_api::operation::OperationState;
use heddle_api::service_instance::{ServiceInstanceSpec, ServiceInstanceStatus};
use heddle_api::well_known::field_manager;
use heddle_api::{Application, ApplicationMapping, EventFlow, ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;

use crate::operation::StepFailure;
use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler, Step, StepName};
use crate::references::Target;
use crate::watch::name_of;
use crate::{ControllerStart, Parts, Watches};
use observe::World;
pub(crate) use offer::{offers, wanted};

const HOLD: StepName = "hold";
const PIN: StepName = "pin";
const FLOW: StepName = "flow";
const FLOW_RELEASE: StepName = "flow-release";
const DELETE: StepName = "delete";
const SECRET: StepName = "secret";
const SECRET_RELEASE: StepName = "secret-release";
const SECRET_REMOVE: StepName = "secret-remove";
const BINDING: StepName = "binding";
const RECORD: StepName = "record";
const RELEASE: StepName = "release";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Instances, &mut watches.instances, targets)
        .requeue_mapped(&mut watches.flows, of_flow)
        .requeue_mapped(&mut watches.bindings, of_binding)
        .requeue_referrers_on_change(&mut watches.mappings)
        .requeue_referrers_of(&mut watches.applications, offers)
        .requeue_referrers_of(&mut watches.bundles, catalog::offers)
        .requeue_referrers_of(&mut watches.registries, catalog::registries)
        .requeue_referrers_on_change(&mut watches.revisions);
    start.add_with_runs(controller, bundle::is_under_way, parts);
}

/// What is kept of an instance: what it refers to, and whether it is to go. What runs for an instance of a bundle is looked
/// at too, and more.
pub(crate) fn trim(instance: &ServiceInstance) -> ServiceInstance {
    let (spec, status) = (&instance.spec, instance.status.as_ref());
    let applied = status.and_then(|status| status.applied.as_ref());
    let is_of_bundle = spec.revision_ref.is_some()
        || applied.is_some_and(|applied| applied.revision_ref.is_some())
        || status.is_some_and(|status| status.run.is_some());
    if is_of_bundle {
        return instance.clone();
    }
    ServiceInstance {
        metadata: name_of(instance),
        spec: ServiceInstanceSpec {
            service_id: spec.service_id.clone(),
            plan_id: spec.plan_id.clone(),
            application: spec.application.clone(),
            ..ServiceInstanceSpec::default()
        },
        status: failure(status),
    }
}

/// Of what became of it, only that it failed: health names such an instance.
fn failure(status: Option<&ServiceInstanceStatus>) -> Option<ServiceInstanceStatus> {
    let operation = status?.operation.as_ref()?;
    let failed = operation.state == OperationState::Failed;
    failed.then(|| ServiceInstanceStatus {
        operation: Some(operation.clone()),
        ..ServiceInstanceStatus::default()
    })
}

/// Everything whose changes concern an instance.
fn targets(instance: &ServiceInstance) -> Vec<Target> {
    let namespace = instance.namespace().unwrap_or_default();
    let spec = &instance.spec;
    match (&spec.application, &spec.revision_ref) {
        (Some(pin), _) => vec![
            Target::of::<Application>("", &pin.name),
            Target::of::<ApplicationMapping>(&namespace, &pin.name),
        ],
        (None, Some(_)) => bundle::targets(instance),
        (None, None) => {
            let mut targets = wanted(&spec.service_id, &spec.plan_id);
            targets.push(catalog::any_registry());
            targets
        }
    }
}

/// A flow has the name of its instance, also one that is in the way.
fn of_flow(flow: &EventFlow) -> Option<ObjectRef<ServiceInstance>> {
    Some(ObjectRef::new(&flow.name_any()).within(&flow.namespace()?))
}

fn of_binding(binding: &ServiceBinding) -> Option<ObjectRef<ServiceInstance>> {
    let name = &binding.spec.instance_ref.name;
    Some(ObjectRef::new(name).within(&binding.namespace()?))
}

#[derive(Debug)]
pub(crate) struct Instances;

impl Reconciler for Instances {
    type Kind = ServiceInstance;
    type World = World;
    const NAME: &'static str = field_manager::INSTANCE;
    const THROTTLES_PROGRESS: bool = true;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: ServiceInstance) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn on_applied(&self, world: &mut World, step_name: StepName, answer: Option<DynamicObject>) {
        world.absorb(step_name, answer);
    }

    async fn call_out(&self, ctx: &Ctx, world: &mut World) -> Result<(), Error> {
        bundle::run(ctx, world).await
    }

    fn on_step_error(&self, world: &mut World, name: StepName, error: &Error, attempts: u32) {
        world.trouble = StepFailure::new(name, error, attempts);
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        serde_json::to_value(status::status(world, now)).ok()
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        status::requeue_after(world, now)
    }
}
