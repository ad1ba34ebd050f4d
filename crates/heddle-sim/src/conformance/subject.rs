//! The objects that checks work on, in their smallest valid form.
//!
//! A [`Trigger`] stands for custom resources (a default, a rule over old and new, an enum, free maps, conditions), a
//! [`ConfigMap`] for what Kubernetes itself defines.

use std::collections::BTreeMap;

use heddle_api::Trigger;
use heddle_api::duck::Destination;
use heddle_api::trigger::TriggerSpec;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::Scope;

/// The collection of Triggers in the namespace of the check.
pub(super) fn triggers(scope: &Scope) -> String {
    format!(
        "/apis/eventing.knative.dev/v1/namespaces/{}/triggers",
        scope.namespace
    )
}

/// The collection of Brokers in the namespace of the check.
pub(super) fn brokers(scope: &Scope) -> String {
    format!(
        "/apis/eventing.knative.dev/v1/namespaces/{}/brokers",
        scope.namespace
    )
}

/// The collection of ConfigMaps in the namespace of the check.
pub(super) fn config_maps(scope: &Scope) -> String {
    format!("/api/v1/namespaces/{}/configmaps", scope.namespace)
}

/// A Trigger that sets only what it must.
pub(super) fn trigger(name: &str) -> Trigger {
    Trigger::new(
        name,
        TriggerSpec {
            subscriber: Destination {
                uri: Some("http://orders.example".to_owned()),
                ..Destination::default()
            },
            ..TriggerSpec::default()
        },
    )
}

/// A Trigger with labels.
pub(super) fn labelled(name: &str, labels: &[(&str, &str)]) -> Trigger {
    let mut trigger = trigger(name);
    trigger.metadata.labels = Some(
        labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    );
    trigger
}

/// The same Trigger as [`trigger`] makes, as it is sent, without any field that has a default.
pub(super) fn trigger_json(name: &str) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": name},
        "spec": {"subscriber": {"uri": "http://orders.example"}},
    })
}

/// A ConfigMap with one entry.
pub(super) fn config_map(name: &str, key: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

/// The same ConfigMap as [`config_map`] makes, as it is sent.
pub(super) fn config_map_json(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
