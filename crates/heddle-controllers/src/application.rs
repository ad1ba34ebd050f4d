//! Application: the door for its events (HTTPSource), the log that keeps them (Channel), and the token it publishes with.
//!
//! All live in the integration namespace under the Application's name and are owned by it, so that they go with it. The token
//! is made once; deleting its Secret has another one made, which is how it is rotated. `Ready` says that source and channel
//! are there as asked and are ready themselves (where there is a mesh that could make them so); services that cannot be
//! offered are listed one by one and do not spoil the others. An id or a name that two Applications want belongs to the
//! older, and the younger is looked at again whenever that changes.

mod observe;
mod plan;
mod publisher;
mod rivals;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use heddle_api::application::Application;
use heddle_api::well_known::field_manager;
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use serde_json::Value;

use crate::reconcile::{Controller, Ctx, Error, Notices, Reconciler, Step, StepName};
use crate::{ControllerStart, Parts, Watches};
use observe::World;
use rivals::Rivals;

const SOURCE: StepName = "source";
const CHANNEL: StepName = "channel";
const PUBLISHER: StepName = "publisher";

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let rivals = Arc::new(Rivals::new(
        start.options.offers,
        watches.applications.store(),
    ));
    let reconciler = Applications {
        rivals: Arc::clone(&rivals),
    };
    let controller = Controller::new(reconciler, &mut watches.applications, |_| Vec::new())
        .requeue_each_mapped(&mut watches.applications, move |change| rivals.heed(change))
        .requeue_mapped(&mut watches.http_sources, owner)
        .requeue_mapped(&mut watches.channels, owner)
        .requeue_mapped(&mut watches.secrets, owner);
    start.add(controller, parts);
}

/// The Application behind a child, by the same key as the Application's own changes: two keys would be two reconciles of one
/// object at once.
fn owner<K: Resource>(child: &K) -> Option<ObjectRef<Application>> {
    let controller = child
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    let controller = controller.filter(|owner| owner.kind == Application::kind(&()))?;
    Some(ObjectRef::new(&controller.name))
}

#[derive(Debug)]
pub(crate) struct Applications {
    rivals: Arc<Rivals>,
}

impl Reconciler for Applications {
    type Kind = Application;
    type World = World;
    const NAME: &'static str = field_manager::APPLICATION;
    const FOREIGN_FIELDS: &'static [&'static str] = &["eventing"];
    const NOTICES: Notices = Notices::ASSEMBLED;

    async fn observe(&self, ctx: &Ctx, object: Application) -> Result<World, Error> {
        let rejected = self.rivals.rejected(&object);
        observe::observe(ctx, object, rejected).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn on_applied(&self, world: &mut World, step_name: StepName, answer: Option<DynamicObject>) {
        world.absorb(step_name, answer);
    }

    fn on_step_error(&self, world: &mut World, name: StepName, error: &Error, _: u32) {
        world.trouble = Some((name, error.to_string()));
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
