//! An event that somebody publishes by hand, through the listener of people rather than that of publishers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::raw_json::RawJson;

/// The attribute that says who published an event by hand. Everybody who gets the event sees it.
pub const SENT_BY: &str = "heddlesentby";

/// `POST /heddle/v1/publish`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestEventRequest {
    /// Where it comes in: `application/NAME`, or `broker/NAMESPACE/NAME`.
    pub to: String,
    #[serde(rename = "type")]
    pub type_: String,
    /// One is made up when none is given; an Application's name stands for its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// One is made up when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datacontenttype: Option<String>,
    /// JSON as it is, byte for byte. Text that is sent as another type is a JSON string here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
    /// Further attributes.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extensions: serde_json::Map<String, Value>,
}

/// It is on disk.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TestEventAccepted {
    pub id: String,
    pub source: String,
    /// Who is recorded in the event.
    pub sent_by: String,
}
