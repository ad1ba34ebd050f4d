//! Observe: the binding, its instance, the API that is bound, and the Secrets on both sides.

use std::fmt;

use heddle_api::application::Service;
use heddle_api::record::{About, Record};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{Application, ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};

use super::bundle::{self, BundledBinding};
use super::credentials::{Sources, secret_names};
use super::{DELETE, HOLD, RELEASE, SECRET};
use crate::operation::{OperationSubject as _, StepFailure, operation_subject};
use crate::reconcile::{Ctx, Error, StepName};
use crate::records;

#[derive(Clone)]
pub(crate) struct World {
    pub binding: ServiceBinding,
    /// When all this was seen.
    pub now: Timestamp,
    pub instance: Option<ServiceInstance>,
    /// The service that the instance stands for, while its Application has it.
    pub service: Option<Service>,
    /// What is known of the bundle that the instance stands for, if it stands for one.
    pub bundle: Option<BundledBinding>,
    /// What the service's APIs are called with.
    pub sources: Sources,
    /// The Secret of the binding's name, whoever owns it.
    pub secret: Option<Secret>,
    /// What is on record about a binding of that id; looked at only at the end.
    pub record: Option<Record>,
    /// Our finalizer was released in this reconcile: the binding is gone.
    pub released: bool,
    /// The step that failed in this reconcile.
    pub trouble: Option<StepFailure>,
}

/// Without what the Secrets hold.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("binding", &self.binding)
            .field("instance", &self.instance)
            .field("service", &self.service)
            .field("bundle", &self.bundle)
            .field("sources", &self.sources)
            .field(
                "secret",
                &self.secret.as_ref().map(|secret| &secret.metadata),
            )
            .field("released", &self.released)
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}

pub(super) async fn observe(ctx: &Ctx, binding: ServiceBinding) -> Result<World, Error> {
    let namespace = binding.namespace().unwrap_or_default();
    let name = &binding.spec.instance_ref.name;
    let mut world = World {
        instance: ctx.find(&namespace, name).await?,
        secret: ctx.find(&namespace, &binding.name_any()).await?,
        binding,
        now: ctx.options.clock.now(),
        service: None,
        bundle: None,
        sources: Sources::default(),
        record: None,
        released: false,
        trouble: None,
    };
    world.bundle = bundle::observe(ctx, &world).await?;
    if world.is_deleted() {
        world.record = records::find(ctx, &world.about(), &namespace).await?;
        return Ok(world);
    }
    world.service = service(ctx, world.instance.as_ref()).await?;
    let names = world.service.iter().flat_map(secret_names);
    for name in names {
        if let Some(secret) = source(ctx, &namespace, name).await? {
            let data = secret.data.unwrap_or_default();
            world.sources.0.insert(name.to_owned(), data);
        }
    }
    Ok(world)
}

async fn service(ctx: &Ctx, instance: Option<&ServiceInstance>) -> Result<Option<Service>, Error> {
    let pin = instance.and_then(|instance| instance.spec.application.as_ref());
    let Some(pin) = pin else {
        return Ok(None);
    };
    let applications = Api::<Application>::all(ctx.client.clone());
    let application = applications.get_opt(&pin.name).await?;
    let mut services = application
        .into_iter()
        .flat_map(|application| application.spec.services);
    Ok(services.find(|service| service.id == pin.service_id))
}

/// The Secret that an API refers to: the namespace's own if it has one, which gives a team credentials of its own, else
/// the one that lies with the Applications.
async fn source(ctx: &Ctx, namespace: &str, name: &str) -> Result<Option<Secret>, Error> {
    match ctx.find(namespace, name).await? {
        Some(own) => Ok(Some(own)),
        None => ctx.find(INTEGRATION_NAMESPACE, name).await,
    }
}

operation_subject!(World, binding);

impl World {
    /// An instance that is gone can no longer say its id; its name is the id wherever an id is fit to be a name.
    pub(super) fn about(&self) -> About {
        let spec = &self.binding.spec;
        let instance = self.instance.as_ref();
        let instance = instance.map_or(&spec.instance_ref.name, |instance| {
            &instance.spec.instance_id
        });
        About::Binding {
            instance: instance.clone(),
            binding: spec.binding_id.clone(),
        }
    }

    /// Whether there is an instance to bind: there, not on its way out, and ready as it is now written.
    pub(super) fn is_instance_ready(&self) -> bool {
        if self.bundle.is_some() {
            return self.instance.as_ref().is_some_and(bundle::can_be_bound);
        }
        self.instance.as_ref().is_some_and(|instance| {
            let meta = &instance.metadata;
            let status = instance.status.as_ref();
            meta.deletion_timestamp.is_none()
                && status.is_some_and(|status| {
                    status.conditions.is_ready() && status.observed_generation == meta.generation
                })
        })
    }

    /// Names of the Secrets that the service's APIs refer to and that are nowhere.
    pub(super) fn missing_sources(&self) -> Vec<&str> {
        let names = self.service.iter().flat_map(secret_names);
        let missing = names.filter(|name| !self.sources.0.contains_key(*name));
        missing.collect()
    }

    pub(super) fn owns(&self, secret: &Secret) -> bool {
        let uid = self.binding.metadata.uid.as_ref();
        let mut owners = secret.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == uid)
    }

    /// The server's answer to a step is the newest there is to know.
    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        match step_name {
            SECRET => self.secret = answer.and_then(|object| object.try_parse().ok()),
            HOLD | DELETE => {
                let newer = answer.and_then(|object| object.try_parse().ok());
                self.binding = newer.unwrap_or_else(|| self.binding.clone());
            }
            RELEASE => self.released = true,
            _ => {}
        }
    }
}
