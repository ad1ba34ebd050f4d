//! `Subscription` of the old mesh of Kyma: who got which events, before there were Triggers.
//!
//! Shape, group and version are those of the old mesh, and so is what it accepted: an object that was taken out of one can be
//! put in here unchanged, status and all. Nothing here acts on it, so it is no [`ResourceKind`](crate::ResourceKind); a
//! migration reads it. Its definition is served by the embedded API server and not handed out for real clusters, where that
//! of the old mesh may still be in use.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{structural, timestamp};

/// The group of what is only kept for migrations from the old mesh.
pub const GROUP: &str = "eventing.kyma-project.io";

/// What the old mesh puts on every Subscription that it knows, and takes off when it has let go of it.
pub const FINALIZER: &str = "subscription.finalizers.kyma-project.io";

/// Which events go where.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "eventing.kyma-project.io",
    version = "v1alpha1",
    kind = "Subscription",
    root = "LegacySubscription",
    plural = "subscriptions",
    namespaced,
    category = "legacy",
    status = "LegacySubscriptionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Who gets which events in the old mesh of Kyma. Kept for migrations; nothing is delivered by it.",
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.source_id"}"#,
    printcolumn = r#"{"name":"Event type","type":"string","jsonPath":".spec.event_type"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.event_type_version"}"#,
    printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".spec.endpoint"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(transform = structural)]
pub struct LegacySubscriptionSpec {
    /// Where the events are sent.
    #[schemars(length(max = 512), regex(pattern = "^(https?)://.+$"))]
    pub endpoint: String,
    /// Whether the subscriber was to be told the name of the Subscription. Accepted, and never acted upon by the old mesh.
    #[serde(default)]
    pub include_subscription_name_header: bool,
    /// The type of the events.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$"
        )
    )]
    pub event_type: String,
    /// The version of that type.
    #[schemars(length(min = 1, max = 4), regex(pattern = "^[a-zA-Z0-9]+$"))]
    pub event_type_version: String,
    /// The Application whose events they are.
    #[schemars(length(min = 1, max = 253))]
    pub source_id: String,
}

/// What the old mesh said of it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(transform = structural)]
pub struct LegacySubscriptionStatus {
    /// In the old mesh's own words and spelling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
}

/// One thing that holds, or does not.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(transform = structural)]
pub struct LegacyCondition {
    /// `is-ready`, `events-activated` or `kn-subscription-ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub last_transition_time: Option<String>,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl LegacySubscription {
    /// Whether the old mesh says `True` to a condition.
    #[must_use]
    pub fn holds(&self, condition: &str) -> bool {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        let mut found = conditions.filter(|found| found.type_ == condition);
        found.any(|found| found.status == "True")
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt as _;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_object_of_the_old_mesh_is_read_and_written_unchanged() {
        let written = json!({
            "apiVersion": "eventing.kyma-project.io/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "shop", "namespace": "team-a", "finalizers": [FINALIZER]},
            "spec": {
                "endpoint": "https://shop.team-a", "include_subscription_name_header": true,
                "event_type": "order.created", "event_type_version": "v1", "source_id": "ec-prod",
            },
            "status": {"conditions": [
                {"type": "is-ready", "status": "False", "last_transition_time": "2020-01-02T03:04:05Z", "reason": "x"},
            ]},
        });
        let read: LegacySubscription = serde_json::from_value(written.clone()).unwrap();
        assert!(!read.holds("is-ready"));
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
    }

    #[test]
    fn the_definition_asks_for_what_the_old_mesh_asked_for() {
        let crd = serde_json::to_value(LegacySubscription::crd()).unwrap();
        let name = &crd["metadata"]["name"];
        assert_eq!(name, "subscriptions.eventing.kyma-project.io");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let spec = &schema["properties"]["spec"];
        let required = json!(["endpoint", "event_type", "event_type_version", "source_id"]);
        assert_eq!(spec["required"], required);
        assert_eq!(spec["properties"]["endpoint"]["maxLength"], 512);
        let conditions = &schema["properties"]["status"]["properties"]["conditions"];
        assert_eq!(conditions["x-kubernetes-list-type"], Value::from("atomic"));
    }
}
