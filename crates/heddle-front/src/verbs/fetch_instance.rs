//! `GET` of an instance: as it is in force.

use heddle_api::service_instance::ServiceInstance;
use serde_json::{Map, Value, json};

use super::{Call, Deps, OsbAnswer, busy};
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::CatalogView;
use crate::parameters::{ParameterAction, showable};
use crate::version::Version;
use crate::wire::response::OsbResponse;

pub(crate) async fn answer(deps: &Deps, call: &Call, id: &str) -> OsbAnswer {
    let live = deps.objects.instance(call.scope.as_deref(), id).await?;
    let instance = visible(live.as_ref(), id)?;
    deps.contacts.note(instance);
    Ok(OsbResponse::ok(shown(
        instance,
        &deps.catalog_view(call),
        call.version,
    )))
}

/// The instance, if there is one to be seen.
pub(crate) fn visible<'a>(
    live: Option<&'a ServiceInstance>,
    id: &str,
) -> Result<&'a ServiceInstance, OsbError> {
    let unknown = || OsbError::NotFound {
        what: title::<ServiceInstance>(id),
    };
    let instance = live.ok_or_else(unknown)?;
    let usable = instance
        .progress()
        .and_then(|progress| progress.instance_usable)
        != Some(false);
    match Lifecycle::of(instance) {
        Lifecycle::Ready | Lifecycle::ChangeFailed => Ok(instance),
        Lifecycle::RemoveFailed if usable && instance.is_in_force() => Ok(instance),
        Lifecycle::Changing => Err(busy(instance)),
        Lifecycle::Making
        | Lifecycle::MakeFailed
        | Lifecycle::Removing
        | Lifecycle::RemoveFailed => Err(unknown()),
    }
}

fn shown(
    instance: &ServiceInstance,
    view: &CatalogView<'_>,
    version: Version,
) -> Map<String, Value> {
    let spec = &instance.spec;
    let applied = instance
        .status
        .as_ref()
        .and_then(|status| status.applied.as_ref());
    let plan_id = applied.map_or(&spec.plan_id, |applied| &applied.plan_id);
    let parameters = applied.map_or(&spec.parameters, |applied| &applied.parameters);
    let maintenance = applied.map_or(&spec.maintenance_info, |applied| &applied.maintenance_info);
    let mut body = Map::new();
    body.insert("service_id".to_owned(), json!(spec.service_id));
    body.insert("plan_id".to_owned(), json!(plan_id));
    if let Some(url) = instance
        .status
        .as_ref()
        .and_then(|status| status.dashboard_url.as_ref())
    {
        body.insert("dashboard_url".to_owned(), json!(url));
    }
    // Without its plan nobody knows what of the parameters is secret.
    let revision = applied.map_or(&spec.revision_ref, |applied| &applied.revision_ref);
    if let Some((_, plan)) = view.find_in(revision.as_ref(), &spec.service_id, plan_id) {
        let parameters = showable(plan, ParameterAction::Create, parameters);
        if !parameters.is_empty() {
            body.insert("parameters".to_owned(), Value::Object(parameters));
        }
    }
    if let Some(info) = maintenance.as_ref().filter(|_| version >= Version::V2_15) {
        body.insert(
            "maintenance_info".to_owned(),
            json!({"version": info.version}),
        );
    }
    body
}

#[cfg(test)]
mod tests;
