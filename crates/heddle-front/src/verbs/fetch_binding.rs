//! `GET` of a binding: what a bind that succeeded has answered, again.

use heddle_api::service_binding::{Protocol, ServiceBinding};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Call, Deps, OsbAnswer};
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, title};
use crate::offers::CatalogView;
use crate::parameters::{ParameterAction, showable};
use crate::version::Version;
use crate::wire::response::OsbResponse;

pub(crate) async fn answer(deps: &Deps, call: &Call, instance: &str, id: &str) -> OsbAnswer {
    let live = deps.binding(call, instance, id).await?;
    let binding = visible(live.as_ref(), id)?;
    let mut body = described(deps, binding, call.version).await?;
    let parameters = parameters(binding, &deps.catalog_view(call));
    if !parameters.is_empty() {
        body.insert("parameters".to_owned(), Value::Object(parameters));
    }
    deps.contacts.note(binding);
    Ok(OsbResponse::ok(body))
}

/// The binding, if it is in force.
pub(crate) fn visible<'a>(
    live: Option<&'a ServiceBinding>,
    id: &str,
) -> Result<&'a ServiceBinding, OsbError> {
    let in_force = live.filter(|binding| Lifecycle::of(*binding) == Lifecycle::Ready);
    in_force.ok_or_else(|| OsbError::NotFound {
        what: title::<ServiceBinding>(id),
    })
}

/// What may be shown of what the binding was asked with.
fn parameters(binding: &ServiceBinding, view: &CatalogView<'_>) -> Map<String, Value> {
    let spec = &binding.spec;
    let plan = view.plan(&spec.plan_id);
    plan.map_or_else(Map::new, |plan| {
        showable(plan, ParameterAction::Bind, &spec.parameters)
    })
}

/// Credentials, and whatever else belongs to a binding.
pub(crate) async fn described(
    deps: &Deps,
    binding: &ServiceBinding,
    version: Version,
) -> Result<Map<String, Value>, OsbError> {
    let credentials = deps.objects.credentials(binding).await;
    let credentials = credentials.map_err(OsbError::about_existing)?;
    Ok(shown(binding, credentials, version))
}

fn shown(
    binding: &ServiceBinding,
    credentials: Map<String, Value>,
    version: Version,
) -> Map<String, Value> {
    let status = binding.status.clone().unwrap_or_default();
    let endpoints = status.endpoints.iter().map(|endpoint| {
        let protocol = match endpoint.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::All => "all",
        };
        json!({"host": endpoint.host, "ports": endpoint.ports, "protocol": protocol})
    });
    let endpoints: Vec<Value> = endpoints.collect();
    let times = [
        ("expires_at", &status.expires_at),
        ("renew_before", &status.renew_before),
    ];
    let times = times
        .into_iter()
        .filter_map(|(key, time)| Some((key.to_owned(), json!(text(time.as_ref()?.0)))));
    let metadata: Map<String, Value> = times.collect();

    let mut body = Map::new();
    let mut put = |key: &str, value: Value, shown: bool| {
        if shown {
            body.insert(key.to_owned(), value);
        }
    };
    let (has_times, has_endpoints) = (!metadata.is_empty(), !endpoints.is_empty());
    put(
        "metadata",
        Value::Object(metadata),
        has_times && version >= Version::V2_16,
    );
    put("credentials", Value::Object(credentials), true);
    put(
        "endpoints",
        Value::Array(endpoints),
        has_endpoints && version >= Version::V2_15,
    );
    put(
        "syslog_drain_url",
        json!(status.syslog_drain_url),
        status.syslog_drain_url.is_some(),
    );
    put(
        "route_service_url",
        json!(status.route_service_url),
        status.route_service_url.is_some(),
    );
    put(
        "volume_mounts",
        json!(status.volume_mounts),
        !status.volume_mounts.is_empty(),
    );
    body
}

/// UTC with a fraction, as the specification wants it.
fn text(time: Timestamp) -> String {
    let tenths = time.subsec_nanosecond() / 100_000_000;
    format!("{}.{tenths}Z", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

#[cfg(test)]
mod tests;
