//! Observe: the Broker, its dead-letter sink, and what the mesh says of it.

use heddle_api::broker::Broker;
use kube::ResourceExt as _;

use crate::dataplane::Door;
use crate::machine::{Ctx, Error};
use crate::resolve::{self, Resolution};
use crate::routing;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub broker: Broker,
    pub dead_letter_sink: Option<Resolution>,
    /// `None` where no mesh runs.
    pub door: Option<Door>,
}

pub(super) async fn observe(ctx: &Ctx, broker: Broker) -> Result<World, Error> {
    let namespace = broker.namespace().unwrap_or_default();
    let delivery = broker.spec.delivery.as_ref();
    let dead_letter_sink = match delivery.and_then(|delivery| delivery.dead_letter_sink.as_ref()) {
        Some(sink) => Some(resolve::destination(ctx, sink, &namespace).await?),
        None => None,
    };
    let entry = routing::entry("broker", &broker);
    Ok(World {
        dead_letter_sink,
        door: ctx.plane().map(|plane| Door::ask(plane, &entry)),
        broker,
    })
}
