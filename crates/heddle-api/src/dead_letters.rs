//! Dead letters at scale, below `/heddle/v1/dead-letters`: by what they have in common, what would become of some of them,
//! and what is under way with many.
//!
//! ```text
//!   GET  groups?by=cause|type|application       what they have in common, and what was said of it (`marks`)
//!   POST redrive, discard with dryRun           what would happen
//!   POST redrive, discard of many               202 and an operation
//!   GET  operations[/{id}]   POST operations/{id}/stop
//!   POST {name}/try                             one of them, and what its subscriber says
//! ```
//! All JSON is camelCase. Fields may be added; none change their meaning.

pub mod marks;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /heddle/v1/dead-letters/groups`: those with the most first, and behind them those that are marked.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterGroups {
    pub groups: Vec<DeadLetterGroup>,
    /// How many dead letters match in all, also those of groups that are not shown.
    pub total: u64,
    /// How many groups are not shown, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// How many of them are of groups that are marked as known, and as to be ignored; marks that hold no more do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub known: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored: u64,
}

/// Dead letters that have something in common. What is not the same for all of them is left out.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterGroup {
    /// Selects these and no others, for as long as they rest.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// What the subscriber said, or why there was no answer, with `#` in the place of numbers and ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// They are replies, which cannot be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replies: bool,
    pub count: u64,
    /// When the first and the last of them came to rest.
    pub first: Timestamp,
    pub last: Timestamp,
    /// The types of their events, the first of them.
    pub types: Vec<String>,
    /// The name of the newest.
    pub sample: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriber_now: Option<SubscriberNow>,
    /// What somebody said about it, of groups by cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<marks::GroupMark>,
}

/// What kept an event from being delivered.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub enum FailureClass {
    /// The subscriber answered, and not with success.
    Answer,
    /// There was no connection, or it broke.
    NoAnswer,
    /// The subscriber took longer than it may.
    Timeout,
    /// Somebody, or a rule that somebody set, ended it without another attempt.
    Policy,
    /// It was too old.
    Ttl,
}

impl FailureClass {
    pub const ALL: [Self; 5] = [
        Self::Answer,
        Self::NoAnswer,
        Self::Timeout,
        Self::Policy,
        Self::Ttl,
    ];

    /// As in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::NoAnswer => "noAnswer",
            Self::Timeout => "timeout",
            Self::Policy => "policy",
            Self::Ttl => "ttl",
        }
    }
}

/// How a subscriber is at the moment, as far as this mesh knows.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum SubscriberNow {
    /// The last attempt succeeded.
    Healthy,
    /// The last attempt failed, or it cannot be sent anything.
    Failing,
    Paused,
    /// The trigger was deleted, or its subscriber asked to be left alone.
    Gone,
    /// Nothing was sent to it since this server began.
    Unknown,
}

impl SubscriberNow {
    /// As in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }
}

/// Up to so many are taken while whoever asked waits. More become an operation.
pub const AT_ONCE_MAX: u64 = 500;

/// What redriving or discarding would do: the answer to a request with `dryRun`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPreview {
    pub count: u64,
    /// Of their events. Those that came to rest before this was counted are not in it.
    pub bytes: u64,
    /// Selected and left where they are: replies cannot be sent again.
    #[serde(default)]
    pub replies: u64,
    /// The name of the last. Given with the real request, it keeps out whatever came to rest since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
    pub consumers: Vec<PreviewedConsumer>,
    /// How long it takes, in seconds, at best and if things go slowly.
    pub estimate_s: [u64; 2],
    /// [`NOT_CURED_BY_REPEATING`] if some of them ended by an answer that says so.
    pub hints: Vec<String>,
}

/// A hint: the subscriber refused some of them for what they are, and will again.
pub const NOT_CURED_BY_REPEATING: &str = "notCuredByRepeating";

/// Whether an answer with this status is about the event, so that the same event is answered the same way.
///
/// 404 is not among them: a route may be missing for a while. Nor are 407, 408, 409, 421, 423, 424, 425, 428 and 429, which
/// are about the moment.
#[must_use]
pub const fn is_cured_by_repeating(status: u16) -> bool {
    !matches!(
        status,
        400 | 401
            | 402
            | 403
            | 405
            | 406
            | 410
            | 411
            | 412
            | 413
            | 414
            | 415
            | 416
            | 417
            | 422
            | 431
            | 451
            | 501
            | 505
    )
}

/// What a preview says of one consumer.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedConsumer {
    pub consumer: String,
    pub count: u64,
    pub verdict: SubscriberNow,
    /// Whether it keeps an order.
    pub ordered: bool,
    /// How many events that wait now come after those that are sent again. At most: they may have other keys.
    pub overtakes: u64,
}

/// `GET /heddle/v1/dead-letters/operations`: the newest first; of those that ended, some are remembered.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BulkOperations {
    pub operations: Vec<BulkOperation>,
}

/// Something that is done with many dead letters, one after the other. It goes on after a restart.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BulkOperation {
    pub id: String,
    pub act: BulkAct,
    pub state: BulkState,
    /// To whom events of the log are sent again, and which; of dead letters nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    pub by: String,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Who stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// How many there were to take when it began.
    pub total: u64,
    /// How many were taken so far.
    pub count: u64,
    /// How many it looked at and left: somebody else took them, or their consumer is gone.
    #[serde(default)]
    pub left: u64,
    /// Per second, since it began or since this server did. Absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// How long it takes yet, at this rate. Absent when nothing goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<u64>,
    /// Why it does not go on at the moment, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

/// What is done with dead letters, or with events of the log.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum BulkAct {
    Redrive,
    Discard,
    /// Events of the log are sent again to one consumer (`resend`).
    Resend,
}

impl BulkAct {
    /// As in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
            Self::Resend => "resend",
        }
    }
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum BulkState {
    Running,
    Done,
    Stopped,
}

impl BulkState {
    /// As in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// `POST /heddle/v1/dead-letters/{name}/try`: what the subscriber said.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TriedDeadLetter {
    pub name: String,
    pub consumer: String,
    pub outcome: TriedOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The start of the answer's body, if it was no success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What it is called now, if it rests again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_as: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum TriedOutcome {
    Delivered,
    /// It will be tried again, as its delivery says.
    Failed,
    /// It rests again.
    DeadLettered,
    /// There was no answer yet. It is on its way all the same.
    UnderWay,
}

pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_json() {
        for class in FailureClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.word());
        }
        for state in [BulkState::Running, BulkState::Done, BulkState::Stopped] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        for act in [BulkAct::Redrive, BulkAct::Discard, BulkAct::Resend] {
            assert_eq!(serde_json::to_value(act).unwrap(), act.word());
        }
        let all = [
            SubscriberNow::Healthy,
            SubscriberNow::Failing,
            SubscriberNow::Paused,
            SubscriberNow::Gone,
            SubscriberNow::Unknown,
        ];
        for now in all {
            assert_eq!(serde_json::to_value(now).unwrap(), now.word());
        }
    }

    #[test]
    fn what_is_wrong_with_the_event_is_not_cured_by_repeating_it() {
        for status in [400, 401, 403, 413, 415, 422] {
            assert!(!is_cured_by_repeating(status), "{status}");
        }
        for status in [0, 404, 408, 409, 429, 500, 502, 503, 504] {
            assert!(is_cured_by_repeating(status), "{status}");
        }
    }
}
