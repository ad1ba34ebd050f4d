//! How many attempts of a consumer may be under way, which are, and what keeps it from beginning one.
//!
//! Invariant: an attempt is in the window from the lock under which it was taken to the one under which it is settled.
//! Whoever looks in between sees it here, or on record, or both, and never in neither.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Job;
use super::throttle::Throttle;
use crate::log::Offset;
use crate::path::delivery::breaker::Breaker;
use crate::path::delivery::pace::Pace;

/// How late a turn may be without delaying those after it: what timers and lanes cost. After a rest, so much may go at once.
const TURN_LATE_MAX: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct SendWindow {
    /// Attempts that failed before, by event and whether it is on its way to the external sink.
    in_flight: BTreeMap<(Offset, bool), u32>,
    pub(crate) breaker: Breaker,
    pub(super) throttle: Throttle,
    /// The turns of its own rate, over all its plans.
    pub(super) pace: Pace,
    /// Why its subscriber wants no more, until the consumer is edited.
    pub(crate) held: Option<String>,
    /// Why it may have no more dead letters, and is sent nothing.
    pub(crate) dead_full: Option<String>,
}

impl Default for SendWindow {
    fn default() -> Self {
        Self {
            in_flight: BTreeMap::new(),
            breaker: Breaker::default(),
            throttle: Throttle::default(),
            pace: Pace::late_by(TURN_LATE_MAX),
            held: None,
            dead_full: None,
        }
    }
}

impl SendWindow {
    pub(super) fn begin(&mut self, job: &Job) {
        self.in_flight.insert(key_of(job), job.attempts);
    }

    /// An attempt is over. The key it held stays held until the event has ended.
    pub(crate) fn finish(&mut self, job: &Job) {
        self.in_flight.remove(&key_of(job));
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether an attempt to deliver an event is under way. One to lay it down at its sink does not count.
    pub(crate) fn contains(&self, offset: Offset) -> bool {
        self.in_flight.contains_key(&(offset, false))
    }

    /// The events under way to the subscriber, and how often each failed before.
    pub(super) fn events(&self) -> impl Iterator<Item = (Offset, u32)> {
        let events = self.in_flight.iter().filter(|((_, sink), _)| !sink);
        events.map(|((offset, _), attempts)| (*offset, *attempts))
    }

    /// Whether nothing keeps the next attempt from beginning but their number.
    pub(super) fn is_open(&self) -> bool {
        self.held.is_none() && self.dead_full.is_none() && !self.throttle.holds_back()
    }

    /// Whether one more may begin where so many are allowed.
    pub(super) fn has_room(&self, size: u32) -> bool {
        self.in_flight.len() < self.breaker.allowed(size) as usize
    }
}

fn key_of(job: &Job) -> (Offset, bool) {
    (job.offset, job.is_sink())
}
