//! `Channel`: the durable log of one Application's events.
//!
//! The shape is Knative's. `spec.subscribers` is part of that shape only: the mesh reads Subscriptions themselves. Keeping the
//! events is left to the mesh.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conditions::{ConditionSet, Conditions, Status};
use crate::duck::{Addressable, AppliedPolicy, DeliverySpec, KReference};
use crate::schema::{free_form, structural};

/// What a Channel is made of and who listens to it.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "messaging.knative.dev",
    version = "v1",
    kind = "Channel",
    plural = "channels",
    namespaced,
    shortname = "ch",
    category = "all",
    category = "knative",
    category = "messaging",
    category = "channel",
    category = "heddle",
    status = "ChannelStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The durable log of one Application's events.",
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".status.address.url"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ChannelSpec {
    /// Which kind of channel stands behind this one. heddle keeps every channel in its own log and accepts any template; the
    /// default is Knative's, because clients read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"apiVersion": "messaging.knative.dev/v1", "kind": "InMemoryChannel"}))]
    pub channel_template: Option<ChannelTemplate>,
    /// How events are delivered to subscribers that say nothing about it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
    /// Who listens, as other implementations write it down. heddle reads Subscriptions instead and leaves this list alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub subscribers: Vec<Subscriber>,
}

/// The kind of channel that stands behind a Channel.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.apiVersion == oldSelf.apiVersion && self.kind == oldSelf.kind",
    "message": "the kind of a channel is immutable"
}]))]
pub struct ChannelTemplate {
    /// Group and version of that kind.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// The kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its settings, not looked at by heddle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub spec: Option<Map<String, Value>>,
}

/// Somebody who listens to a Channel.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subscriber {
    /// Uid of the Subscription this stands for.
    pub uid: String,
    /// Name of the Subscription this stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Generation of the Subscription this stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Where events go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_uri: Option<String>,
    /// Where answers go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_uri: Option<String>,
    /// How events are delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
}

/// What is known about a Channel.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ChannelStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the channel; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Where events are published to the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Addressable>,
    /// All addresses of the channel, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Addressable>,
    /// The channel that stands behind this one, where it is an object of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<KReference>,
    /// Where events go that cannot be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_sink_uri: Option<String>,
    /// How each subscriber fares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub subscribers: Vec<SubscriberStatus>,
    /// EventPolicies that apply to the channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<AppliedPolicy>,
}

/// How a subscriber fares.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberStatus {
    /// Uid of the Subscription.
    pub uid: String,
    /// Generation of the Subscription that this describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether every event from now on will be sent to it.
    #[serde(default)]
    pub ready: Status,
    /// Why not, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a Channel promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    pub use crate::delivery::condition::DEAD_LETTER_SINK_RESOLVED;

    /// The log behind the channel is open.
    pub const BACKING_CHANNEL_READY: ConditionType = ConditionType {
        name: "BackingChannelReady",
        meaning: "The log that keeps the channel's events is open and durable, and the channel is part of the routing table in force.",
        reasons: &[
            reason::LOG_UNAVAILABLE,
            reason::NOT_YET_ROUTED,
            reason::NO_MESH,
        ],
    };
    /// The channel can be published to.
    pub const ADDRESSABLE: ConditionType = ConditionType {
        name: "Addressable",
        meaning: "The channel has an address to publish to.",
        reasons: &[reason::ADDRESS_MISSING, reason::NO_MESH],
    };
}

/// Why a Channel is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;
    pub use crate::delivery::reason::{
        DEAD_LETTER_SINK_NOT_CONFIGURED, DEAD_LETTER_SINK_NOT_FOUND, LOG_UNAVAILABLE,
    };

    /// The routing table is older than the channel.
    pub const NOT_YET_ROUTED: Reason = Reason {
        name: "NotYetRouted",
        meaning: "The routing table in force is older than the channel; it is compiled again without help.",
    };
    /// No listener.
    pub const ADDRESS_MISSING: Reason = Reason {
        name: "AddressMissing",
        meaning: "No listener for events serves the channel yet.",
    };
}

/// The conditions of a Channel.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::BACKING_CHANNEL_READY,
        condition::ADDRESSABLE,
        condition::DEAD_LETTER_SINK_RESOLVED,
    ],
    informational: &[],
};
