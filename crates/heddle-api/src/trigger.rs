//! `Trigger`: which events of a Broker go to which subscriber, and how.
//!
//! The shape is Knative's. A Trigger may exist before its Broker; it is `Ready` once every matching event from now on will
//! be sent. Matching and sending are left to the mesh.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::broker;
use crate::conditions::{ConditionSet, Conditions};
use crate::duck::{DeliverySpec, Destination};
use crate::filter::Filter;
use crate::schema::structural;

/// The label that names the Broker of a Trigger, as Knative sets it.
pub const BROKER_LABEL: &str = "eventing.knative.dev/broker";

/// The annotation that names an object which must be ready before the Trigger is, as a reference in JSON.
pub const DEPENDENCY_ANNOTATION: &str = "knative.dev/dependency";

/// Which events go where.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "eventing.knative.dev",
    version = "v1",
    kind = "Trigger",
    plural = "triggers",
    namespaced,
    shortname = "trg",
    category = "all",
    category = "knative",
    category = "eventing",
    category = "heddle",
    status = "TriggerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Which events of a Broker go to which subscriber, and how.",
    printcolumn = r#"{"name":"Broker","type":"string","jsonPath":".spec.broker"}"#,
    printcolumn = r#"{"name":"Subscriber_URI","type":"string","jsonPath":".status.subscriberUri"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct TriggerSpec {
    /// The Broker to choose from, in the same namespace.
    #[serde(default = "default_broker")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "broker is immutable"}])
    )]
    pub broker: String,
    /// The events wanted, by exact values of their attributes; ignored when `filters` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<TriggerFilter>,
    /// The events wanted: those that match every one of these filters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub filters: Vec<Filter>,
    /// Where they go.
    pub subscriber: Destination,
    /// How they are delivered. Setting any field replaces all of the Broker's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
}

impl Default for TriggerSpec {
    fn default() -> Self {
        Self {
            broker: default_broker(),
            filter: None,
            filters: Vec::new(),
            subscriber: Destination::default(),
            delivery: None,
        }
    }
}

fn default_broker() -> String {
    broker::DEFAULT_NAME.to_owned()
}

/// A filter by exact values.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerFilter {
    /// Attributes and their values; an empty value asks only that the attribute is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// What is known about a Trigger.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct TriggerStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the trigger; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// The address that the subscriber resolved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_uri: Option<String>,
    /// Certificates, in PEM, of that address.
    #[serde(
        rename = "subscriberCACerts",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub subscriber_ca_certs: Option<String>,
    /// Audience that the address asks for in tokens; heddle sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_audience: Option<String>,
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
    /// Audience that the address asks for in tokens; heddle sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_sink_audience: Option<String>,
}

/// What a Trigger promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    pub use crate::delivery::condition::DEAD_LETTER_SINK_RESOLVED;

    /// There is a broker to choose from.
    pub const BROKER_READY: ConditionType = ConditionType {
        name: "BrokerReady",
        meaning: "The Broker exists and is ready.",
        reasons: &[reason::BROKER_NOT_FOUND, reason::BROKER_NOT_READY],
    };
    /// Matching events will be sent.
    pub const SUBSCRIPTION_READY: ConditionType = ConditionType {
        name: "SubscriptionReady",
        meaning: "The trigger is part of the routing table in force: every matching event from now on will be sent.",
        reasons: &[
            reason::NOT_YET_ROUTED,
            reason::FILTER_INVALID,
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
    /// What the trigger depends on is ready.
    pub const DEPENDENCY_READY: ConditionType = ConditionType {
        name: "DependencyReady",
        meaning: "The object named by the annotation `knative.dev/dependency` is ready, or there is no such annotation.",
        reasons: &[reason::DEPENDENCY_NOT_READY],
    };
    /// The subscriber has an address.
    pub const SUBSCRIBER_RESOLVED: ConditionType = ConditionType {
        name: "SubscriberResolved",
        meaning: "The subscriber has an address.",
        reasons: &[reason::SUBSCRIBER_NOT_FOUND],
    };
}

/// Why a Trigger is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;
    pub use crate::delivery::reason::{
        BACKLOG_OVER_QUOTA, BAD_REPLIES, CONSENT_MISSING, DEAD_LETTER_SINK_NOT_CONFIGURED,
        DEAD_LETTER_SINK_NOT_FOUND, DELIVERY_HELD, SETTINGS_IGNORED, SIGNING_KEY_UNREADABLE,
        SUBSCRIBER_GONE, SUBSCRIBER_NOT_FOUND,
    };

    /// There is no broker.
    pub const BROKER_NOT_FOUND: Reason = Reason {
        name: "BrokerNotFound",
        meaning: "The Broker does not exist; the trigger becomes ready once it does.",
    };
    /// The broker is not ready.
    pub const BROKER_NOT_READY: Reason = Reason {
        name: "BrokerNotReady",
        meaning: "The Broker says why it is not ready.",
    };
    /// The routing table is older than the trigger.
    pub const NOT_YET_ROUTED: Reason = Reason {
        name: "NotYetRouted",
        meaning: "The routing table in force is older than the trigger; it is compiled again without help.",
    };
    /// A filter cannot be understood.
    pub const FILTER_INVALID: Reason = Reason {
        name: "FilterInvalid",
        meaning: "A filter cannot be understood, so no event is sent; correct it in the spec.",
    };
    /// What the trigger depends on is not ready.
    pub const DEPENDENCY_NOT_READY: Reason = Reason {
        name: "DependencyNotReady",
        meaning: "The object that the trigger depends on does not exist or is not ready.",
    };
}

/// The conditions of a Trigger.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::BROKER_READY,
        condition::SUBSCRIPTION_READY,
        condition::DEPENDENCY_READY,
        condition::SUBSCRIBER_RESOLVED,
        condition::DEAD_LETTER_SINK_RESOLVED,
    ],
    informational: &[],
};
