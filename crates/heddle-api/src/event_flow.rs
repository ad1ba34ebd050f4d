//! `EventFlow`: the events of one provisioned service on their way into a namespace.
//!
//! There is one per event-providing ServiceInstance, in the namespace of its user. What provisioning has to achieve is a set
//! of conditions, each attempted as soon as its own inputs exist and in no particular order. Making them true is left to a
//! controller; whoever writes the spec never waits.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::broker;
use crate::conditions::{ConditionSet, ConditionType, Conditions};
use crate::duck::{DeliverySpec, KReference};
use crate::schema::{structural, timestamp};

/// Whose events flow where, and what becomes of them in the end.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "EventFlow",
    plural = "eventflows",
    namespaced,
    shortname = "ef",
    category = "heddle",
    status = "EventFlowStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The events of one provisioned service on their way into a namespace.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Application","type":"string","jsonPath":".spec.application"}"#,
    printcolumn = r#"{"name":"Pending","type":"integer","jsonPath":".status.pending","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventFlowSpec {
    /// Name of the Application whose events flow.
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "application is immutable"}])
    )]
    pub application: String,
    /// Id of the Application's service.
    #[serde(rename = "serviceID")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "serviceID is immutable"}])
    )]
    pub service_id: String,
    /// Id of the plan it was provisioned with.
    #[serde(rename = "planID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub plan_id: Option<String>,
    /// Id of the instance this flow was made for; absent for a flow that somebody wrote by hand.
    #[serde(
        rename = "instanceID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 1024),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "instanceID is immutable"}])
    )]
    pub instance_id: Option<String>,
    /// The source the events come from; absent means the HTTPSource of the Application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<KReference>,
    /// The Broker the events go to.
    #[serde(default)]
    pub broker_ref: BrokerReference,
    /// How events are delivered to the Broker's Triggers; absent leaves it to the Broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
    /// Whether synthetic events prove that the flow works.
    #[serde(default)]
    pub health_check: HealthCheck,
    /// What becomes of accepted but undelivered events when the flow is removed.
    #[serde(default)]
    pub on_deprovision: OnDeprovision,
}

/// A Broker in the same namespace.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokerReference {
    /// Name of the Broker.
    #[serde(default = "default_broker")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl Default for BrokerReference {
    fn default() -> Self {
        Self {
            name: default_broker(),
        }
    }
}

fn default_broker() -> String {
    broker::DEFAULT_NAME.to_owned()
}

/// Whether and how often synthetic events pass a flow.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// Whether they do.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// How many seconds lie between two of them.
    #[serde(default = "interval_seconds")]
    #[schemars(range(min = 1, max = 3600))]
    pub interval_seconds: i32,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            enabled: enabled(),
            interval_seconds: interval_seconds(),
        }
    }
}

fn enabled() -> bool {
    true
}

/// One event in ten seconds and application: seldom enough to cost nothing, often enough for a verdict within a minute.
fn interval_seconds() -> i32 {
    10
}

/// What becomes of accepted but undelivered events when a flow is removed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnDeprovision {
    /// They are delivered for up to five minutes; what is left becomes a dead letter.
    #[default]
    Drain,
    /// They become dead letters at once.
    DeadLetter,
    /// They are thrown away.
    Discard,
}

/// What is known about an EventFlow.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventFlowStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the flow; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// The address of the Broker that the events go to.
    #[serde(rename = "sinkURI", default, skip_serializing_if = "Option::is_none")]
    pub sink_uri: Option<String>,
    /// The Subscription that carries the events, if it was there before the flow and therefore has a name of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_name: Option<String>,
    /// When a synthetic event had passed the whole flow for the first time after none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub last_heartbeat: Option<Time>,
    /// How many accepted events are not delivered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<i64>,
    /// What became of the events that were pending when the flow's removal began; present once that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// What became of events that were pending when a flow was removed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// How many were still delivered.
    #[serde(default)]
    pub delivered: i64,
    /// How many became dead letters.
    #[serde(default)]
    pub dead_lettered: i64,
    /// How many were thrown away.
    #[serde(default)]
    pub discarded: i64,
}

/// What an EventFlow promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The namespace may use the service.
    pub const ALLOWED: ConditionType = ConditionType {
        name: "Allowed",
        meaning: "An ApplicationMapping of the namespace enables the service.",
        reasons: &[reason::MAPPING_MISSING, reason::SERVICE_NOT_ENABLED],
    };
    /// The Application can publish.
    pub const SOURCE_READY: ConditionType = ConditionType {
        name: "SourceReady",
        meaning: "The Application's HTTPSource is ready.",
        reasons: &[reason::SOURCE_MISSING, reason::SOURCE_NOT_READY],
    };
    /// Its events are kept.
    pub const CHANNEL_READY: ConditionType = ConditionType {
        name: "ChannelReady",
        meaning: "The Application's Channel is ready.",
        reasons: &[reason::CHANNEL_MISSING, reason::CHANNEL_NOT_READY],
    };
    /// Tools can see the flow.
    pub const ACTIVATION_PROJECTED: ConditionType = ConditionType {
        name: "ActivationProjected",
        meaning: "The EventActivation of the service shows the flow.",
        reasons: &[reason::PROJECTION_FAILED],
    };
    /// The channel feeds the broker.
    pub const LINK_READY: ConditionType = ConditionType {
        name: "LinkReady",
        meaning: "The one Subscription from the Application's Channel to the namespace's Broker is ready.",
        reasons: &[reason::LINK_MISSING, reason::LINK_NOT_READY],
    };
    /// The namespace has a broker.
    pub const BROKER_READY: ConditionType = ConditionType {
        name: "BrokerReady",
        meaning: "The Broker exists, is claimed by this flow and is ready.",
        reasons: &[
            reason::BROKER_MISSING,
            reason::BROKER_NOT_READY,
            reason::INJECTION_DISABLED,
        ],
    };
    /// Only those who may publish can.
    pub const POLICY_READY: ConditionType = ConditionType {
        name: "PolicyReady",
        meaning: "The policy that lets exactly this flow into the Broker is in force.",
        reasons: &[reason::POLICY_NOT_READY],
    };
    /// A synthetic event came through.
    pub const HEARTBEAT_OK: ConditionType = ConditionType {
        name: "HeartbeatOK",
        meaning: "A synthetic event passed the whole flow within three intervals.",
        reasons: &[reason::HEARTBEAT_MISSING, reason::HEARTBEAT_PENDING],
    };
}

