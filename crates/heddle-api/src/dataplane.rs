//! What the control plane and the mesh say to each other: resources one way, what the table in force makes of them the other.
//!
//! Plain data and nothing else. The controllers have the port ([`Resources`] are handed over, the rest is asked for), the
//! mesh answers in the same types, and neither knows the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::forecast::Forecast;
use crate::signing::SigningSecret;
use crate::{Application, Broker, Channel, EventPolicy, HTTPSource, Subscription, Trigger};

/// Everything that a routing table is compiled from.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    pub applications: Vec<Arc<Application>>,
    pub http_sources: Vec<Arc<HTTPSource>>,
    pub channels: Vec<Arc<Channel>>,
    pub subscriptions: Vec<Arc<Subscription>>,
    /// Those that are served here, whatever their class says.
    pub brokers: Vec<Arc<Broker>>,
    pub triggers: Vec<Arc<Trigger>>,
    pub policies: Vec<Arc<EventPolicy>>,
    /// The keys with which events of Triggers are signed, whether somebody asks for that or not.
    pub signing_secrets: Vec<SigningSecret>,
    /// Where synthetic events are to arrive, in the order of application and namespace.
    pub heartbeats: Vec<HeartbeatTarget>,
}

/// Synthetic events of an Application are to reach the Broker of a namespace, whatever the state of the way there: a way that
/// is broken is what they are to find.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeartbeatTarget {
    pub application: String,
    pub namespace: String,
    /// Name of the Broker.
    pub broker: String,
    /// How often.
    pub interval: Duration,
}

/// What the mesh knows of its own health, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeshReading {
    /// Whether a table is in force.
    pub routing: bool,
    /// Why resources cannot be written, if so; whoever stands between the mesh and the controllers knows.
    pub store: Option<String>,
    pub log: LogReading,
    /// One for each target, in their order.
    pub heartbeats: Vec<HeartbeatReading>,
    pub canary: HeartbeatReading,
    /// What the probe from outside says, where one was asked for; whoever runs it knows.
    pub edge: Option<EdgeReading>,
    /// In the order of their keys; those of heartbeats are not among them.
    pub consumers: Vec<ConsumerReading>,
    /// In the order of their names.
    pub doors: Vec<DoorReading>,
    /// Links that no policy allows, `subscription/NAMESPACE/NAME`, and what would let them lead events.
    pub denied_links: BTreeMap<String, String>,
}

/// What is known of the synthetic events of one application in one namespace. Ages are measured with a monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeartbeatReading {
    /// Empty for the canary, which crosses a channel, a link and a broker that nobody declared.
    pub application: String,
    pub namespace: String,
    /// As it is in force: longer than was asked for where there are very many, and zero where none are sent.
    pub interval: Duration,
    /// How long ago the first was sent; `None` before that.
    pub since: Option<Duration>,
    /// How long ago the last one that arrived did so.
    pub age: Option<Duration>,
    /// How long that one took from the source to the sink.
    pub end_to_end: Option<Duration>,
    /// Where that one spent most of this time.
    pub slowest: Option<SlowHop>,
    /// How many in a row did not arrive in time, counted up to the newest whose time is over.
    pub misses: u32,
    /// How many in a row arrived in time, likewise.
    pub hits: u32,
    /// Where the oldest one that is missing got stuck, if any is.
    pub stuck: Option<StuckHop>,
}

/// What came of publishing through the public listener, as somebody outside does. Ages are measured with a monotonic clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EdgeReading {
    /// `HOST:PORT`, as publishers know it.
    pub listener: String,
    /// How often it is tried while it succeeds.
    pub interval: Duration,
    /// How long ago it last succeeded.
    pub succeeded: Option<Duration>,
    /// Why the last attempt failed, if it did, and what was seen.
    pub failed: Option<(EdgeFailure, String)>,
    /// How many in a row failed, that one included.
    pub misses: u32,
}

/// Why nobody outside can publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeFailure {
    /// The certificate is not valid at this time: most often it has expired.
    CertificateExpired,
    /// The certificate is another's, or of somebody whom nobody trusts.
    CertificateUntrusted,
    /// There was an answer, and it was no.
    Refused,
    TimedOut,
    /// There is no connection, or it broke off.
    Unreachable,
}

/// The hop at which an event got no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckHop {
    /// One of the names of the hops: `source`, `channel`, `subscription`, `broker`, `trigger` or `delivery`.
    pub hop: String,
    /// What is at fault there, such as `subscription/NAMESPACE/NAME`.
    pub object: String,
    /// What was seen: the refusal, the error, or how long nothing has happened.
    pub why: String,
}

/// The hop at which an event that arrived was kept up longest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowHop {
    /// One of the names of the hops: `channel`, `broker`, `trigger` or `delivery`.
    pub hop: String,
    /// What an event waits for there, such as `broker/NAMESPACE/NAME`.
    pub object: String,
    /// From the hop before until this one was passed.
    pub took: Duration,
}

