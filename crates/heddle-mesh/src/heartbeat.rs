//! Synthetic events through the real path: is what should arrive arriving, and if not, where is it stuck?
//!
//! ```text
//!   prober ──(Who::Prober)──> source ─> channel ─> log ─> scanner ─> consumer ─> courier ──HTTP──> sink
//!      │ sent                   │ refused   │ appended     │ matched     │ attempted, failed         │ arrived
//!      └────────────────────────┴───────────┴──── board ───┴─────────────┴───────────────────────────┘
//! ```
//! An Application with a [`HeartbeatTarget`] sends one event per interval, which reaches the Broker of each target by the
//! links that everybody's events take, if they are there. A hidden channel, link and broker, the *canary*, are crossed
//! likewise, so that there is something to measure without any Application.
//!
//! Their type is reserved: nobody else can publish it, and whoever wants all events does not get them. That rule is kept
//! in one place, [`Predicate`](crate::path::trigger::Predicate), which whoever matches, catches up or explains asks. Heartbeats
//! are in no account and no number of users', never dead letters, and forgotten with their target. What follows from a
//! reading is left to others.

mod board;
mod diagnosis;
mod prober;
mod sink;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use heddle_api::attributes::Attributes;
use heddle_api::dataplane::{HeartbeatReading, HeartbeatTarget};
use heddle_api::duck::DeliverySpec;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_rt::{Chance, Clock, Tasks};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, broadcast};

use crate::event::Event;
use crate::path::source::Source;
use crate::routes::Table;
use crate::shared::Shared;
use board::{Board, SourceRefusal};

pub(crate) use diagnosis::PathFacts;
pub use prober::edge_request;
pub(crate) use prober::run;
pub use prober::smoke_request;
pub use sink::HeartbeatSink;

/// The type of every heartbeat.
pub const TYPE: &str = "dev.heddle.heartbeat.v1";
/// How all reserved types begin, those of later versions included.
pub const TYPE_PREFIX: &str = "dev.heddle.heartbeat.";

/// How the sources of heartbeats begin; the Application follows.
const SOURCE_PREFIX: &str = "/heddle/heartbeat/";
/// How the keys of consumers begin that hear heartbeats; namespace and Application follow.
const KEY_PREFIX: &str = "heartbeat/";
/// What stands for an Application in heartbeats that come in by the public listener. Nobody hears them: that they are accepted
/// is what they prove, and the canary proves the rest.
const EDGE: &str = "_edge";
/// What is older than so many intervals counts as not arrived, and is not sent any more.
const INTERVALS_MAX: u32 = 3;
/// How long an attempt may take. Nothing is nearer than the sink.
const ATTEMPT_TIMEOUT: &str = "PT5S";
/// Attempts at heartbeats that are made at once: few connections are enough, and no more are opened.
const ATTEMPTS_MAX: usize = 16;
/// The part of the id that tells this process from all others.
const RUN_CHARS: usize = 10;
/// Arrivals of heartbeats of others than the prober that whoever waits for them may be behind with.
const ARRIVALS_MAX: usize = 64;
/// Bytes of chance in the path of the sink.
const TOKEN_BYTES: usize = 16;

/// The way that always exists. No object can have these names.
pub(crate) mod canary {
    use std::time::Duration;

    use heddle_api::dataplane::HeartbeatTarget;

    pub(crate) const CHANNEL: &str = "channel/_heddle/canary";
    pub(crate) const LINK: &str = "subscription/_heddle/canary";
    pub(crate) const BROKER: &str = "broker/_heddle/canary";
    /// How often it is crossed.
    const INTERVAL: Duration = Duration::from_secs(10);
    /// What stands for an Application.
    pub(super) const APPLICATION: &str = "_canary";

    pub(crate) fn target() -> HeartbeatTarget {
        HeartbeatTarget {
            application: APPLICATION.to_owned(),
            namespace: "_heddle".to_owned(),
            broker: "canary".to_owned(),
            interval: INTERVAL,
        }
    }