/// Why an EventFlow is not ready.
pub mod reason {
    use crate::conditions::Reason;

    /// The namespace has no mapping.
    pub const MAPPING_MISSING: Reason = Reason {
        name: "MappingMissing",
        meaning: "The namespace has no ApplicationMapping for the Application; create one.",
    };
    /// The mapping leaves the service out.
    pub const SERVICE_NOT_ENABLED: Reason = Reason {
        name: "ServiceNotEnabled",
        meaning: "The namespace's ApplicationMapping does not enable the service.",
    };
    /// There is no source.
    pub const SOURCE_MISSING: Reason = Reason {
        name: "SourceMissing",
        meaning: "The Application's HTTPSource does not exist; the flow waits for it.",
    };
    /// The source is not ready.
    pub const SOURCE_NOT_READY: Reason = Reason {
        name: "SourceNotReady",
        meaning: "The Application's HTTPSource says why it is not ready.",
    };
    /// There is no channel.
    pub const CHANNEL_MISSING: Reason = Reason {
        name: "ChannelMissing",
        meaning: "The Application's Channel does not exist; the flow waits for it.",
    };
    /// The channel is not ready.
    pub const CHANNEL_NOT_READY: Reason = Reason {
        name: "ChannelNotReady",
        meaning: "The Application's Channel says why it is not ready.",
    };
    /// The projection could not be written.
    pub const PROJECTION_FAILED: Reason = Reason {
        name: "ProjectionFailed",
        meaning: "The EventActivation could not be written yet; it is tried again.",
    };
    /// There is no link.
    pub const LINK_MISSING: Reason = Reason {
        name: "LinkMissing",
        meaning: "The Subscription from Channel to Broker does not exist yet; it is created without help.",
    };
    /// The link is not ready.
    pub const LINK_NOT_READY: Reason = Reason {
        name: "LinkNotReady",
        meaning: "The Subscription from Channel to Broker says why it is not ready.",
    };
    /// There is no broker.
    pub const BROKER_MISSING: Reason = Reason {
        name: "BrokerMissing",
        meaning: "The Broker does not exist or is being removed; it is created without help.",
    };
    /// The broker is not ready.
    pub const BROKER_NOT_READY: Reason = Reason {
        name: "BrokerNotReady",
        meaning: "The Broker says why it is not ready.",
    };
    /// The namespace forbids a broker.
    pub const INJECTION_DISABLED: Reason = Reason {
        name: "InjectionDisabled",
        meaning: "The namespace's label `knative-eventing-injection` is `disabled`; remove it to let events in.",
    };
    /// The policy is not in force.
    pub const POLICY_NOT_READY: Reason = Reason {
        name: "PolicyNotReady",
        meaning: "The policy for the flow is not in force yet; it is tried again.",
    };
    /// None has been sent yet, or nobody can tell.
    pub const HEARTBEAT_PENDING: Reason = Reason {
        name: "HeartbeatPending",
        meaning: "No synthetic event has arrived yet and it is too early to worry, or nobody can tell at the moment.",
    };
    /// No synthetic event came through.
    pub const HEARTBEAT_MISSING: Reason = Reason {
        name: "HeartbeatMissing",
        meaning: "No synthetic event passed the flow lately although its parts say that they are ready.",
    };
}

/// The conditions of an EventFlow.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::ALLOWED,
        condition::SOURCE_READY,
        condition::CHANNEL_READY,
        condition::ACTIVATION_PROJECTED,
        condition::LINK_READY,
        condition::BROKER_READY,
        condition::POLICY_READY,
    ],
    informational: &[condition::HEARTBEAT_OK],
};

/// One stage of a flow: what it looks at, and what must hold before it can.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// What holds afterwards.
    pub condition: ConditionType,
    /// The object it is read from, for people.
    pub object: &'static str,
    /// Stages whose results it needs. None of them is waited for in order; each is tried as soon as its own needs are met.
    pub needs: &'static [ConditionType],
}

/// How a flow becomes ready. The diagrams in the documentation are drawn from this, and the conditions are checked
/// against it.
pub const STAGES: &[Stage] = &[
    Stage {
        condition: condition::ALLOWED,
        object: "ApplicationMapping",
        needs: &[],
    },
    Stage {
        condition: condition::SOURCE_READY,
        object: "HTTPSource",
        needs: &[],
    },
    Stage {
        condition: condition::CHANNEL_READY,
        object: "Channel",
        needs: &[],
    },
    Stage {
        condition: condition::BROKER_READY,
        object: "Broker",
        needs: &[],
    },
    Stage {
        condition: condition::ACTIVATION_PROJECTED,
        object: "EventActivation",
        needs: &[condition::ALLOWED],
    },
    Stage {
        condition: condition::POLICY_READY,
        object: "EventPolicy",
        needs: &[condition::ALLOWED],
    },
    Stage {
        condition: condition::LINK_READY,
        object: "Subscription",
        needs: &[
            condition::CHANNEL_READY,
            condition::BROKER_READY,
            condition::POLICY_READY,
        ],
    },
];
