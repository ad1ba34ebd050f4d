//! One append for an id, however often and by however many at once it is published within a while.
//!
//! ```text
//!   in flight   whoever comes while the append is on its way waits for the same answer
//!   recent      what this process appended within the window, by the key of source and id
//!   the log     what was appended before this process began, or is too much to remember: found by the same key
//! ```
//! The log decides: what is remembered only saves looking. An append goes on when whoever asked for it has gone; it stays
//! in flight until somebody asks again, or until room is needed. Only events that came by this door count.
//!
//! Invariant: what this process appended within the window under an id of the publisher's is in flight, or recent, or below
//! `complete_from`, where the log is asked.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared as SharedFuture};
use heddle_api::attributes::Attributes as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::envelope::Envelope;
use crate::log::{AppendRefused, Lookup, Offset, Unavailable};
use crate::path::channel;
use crate::shared::Shared;

/// Appends with an id that are on their way at once. As many as wait for one sync, and more than connections.
const IN_FLIGHT_MAX: usize = 8192;
/// Ids that are remembered: 400 events a second for ten minutes. Beyond that the log is asked.
const RECENT_MAX: usize = 1 << 18;

type SharedAppend = SharedFuture<BoxFuture<'static, Result<Range<Offset>, AppendRefused>>>;

/// What became of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppendedOnce {
    pub(super) offset: Offset,
    /// Whether anybody wanted it when it was appended, as far as that is known.
    pub(super) wanted: bool,
    /// It was there, or on its way, before.
    pub(super) repeated: bool,
}

/// Why a publish became nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAppended {
    Refused(AppendRefused),
    /// The log could not be asked.
    Unknown(Unavailable),
    TooMany,
}

/// What is known of ids.
#[derive(Debug)]
pub(crate) struct Repeats {
    known: Mutex<KnownIds>,
}

#[derive(Debug)]
struct KnownIds {
    in_flight: HashMap<Box<str>, AppendInFlight>,
    recent: HashMap<u64, RecentAppend>,
    /// The same, oldest first.
    order: VecDeque<(Duration, u64)>,
    /// Since when everything is remembered, and from which offset on.
    complete_since: Duration,
    complete_from: Offset,
}

#[derive(Debug)]
struct AppendInFlight {
    appending: SharedAppend,
    begun: Duration,
    key: u64,
    wanted: bool,
}

#[derive(Clone, Copy, Debug)]
struct RecentAppend {
    at: Duration,
    offset: Offset,
    wanted: bool,
}

/// What is to be done about a publish.
enum RepeatStep {
    Await(SharedAppend, bool),
    Found(RecentAppend),
    /// Nothing is remembered; older events are to be looked up below this offset.
    LookUp(Offset),
    Append,
}

impl Repeats {
    /// Nothing is remembered of what is in the log below `end`.
    pub(crate) fn new(now: Duration, end: Offset) -> Self {
        Self {
            known: Mutex::new(KnownIds {
                in_flight: HashMap::new(),
                recent: HashMap::new(),
                order: VecDeque::new(),
                complete_since: now,
                complete_from: end,
            }),
        }
    }