    /// Whether a place is part of it, which is nobody else's to publish to.
    pub(crate) fn is_part(place: &str) -> bool {
        place == CHANNEL || place == BROKER
    }
}

/// Whether events of this type are heddle's own.
pub(crate) fn is_reserved(type_: &str) -> bool {
    type_.starts_with(TYPE_PREFIX)
}

/// The same of an event.
pub(crate) fn is_heartbeat(event: &dyn Attributes) -> bool {
    event.text("type").is_some_and(is_reserved)
}

/// Whether a consumer hears heartbeats.
pub(crate) fn is_consumer(key: &str) -> bool {
    key.starts_with(KEY_PREFIX)
}

/// The key of the consumer that hears the heartbeats of an Application in a namespace.
pub(crate) fn key_of(namespace: &str, application: &str) -> String {
    format!("{KEY_PREFIX}{namespace}/{application}")
}

pub(crate) fn source_of(application: &str) -> String {
    format!("{SOURCE_PREFIX}{application}")
}

/// The Broker at which a target is.
pub(crate) fn broker_of(target: &HeartbeatTarget) -> String {
    format!("broker/{}/{}", target.namespace, target.broker)
}

/// The Channel from which heartbeats come.
fn channel_of(application: &str) -> String {
    match application {
        canary::APPLICATION => canary::CHANNEL.to_owned(),
        _ => format!("channel/{INTEGRATION_NAMESPACE}/{application}"),
    }
}

/// How hard the mesh tries. Its event expires before long, whatever the schedule says.
pub(crate) fn delivery() -> DeliverySpec {
    DeliverySpec {
        timeout: Some(ATTEMPT_TIMEOUT.to_owned()),
        ..DeliverySpec::default()
    }
}

/// All that is known of heartbeats. Whoever carries another event does not come here.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    clock: Clock,
    /// Where they arrive, without a path; without it none are sent.
    sink: Option<String>,
    /// The path of the sink, which nobody can guess.
    token: String,
    /// Tells the heartbeats of this process from those of the ones before it.
    run: String,
    board: Mutex<Board>,
    attempts: Semaphore,
    /// The prober has something else to do.
    changed: Notify,
    /// Those that the prober did not send.
    arrivals: broadcast::Sender<HeartbeatArrival>,
}

/// A heartbeat that somebody else than the prober sent is where it was to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatArrival {
    pub application: String,
    pub namespace: String,
    pub id: String,
}

impl Heartbeats {
    pub(crate) fn new(clock: Clock, chance: &Chance, sink: Option<String>) -> Self {
        // Without a sink nothing is drawn: what a seed stands for stays the same.
        let drawn = |draw: &dyn Fn() -> String| sink.as_ref().map_or_else(String::new, |_| draw());
        Self {
            token: drawn(&|| chance.token(TOKEN_BYTES)),
            run: drawn(&|| chance.suffix(RUN_CHARS)),
            clock,
            sink,
            board: Mutex::default(),
            attempts: Semaphore::new(ATTEMPTS_MAX),
            changed: Notify::new(),
            arrivals: broadcast::Sender::new(ARRIVALS_MAX),
        }
    }

    /// Whether there is anywhere to send them to.
    pub(crate) fn has_sink(&self) -> bool {
        self.sink.is_some()
    }

    /// Where the heartbeats of a consumer arrive: each has a path of its own.
    pub(crate) fn address_of(&self, key: &str) -> Option<String> {
        let (sink, pair) = (self.sink.as_ref()?, key.strip_prefix(KEY_PREFIX)?);
        Some(format!("{sink}/{}/{pair}", self.token))
    }

    /// A table is in force: its targets, and no others, are sent to.
    pub(crate) fn follow(&self, table: &Table) {
        if !self.has_sink() {
            return;
        }
        let mut targets = table.heartbeats().to_vec();
        targets.push(canary::target());
        let now = self.clock.monotonic();
        self.board.lock().follow(&targets, now);
        self.changed.notify_one();
    }

