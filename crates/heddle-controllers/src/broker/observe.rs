//! Observe: the Broker, its dead-letter sink, what the mesh says of it, and what keeps it if nobody claims it.

use heddle_api::broker::{Broker, CLASS_ANNOTATION, Classes};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::retention::{self, Unclaimed};
use crate::dataplane::EntryState;
use crate::reconcile::{Ctx, Error};
use crate::resolve::{self, Resolution};
use crate::routing;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub broker: Broker,
    pub dead_letter_sink: Option<Resolution>,
    /// Why the Broker is not served here, if its class is another one.
    pub foreign: Option<String>,
    /// `None` where no mesh runs.
    pub door: Option<EntryState>,
    /// Set for a Broker that nobody claims and that is ours to remove.
    pub unclaimed: Option<Unclaimed>,
    /// Whether this reconcile has removed it.
    pub is_removed: bool,
    pub now: Timestamp,
}

pub(super) async fn observe(ctx: &Ctx, broker: Broker) -> Result<World, Error> {
    let namespace = broker.namespace().unwrap_or_default();
    let delivery = broker.spec.delivery.as_ref();
    let entry = routing::entry("broker", &broker);
    Ok(World {
        dead_letter_sink: resolve::sink(ctx, delivery, &namespace).await?,
        foreign: foreign(&ctx.options.broker_classes, &broker),
        unclaimed: retention::observe(ctx, &broker).await?,
        door: ctx.plane().map(|plane| EntryState::ask(plane, &entry)),
        broker,
        is_removed: false,
        now: ctx.options.clock.now(),
    })
}

/// Why a Broker is not served here, and what to do.
pub(super) fn foreign(classes: &Classes, broker: &Broker) -> Option<String> {
    let class = classes.foreign(broker)?;
    let served = classes.names().join(", ");
    Some(format!(
        "its class is {class}, and those served here are {served}: remove the annotation {CLASS_ANNOTATION}, or add the class to \
         brokerClasses in the configuration"
    ))
}