/// What one consumer's account says about its subscriber, without reading the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsumerReading {
    /// `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`.
    pub key: String,
    /// `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`: from where events reach it.
    pub entries: Vec<String>,
    pub matched: u64,
    pub delivered: u64,
    pub pending: u64,
    pub retrying: u64,
    /// Attempts under way.
    pub in_flight: u64,
    /// Attempts that failed since the process began.
    pub failures: u64,
    /// At rest now.
    pub dead_letters: u64,
    /// How old the oldest event is that has not ended.
    pub oldest_pending: Option<Duration>,
    /// How long ago an attempt was last answered with success.
    pub succeeded: Option<Duration>,
    /// The last attempt that failed, if it is newer than the last success: how long ago, and why.
    pub failed: Option<(Duration, String)>,
    /// What no account explains; anything but 0 is a fault of heddle.
    pub unaccounted: u64,
    /// What came of trying its subscriber between events, where that was asked for.
    pub probe: Option<SubscriberReading>,
}

/// What came of trying a subscriber between events. Ages are measured with a monotonic clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriberReading {
    /// `tcp`, `options` or `heartbeat`.
    pub how: String,
    /// How often it is tried while it answers.
    pub interval: Duration,
    /// How long ago it was last tried.
    pub age: Option<Duration>,
    /// Why the last attempt failed, if it did.
    pub failed: Option<String>,
    /// How many in a row failed, that one included.
    pub misses: u32,
}

/// How the disk and the tasks stand that all events depend on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogReading {
    /// Where the next event goes; `None` where nobody may know or where there is no log.
    pub end: Option<u64>,
    /// Why nothing is appended until a restart, if so.
    pub broken: Option<String>,
    /// Why nothing is appended for now, if so.
    pub refusing: Option<String>,
    /// Why what becomes of events cannot be written down for now, if so.
    pub journal_stalled: Option<String>,
    /// Events that are safe and not matched yet, and for how long there have been any.
    pub unmatched: u64,
    pub unmatched_for: Option<Duration>,
    /// Of what may be used of the disk, the part that is: 1 when events are refused for want of room. `None` when unknown.
    pub used_ratio: Option<f64>,
    /// When it will be full if it goes on as in the last minutes.
    pub disk_full: Option<Forecast>,
    /// Who keeps most of the log, if anybody keeps any.
    pub largest: Option<String>,
    pub damaged: u64,
    pub journal_lost: u64,
}

/// What publishing to an application came to since the process began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoorReading {
    pub application: String,
    pub accepted: u64,
    /// Answered 4xx: what was sent cannot be taken as it is, or not from them.
    pub refused: u64,
    /// Answered 429 or 5xx.
    pub failed: u64,
    /// Accepted, and wanted by nobody.
    pub unmatched: u64,
}

impl Resources {
    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.applications.len()
            + self.http_sources.len()
            + self.channels.len()
            + self.subscriptions.len()
            + self.brokers.len()
            + self.triggers.len()
            + self.policies.len()
            + self.signing_secrets.len()
    }
}

/// What the table in force says about a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RoutedConsumer {
    /// Uid of the object that was compiled.
    pub uid: String,
    /// Its generation then.
    pub generation: i64,
    /// Why nothing is sent at the moment, or not everything.
    pub held: Option<Held>,
    /// Why events end without being delivered, while its backlog is larger than its quota.
    pub over_quota: Option<String>,
    /// Replies of its subscriber could not go on and rest, if so.
    pub bad_replies: Option<String>,
    /// Settings that could not be understood; defaults are used for them.
    pub faults: Vec<String>,
}

/// Why a consumer's events wait, whatever its subscriber does with those that are sent. They are kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Held {
    /// It goes on by itself, or when somebody lets it: there is no room for what comes of events, or it cannot be written
    /// down.
    Waiting(String),
    /// The subscriber said that it is gone for good.
    Gone(String),
    /// The subscriber is asked before anything is sent to it, and has not consented.
    Unconsented(String),
    /// They are to be signed, and there is no key that could be used.
    Unsigned(String),
}

/// How events end that will not be delivered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// They rest where they can be found and sent on their way again.
    DeadLetter,
    /// They are removed, in the name of whoever asked.
    Discard,
}

/// How many events were ended, counted per consumer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GivenUp {
    pub dead_lettered: u64,
    pub discarded: u64,
}

impl GivenUp {
    /// So many events, all ended in the same way.
    pub fn of(fate: Fate, count: u64) -> Self {
        match fate {
            Fate::DeadLetter => Self {
                dead_lettered: count,
                discarded: 0,
            },
            Fate::Discard => Self {
                dead_lettered: 0,
                discarded: count,
            },
        }
    }
}
