//! Observe: the Channel, its dead-letter sink, and what the mesh says of it.

use heddle_api::channel::Channel;
use kube::ResourceExt as _;

use crate::dataplane::EntryState;
use crate::reconcile::{Ctx, Error};
use crate::resolve::{self, Resolution};
use crate::routing;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub channel: Channel,
    pub dead_letter_sink: Option<Resolution>,
    /// `None` where no mesh runs.
    pub door: Option<EntryState>,
}

pub(super) async fn observe(ctx: &Ctx, channel: Channel) -> Result<World, Error> {
    let namespace = channel.namespace().unwrap_or_default();
    let delivery = channel.spec.delivery.as_ref();
    let entry = routing::entry("channel", &channel);
    Ok(World {
        dead_letter_sink: resolve::sink(ctx, delivery, &namespace).await?,
        door: ctx.plane().map(|plane| EntryState::ask(plane, &entry)),
        channel,
    })
}
