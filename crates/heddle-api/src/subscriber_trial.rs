//! A subscriber that is tried before there is a Trigger: whether it can be reached, whether it wants events, and how it
//! would be sent them.

use serde::{Deserialize, Serialize};

use crate::duck::DeliverySpec;

/// `POST /heddle/v1/subscribers/try`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberTrialRequest {
    /// Where its Trigger would be; whoever asks needs the rights to make one there.
    pub namespace: String,
    pub url: String,
    /// In whose name it is asked for its consent; it is not asked without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// How it would be sent events.
    #[serde(default)]
    pub delivery: DeliverySpec,
}

/// What came of it. Nothing of what the subscriber said besides is told.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SubscriberTrial {
    pub url: String,
    /// Whether it answered `OPTIONS` at all.
    pub reachable: bool,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub took_ms: f64,
    /// Whether it consented, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consents: Option<bool>,
    /// What its answer lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent_lacks: Option<String>,
    /// The schedule of attempts, in words.
    pub schedule: String,
    /// The same as [`Account::pauses_s`](crate::ledger::Account::pauses_s).
    pub pauses_s: Vec<f64>,
}
