//! The types of events that were seen: where they come from, who wants them, and what they carry.

pub mod infer;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /heddle/v1/types`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SeenTypes {
    pub items: Vec<SeenType>,
    /// How many events were looked at, the newest.
    pub examined: u64,
    /// When the oldest of these was accepted: what rates are worked out from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Set when there may be more: nothing before this place in the log was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<u64>,
    /// Types that are left out, since there are so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Events of one type from one source, at one entry.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SeenType {
    #[serde(rename = "type")]
    pub type_: String,
    pub source: String,
    /// Where they come in: `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`.
    pub entry: String,
    /// How many of those that were looked at.
    pub count: u64,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    /// Who wanted the newest of them; nobody, if it is empty.
    pub consumers: Vec<String>,
    /// How many more wanted it than are named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_consumers: u64,
    /// How many come in per second, over the time that was looked at; absent where that is too short to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// The place of the newest.
    pub sample: u64,
    /// What all JSON data that was looked at is like; absent without the right to read data, and where none is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// How many events the schema was made from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub schema_of: u64,
}
