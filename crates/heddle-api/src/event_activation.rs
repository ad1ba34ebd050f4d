//! `EventActivation`: shows that events of an Application's service flow into a namespace.
//!
//! A projection, for tools that look for it: there is one per event-providing service that a namespace uses, named by the id
//! of the service. It is derived from EventFlows, so users cannot write it and nothing depends on it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::structural;

/// Whose events flow.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "applicationconnector.kyma-project.io",
    version = "v1alpha1",
    kind = "EventActivation",
    plural = "eventactivations",
    namespaced,
    shortname = "ea",
    category = "heddle",
    status = "EventActivationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Shows that events of an Application's service flow into a namespace. Derived from EventFlows; read-only.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Application","type":"string","jsonPath":".spec.sourceId"}"#,
    printcolumn = r#"{"name":"Service","type":"string","jsonPath":".spec.displayName"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventActivationSpec {
    /// Display name of the service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Name of the Application.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$"
        )
    )]
    pub source_id: String,
}

/// What is known about an EventActivation.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventActivationStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` repeats that of the flows behind the projection.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// What an EventActivation promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The flow behind the projection works.
    pub const FLOW_READY: ConditionType = ConditionType {
        name: "FlowReady",
        meaning: "At least one EventFlow of the service is ready in this namespace.",
        reasons: &[reason::FLOW_NOT_READY],
    };
}

/// Why an EventActivation is not ready.
pub mod reason {
    use crate::conditions::Reason;

    /// The flow does not work yet.
    pub const FLOW_NOT_READY: Reason = Reason {
        name: "FlowNotReady",
        meaning: "The EventFlow of the service says why it is not ready.",
    };
}

/// The conditions of an EventActivation.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::FLOW_READY],
    informational: &[],
};
