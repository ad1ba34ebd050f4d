//! Publishes that were refused, as they are remembered for a while: `GET /heddle/v1/events/refused`, and beside a trace.
//!
//! What an event carried is never among it. Codes are those of [`refusals`](crate::refusals).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One publish that was refused: who it was, where, why, and which event, as far as that was understood.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RefusedEvent {
    pub at: Timestamp,
    /// Where it was published: `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`, whether that exists or not, or a path that
    /// is no door.
    pub door: String,
    /// `application/NAME`, `administrator`, `anonymous` where nobody asks, or `unknown` with credentials that nobody has.
    pub who: String,
    /// From where, if it came over the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub status: u16,
    pub code: String,
    /// What the publisher was told.
    pub message: String,
    /// The attribute it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// In a batch the place of the event it is about, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Of the body, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// Those that somebody asked for.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RefusedEvents {
    /// The newest first.
    pub items: Vec<RefusedEvent>,
    /// How many were refused since the process began, those that are forgotten included; told to those who see everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}
