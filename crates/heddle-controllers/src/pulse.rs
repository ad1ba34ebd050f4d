//! The pulse of every controller: that it is at work, how much waits, and how often it fails.
//!
//! Each controller beats while its loop is polled. A beat that stays away, keys that wait while none is taken, or a reconcile
//! that does not end mean that its conditions may be of yesterday; health shows them as unknown then, rather than as what they
//! last said. Beats are kept in memory: whoever reads them runs in the same process, and a process that is gone is noticed from
//! outside.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::Clock;
use parking_lot::Mutex;

/// How often a controller beats.
pub(crate) const PERIOD: Duration = Duration::from_secs(5);
/// A controller that has not beaten, taken nothing of what waits, or not ended a reconcile for so long is stalled.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(15);
/// An error is news for this long.
const ERROR_KEPT: Duration = Duration::from_secs(60);
/// Objects that failed within [`ERROR_KEPT`] from which on it is the controller that fails, and not they.
const FAILING_OBJECTS_MAX: usize = 10;
/// Failures of one object in a row that are no longer an accident. Pauses grow between them, so they are not counted by time.
const FAILURES_IN_A_ROW_MAX: u32 = 5;
/// Objects whose failures are remembered.
const OBJECTS_MAX: usize = 64;

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
    /// Objects that failed and have not succeeded since.
    failing: BTreeMap<String, ObjectFailure>,
    /// When each reconcile that has not ended began, by number.
    under_way: BTreeMap<u64, Duration>,
    begun: u64,
}

/// How an object failed last.
#[derive(Debug)]
struct ObjectFailure {
    at: Duration,
    in_a_row: u32,
    error: String,
}

/// A reconcile that has not ended. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ReconcileUnderWay {
    pulse: Arc<Pulse>,
    number: u64,
}

impl ReconcileUnderWay {
    /// It waits for somebody outside, who may take their time.
    pub(crate) fn pause(&self) {
        self.pulse.0.lock().under_way.remove(&self.number);
    }

    /// It goes on.
    pub(crate) fn resume(&self, now: Duration) {
        self.pulse.0.lock().under_way.insert(self.number, now);
    }
}

impl Drop for ReconcileUnderWay {
    fn drop(&mut self) {
        self.pause();
    }
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
    /// How long the oldest reconcile has not ended.
    pub running_for: Duration,
    pub rounds: u64,
    pub failures: u64,
    /// The last error, while so many objects fail that it is not up to them.
    pub failing: Option<String>,
    /// Those that fail again and again.
    pub failing_objects: Vec<FailingObject>,
}

/// An object that a controller cannot bring to where it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailingObject {
    /// Such as `broker/team-a/default`.
    pub object: String,
    pub error: String,
}

impl PulseReading {
    /// Whether its conditions can no longer be relied on.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        let longest = self.age.max(self.waiting_for).max(self.running_for);
        longest > STALLED_AFTER
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

    /// A reconcile begins.
    pub(crate) fn begin(self: &Arc<Self>, now: Duration) -> ReconcileUnderWay {
        let mut beats = self.0.lock();
        beats.begun += 1;
        let number = beats.begun;
        beats.under_way.insert(number, now);
        drop(beats);
        let pulse = Arc::clone(self);
        ReconcileUnderWay { pulse, number }
    }

    pub(crate) fn succeeded(&self, object: &str) {
        let mut beats = self.0.lock();
        beats.rounds += 1;
        beats.failing.remove(object);
    }

    /// A reconcile failed, of an object that has failed so often in a row, this time included.
    pub(crate) fn failed(&self, now: Duration, object: &str, in_a_row: u32, error: &impl ToString) {
        let failure = ObjectFailure {
            at: now,
            in_a_row,
            error: error.to_string(),
        };
        let mut beats = self.0.lock();
        beats.rounds += 1;
        beats.failures += 1;
        beats.failing.retain(|_, one| is_news(one.at, now));
        if beats.failing.len() < OBJECTS_MAX || beats.failing.contains_key(object) {
            beats.failing.insert(object.to_owned(), failure);
        }
    }

