//! An event of the log once more, as a new event: `POST /heddle/v1/events/{offset}/republish[?entry=][&dryRun=1]`.
//!
//! Without a body the event is copied; a body of the type `application/cloudevents+json` is the event as somebody edited it.
//! Either way it is a new event that comes in like any other: it has an id of its own, and the extension [`CAUSE`] names the
//! place of the original, which stays as it is, with its accounts and its trace.

use serde::{Deserialize, Serialize};

/// The attribute that names the place of the event that was published again.
pub const CAUSE: &str = "heddlecause";

/// The answer to a request with `dryRun`: what would come in, and who would want it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RepublishPreview {
    /// The place of the event that is published again.
    pub original: u64,
    /// Where it would come in.
    pub entry: String,
    pub source: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub data_bytes: u64,
    /// Whether it is not a copy.
    pub edited: bool,
    /// How many consumers would want it, and how many it would reach that would not.
    pub wanted: u64,
    pub unwanted: u64,
    /// Those who would want it first; of very many the first.
    pub consumers: Vec<RepublishReach>,
}

/// What a consumer would make of it, as its filter is now.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RepublishReach {
    pub consumer: String,
    pub wants: bool,
    /// Which term of its filter would not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The event that came in. It is on disk when this is answered.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RepublishedEvent {
    /// Its place in the log.
    pub offset: u64,
    pub original: u64,
    pub entry: String,
    pub source: String,
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
}
