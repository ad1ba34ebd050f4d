//! Observe: the Subscription, its Channel, where it leads, and how it stands in the table in force.

use heddle_api::Channel;
use heddle_api::duck::DeliverySpec;
use heddle_api::subscription::Subscription;
use kube::{Resource as _, ResourceExt as _};

use crate::dataplane::RoutingState;
use crate::reconcile::{Ctx, Error};
use crate::resolve::{self, Resolution};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub subscription: Subscription,
    /// The Channel, or why there is none.
    pub channel: Result<Channel, String>,
    pub subscriber: Option<Resolution>,
    pub reply: Option<Resolution>,
    /// The sink that the Subscription itself asks for; `None` leaves the Channel's in place.
    pub dead_letter_sink: Option<Resolution>,
    pub routed: RoutingState,
}

pub(super) async fn observe(ctx: &Ctx, subscription: Subscription) -> Result<World, Error> {
    let spec = &subscription.spec;
    let namespace = subscription.namespace().unwrap_or_default();
    Ok(World {
        channel: channel(ctx, &subscription, &namespace).await?,
        subscriber: resolve::optional(ctx, spec.subscriber.as_ref(), &namespace).await?,
        reply: resolve::optional(ctx, spec.reply.as_ref(), &namespace).await?,
        dead_letter_sink: resolve::sink(ctx, spec.delivery.as_ref(), &namespace).await?,
        // Last, so that it is the newest: what was read before cannot make an older table look current.
        routed: super::routed(ctx.plane(), &subscription),
        subscription,
    })
}

async fn channel(
    ctx: &Ctx,
    subscription: &Subscription,
    namespace: &str,
) -> Result<Result<Channel, String>, Error> {
    let reference = &subscription.spec.channel;
    let (kind, name) = (&reference.kind, &reference.name);
    if *kind != Channel::kind(&()) {
        return Ok(Err(format!(
            "{kind} {name} cannot be subscribed to: only Channels are served"
        )));
    }
    if let Some(elsewhere) = reference.namespace.as_deref().filter(|ns| *ns != namespace) {
        return Ok(Err(format!(
            "Channel {elsewhere}/{name} is in another namespace than the subscription"
        )));
    }
    Ok(match ctx.cached::<Channel>(namespace, name).await? {
        None => Err(format!("Channel {namespace}/{name} does not exist")),
        Some(channel) if channel.metadata.deletion_timestamp.is_some() => {
            Err(format!("Channel {namespace}/{name} is being deleted"))
        }
        Some(channel) => Ok(channel),
    })
}

impl World {
    /// Whether the Channel's delivery applies: a Subscription that sets any field replaces all of it.
    pub(super) fn inherits_delivery(&self) -> bool {
        let delivery = self.subscription.spec.delivery.as_ref();
        delivery.is_none_or(|delivery| *delivery == DeliverySpec::default())
    }
}