    /// The scanner met a heartbeat, and these consumers are offered it.
    pub(crate) fn scanned<'a>(&self, event: &Event, matched: impl Iterator<Item = &'a str>) {
        let source = event.source().strip_prefix(SOURCE_PREFIX);
        let Some((application, sequence)) = source.zip(self.sequence(event.id())) else {
            return;
        };
        let now = self.clock.monotonic();
        let mut board = self.board.lock();
        board.stamp_all(application, sequence, |beat| beat.scanned = Some(now));
        for (namespace, _) in matched.filter_map(pair_of) {
            board.stamp(application, namespace, sequence, |beat| {
                beat.matched = Some(now);
            });
        }
    }

    /// An attempt at a heartbeat begins, once it is its turn, which is given back with what this gives.
    pub(crate) async fn attempted(&self, key: &str, id: &str) -> Option<SemaphorePermit<'_>> {
        let turn = self.attempts.acquire().await;
        let now = self.clock.monotonic();
        self.stamp(key, id, |beat| {
            beat.attempted.get_or_insert(now);
        });
        // It is never closed.
        turn.ok()
    }

    /// It failed.
    pub(crate) fn failed(&self, key: &str, id: &str, why: &str) {
        self.stamp(key, id, |beat| beat.failed = Some(why.into()));
    }

    /// A heartbeat is where it was to go.
    fn arrived(&self, namespace: &str, application: &str, id: &str) {
        if let Some(sequence) = self.sequence(id) {
            let now = self.clock.monotonic();
            let mut board = self.board.lock();
            board.arrived(application, namespace, sequence, now);
            return;
        }
        // Nobody may be waiting.
        let arrival = HeartbeatArrival {
            application: application.to_owned(),
            namespace: namespace.to_owned(),
            id: id.to_owned(),
        };
        self.arrivals.send(arrival).ok();
    }

    /// Told of every heartbeat that arrives from now on and that the prober did not send.
    pub(crate) fn arrivals(&self) -> broadcast::Receiver<HeartbeatArrival> {
        self.arrivals.subscribe()
    }

    /// What came of publishing one.
    fn published(&self, application: &str, sequence: u64, refusal: Option<SourceRefusal>) {
        let now = self.clock.monotonic();
        let mut board = self.board.lock();
        board.published(application, sequence, refusal, now);
    }

    fn stamp(&self, key: &str, id: &str, stamp: impl FnOnce(&mut board::Beat)) {
        if let Some((namespace, application)) = pair_of(key)
            && let Some(sequence) = self.sequence(id)
        {
            let mut board = self.board.lock();
            board.stamp(application, namespace, sequence, stamp);
        }
    }

    /// The number of a heartbeat of this process.
    fn sequence(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix(self.run.as_str())?.strip_prefix('-')?;
        number.parse().ok()
    }

    /// What is known of every target of the table, in their order, and of the canary.
    pub(crate) fn readings(
        &self,
        facts: &PathFacts<'_>,
    ) -> (Vec<HeartbeatReading>, HeartbeatReading) {
        let now = self.clock.monotonic();
        let board = self.board.lock();
        let reading = |target: &HeartbeatTarget| {
            let mut reading = board.reading(target, now, facts);
            if !self.has_sink() {
                // Nothing is sent where it could not arrive.
                reading.interval = Duration::ZERO;
            }
            reading
        };
        let all = facts.table.heartbeats().iter().map(reading).collect();
        let canary = HeartbeatReading {
            application: String::new(),
            namespace: String::new(),
            ..reading(&canary::target())
        };
        (all, canary)
    }
}

/// Namespace and Application of a consumer that hears heartbeats.
fn pair_of(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(KEY_PREFIX)?.split_once('/')
}

/// How long one may take before it is missed.
fn patience(interval: Duration) -> Duration {
    const PATIENCE_MAX: Duration = Duration::from_secs(5);
    interval.min(PATIENCE_MAX)
}

/// What the prober works with.
#[derive(Debug)]
pub(crate) struct ProberDeps {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Source,
    pub(crate) tasks: Tasks,
}