    /// Appends an event, once within the window. Without one it is an event of its own.
    pub(super) async fn append(
        &self,
        shared: &Shared,
        envelope: &Envelope,
        wanted: bool,
        window: Option<Duration>,
    ) -> Result<AppendedOnce, NotAppended> {
        let begun = shared.clock.monotonic();
        let Some(window) = window else {
            let appending = channel::hand_over(shared, envelope).await;
            let offsets = appending.map_err(NotAppended::Refused)?;
            return Ok(first(shared, offsets.start, wanted, begun));
        };
        let name = name_of(envelope);
        let key = envelope.event.key();
        let mut looked_below = None;
        loop {
            let step = self.step(shared, (&name, key), window, looked_below);
            match step {
                RepeatStep::Await(appending, wanted) => {
                    let outcome = appending.await;
                    self.landed(&name, &outcome);
                    let offsets = outcome.map_err(NotAppended::Refused)?;
                    return Ok(repeated(offsets.start, wanted));
                }
                RepeatStep::Found(recent) => {
                    if is_same(shared, recent.offset, envelope).map_err(NotAppended::Unknown)? {
                        return Ok(repeated(recent.offset, recent.wanted));
                    }
                    // Another id with the same key, which happens to nobody who does not look for it.
                    self.known.lock().recent.remove(&key);
                }
                RepeatStep::LookUp(below) => {
                    let found = look_up(shared, envelope, window, below);
                    if let Some(offset) = found.map_err(NotAppended::Unknown)? {
                        return Ok(repeated(offset, wanted));
                    }
                    looked_below = Some(below);
                }
                RepeatStep::Append => {
                    let Some(appending) =
                        self.launch(shared, envelope, (&name, key), (wanted, window))?
                    else {
                        continue;
                    };
                    let outcome = appending.await;
                    self.landed(&name, &outcome);
                    let offsets = outcome.map_err(NotAppended::Refused)?;
                    return Ok(first(shared, offsets.start, wanted, begun));
                }
            }
        }
    }

    fn step(
        &self,
        shared: &Shared,
        (name, key): (&str, u64),
        window: Duration,
        looked_below: Option<Offset>,
    ) -> RepeatStep {
        let now = shared.clock.monotonic();
        let mut known = self.known.lock();
        known.forget(now, window);
        known.forget_abandoned(name, now, window);
        if let Some(flight) = known.in_flight.get(name) {
            return RepeatStep::Await(flight.appending.clone(), flight.wanted);
        }
        let recent = known.recent.get(&key);
        if let Some(recent) = recent.filter(|recent| now.saturating_sub(recent.at) <= window) {
            return RepeatStep::Found(*recent);
        }
        let remembers_all = now.saturating_sub(known.complete_since) > window;
        if remembers_all || looked_below.is_some_and(|below| below >= known.complete_from) {
            return RepeatStep::Append;
        }
        RepeatStep::LookUp(known.complete_from)
    }

    /// Begins an append, unless somebody else has meanwhile.
    fn launch(
        &self,
        shared: &Shared,
        envelope: &Envelope,
        (name, key): (&str, u64),
        (wanted, window): (bool, Duration),
    ) -> Result<Option<SharedAppend>, NotAppended> {
        let now = shared.clock.monotonic();
        let mut known = self.known.lock();
        let counts = |recent: &RecentAppend| now.saturating_sub(recent.at) <= window;
        if known.in_flight.contains_key(name) || known.recent.get(&key).is_some_and(counts) {
            return Ok(None);
        }
        if known.in_flight.len() >= IN_FLIGHT_MAX {
            known.collect();
            if known.in_flight.len() >= IN_FLIGHT_MAX {
                return Err(NotAppended::TooMany);
            }
        }
        let appending = channel::hand_over(shared, envelope).shared();
        let flight = AppendInFlight {
            appending: appending.clone(),
            begun: now,
            key,
            wanted,
        };
        known.in_flight.insert(name.into(), flight);
        Ok(Some(appending))
    }

    /// An append has ended: it is remembered instead.
    fn landed(&self, name: &str, outcome: &Result<Range<Offset>, AppendRefused>) {
        let mut known = self.known.lock();
        // Whoever waited for the same append may have been here before, and a later one may be on its way.
        let ended = |flight: &AppendInFlight| flight.appending.peek() == Some(outcome);
        if known.in_flight.get(name).is_some_and(ended) {
            let flight = known.in_flight.remove(name).expect("it was just there");
            known.remember(&flight, outcome);
        }
    }
}

impl KnownIds {
    /// Remembers what an append came to, if it came to anything.
    fn remember(
        &mut self,
        flight: &AppendInFlight,
        outcome: &Result<Range<Offset>, AppendRefused>,
    ) {
        let Ok(offsets) = outcome else { return };
        let recent = RecentAppend {
            at: flight.begun,
            offset: offsets.start,
            wanted: flight.wanted,
        };
        self.recent.insert(flight.key, recent);
        self.order.push_back((flight.begun, flight.key));
        if self.order.len() > RECENT_MAX {
            let oldest = self.order.pop_front();
            let (at, key) = oldest.expect("there are more than none");
            if let Some(forgotten) = self.take(at, key) {
                self.complete_since = self.complete_since.max(at);
                self.complete_from = self.complete_from.max(forgotten.offset + 1);
            }
        }
    }

