//! What heddle says about events: where one is, what rests in the dead-letter store, whether the accounts balance.
//!
//! These are the bodies under `/heddle/v1/`, and what the commands print with `-o json`. They are worked out by the mesh
//! from its log and its journal; nothing here is stored.
//!
//! A consumer is named `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`, the place where an event came in
//! `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::forecast::Forecast;
use crate::raw_json::RawJson;
use crate::refused_events::RefusedEvent;
use crate::signing::SigningFacts;

/// `GET /heddle/v1/trace?id=…&source=…`: every retained event of this source with this id, oldest first.
///
/// Without a source all retained events have to be looked through, the newest first, and one answer may not reach the
/// oldest: `GET /heddle/v1/trace?id=…[&from=…][&before=…]` looks at a part of the log.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    pub events: Vec<TracedEvent>,
    /// Events before this place in the log were not looked at; ask again with `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<u64>,
    /// Where the log ended when it was looked through: what comes from here on is newer than the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// What is known to be lost, and is or may be what was asked for, or something that would be told here; a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// Publishes of an event of that name that were refused lately, the newest first; where a source is asked for, those that
    /// named it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedEvent>,
}

/// One accepted event. Publishing the same source and id twice gives two of them.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TracedEvent {
    /// Its place in the log.
    pub offset: u64,
    pub source: String,
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
    /// When it was safe on disk.
    pub accepted_at: Timestamp,
    /// Where it came in.
    pub entry: String,
    /// The `X-Request-Id` it came with, which is no part of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    pub data_bytes: u64,
    /// The event whose reply this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What every trigger and subscription it could reach made of it.
    pub verdicts: Vec<ConsumerTrace>,
    /// The furthest hop that is not done with it, in words; `done` when it has ended everywhere.
    pub summary: String,
}

/// Where a reply came from.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    pub offset: u64,
    pub consumer: String,
}

/// What one consumer made of an event.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerTrace {
    pub consumer: String,
    /// The hops between the entry and the consumer, such as `subscription/kyma-integration/shop` and `broker/team-a/default`.
    pub via: Vec<String>,
    pub state: EventState,
    /// Why it is so: the term of the filter that did not hold, the last error, what is waited for.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// Where an event is for one consumer.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum EventState {
    /// The filter did not let it pass.
    Filtered,
    /// Matched and not tried yet.
    Pending,
    /// An attempt is under way.
    Delivering,
    /// At least one attempt failed; another will follow.
    Retrying,
    /// The consumer is paused, or its subscriber has no address, has not consented or asked to be left alone.
    Waiting,
    Delivered,
    DeadLettered,
    /// Ended by a declared policy.
    Expired,
    /// Ended by a named person.
    Removed,
}

impl EventState {
    pub const ALL: [Self; 9] = [
        Self::Filtered,
        Self::Pending,
        Self::Delivering,
        Self::Retrying,
        Self::Waiting,
        Self::Delivered,
        Self::DeadLettered,
        Self::Expired,
        Self::Removed,
    ];

    /// As bodies have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Filtered => "filtered",
            Self::Pending => "pending",
            Self::Delivering => "delivering",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::DeadLettered => "deadLettered",
            Self::Expired => "expired",
            Self::Removed => "removed",
        }
    }
}

/// One attempt to deliver.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Counts from 1.
    pub number: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub latency_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it went to the external dead-letter sink rather than to the subscriber.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_dead_letter_sink: bool,
    /// What came back for it and could not go on. The event was delivered all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_reply: Option<BadReply>,
}

/// A reply that could not go on.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct BadReply {
    /// `not-an-event`, `too-large`, `undecodable`, `refused` or `no-destination`.
    pub fault: String,
    /// The same for people.
    pub reason: String,
    /// The dead letter that keeps it; absent when there was no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<String>,
    /// Who threw that away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_by: Option<String>,
}

/// `GET /heddle/v1/dead-letters[?consumer=&namespace=&type=&source=&limit=&after=]`, oldest first.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPage {
    pub items: Vec<DeadLetter>,
    /// How many match in all.
    pub total: u64,
    /// The `after` of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An event at rest, or a reply to one.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Names this dead letter, and no other, for ever.
    pub name: String,
    pub consumer: String,
    pub offset: u64,
    pub source: String,
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub accepted_at: Timestamp,
    pub dead_at: Timestamp,
    /// Why trying ended.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub attempts: u32,
    /// How often it was sent on its way again.
    pub redrives: u32,
    /// Whether the external sink has it too; absent when none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// It is a reply that rests: the event was delivered, and it is the one that the reply answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<DeadReply>,
}

