//! `Broker`: where the events of a namespace come together and its Triggers choose from.
//!
//! The shape is Knative's plus `spec.claims`: who needs the Broker to exist. Claims are keyed by uid and written by
//! compare-and-swap, so a Broker that is being removed can gain no new claim and one that gained a claim is not removed.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::duck::{Addressable, AppliedPolicy, DeliverySpec, KReference};
use crate::schema::structural;

/// The annotation that says which implementation serves a Broker.
pub const CLASS_ANNOTATION: &str = "eventing.knative.dev/broker.class";
/// The value of [`CLASS_ANNOTATION`] that is heddle's own.
pub const CLASS: &str = "heddle";
/// What Knative writes on every Broker that names no class, now and in older releases: it says where a Broker was made, not
/// who has to serve it.
pub const KNATIVE_CLASSES: [&str; 2] = ["MTChannelBasedBroker", "ChannelBasedBroker"];
/// The Broker that a namespace has unless somebody asks for more.
pub const DEFAULT_NAME: &str = "default";
/// The uid of the claim that the injection label of a namespace stands for.
pub const LABEL_CLAIM_UID: &str = "label";

/// How a Broker delivers and who needs it.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "eventing.knative.dev",
    version = "v1",
    kind = "Broker",
    plural = "brokers",
    namespaced,
    shortname = "brk",
    category = "all",
    category = "knative",
    category = "eventing",
    category = "heddle",
    status = "BrokerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Where the events of a namespace come together and its Triggers choose from.",
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".status.address.url"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Class","type":"string","jsonPath":".metadata.annotations.eventing\\.knative\\.dev/broker\\.class","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct BrokerSpec {
    /// Settings of the implementation that serves the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "config is immutable"}]))]
    pub config: Option<KReference>,
    /// How events are delivered to Triggers that say nothing about it themselves. A Trigger that sets any of these fields
    /// replaces all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
    /// Who needs the broker to exist. It is removed only when nobody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub claims: Vec<Claim>,
}

/// Somebody who needs a Broker to exist.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Uid of the object that needs the broker, or `label` for the namespace's injection label.
    #[schemars(length(min = 1, max = 63))]
    pub uid: String,
    /// Kind of that object, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// Name of that object, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
}

/// The classes of Brokers that are served here. A Broker without a class always is, and so is one of heddle's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes(Vec<String>);

impl Classes {
    pub fn new(classes: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = classes.into_iter().collect();
        if !all.iter().any(|class| class == CLASS) {
            all.insert(0, CLASS.to_owned());
        }
        Self(all)
    }

    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The class of a Broker that is not served here.
    #[must_use]
    pub fn foreign<'a>(&self, broker: &'a Broker) -> Option<&'a str> {
        let annotations = broker.metadata.annotations.as_ref()?;
        let class = annotations.get(CLASS_ANNOTATION)?;
        (!self.0.contains(class)).then_some(class)
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self::new(KNATIVE_CLASSES.map(str::to_owned))
    }
}

impl BrokerSpec {
    /// Names everything in the spec but the claims, which come and go without a word about how events are served.
    pub fn settings(&self) -> String {
        let settings = Self {
            claims: Vec::new(),
            ..self.clone()
        };
        let text = serde_json::to_string(&settings).unwrap_or_default();
        crate::names::hashed("settings", &[&text])
    }
}

/// What is known about a Broker.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct BrokerStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Names the settings that this status describes. Claims are not part of them: who else needs the broker makes it no
    /// less ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_settings: Option<String>,
    /// What holds for the broker; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Where events are published to the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Addressable>,
    /// All addresses of the broker, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Addressable>,
    /// Where events go that cannot be delivered.
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
    /// EventPolicies that apply to the broker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<AppliedPolicy>,
}

/// What a Broker promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    pub use crate::delivery::condition::DEAD_LETTER_SINK_RESOLVED;

    /// Events are accepted.
    pub const INGRESS_READY: ConditionType = ConditionType {
        name: "IngressReady",
        meaning: "The listener for events accepts events for the broker.",
        reasons: &[
            reason::LISTENER_CLOSED,
            reason::NO_MESH,
            reason::CLASS_NOT_SERVED,
        ],
    };
    /// Events are kept.
    pub const TRIGGER_CHANNEL_READY: ConditionType = ConditionType {
        name: "TriggerChannelReady",
        meaning: "The log that keeps the broker's events is open and durable.",
        reasons: &[
            reason::LOG_UNAVAILABLE,
            reason::NO_MESH,
            reason::CLASS_NOT_SERVED,
        ],
    };
    /// Events are matched.
    pub const FILTER_READY: ConditionType = ConditionType {
        name: "FilterReady",
        meaning: "The broker is part of the routing table in force; each Trigger says for itself whether it is.",
        reasons: &[
            reason::ROUTES_STALE,
            reason::NO_MESH,
            reason::CLASS_NOT_SERVED,
        ],
    };
    /// The broker can be published to.
    pub const ADDRESSABLE: ConditionType = ConditionType {
        name: "Addressable",
        meaning: "The broker has an address to publish to.",
        reasons: &[
            reason::ADDRESS_MISSING,
            reason::NO_MESH,
            reason::CLASS_NOT_SERVED,
        ],
    };
    /// Nobody claims the broker, and yet it stays.
    pub const RETAINED: ConditionType = ConditionType {
        name: "Retained",
        meaning: "The broker is no longer claimed but must not be removed yet.",
        reasons: &[
            reason::HAS_TRIGGERS,
            reason::EVENTS_PENDING,
            reason::LINGERING,
        ],
    };
}

/// Why a Broker is not ready, or is kept.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;
    pub use crate::delivery::reason::{
        DEAD_LETTER_SINK_NOT_CONFIGURED, DEAD_LETTER_SINK_NOT_FOUND, LOG_UNAVAILABLE,
    };

    /// Somebody else's.
    pub const CLASS_NOT_SERVED: Reason = Reason {
        name: "ClassNotServed",
        meaning: "The annotation `eventing.knative.dev/broker.class` names a class that is not served here; remove it, or add the class to `brokerClasses` in the configuration.",
    };
    /// No listener.
    pub const LISTENER_CLOSED: Reason = Reason {
        name: "ListenerClosed",
        meaning: "The listener for events is not open; the server's readiness says why.",
    };
    /// Routes are older than the broker.
    pub const ROUTES_STALE: Reason = Reason {
        name: "RoutesStale",
        meaning: "The routing table in force is older than the broker; it is compiled again without help.",
    };
    /// No address yet.
    pub const ADDRESS_MISSING: Reason = Reason {
        name: "AddressMissing",
        meaning: "No listener for events serves the broker yet.",
    };
    /// Triggers remain.
    pub const HAS_TRIGGERS: Reason = Reason {
        name: "HasTriggers",
        meaning: "Triggers still choose from the broker; delete them to let it go.",
    };
    /// Events remain.
    pub const EVENTS_PENDING: Reason = Reason {
        name: "EventsPending",
        meaning: "Accepted events are not delivered yet; the broker goes once they are.",
    };
    /// It was used a moment ago.
    pub const LINGERING: Reason = Reason {
        name: "Lingering",
        meaning: "The broker was in use a moment ago and is kept for a while.",
    };
}

/// The conditions of a Broker.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::INGRESS_READY,
        condition::TRIGGER_CHANNEL_READY,
        condition::FILTER_READY,
        condition::ADDRESSABLE,
        condition::DEAD_LETTER_SINK_RESOLVED,
    ],
    informational: &[condition::RETAINED],
};