    /// Forgets what is older than the window.
    fn forget(&mut self, now: Duration, window: Duration) {
        while let Some((at, key)) = self.order.front().copied()
            && now.saturating_sub(at) > window
        {
            self.order.pop_front();
            self.take(at, key);
        }
    }

    /// The same for an append that ended when nobody waited for it.
    fn forget_abandoned(&mut self, name: &str, now: Duration, window: Duration) {
        let over = self.in_flight.get(name).is_some_and(|flight| {
            let old = now.saturating_sub(flight.begun) > window;
            old && flight.appending.clone().now_or_never().is_some()
        });
        if over {
            self.in_flight.remove(name);
        }
    }

    /// Takes out what was remembered at a time, and not what was later.
    fn take(&mut self, at: Duration, key: u64) -> Option<RecentAppend> {
        let same = self.recent.get(&key).is_some_and(|recent| recent.at == at);
        same.then(|| self.recent.remove(&key)).flatten()
    }

    /// Looks after appends that nobody waits for any more.
    fn collect(&mut self) {
        let ended: Vec<Box<str>> = self
            .in_flight
            .iter()
            .filter(|(_, flight)| flight.appending.clone().now_or_never().is_some())
            .map(|(name, _)| name.clone())
            .collect();
        for name in ended {
            if let Some(flight) = self.in_flight.remove(&name)
                && let Some(outcome) = flight.appending.peek().cloned()
            {
                self.remember(&flight, &outcome);
            }
        }
    }
}

fn first(shared: &Shared, offset: Offset, wanted: bool, begun: Duration) -> AppendedOnce {
    let took = shared.clock.monotonic().saturating_sub(begun);
    shared.metrics.appended(took);
    AppendedOnce {
        offset,
        wanted,
        repeated: false,
    }
}

fn repeated(offset: Offset, wanted: bool) -> AppendedOnce {
    AppendedOnce {
        offset,
        wanted,
        repeated: true,
    }
}

/// Source and id; neither has such a character in it.
fn name_of(envelope: &Envelope) -> String {
    format!("{}\n{}", envelope.event.source(), envelope.event.id())
}

/// Whether the event at an offset is this one. What is no longer there, or damaged, was.
fn is_same(shared: &Shared, offset: Offset, envelope: &Envelope) -> Result<bool, Unavailable> {
    let Lookup::Found(record) = shared.log.get(offset)? else {
        return Ok(true);
    };
    Ok(Envelope::decode(&record.payload).is_ok_and(|found| is_repeat(&found, envelope)))
}

/// Whether one is the other once more. Only this door makes events that name their source twice and their version.
fn is_repeat(found: &Envelope, envelope: &Envelope) -> bool {
    let event = &found.event;
    found.entry == envelope.entry
        && event.source() == envelope.event.source()
        && event.id() == envelope.event.id()
        && event.text("sourceid") == Some(event.source())
        && event.text("eventtypeversion").is_some()
}

/// The same event in the log within the window and below an offset. May wait for a device, for a few small reads.
fn look_up(
    shared: &Shared,
    envelope: &Envelope,
    window: Duration,
    below: Offset,
) -> Result<Option<Offset>, Unavailable> {
    let window = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
    let since = shared.clock.now().checked_sub(window);
    let since = since.unwrap_or(Timestamp::MIN);
    let from = shared.log.at_time(since);
    if from >= below {
        return Ok(None);
    }
    let found = shared.log.find_from(envelope.event.key(), from)?;
    for offset in found.into_iter().rev().filter(|offset| *offset < below) {
        let Lookup::Found(record) = shared.log.get(offset)? else {
            continue;
        };
        let decoded = Envelope::decode(&record.payload);
        if record.at >= since && decoded.is_ok_and(|found| is_repeat(&found, envelope)) {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}
