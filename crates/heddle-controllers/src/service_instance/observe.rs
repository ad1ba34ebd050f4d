//! Observe: the instance, the service it stands for, whether it may be used here, and what was made for it.

use heddle_api::application::Service;
use heddle_api::record::{About, Record};
use heddle_api::service_instance::ApplicationService;
use heddle_api::well_known::FINALIZER;
use heddle_api::{Application, ApplicationMapping, EventFlow, ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};

use super::bundle::{self, BundledInstance};
use super::{DELETE, FLOW, FLOW_RELEASE, HOLD, PIN, RELEASE, SECRET, offer};
use crate::operation::{OperationSubject as _, StepFailure, operation_subject};
use crate::reconcile::{Ctx, Error, StepName};
use crate::records;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub instance: ServiceInstance,
    /// When all this was seen.
    pub now: Timestamp,
    /// The service it stands for, by what the spec says or by what Applications offer.
    pub pin: Option<ApplicationService>,
    /// The Application of that service, unless it is on its way out.
    pub application: Option<Application>,
    /// The mapping of that Application into the namespace, unless it is on its way out.
    pub mapping: Option<ApplicationMapping>,
    /// What is known of the bundle it stands for, if that is what it stands for or may come to stand for.
    pub bundle: Option<BundledInstance>,
    /// The flow of the instance's name, whoever owns it.
    pub flow: Option<EventFlow>,
    /// The instance's bindings; looked at only when they have to go.
    pub bindings: Vec<ServiceBinding>,
    /// What is on record about an instance of that id; looked at only at the end.
    pub record: Option<Record>,
    /// Our finalizer was released in this reconcile: the instance is gone.
    pub released: bool,
    /// The step that failed in this reconcile.
    pub trouble: Option<StepFailure>,
}

pub(super) async fn observe(ctx: &Ctx, instance: ServiceInstance) -> Result<World, Error> {
    let namespace = instance.namespace().unwrap_or_default();
    let mut world = World {
        flow: ctx.find(&namespace, &instance.name_any()).await?,
        instance,
        now: ctx.options.clock.now(),
        pin: None,
        application: None,
        mapping: None,
        bundle: None,
        bindings: Vec::new(),
        record: None,
        released: false,
        trouble: None,
    };
    if world.is_deleted() {
        world.bindings = bindings(ctx, &world.instance, &namespace).await?;
        world.record = records::find(ctx, &world.about(), &namespace).await?;
    } else {
        world.pin = pin(ctx, &world.instance).await?;
    }
    if world.is_leaving() && !world.is_deleted() && world.instance.spec.revision_ref.is_some() {
        // In a moment it is deleted, and deprovision waits for them.
        world.bindings = bindings(ctx, &world.instance, &namespace).await?;
    }
    if world.pin.is_none() {
        world.bundle = bundle::observe(ctx, &world.instance).await?;
    }
    if let Some(pin) = world.pin.clone() {
        let application: Option<Application> = ctx.cached_global(&pin.name).await?;
        let mapping: Option<ApplicationMapping> = ctx.cached(&namespace, &pin.name).await?;
        world.application = application.filter(|found| found.metadata.deletion_timestamp.is_none());
        world.mapping = mapping.filter(|found| found.metadata.deletion_timestamp.is_none());
        // Where a service sends no events a flow goes, and without one nobody else looks before an operation ends well.
        if world.service().is_some_and(|it| !it.sends_events()) {
            let application: Option<Application> = ctx.find_global(&pin.name).await?;
            let mapping: Option<ApplicationMapping> = ctx.find(&namespace, &pin.name).await?;
            world.application =
                application.filter(|found| found.metadata.deletion_timestamp.is_none());
            world.mapping = mapping.filter(|found| found.metadata.deletion_timestamp.is_none());
        }
    }
    Ok(world)
}

async fn pin(ctx: &Ctx, instance: &ServiceInstance) -> Result<Option<ApplicationService>, Error> {
    let spec = &instance.spec;
    if spec.application.is_some() || spec.revision_ref.is_some() {
        return Ok(spec.application.clone());
    }
    let applications = Api::<Application>::all(ctx.client.clone());
    let applications = applications.list(&ListParams::default()).await?.items;
    Ok(offer::resolve(
        &applications,
        &spec.service_id,
        &spec.plan_id,
    ))
}

async fn bindings(
    ctx: &Ctx,
    instance: &ServiceInstance,
    namespace: &str,
) -> Result<Vec<ServiceBinding>, Error> {
    let bindings = Api::<ServiceBinding>::namespaced(ctx.client.clone(), namespace);
    let of_instance = format!("spec.instanceRef.name={}", instance.name_any());
    let found = bindings
        .list(&ListParams::default().fields(&of_instance))
        .await?;
    let mut bindings = found.items;
    // Not every API server can select by such a field; one that ignores it answers with more.
    bindings.retain(|binding| binding.spec.instance_ref.name == instance.name_any());
    Ok(bindings)
}

operation_subject!(World, instance);

impl World {
    pub(super) fn about(&self) -> About {
        About::Instance(self.instance.spec.instance_id.clone())
    }

    /// The service, as its Application describes it now.
    pub(super) fn service(&self) -> Option<&Service> {
        let (pin, application) = (self.pin.as_ref()?, self.application.as_ref()?);
        let mut services = application.spec.services.iter();
        services.find(|service| service.id == pin.service_id)
    }

    /// Whether the namespace may use the service.
    pub(super) fn is_allowed(&self) -> bool {
        let (Some(pin), Some(mapping)) = (&self.pin, &self.mapping) else {
            return false;
        };
        mapping.spec.enables(&pin.service_id)
    }

    /// Whether the flow of that name is the instance's own.
    pub(super) fn owns(&self, flow: &EventFlow) -> bool {
        let uid = self.instance.metadata.uid.as_ref();
        let mut owners = flow.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid)
    }

    /// Whether somebody else controls the flow of that name.
    pub(super) fn is_taken(&self, flow: &EventFlow) -> bool {
        let mut owners = flow.owner_references().iter();
        owners.any(|owner| owner.controller == Some(true)) && !self.owns(flow)
    }

    /// The server's answer to a step is the newest there is to know.
    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        match step_name {
            FLOW | FLOW_RELEASE => self.flow = answer.and_then(|object| object.try_parse().ok()),
            SECRET => {
                let newer = answer.and_then(|object| object.try_parse().ok());
                if let Some(bundle) = &mut self.bundle {
                    bundle.secret = newer;
                }
            }
            HOLD | PIN | DELETE => {
                let newer = answer.and_then(|object| object.try_parse().ok());
                self.instance = newer.unwrap_or_else(|| self.instance.clone());
            }
            RELEASE => self.released = true,
            _ => {}
        }
    }
}

/// Whether a flow that is being removed has nothing left to do.
pub(super) fn is_finished(flow: &EventFlow) -> bool {
    let held = flow.finalizers().iter().any(|name| name == FINALIZER);
    flow.metadata.deletion_timestamp.is_some() && !held
}