    fn read(&self, controller: &'static str, now: Duration) -> PulseReading {
        let beats = self.0.lock();
        let failing = beats.failing.iter();
        let failing: Vec<_> = failing.filter(|(_, one)| is_news(one.at, now)).collect();
        let last = failing.iter().max_by_key(|(_, one)| one.at);
        let widely = last.filter(|_| failing.len() >= FAILING_OBJECTS_MAX);
        let again = failing
            .iter()
            .filter(|(_, one)| one.in_a_row >= FAILURES_IN_A_ROW_MAX);
        let since = |at: Duration| now.saturating_sub(at);
        let oldest = beats.under_way.values().min();
        PulseReading {
            controller,
            age: since(beats.at),
            queued: beats.queued,
            waiting_for: beats.waiting_since.map_or(Duration::ZERO, since),
            running_for: oldest.copied().map_or(Duration::ZERO, since),
            rounds: beats.rounds,
            failures: beats.failures,
            failing: widely.map(|(_, one)| one.error.clone()),
            failing_objects: again
                .map(|(object, one)| FailingObject {
                    object: (*object).clone(),
                    error: one.error.clone(),
                })
                .collect(),
        }
    }
}

fn is_news(at: Duration, now: Duration) -> bool {
    now.saturating_sub(at) <= ERROR_KEPT
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

    fn fail(pulse: &Pulse, second: u64, object: &str, in_a_row: u32) {
        let now = Duration::from_secs(second);
        pulse.failed(now, object, in_a_row, &format!("no {object}"));
    }

    #[test]
    fn one_error_is_an_accident_and_those_of_many_objects_are_told() {
        let pulse = Pulse::default();
        for second in 1..FAILING_OBJECTS_MAX as u64 {
            fail(&pulse, second, &second.to_string(), 1);
        }
        assert_eq!(reading(&pulse, 9).failing, None);
        fail(&pulse, 10, "last", 1);
        assert_eq!(reading(&pulse, 10).failing.as_deref(), Some("no last"));
        assert_eq!(reading(&pulse, 10).failing_objects, []);
        assert_eq!(reading(&pulse, 71).failing, None, "it is no news any more");
        assert_eq!(reading(&pulse, 71).failures, FAILING_OBJECTS_MAX as u64);
    }

    #[test]
    fn one_object_that_never_succeeds_is_told_however_long_the_pauses_become() {
        let pulse = Pulse::default();
        for (in_a_row, second) in (1..FAILURES_IN_A_ROW_MAX).zip(0..) {
            fail(&pulse, second, "a", in_a_row);
        }
        assert_eq!(reading(&pulse, 4).failing_objects, []);
        let told = FailingObject {
            object: "a".to_owned(),
            error: "no a".to_owned(),
        };
        for (in_a_row, second) in (FAILURES_IN_A_ROW_MAX..40).zip((5..).step_by(30)) {
            fail(&pulse, second, "a", in_a_row);
            let failing = |second| reading(&pulse, second).failing_objects;
            assert_eq!(failing(second + 29), std::slice::from_ref(&told));
        }
        pulse.succeeded("a");
        assert_eq!(reading(&pulse, 1000).failing_objects, []);
    }

    #[test]
    fn a_reconcile_that_does_not_end_stalls_its_controller() {
        let pulse = Arc::new(Pulse::default());
        let hanging = pulse.begin(Duration::from_secs(1));
        pulse.beat(Duration::from_secs(20), 0, 1);
        assert!(reading(&pulse, 17).is_stalled());
        hanging.pause();
        assert!(!reading(&pulse, 30).is_stalled(), "it waits for others");
        hanging.resume(Duration::from_secs(30));
        pulse.beat(Duration::from_secs(45), 0, 1);
        assert!(!reading(&pulse, 45).is_stalled());
        assert!(reading(&pulse, 46).is_stalled());
        drop(hanging);
        assert!(!reading(&pulse, 46).is_stalled());
    }
}