/// What a dead letter has that is the reply of a subscriber.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeadReply {
    /// As in [`BadReply::fault`].
    pub fault: String,
    /// Known only where the whole dead letter is asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
}

/// `GET /heddle/v1/dead-letters/{name}`: with the event itself.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterDetail {
    #[serde(flatten)]
    pub summary: DeadLetter,
    /// The event in the JSON format of CloudEvents, byte for byte.
    pub event: RawJson,
    /// The start of the last answer's body, or of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Data and answer are left out, because whoever asks may not read what events carry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_hidden: bool,
}

/// Which dead letters: `POST /heddle/v1/dead-letters/redrive` and `POST /heddle/v1/dead-letters/discard`.
///
/// All that is given must hold. Nothing given selects nothing: `all` says that everything is meant.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadLetterSelection {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Of events that this Application published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Of the group with this [`key`](crate::dead_letters::DeadLetterGroup::key).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// None that came to rest after the one with this name: what a preview showed, and nothing that came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Tells what would happen, and changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Makes it an operation however few they are, and does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
}

/// How many dead letters were sent on their way again, or thrown away.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DeadLettersTaken {
    pub count: u64,
    /// Selected and left where they are: replies cannot be sent again.
    #[serde(default)]
    pub replies: u64,
}

/// `POST /heddle/v1/explain`: a proposed filter, tried on the stored events that reach a broker.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainRequest {
    /// `broker/NAMESPACE/NAME` or `channel/NAMESPACE/NAME`.
    pub entry: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// How many of the newest events to look at, of those that reach the entry; at most [`ExplainRequest::LAST_MAX`].
    #[serde(default = "ExplainRequest::default_last")]
    pub last: u64,
    /// `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`: what would change for it is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The place of one event: which terms hold for it is told one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only events before this place in the log, such as the `lookedBackTo` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

impl ExplainRequest {
    /// More than anybody waits for.
    pub const LAST_MAX: u64 = 10_000_000;

    /// Enough to be telling, few enough to answer at once.
    #[must_use]
    pub const fn default_last() -> u64 {
        10_000
    }
}

/// What a proposed filter would have done.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub examined: u64,
    pub matched: u64,
    /// Set when fewer events were examined than asked for although there may be more: nothing before this place in the log
    /// was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_back_to: Option<u64>,
    /// The newest events that would have matched.
    pub matches: Vec<ExplainedEvent>,
    /// The newest events that would not, and why.
    pub misses: Vec<ExplainedEvent>,
    /// Why they would not, most often first. Beyond a number the rest is summed up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<MissReason>,
    /// What would change for the consumer that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<FilterDifference>,
    /// What each term says about the event that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermTruth>,
}

impl Explanation {
    /// Adds what was found among events that are older than all of these.
    pub fn add_older(&mut self, older: Self) {
        self.examined += older.examined;
        self.matched += older.matched;
        self.looked_back_to = older.looked_back_to;
        let room = |shown: &Vec<ExplainedEvent>| SHOWN_MAX.saturating_sub(shown.len());
        let (matches, misses) = (room(&self.matches), room(&self.misses));
        self.matches.extend(older.matches.into_iter().take(matches));
        self.misses.extend(older.misses.into_iter().take(misses));
        for reason in older.reasons {
            let mut known = self.reasons.iter_mut();
            match known.find(|known| known.reason == reason.reason) {
                Some(known) => known.count += reason.count,
                None => self.reasons.push(reason),
            }
        }
        self.reasons.sort_by(|one, other| {
            (other.count.cmp(&one.count)).then_with(|| one.reason.cmp(&other.reason))
        });
        match (&mut self.difference, older.difference) {
            (Some(difference), Some(older)) => {
                difference.gained += older.gained;
                difference.lost += older.lost;
                let gained = room(&difference.gained_events);
                let lost = room(&difference.lost_events);
                let events = older.gained_events.into_iter().take(gained);
                difference.gained_events.extend(events);
                let events = older.lost_events.into_iter().take(lost);
                difference.lost_events.extend(events);
            }
            (difference, older) => *difference = difference.take().or(older),
        }
    }
}

/// How many events are named one by one, of each sort.
const SHOWN_MAX: usize = 10;

/// Events that a proposed filter would not let pass for one and the same reason.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MissReason {
    pub reason: String,
    pub count: u64,
    /// The newest of them; absent where reasons are summed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<u64>,
}

/// What a proposed filter would let pass and the one in force does not, and the other way round.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FilterDifference {
    pub consumer: String,
    pub gained: u64,
    pub lost: u64,
    /// The newest of each.
    pub gained_events: Vec<ExplainedEvent>,
    pub lost_events: Vec<ExplainedEvent>,
}

