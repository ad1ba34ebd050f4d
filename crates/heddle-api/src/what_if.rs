//! What a change of resources would have done with the events that are stored: the question and its answer.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ledger::ExplainedEvent;

/// `POST /heddle/v1/what-if`: a change that nobody has made.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhatIfRequest {
    /// Objects as they would be applied, whole, of [`Self::KINDS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<Value>,
    /// Objects that would be gone, of the same kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<ChangedObject>,
    /// How many of the newest events are looked at.
    #[serde(default = "last")]
    pub last: u64,
}

impl WhatIfRequest {
    /// Kinds of which it is known what they do to events, from the objects alone.
    pub const KINDS: [&str; 5] = [
        "Trigger",
        "Subscription",
        "EventPolicy",
        "Broker",
        "Channel",
    ];
    /// Kinds from which heddle makes, changes and removes objects of those: what they come to for events is not told.
    pub const INDIRECT: [&str; 8] = [
        "Application",
        "ApplicationMapping",
        "EventActivation",
        "EventFlow",
        "HTTPSource",
        "Namespace",
        "ServiceBinding",
        "ServiceInstance",
    ];
    /// Who asks for more asks too much.
    pub const LAST_MAX: u64 = 1_000_000;
    /// Objects of one question.
    pub const OBJECTS_MAX: usize = 1_000;
}

fn last() -> u64 {
    10_000
}

/// One object.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedObject {
    /// Such as `Trigger`.
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// What the change would have done.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// How many events were looked at, and when they were accepted.
    pub examined: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Consumers that would get other events than they got, those that change most first.
    pub consumers: Vec<ChangedConsumer>,
    /// What of the change would not be in force, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A consumer that would get other events.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ChangedConsumer {
    /// `trigger/team-a/orders`.
    pub consumer: String,
    /// Whether it is there only afterwards, or only before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// How many of the events it wants as things are, and as they would be.
    pub before: u64,
    pub after: u64,
    pub gained: u64,
    pub lost: u64,
    /// The newest of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gained_events: Vec<ExplainedEvent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_events: Vec<ExplainedEvent>,
}
