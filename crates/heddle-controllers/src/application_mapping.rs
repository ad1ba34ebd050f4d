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
use kube::api::DynamicObject;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use crate::Options;
use crate::machine::{self, Beats, Ctx, Error, Step, Ticket};
use observe::World;

pub(crate) async fn run(client: Client, options: Options) {
    let applications = Api::<Application>::all(client.clone());
    let namespaces = Api::<Namespace>::all(client.clone());
    let controller = || {
        let controller = machine::controller_of::<ApplicationMapping>(&client);
        let (by_name, by_namespace) = (controller.store(), controller.store());
        controller
            .watches(
                applications.clone(),
                machine::watch_config(),
                move |application| {
                    select(&by_name, |mapping| {
                        mapping.name_any() == application.name_any()
                    })
                },
            )
            .watches(
                namespaces.clone(),
                machine::watch_config(),
                move |namespace| {
                    select(&by_namespace, |mapping| {
                        mapping.namespace().as_deref() == Some(&namespace.name_any())
                    })
                },
            )
    };
    machine::run_one(Mappings, controller, client.clone(), options).await;
}

/// The mappings a change of something else concerns. A mapping the cache does not hold yet is reconciled anyway
/// when the cache first sees it.
fn select(
    cache: &Store<ApplicationMapping>,
    concerned: impl Fn(&ApplicationMapping) -> bool,
) -> Vec<ObjectRef<ApplicationMapping>> {
    cache
        .state()
        .iter()
        .filter(|mapping| concerned(mapping))
        .map(|mapping| ObjectRef::from_obj(&**mapping))
        .collect()
}

#[derive(Debug)]
pub(crate) struct Mappings;

impl Beats for Mappings {
    type Kind = ApplicationMapping;
    type World = World;
    const NAME: &'static str = field_manager::APPLICATION_MAPPING;

    async fn observe(&self, ctx: &Ctx, object: ApplicationMapping) -> Result<World, Error> {
        observe::observe(ctx, object).await
    }

    fn plan(&self, _: &World) -> Vec<Step> {
        Vec::new()
    }

    fn absorb(&self, _: &mut World, _: Ticket, _: Option<DynamicObject>) {}

    fn stumble(&self, _: &mut World, _: Ticket, _: &Error) {}

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }
}
