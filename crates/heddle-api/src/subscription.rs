//! `Subscription`: carries the events of a Channel on, usually to the Broker of a namespace.
//!
//! The shape is Knative's. The Channel of a Subscription never changes; a different one is a different Subscription.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::duck::{DeliverySpec, Destination, KReference};
use crate::schema::structural;

/// From where to where.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "messaging.knative.dev",
    version = "v1",
    kind = "Subscription",
    plural = "subscriptions",
    namespaced,
    shortname = "sub",
    category = "all",
    category = "knative",
    category = "messaging",
    category = "heddle",
    status = "SubscriptionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Carries the events of a Channel on, usually to the Broker of a namespace.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Channel","type":"string","jsonPath":".spec.channel.name"}"#,
    printcolumn = r#"{"name":"Subscriber","type":"string","jsonPath":".status.physicalSubscription.subscriberUri","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.subscriber) || has(self.reply)",
    "message": "a subscription needs a subscriber, a reply, or both"
}]))]
pub struct SubscriptionSpec {
    /// The Channel whose events are carried on, in the same namespace.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "channel is immutable"}]))]
    pub channel: KReference,
    /// Where the events go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<Destination>,
    /// Where the subscriber's answers go; without a subscriber, where the events themselves go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Destination>,
    /// How events are delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
}

/// What is known about a Subscription.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct SubscriptionStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the subscription; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// The addresses that the spec's destinations resolved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_subscription: Option<PhysicalSubscription>,
}

/// Resolved addresses.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalSubscription {
    /// Where events go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_uri: Option<String>,
    /// Certificates, in PEM, of that address.
    #[serde(
        rename = "subscriberCACerts",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub subscriber_ca_certs: Option<String>,
    /// Where answers go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_uri: Option<String>,
    /// Certificates, in PEM, of that address.
    #[serde(
        rename = "replyCACerts",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub reply_ca_certs: Option<String>,
    /// Where undeliverable events go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_sink_uri: Option<String>,
    /// Certificates, in PEM, of that address.
    #[serde(
        rename = "deadLetterSinkCACerts",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub dead_letter_sink_ca_certs: Option<String>,
}

/// What a Subscription promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// All destinations have addresses.
    pub const REFERENCES_RESOLVED: ConditionType = ConditionType {
        name: "ReferencesResolved",
        meaning: "The channel, subscriber, reply and dead-letter sink exist and have addresses.",
        reasons: &[
            reason::CHANNEL_NOT_FOUND,
            reason::SUBSCRIBER_NOT_FOUND,
            reason::REPLY_NOT_FOUND,
            reason::DEAD_LETTER_SINK_NOT_FOUND,
        ],
    };
    /// The channel knows about the subscription.
    pub const ADDED_TO_CHANNEL: ConditionType = ConditionType {
        name: "AddedToChannel",
        meaning: "The subscription is part of the routing table in force: every event of the channel from now on will be sent.",
        reasons: &[
            reason::NOT_ADDED_TO_CHANNEL,
            reason::SUBSCRIBER_GONE,
            reason::CONSENT_MISSING,
            reason::SIGNING_KEY_UNREADABLE,
            reason::BACKLOG_OVER_QUOTA,
            reason::DELIVERY_HELD,
            reason::BAD_REPLIES,
            reason::SETTINGS_IGNORED,
            reason::NO_MESH,
        ],
    };
    /// The channel serves the subscription.
    pub const CHANNEL_READY: ConditionType = ConditionType {
        name: "ChannelReady",
        meaning: "The channel exists and is ready.",
        reasons: &[reason::CHANNEL_NOT_FOUND, reason::CHANNEL_NOT_READY],
    };
}

/// Why a Subscription is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;
    pub use crate::delivery::reason::{
        BACKLOG_OVER_QUOTA, BAD_REPLIES, CONSENT_MISSING, DELIVERY_HELD, SETTINGS_IGNORED,
        SIGNING_KEY_UNREADABLE, SUBSCRIBER_GONE, SUBSCRIBER_NOT_FOUND,
    };

    /// There is no channel.
    pub const CHANNEL_NOT_FOUND: Reason = Reason {
        name: "ChannelNotFound",
        meaning: "The Channel does not exist; the subscription becomes ready once it does.",
    };
    /// The channel is not ready.
    pub const CHANNEL_NOT_READY: Reason = Reason {
        name: "ChannelNotReady",
        meaning: "The Channel says why it is not ready.",
    };
    /// The reply does not resolve.
    pub const REPLY_NOT_FOUND: Reason = Reason {
        name: "ReplyNotFound",
        meaning: "The destination of answers does not exist or has no address.",
    };
    /// The dead-letter sink does not resolve.
    pub const DEAD_LETTER_SINK_NOT_FOUND: Reason = Reason {
        name: "DeadLetterSinkNotFound",
        meaning: "The dead-letter sink does not exist or has no address.",
    };
    /// The routing table does not have it.
    pub const NOT_ADDED_TO_CHANNEL: Reason = Reason {
        name: "NotAddedToChannel",
        meaning: "The routing table in force does not have the subscription as it is now written; the message says what it waits for.",
    };
}

/// The conditions of a Subscription.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::REFERENCES_RESOLVED,
        condition::ADDED_TO_CHANNEL,
        condition::CHANNEL_READY,
    ],
    informational: &[],
};
