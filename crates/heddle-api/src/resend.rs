//! Events of the log once more, to one trigger or subscription: `POST /heddle/v1/events/resend`, and what is under way with it.
//!
//! ```text
//!   POST events/resend with dryRun              what would be sent again
//!   POST events/resend                          202 and an operation
//!   GET  events/operations[/{id}]   POST events/operations/{id}/stop
//! ```
//! The events stay what and where they are: the same id, the same bytes, no new event in the log. What becomes of each is one
//! more end in the account of the consumer, which says how many were sent again. Operations are those of dead letters
//! (`dead_letters`), with the act `resend`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dead_letters::SubscriberNow;

/// No operation sends more than so many again; a longer range is sent piece by piece.
pub const RESENT_MAX: u64 = 100_000;

/// Which events, and to whom. At least one of `query`, `from` and `before` is given.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResendRequest {
    /// `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`. Its filter as it is now decides which of the events it gets.
    pub consumer: String,
    /// As in a search: `since:2h until:1h type:order.created`. Terms about consumers and states are refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Places of the log: the first that is meant, and the first that is not. A preview says where it ended, and given with the
    /// real request that keeps out whatever came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Only says what would happen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What would be sent again: the answer to a request with `dryRun`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResendPreview {
    pub consumer: String,
    /// How many events would be sent again, and how many bytes of data they have.
    pub count: u64,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<ResendEdge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ResendEdge>,
    /// Meant, and not wanted by the filter as it is now.
    pub filtered: u64,
    /// Meant, and on their way already: they are left to go on.
    pub pending: u64,
    /// Meant, and at rest: redrive the dead letters instead.
    pub dead_letters: u64,
    /// Meant, and never led to this consumer: only who may read their data may send them there.
    pub withheld: u64,
    /// The places that were looked at. `from` is higher than what was asked for when `more` is set.
    pub from: u64,
    pub before: u64,
    /// There is more than one operation may do, or than is looked through for one: ask for less.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    pub verdict: Option<SubscriberNow>,
    /// Whether the consumer keeps an order; then fresh events with the same key wait for those that are sent again.
    pub ordered: bool,
    /// How long it takes, in seconds, at best and if things go slowly.
    pub estimate_s: [u64; 2],
}

/// The first or the last of them.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ResendEdge {
    pub offset: u64,
    pub accepted_at: Timestamp,
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
}
