//! Observe: one look at a namespace and at the links into it, each kind listed once and live: what is removed is decided here.
//!
//! The order matters. Brokers are read before flows: whoever is found in a Broker's claims was a flow before the flows were
//! listed, so a claim that is taken away belonged to a flow that is really gone, even if another process is at work here.

use std::sync::Arc;

use heddle_api::well_known::{
    BROKER_NAMESPACE_LABEL, INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{
    Application, ApplicationMapping, Broker, EventActivation, EventFlow, EventPolicy, Subscription,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;

use crate::reconcile::{Ctx, Error};

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub namespace: Namespace,
    pub brokers: Vec<Broker>,
    /// Subscriptions that say they feed the namespace.
    pub links: Vec<Subscription>,
    /// EventPolicies that heddle's controllers made.
    pub policies: Vec<EventPolicy>,
    pub activations: Vec<EventActivation>,
    pub flows: Vec<EventFlow>,
    pub mappings: Vec<ApplicationMapping>,
    /// For the names of their services.
    pub applications: Vec<Arc<Application>>,
}

/// A namespace may have thousands of flows, and what they say of themselves decides nothing here.
fn shorten(flow: &mut EventFlow) {
    flow.status = None;
    let meta = &mut flow.metadata;
    (meta.labels, meta.annotations) = (None, None);
    (meta.owner_references, meta.managed_fields) = (None, None);
}

pub(super) async fn observe(ctx: &Ctx, namespace: Namespace) -> Result<World, Error> {
    let name = namespace.name_any();
    let mut world = World {
        brokers: ctx.list(&name, "").await?,
        links: ctx
            .list(
                INTEGRATION_NAMESPACE,
                &format!("{BROKER_NAMESPACE_LABEL}={name}"),
            )
            .await?,
        policies: ctx
            .list(&name, &format!("{MANAGED_BY_LABEL}={MANAGED_BY}"))
            .await?,
        activations: ctx.list(&name, "").await?,
        flows: ctx.list_trimmed(&name, shorten).await?,
        namespace,
        ..World::default()
    };
    // Most namespaces have no flows, and then nobody asks what they are allowed to use.
    if !world.flows.is_empty() {
        world.mappings = ctx.list(&name, "").await?;
        world.applications = ctx.cached_all().await?;
    }
    Ok(world)
}
