//! Observe: the Trigger, its Broker, what it refers to, and how it stands in the table in force.

use heddle_api::trigger::Trigger;
use heddle_api::{Broker, duck::DeliverySpec};
use kube::ResourceExt as _;

use super::dependency::{self, DependencyState};
use crate::dataplane::RoutingState;
use crate::reconcile::{Ctx, Error};
use crate::resolve::{self, Resolution};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub trigger: Trigger,
    pub broker: Option<Broker>,
    pub subscriber: Resolution,
    pub dependency: DependencyState,
    /// The sink that the Trigger itself asks for; `None` leaves the Broker's in place.
    pub dead_letter_sink: Option<Resolution>,
    pub routed: RoutingState,
}

pub(super) async fn observe(ctx: &Ctx, trigger: Trigger) -> Result<World, Error> {
    let namespace = trigger.namespace().unwrap_or_default();
    let spec = &trigger.spec;
    Ok(World {
        broker: ctx.cached(&namespace, &spec.broker).await?,
        subscriber: resolve::destination(ctx, &spec.subscriber, &namespace).await?,
        dependency: dependency::observe(ctx, &trigger).await?,
        dead_letter_sink: resolve::sink(ctx, spec.delivery.as_ref(), &namespace).await?,
        // Last, so that it is the newest: what was read before cannot make an older table look current.
        routed: super::routed(ctx.plane(), &trigger),
        trigger,
    })
}

impl World {
    /// Whether the Broker's delivery applies: a Trigger that sets any field replaces all of it.
    pub(super) fn inherits_delivery(&self) -> bool {
        let delivery = self.trigger.spec.delivery.as_ref();
        delivery.is_none_or(|delivery| *delivery == DeliverySpec::default())
    }
}
