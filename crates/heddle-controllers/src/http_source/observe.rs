//! Observe: the source, its Channel, and whether the mesh accepts its events.

use heddle_api::Channel;
use heddle_api::http_source::HTTPSource;
use kube::ResourceExt as _;

use crate::reconcile::{Ctx, Error};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub source: HTTPSource,
    pub channel: Option<Channel>,
    /// Whether events are accepted, or why not; `None` where no mesh runs.
    pub open: Option<Result<(), String>>,
}

pub(super) async fn observe(ctx: &Ctx, source: HTTPSource) -> Result<World, Error> {
    let namespace = source.namespace().unwrap_or_default();
    let channel = ctx.cached(&namespace, &source.name_any()).await?;
    let open = ctx
        .plane()
        .map(|plane| plane.application_open(&source.spec.source));
    Ok(World {
        source,
        channel,
        open,
    })
}