/// Whether one term of a filter holds for an event.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct TermTruth {
    pub term: String,
    pub holds: bool,
    /// What was found, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One event that a proposed filter was tried on.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEvent {
    pub offset: u64,
    pub source: String,
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub reason: String,
}

/// `GET /heddle/v1/accounts[?depth=]`: every event accounted for, per consumer. What waits unread in the log is counted by reading
/// it unless that is very much; `depth=tallied` reads nothing, `depth=verified` reads all of it, for administrators.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Accounts {
    /// Of all namespaces; absent for somebody who may see some of them only.
    #[serde(default, skip_serializing_if = "LogFacts::is_untold")]
    pub log: LogFacts,
    /// Everything below this place in the log has been matched. Absent where `log` is.
    #[serde(default, skip_serializing_if = "crate::dead_letters::is_zero")]
    pub matched_up_to: u64,
    pub consumers: Vec<Account>,
}

/// The account of one consumer: `matched + sentAgain = delivered + deadLettered + expired + removed + lost + pending`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    pub consumer: String,
    pub matched: u64,
    /// Events of the log that somebody had sent again. Each is one more to end, beside what became of it before.
    #[serde(default, skip_serializing_if = "crate::dead_letters::is_zero")]
    pub sent_again: u64,
    pub delivered: u64,
    pub dead_lettered: u64,
    pub expired: u64,
    pub removed: u64,
    /// Nobody knows what became of them: the journal lost it, and the log no longer has them.
    #[serde(default)]
    pub lost: u64,
    /// Counted one by one, not derived from the others.
    pub pending: u64,
    pub in_flight: u64,
    pub retrying: u64,
    /// At rest now; redriven ones have left.
    pub dead_letters: u64,
    /// Replies at rest, which are no part of the account: the events they answer were delivered.
    #[serde(default)]
    pub dead_replies: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_pending_at: Option<Timestamp>,
    /// Why nothing is sent at the moment, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// No more than so many are sent, such as `100/s`, because its annotation says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// What that costs: how long the pending events take at that rate, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_delay_s: Option<f64>,
    /// How what is sent to its subscriber is signed, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing: Option<SigningFacts>,
    /// The schedule of attempts, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The pauses before the second attempt, the third and so on, in seconds, without chance; the first of them if they are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses_s: Vec<f64>,
    /// The place in the log from which on its filter decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_from: Option<u64>,
    /// The generation of the object whose filter that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// How much of the log its unfinished events keep, whoever's events lie between them.
    #[serde(default)]
    pub kept_bytes: u64,
    /// Why events end without being delivered, while its backlog is larger than its quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_quota: Option<String>,
    /// What is to be expected if it goes on as in the last minutes: when nothing waits any more, when dead letters begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forecasts: Vec<Forecast>,
}

impl Account {
    /// Zero when every event is accounted for.
    #[must_use]
    pub fn difference(&self) -> i128 {
        let ended = [
            self.delivered,
            self.dead_lettered,
            self.expired,
            self.removed,
            self.lost,
            self.pending,
        ];
        let begun = i128::from(self.matched) + i128::from(self.sent_again);
        begun - ended.iter().map(|count| i128::from(*count)).sum::<i128>()
    }
}

/// [`LogFacts::health`] of a log that accepts events.
pub const SERVING: &str = "serving";

/// The log of events.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LogFacts {
    pub first: u64,
    /// The place of the next event.
    pub next: u64,
    /// How many places it holds. Those between that were let go, or were never used, are not among them.
    #[serde(default)]
    pub events: u64,
    pub bytes: u64,
    pub segments: u64,
    /// `serving`, or why not.
    pub health: String,
    /// Records that are damaged and kept aside.
    pub damaged: u64,
    /// Records of the journal that were lost in both copies. Events whose end may have been in them were delivered again.
    #[serde(default)]
    pub journal_lost: u64,
    /// Free on its disk, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// With less free than this, events are refused or soon will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_bytes: Option<u64>,
    /// When it is full, if it goes on as in the last minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_full: Option<Forecast>,
}

impl LogFacts {
    /// Whether whoever asked was told nothing of the log.
    #[must_use]
    pub fn is_untold(&self) -> bool {
        self.health.is_empty()
    }
}

/// A refusal at the events listener and under `/heddle/v1/`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// Stable; documented one by one.
    pub code: String,
    /// What is wrong and what to do.
    pub message: String,
    /// The attribute or header it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The event of a batch it is about, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Whatever else helps.
    #[serde(default, flatten, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, serde_json::Value>,
}
