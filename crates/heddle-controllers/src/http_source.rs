//! HTTPSource: whether the events of an Application are accepted, and which Channel they go to.
//!
//! It creates nothing: the Channel of the same name is its Application's to make, and the door is the mesh's to open.

mod observe;
mod status;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _};

use heddle_api::Channel;
use heddle_api::http_source::HTTPSource;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, DataPlane, Parts, Watches};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Sources, &mut watches.http_sources, targets)
        .requeue_referrers(&mut watches.channels);
    start.add_with_mesh(controller, view, parts);
}

fn targets(source: &HTTPSource) -> Vec<Target> {
    let namespace = source.namespace().unwrap_or_default();
    vec![Target::of::<Channel>(&namespace, &source.name_any())]
}

fn view(plane: &dyn DataPlane, source: &HTTPSource, hasher: &mut DefaultHasher) {
    plane.application_open(&source.spec.source).hash(hasher);
}

#[derive(Debug)]
pub(crate) struct Sources;

impl Reconciler for Sources {
    type Kind = HTTPSource;
    type World = World;
    const NAME: &'static str = field_manager::SOURCE;
    const READS_OWN_STATUS: bool = false;
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: HTTPSource) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
