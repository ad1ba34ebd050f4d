//! ApplicationMapping: which services of an Application a namespace may use, and whether that means anything.
//!
//! It creates nothing. Its status answers the questions a mapping raises: is there such an Application, does it
//! offer what the mapping names, does the mapping enable anything at all, is the namespace still there to use it.

mod observe;
mod status;
#[cfg(test)]
mod tests;

use heddle_api::application::Application;
use heddle_api::application_mapping::ApplicationMapping;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Reconciler};
use crate::references::Target;
use crate::{ControllerStart, Parts, Watches};
use observe::World;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let controller = Controller::new(Mappings, &mut watches.mappings, targets)
        .requeue_referrers_on_change(&mut watches.applications)
        .requeue_referrers_on_change(&mut watches.namespaces);
    start.add(controller, parts);
}

fn targets(mapping: &ApplicationMapping) -> Vec<Target> {
    vec![
        Target::of::<Application>("", &mapping.name_any()),
        Target::of::<Namespace>("", &mapping.namespace().unwrap_or_default()),
    ]
}

#[derive(Debug)]
pub(crate) struct Mappings;

impl Reconciler for Mappings {
    type Kind = ApplicationMapping;
    type World = World;
    const NAME: &'static str = field_manager::APPLICATION_MAPPING;
    const READS_OWN_STATUS: bool = false;

    async fn observe(&self, ctx: &Ctx, object: ApplicationMapping) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
