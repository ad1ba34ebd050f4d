//! The injection label of a namespace: what it says, who said it, and saying it ourselves.
//!
//! `enabled` asks for a Broker and `disabled` forbids one. Where flows exist and nobody has said anything, `enabled` is
//! stated for tools that look for it, and taken back when the flows are gone. What heddle itself stated is no wish of a
//! user's, so it claims no Broker: the API server keeps book of who stated what.

use std::collections::BTreeMap;

use heddle_api::well_known::{INJECTION_LABEL, field_manager};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use serde_json::json;

use super::observe::World;
use super::wanted::is_live;
use super::{LABEL, is_leaving};
use crate::reconcile::Step;

const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

pub(crate) fn is_disabled(namespace: &Namespace) -> bool {
    value(namespace) == Some(DISABLED)
}

/// Whether somebody other than heddle asks for a Broker.
pub(super) fn asks_for_broker(namespace: &Namespace) -> bool {
    value(namespace) == Some(ENABLED) && !is_only_ours(namespace)
}

pub(super) fn step(world: &World) -> Option<Step> {
    let namespace = &world.namespace;
    if is_leaving(namespace) {
        return None;
    }
    match value(namespace) {
        None if world.flows.iter().any(is_live) => {
            let labels = BTreeMap::from([(INJECTION_LABEL, ENABLED)]);
            Step::offer(LABEL, namespace, json!({"metadata": {"labels": labels}}))
        }
        Some(ENABLED) if world.flows.iter().all(is_leaving) && is_ours(namespace) => {
            Step::offer(LABEL, namespace, json!({}))
        }
        _ => None,
    }
}

fn value(namespace: &Namespace) -> Option<&str> {
    namespace.labels().get(INJECTION_LABEL).map(String::as_str)
}

fn is_ours(namespace: &Namespace) -> bool {
    let mut managers = managers(namespace);
    managers.any(|manager| manager == Some(field_manager::EVENTING))
}

fn is_only_ours(namespace: &Namespace) -> bool {
    let mut managers = managers(namespace);
    is_ours(namespace) && managers.all(|manager| manager == Some(field_manager::EVENTING))
}

/// Everybody who stated the label.
fn managers(namespace: &Namespace) -> impl Iterator<Item = Option<&str>> {
    let entries = namespace.metadata.managed_fields.iter().flatten();
    let field = format!("f:{INJECTION_LABEL}");
    entries
        .filter(move |entry| {
            let fields = entry.fields_v1.as_ref();
            let labels = fields.map(|fields| &fields.0["f:metadata"]["f:labels"]);
            labels.is_some_and(|labels| labels.get(&field).is_some())
        })
        .map(|entry| entry.manager.as_deref())
}
