//! The pulse of every controller: that it is at work, how much waits, and how often it fails.
//!
//! Each controller beats while its loop is polled. A beat that stays away, or keys that wait while none is taken, mean that its
//! conditions may be of yesterday; health shows them as unknown then, rather than as what they last said. Beats are kept in
//! memory: whoever reads them runs in the same process, and a process that is gone is noticed from outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::Clock;
use parking_lot::Mutex;

/// How often a controller beats.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);
/// A controller that has not beaten, or taken nothing of what waits, for so long is stalled.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(15);
/// An error is news for this long.
const ERROR_KEPT: Duration = Duration::from_secs(60);
/// Failures within [`ERROR_KEPT`] that are no longer an accident.
const FAILURES_MAX: u32 = 10;

/// The pulses of all controllers. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Pulses(Arc<Mutex<BTreeMap<&'static str, Arc<Pulse>>>>);

/// The pulse of one controller.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<Beats>);

#[derive(Debug, Default)]
struct Beats {
    at: Duration,
    queued: usize,
    taken: u64,
    /// Since when keys wait and none is taken.
    waiting_since: Option<Duration>,
    rounds: u64,
    failures: u64,
    /// Of the failures that are news: how many, since when, and the last.
    recent: u32,
    recent_since: Duration,
    last_error: Option<(Duration, String)>,
}

/// A pulse as it was felt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PulseReading {
    pub controller: &'static str,
    /// Since the last beat.
    pub age: Duration,
    pub queued: usize,
    /// How long keys have waited while none was taken.
    pub waiting_for: Duration,
    pub rounds: u64,
    pub failures: u64,
    /// The last error, while it fails again and again.
    pub failing: Option<String>,
}

impl PulseReading {
    /// Whether its conditions can no longer be relied on.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.age > STALLED_AFTER || self.waiting_for > STALLED_AFTER
    }
}

impl Pulses {
    pub(crate) fn of(&self, controller: &'static str, clock: &Clock) -> Arc<Pulse> {
        let mut all = self.0.lock();
        let pulse = all.entry(controller).or_default();
        // A process that leads anew takes up its pulses again.
        pulse.0.lock().at = clock.monotonic();
        Arc::clone(pulse)
    }

    /// All pulses, in the order of their names.
    pub fn read(&self, now: Duration) -> Vec<PulseReading> {
        let all = self.0.lock();
        let readings = all
            .iter()
            .map(|(controller, pulse)| pulse.read(controller, now));
        readings.collect()
    }
}

impl Pulse {
    /// The loop was polled; so many keys wait, and so many were taken since it began.
    pub(crate) fn beat(&self, now: Duration, queued: usize, taken: u64) {
        let mut beats = self.0.lock();
        beats.at = now;
        let moved = queued == 0 || taken != beats.taken;
        beats.waiting_since = if moved {
            None
        } else {
            beats.waiting_since.or(Some(now))
        };
        (beats.queued, beats.taken) = (queued, taken);
    }

    pub(crate) fn succeeded(&self) {
        self.0.lock().rounds += 1;
    }

    pub(crate) fn failed(&self, now: Duration, error: &impl ToString) {
        let mut beats = self.0.lock();
        beats.rounds += 1;
        beats.failures += 1;
        if now.saturating_sub(beats.recent_since) > ERROR_KEPT {
            (beats.recent, beats.recent_since) = (0, now);
        }
        beats.recent = beats.recent.saturating_add(1);
        beats.last_error = Some((now, error.to_string()));
    }

    fn read(&self, controller: &'static str, now: Duration) -> PulseReading {
        let beats = self.0.lock();
        let is_news = |at: Duration| now.saturating_sub(at) <= ERROR_KEPT;
        let error = beats.last_error.as_ref().filter(|(at, _)| is_news(*at));
        PulseReading {
            controller,
            age: now.saturating_sub(beats.at),
            queued: beats.queued,
            waiting_for: beats
                .waiting_since
                .map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            rounds: beats.rounds,
            failures: beats.failures,
            failing: error
                .filter(|_| beats.recent >= FAILURES_MAX)
                .map(|(_, error)| error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(pulse: &Pulse, seconds: u64) -> PulseReading {
        pulse.read("broker", Duration::from_secs(seconds))
    }

    #[test]
    fn a_controller_that_does_not_beat_or_takes_nothing_is_stalled() {
        let pulse = Pulse::default();
        pulse.beat(Duration::from_secs(5), 0, 0);
        assert!(!reading(&pulse, 20).is_stalled());
        assert!(reading(&pulse, 21).is_stalled());
        for second in [25, 30, 35, 40, 45] {
            pulse.beat(Duration::from_secs(second), 3, 7);
        }
        // The first of these beats found keys that had just come.
        assert_eq!(reading(&pulse, 45).waiting_for, Duration::from_secs(15));
        assert!(!reading(&pulse, 45).is_stalled());
        assert!(reading(&pulse, 46).is_stalled());
        pulse.beat(Duration::from_secs(50), 3, 8);
        assert!(!reading(&pulse, 50).is_stalled(), "one was taken");
    }

    #[test]
    fn one_error_is_an_accident_and_many_are_told() {
        let pulse = Pulse::default();
        for second in 0..u64::from(FAILURES_MAX) - 1 {
            pulse.failed(Duration::from_secs(second), &"no");
        }
        assert_eq!(reading(&pulse, 9).failing, None);
        pulse.failed(Duration::from_secs(9), &"the server is away");
        let failing = reading(&pulse, 9).failing;
        assert_eq!(failing.as_deref(), Some("the server is away"));
        assert_eq!(reading(&pulse, 70).failing, None, "it is no news any more");
        assert_eq!(reading(&pulse, 70).failures, u64::from(FAILURES_MAX));
    }
}
