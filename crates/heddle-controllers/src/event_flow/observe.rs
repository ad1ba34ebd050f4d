//! Observe: a flow and the parts it consists of. One that goes reads them live, since it is let go for what it sees; one that
//! stays only says what the watches know, and has it confirmed before it calls itself ready: operations end with that, and an
//! end is not taken back.

use heddle_api::health::PlaneHealth;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{
    ApplicationMapping, Broker, Channel, EventActivation, EventFlow, EventPolicy, HTTPSource,
    Subscription, names,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DynamicObject;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};

use super::leaving::Leaving;
use super::links::Links;
use super::{data_plane, link_key, link_name, source, status};
use crate::eventing::{goes_only_to, goes_when_unneeded, is_disabled, succeeds};
use crate::reconcile::{Ctx, Error};
use crate::routing;
use crate::watch::Watched;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub flow: EventFlow,
    pub broker: Option<Broker>,
    pub link: Option<Subscription>,
    /// What only a flow that stays needs.
    pub parts: Parts,
    /// Set for a flow that is to go.
    pub leaving: Option<Leaving>,
    /// What synthetic events say, if anybody knows.
    pub heartbeat: Option<PlaneHealth>,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    pub mapping: Option<ApplicationMapping>,
    pub source: Option<HTTPSource>,
    pub channel: Option<Channel>,
    pub activation: Option<EventActivation>,
    pub policy: Option<EventPolicy>,
    /// Whether the namespace's label forbids a Broker. Looked up only where one is missing.
    pub is_disabled: bool,
}

/// What a part is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Watches,
    Server,
}

pub(super) async fn observe(ctx: &Ctx, links: &Links, flow: EventFlow) -> Result<World, Error> {
    if flow.metadata.deletion_timestamp.is_some() {
        return Box::pin(gather(ctx, links, flow, From::Server)).await;
    }
    let world = Box::pin(gather(ctx, links, flow, From::Watches)).await?;
    if status::turns_ready(&world) {
        return Box::pin(gather(ctx, links, world.flow, From::Server)).await;
    }
    Ok(world)
}

async fn gather(ctx: &Ctx, links: &Links, flow: EventFlow, from: From) -> Result<World, Error> {
    let namespace = flow.namespace().unwrap_or_default();
    // The Broker before the link: a claim goes after the link that it stood for.
    let broker: Option<Broker> = look(ctx, from, &namespace, &flow.spec.broker_ref.name).await?;
    let mut world = World {
        link: link(ctx, from, links, &flow).await?,
        broker,
        parts: Parts::default(),
        leaving: None,
        heartbeat: ctx
            .options
            .health
            .published()
            .and_then(|report| data_plane(&report, &flow)),
        now: ctx.options.clock.now(),
        flow,
    };
    if world.flow.metadata.deletion_timestamp.is_some() {
        world.leaving = Some(Box::pin(leaving(ctx, &world, &namespace)).await?);
    } else {
        world.parts = parts(ctx, from, &world, &namespace).await?;
    }
    Ok(world)
}

async fn parts(ctx: &Ctx, from: From, world: &World, namespace: &str) -> Result<Parts, Error> {
    let spec = &world.flow.spec;
    let (source_namespace, source) = source(&world.flow);
    let policy = names::policy(&spec.application);
    let activation = names::activation(&spec.service_id);
    Ok(Parts {
        mapping: look(ctx, from, namespace, &spec.application).await?,
        source: look(ctx, from, source_namespace, source).await?,
        channel: look(ctx, from, INTEGRATION_NAMESPACE, &spec.application).await?,
        activation: look(ctx, from, namespace, &activation).await?,
        policy: look(ctx, from, namespace, &policy).await?,
        is_disabled: if world.is_claimed() {
            false
        } else {
            let found: Option<Namespace> = ctx.cached_global(namespace).await?;
            found.is_some_and(|namespace| is_disabled(&namespace))
        },
    })
}

