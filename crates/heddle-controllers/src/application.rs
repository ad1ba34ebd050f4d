//! Application: the door for its events (HTTPSource) and the log that keeps them (Channel).
//!
//! Both live in the integration namespace under the Application's name and are owned by it, so that they go
//! with it. `Ready` says that both are there as asked; services that cannot be offered are listed one by one
//! and do not spoil the others.

mod observe;
mod plan;
mod services;
mod status;
#[cfg(test)]
mod tests;

use heddle_api::application::Application;
use heddle_api::channel::Channel;
use heddle_api::http_source::HTTPSource;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, field_manager};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::Value;

use crate::Options;
use crate::machine::{self, Beats, Ctx, Error, Step, Ticket};
use observe::World;

const SOURCE: Ticket = "source";
const CHANNEL: Ticket = "channel";

pub(crate) async fn run(client: Client, options: Options) {
    let sources = Api::<HTTPSource>::namespaced(client.clone(), INTEGRATION_NAMESPACE);
    let channels = Api::<Channel>::namespaced(client.clone(), INTEGRATION_NAMESPACE);
    let controller = || {
        machine::controller_of::<Application>(&client)
            .watches(sources.clone(), machine::watch_config(), |child| {
                owner(&child)
            })
            .watches(channels.clone(), machine::watch_config(), |child| {
                owner(&child)
            })
    };
    machine::run_one(Applications, controller, client.clone(), options).await;
}

/// The Application behind a child. `Controller::owns` would name it by the child's namespace, as another key than the
/// Application's own changes do, and two rounds of one object would run at once.
fn owner<K: Resource>(child: &K) -> Option<ObjectRef<Application>> {
    let controller = child
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    let controller = controller.filter(|owner| owner.kind == Application::kind(&()))?;
    Some(ObjectRef::new(&controller.name))
}

#[derive(Debug)]
pub(crate) struct Applications;

impl Beats for Applications {
    type Kind = Application;
    type World = World;
    const NAME: &'static str = field_manager::APPLICATION;

    async fn observe(&self, ctx: &Ctx, object: Application) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    fn absorb(&self, world: &mut World, ticket: Ticket, answer: Option<DynamicObject>) {
        world.absorb(ticket, answer);
    }

    fn stumble(&self, world: &mut World, ticket: Ticket, error: &Error) {
        world.trouble = Some((ticket, error.to_string()));
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
