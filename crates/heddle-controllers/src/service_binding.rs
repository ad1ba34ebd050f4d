//! ServiceBinding: credentials for an instance, kept in one Secret that belongs to the binding.
//!
//! Only a service with an API has something to hand out, and a bundle whose action says what (see `bundle`). The Secret is named like the binding, is owned by it, and has one
//! key with the JSON object that OSB hands to the platform. Where the Application names a Secret with credentials for its
//! API, what that holds is part of the object, and without it there is none: the binding says which Secret is missing, and goes
//! on when it comes. Nothing of it is ever logged or written anywhere else.

mod bundle;
mod credentials;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use heddle_api::well_known::{INTEGRATION_NAMESPACE, field_manager};
use heddle_api::{BundleRevision, ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::operation::StepFailure;
use crate::reconcile::{Controller, Ctx, Error, Reconciler, Step, StepName};
use crate::references::Target;
use crate::service_instance::{offers, wanted};
use crate::watch::name_of;
use crate::{ControllerStart, Parts, Watches};
use observe::World;

const HOLD: StepName = "hold";
const SECRET: StepName = "secret";
const SECRET_RELEASE: StepName = "secret-release";
const DELETE: StepName = "delete";
const RECORD: StepName = "record";
const RELEASE: StepName = "release";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Bindings, &mut watches.bindings, targets)
        .requeue_referrers_on_change(&mut watches.instances)
        .requeue_referrers_of(&mut watches.applications, offers)
        .requeue_referrers_on_change(&mut watches.revisions)
        .requeue_referrers_on_change(&mut watches.all_secrets);
    start.add_with_runs(controller, bundle::is_under_way, parts);
}

/// Everything whose changes concern a binding.
fn targets(binding: &ServiceBinding) -> Vec<Target> {
    let spec = &binding.spec;
    let namespace = binding.namespace().unwrap_or_default();
    let instance = Target::of::<ServiceInstance>(&namespace, &spec.instance_ref.name);
    let offer = wanted(&spec.service_id, &spec.plan_id);
    let revision = spec.revision_ref.as_ref();
    let revision = revision.map(|pinned| Target::of::<BundleRevision>("", &pinned.name));
    let status = binding.status.as_ref();
    let sources = status.into_iter().flat_map(|status| &status.sources);
    let sources = sources.flat_map(|name| {
        let places = [namespace.as_str(), INTEGRATION_NAMESPACE];
        places.map(|place| Target::of::<Secret>(place, name))
    });
    std::iter::once(instance)
        .chain(offer)
        .chain(revision)
        .chain(sources)
        .collect()
}

/// What is kept of a Secret.
pub(crate) fn trim(secret: &Secret) -> Secret {
    Secret {
        metadata: name_of(secret),
        ..Secret::default()
    }
}

#[derive(Debug)]
pub(crate) struct Bindings;

impl Reconciler for Bindings {
    type Kind = ServiceBinding;
    type World = World;
    const NAME: &'static str = field_manager::BINDING;

    async fn observe(&self, ctx: &Ctx, object: ServiceBinding) -> Result<World, Error> {
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