async fn leaving(ctx: &Ctx, world: &World, namespace: &str) -> Result<Leaving, Error> {
    let flow = &world.flow;
    // Who else needs a link is asked only where there is one that does not seem to be there for this flow.
    let others: Vec<EventFlow> = if world.is_claimed() || !world.is_linked() {
        Vec::new()
    } else {
        ctx.list(namespace, "").await?
    };
    let found: Option<Namespace> = ctx.find_global(namespace).await?;
    let ends_with_namespace =
        found.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some());
    let (channel, broker) = entries(flow);
    Ok(Leaving {
        ends_with_namespace,
        is_succeeded: others.iter().any(|other| succeeds(other, flow)),
        mesh: ctx.plane().map(|plane| super::leaving::MeshState {
            is_linked: plane.consumer(&link_key(flow)).is_some(),
            // Last, so that nothing that came in over the link is missed by a count after it went.
            pending: plane.pending_through(&channel, &broker),
        }),
        given_up: None,
    })
}

async fn look<K>(ctx: &Ctx, from: From, namespace: &str, name: &str) -> Result<Option<K>, Error>
where
    K: Watched + Resource<Scope = NamespaceResourceScope>,
{
    match from {
        From::Server => Box::pin(ctx.find(namespace, name)).await,
        From::Watches => ctx.cached(namespace, name).await,
    }
}

/// The flow's link: under its own name, or under the one it had before it was taken in.
async fn link(
    ctx: &Ctx,
    from: From,
    links: &Links,
    flow: &EventFlow,
) -> Result<Option<Subscription>, Error> {
    let own: Option<Subscription> =
        look(ctx, from, INTEGRATION_NAMESPACE, &link_name(flow)).await?;
    if own.as_ref().is_some_and(|own| serves(own, flow)) {
        return Ok(own);
    }
    for name in links.of(flow) {
        let other: Option<Subscription> = look(ctx, from, INTEGRATION_NAMESPACE, &name).await?;
        if other.as_ref().is_some_and(|other| serves(other, flow)) {
            return Ok(other);
        }
    }
    Ok(own)
}

/// Whether a link carries the flow's events to its Broker.
pub(super) fn serves(link: &Subscription, flow: &EventFlow) -> bool {
    let namespace = flow.namespace().unwrap_or_default();
    link.metadata.deletion_timestamp.is_none()
        && link.spec.channel.name == flow.spec.application
        && goes_only_to(link, &namespace, &flow.spec.broker_ref.name)
}

/// The Channel and the Broker, as the mesh names them.
pub(super) fn entries(flow: &EventFlow) -> (String, String) {
    let namespace = flow.namespace().unwrap_or_default();
    let spec = &flow.spec;
    (
        routing::entry_of("channel", INTEGRATION_NAMESPACE, &spec.application),
        routing::entry_of("broker", &namespace, &spec.broker_ref.name),
    )
}

impl World {
    /// Whether the Broker keeps a claim of this very flow.
    pub(super) fn is_claimed(&self) -> bool {
        let claims = self.broker.iter().flat_map(|broker| &broker.spec.claims);
        let uid = self.flow.metadata.uid.as_deref();
        uid.is_some_and(|uid| claims.map(|claim| &claim.uid).any(|claim| claim == uid))
    }

    /// Whether there is a link for the flow's events.
    pub(super) fn is_linked(&self) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| serves(link, &self.flow))
    }

    /// Whether that link is none that heddle takes away, so that nobody is to wait for its end.
    pub(super) fn is_linked_by_others(&self) -> bool {
        let link = self.link.as_ref().filter(|_| self.is_linked());
        link.is_some_and(|link| !goes_when_unneeded(link))
    }

    /// The server's answer to a step is the newest there is to know about the flow.
    pub(super) fn absorb(&mut self, answer: Option<DynamicObject>) {
        match answer.and_then(|object| object.try_parse().ok()) {
            Some(flow) => self.flow = flow,
            // Let go, and gone.
            None => self.flow.metadata.uid = None,
        }
    }
}
