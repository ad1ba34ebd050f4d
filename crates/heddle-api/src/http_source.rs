//! `HTTPSource`: the door through which one Application publishes its events.
//!
//! There is one per Application, of the same name, in the integration namespace. It accepts CloudEvents and hands them to
//! the Channel of the same name. Accepting events is left to the mesh.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::{OBJECT_NAME_PATTERN, structural};

/// For whom the door is.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "sources.kyma-project.io",
    version = "v1alpha1",
    kind = "HTTPSource",
    plural = "httpsources",
    namespaced,
    shortname = "hs",
    category = "heddle",
    status = "HTTPSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The door through which one Application publishes its events.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.source"}"#,
    printcolumn = r#"{"name":"Sink","type":"string","jsonPath":".status.SinkURI"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct HTTPSourceSpec {
    /// Name of the Application, which becomes the `source` of every event accepted here.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = OBJECT_NAME_PATTERN),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "source is immutable"}])
    )]
    pub source: String,
}

/// What is known about an HTTPSource.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct HTTPSourceStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the source; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Where accepted events go: the address of the application's Channel.
    #[serde(rename = "SinkURI", default, skip_serializing_if = "Option::is_none")]
    pub sink_uri: Option<String>,
}

/// What an HTTPSource promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// Accepted events have somewhere to go.
    pub const SINK_PROVIDED: ConditionType = ConditionType {
        name: "SinkProvided",
        meaning: "The Channel that accepted events go to exists and has an address.",
        reasons: &[reason::SINK_NOT_FOUND, reason::EMPTY_SINK_URI],
    };
    /// The door is open.
    pub const DEPLOYED: ConditionType = ConditionType {
        name: "Deployed",
        meaning: "Events for this source are accepted.",
        reasons: &[reason::SERVICE_NOT_READY, reason::NO_MESH],
    };
}

/// Why an HTTPSource is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;

    /// There is no channel.
    pub const SINK_NOT_FOUND: Reason = Reason {
        name: "SinkNotFound",
        meaning: "The source's Channel does not exist; it is created without help.",
    };
    /// The channel has no address.
    pub const EMPTY_SINK_URI: Reason = Reason {
        name: "EmptySinkURI",
        meaning: "The source's Channel has no address yet; its conditions say why.",
    };
    /// The door is closed.
    pub const SERVICE_NOT_READY: Reason = Reason {
        name: "ServiceNotReady",
        meaning: "The listener for events does not serve this source yet.",
    };
}

/// The conditions of an HTTPSource.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::SINK_PROVIDED, condition::DEPLOYED],
    informational: &[],
};
