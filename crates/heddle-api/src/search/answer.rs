//! What a search answers: `GET /heddle/v1/events`, and what `heddle events -o json` prints.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ledger::Cause;

/// `GET /heddle/v1/events?q=…[&limit=][&before=][&from=]`: newest first, as many as were found within the time that one
/// answer may take.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    pub items: Vec<FoundEvent>,
    pub looked_at: LookedAt,
    /// The `before` that goes on where this answer ended; absent when everything was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// When the query is a single word: the places of the newest events of which it is the place, the id, the request id or
    /// the trace id, wherever in the log they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub direct: Vec<u64>,
}

/// One event that was found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FoundEvent {
    /// Its place in the log.
    pub offset: u64,
    /// When it was safe on disk.
    pub accepted_at: Timestamp,
    /// Where it came in.
    pub entry: String,
    pub source: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub data_bytes: u64,
    /// How many consumers it is in which state for. Absent where nobody looked, as in a tail.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, u64>,
}

/// The part of the log that was looked at. All are 0 for somebody who may see the events of some namespaces only: how many there
/// are in all is not told to them, and how far it went is in `next`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LookedAt {
    /// The oldest place that was looked at.
    pub from: u64,
    /// The place behind the newest.
    pub to: u64,
    /// How many places the log holds.
    pub of: u64,
}

impl LookedAt {
    /// Whether anything is told.
    #[must_use]
    pub fn is_told(&self) -> bool {
        *self != Self::default()
    }
}

/// One line of an answer to whoever accepts `application/jsonl`: an event, or how far the search is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(untagged)]
pub enum StreamedEvents {
    Item {
        item: FoundEvent,
    },
    End(EventStreamEnd),
    Rate {
        rate: TailRate,
    },
    #[serde(rename_all = "camelCase")]
    Progress {
        looked_at: LookedAt,
    },
}

/// The last line: the search is over.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EventStreamEnd {
    pub looked_at: LookedAt,
    /// Always true: whoever does not see this line was cut off.
    pub end: bool,
    /// As in [`EventPage::next`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Why the search ended early, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a tail shows of what there is, over about a second.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TailRate {
    /// Of those that match.
    pub shown: u64,
    pub matched: u64,
    /// All that were accepted; for somebody who may see the events of some namespaces only, those that were read and are theirs.
    pub accepted: u64,
}

/// `GET /heddle/v1/events/{offset}`: one event with all that it has.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct WholeEvent {
    pub offset: u64,
    pub accepted_at: Timestamp,
    pub entry: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    pub data_bytes: u64,
    /// The event whose reply this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether the data is left out because whoever asks may not see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_withheld: bool,
    /// Parts of its data are hidden from whoever asks; `***` stands in their place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_masked: bool,
    /// The event in the JSON format of CloudEvents.
    pub event: serde_json::Value,
}
