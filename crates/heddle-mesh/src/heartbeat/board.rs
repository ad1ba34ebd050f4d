//! What became of the last heartbeats of each target, by the monotonic clock. Pure: callers bring the time.
//!
//! ```text
//!   sent ──── patience ────┬──────── 3 intervals ────────┬──>
//!     arrived: a hit       │ missed until it arrives     │ a miss for ever
//! ```
//! A few are kept for each target; older ones are only counted. All of it goes when the target does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::dataplane::{HeartbeatReading, HeartbeatTarget, SlowHop};

use super::diagnosis::{self, PathFacts};
use super::{INTERVALS_MAX, patience};

/// Heartbeats remembered one by one for each target: more than may be on their way before they are too old.
const BEATS_MAX: usize = 6;
/// Heartbeats of all Applications in a second. Beyond it every interval becomes longer by one factor.
const RATE_MAX: f64 = 45.0;
/// Whoever asks for less gets this.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Where the next new Application begins within its interval: multiples of this lie evenly, however many there are.
const PHASE: f64 = 0.618_033_988_749_895;

/// One heartbeat on its way to one target.
#[derive(Clone, Debug, Default)]
pub(super) struct Beat {
    sequence: u64,
    pub(super) sent: Duration,
    /// As it was when this one was sent.
    pub(super) interval: Duration,
    pub(super) refused: Option<SourceRefusal>,
    pub(super) appended: Option<Duration>,
    pub(super) scanned: Option<Duration>,
    pub(super) matched: Option<Duration>,
    pub(super) attempted: Option<Duration>,
    pub(super) failed: Option<Box<str>>,
    pub(super) arrived: Option<Duration>,
}

/// Why one was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceRefusal {
    pub(super) hop: &'static str,
    pub(super) object: Box<str>,
    pub(super) why: Box<str>,
}

/// What one counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeatOutcome {
    Hit,
    Miss,
    /// Its time is not over.
    Open,
}

/// How many in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    misses: u32,
    hits: u32,
}

impl Streak {
    fn count(&mut self, verdict: BeatOutcome) {
        match verdict {
            BeatOutcome::Open => {}
            BeatOutcome::Hit => {
                self.hits = self.hits.saturating_add(1);
                self.misses = 0;
            }
            BeatOutcome::Miss => {
                self.misses = self.misses.saturating_add(1);
                self.hits = 0;
            }
        }
    }
}

impl Beat {
    fn verdict(&self, now: Duration) -> BeatOutcome {
        let over = now.saturating_sub(self.sent) >= patience(self.interval);
        match self.arrived {
            Some(_) => BeatOutcome::Hit,
            None if over || self.refused.is_some() => BeatOutcome::Miss,
            None => BeatOutcome::Open,
        }
    }
}

/// What is kept of the last one that arrived.
#[derive(Clone, Copy, Debug)]
struct ArrivedBeat {
    at: Duration,
    took: Duration,
    /// The hop at which it was kept up longest, and for how long.
    slowest: (&'static str, Duration),
}

/// The heartbeats of one Application at one Broker.
#[derive(Debug)]
struct ProbedTarget {
    target: HeartbeatTarget,
    /// When the first was sent.
    since: Option<Duration>,
    /// The last one that arrived.
    arrived: Option<ArrivedBeat>,
    /// Of those that are not kept any more.
    streak: Streak,
    beats: VecDeque<Beat>,
}

/// The heartbeats of one Application.
#[derive(Debug)]
struct Probe {
    /// As it is in force.
    interval: Duration,
    due: Duration,
    /// One is being published.
    in_flight: Option<u64>,
    routes: Vec<ProbedTarget>,
}

/// One that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueBeat {
    pub(super) application: Arc<str>,
    pub(super) sequence: u64,
    /// Until it is too old.
    pub(super) lifetime: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Board {
    probes: BTreeMap<Arc<str>, Probe>,
    /// No number is used twice, whatever becomes of its Application.
    sequence_last: u64,
    /// Applications that ever began.
    begun: u32,
}

impl Board {
    /// These targets are sent to from now on, and no others.
    pub(super) fn follow(&mut self, targets: &[HeartbeatTarget], now: Duration) {
        let mut by_application: BTreeMap<&str, Vec<&HeartbeatTarget>> = BTreeMap::new();
        for target in targets {
            let own = by_application.entry(&target.application).or_default();
            own.push(target);
        }
        let interval_of = |own: &[&HeartbeatTarget]| {
            let shortest = own.iter().map(|target| target.interval).min();
            shortest.unwrap_or_default().max(INTERVAL_MIN)
        };
        let rates = by_application.values();
        let rate: f64 = rates
            .map(|own| interval_of(own).as_secs_f64().recip())
            .sum();
        let stretch = (rate / RATE_MAX).max(1.0);
        self.probes
            .retain(|application, _| by_application.contains_key(&**application));
        for (application, own) in by_application {
            let interval = interval_of(&own).mul_f64(stretch);
            let probe = match self.probes.get_mut(application) {
                Some(probe) => probe,
                None => {
                    let phase = (f64::from(self.begun) * PHASE).fract();
                    self.begun = self.begun.wrapping_add(1);
                    let new = Probe::new(now.saturating_add(interval.mul_f64(phase)));
                    self.probes.entry(application.into()).or_insert(new)
                }
            };
            probe.interval = interval;
            probe.due = probe.due.min(now.saturating_add(interval));
            probe.follow(&own);
        }
    }

    /// When the next one is to be sent.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.probes.values().map(|probe| probe.due).min()
    }

    /// The one that should have been sent first, if any should.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<DueBeat> {
        let due = self.probes.iter_mut().filter(|(_, probe)| probe.due <= now);
        let (application, probe) = due.min_by_key(|(_, probe)| probe.due)?;
        self.sequence_last += 1;
        let sequence = self.sequence_last;
        probe.due = probe.next_after(now);
        let stalled = probe.in_flight.map(|_| SourceRefusal {
            hop: crate::hop::CHANNEL,
            object: super::channel_of(application).into(),
            why: "the one before it is not safe on disk yet".into(),
        });
        let is_stalled = stalled.is_some();
        probe.send(sequence, stalled, now);
        if is_stalled {
            return None;
        }
        probe.in_flight = Some(sequence);
        Some(DueBeat {
            application: Arc::clone(application),
            sequence,
            lifetime: probe.interval.saturating_mul(INTERVALS_MAX),
        })
    }

    pub(super) fn published(
        &mut self,
        application: &str,
        sequence: u64,
        refusal: Option<SourceRefusal>,
        now: Duration,
    ) {
        if let Some(probe) = self.probes.get_mut(application) {
            probe.in_flight = probe.in_flight.filter(|flying| *flying != sequence);
        }
        self.stamp_all(application, sequence, |beat| match &refusal {
            Some(refusal) => beat.refused = Some(refusal.clone()),
            None => beat.appended = Some(now),
        });
    }

    /// Marks a heartbeat on its way to all targets.
    pub(super) fn stamp_all(
        &mut self,
        application: &str,
        sequence: u64,
        stamp: impl Fn(&mut Beat),
    ) {
        let probe = self.probes.get_mut(application);
        let routes = probe.into_iter().flat_map(|probe| &mut probe.routes);
        routes
            .filter_map(|route| route.beat(sequence))
            .for_each(stamp);
    }

    /// Marks one on its way to one of them.
    pub(super) fn stamp(
        &mut self,
        application: &str,
        namespace: &str,
        sequence: u64,
        stamp: impl FnOnce(&mut Beat),
    ) {
        if let Some(route) = self.route(application, namespace)
            && let Some(beat) = route.beat(sequence)
        {
            stamp(beat);
        }
    }

    pub(super) fn arrived(
        &mut self,
        application: &str,
        namespace: &str,
        sequence: u64,
        now: Duration,
    ) {
        let Some(route) = self.route(application, namespace) else {
            return;
        };
        let Some(beat) = route.beat(sequence) else {
            return;
        };
        let took = now.saturating_sub(beat.sent);
        // It may come twice, and what is too old has been given up.
        if beat.arrived.is_none() && took <= beat.interval.saturating_mul(INTERVALS_MAX) {
            beat.arrived = Some(now);
            let slowest = diagnosis::slowest(beat);
            route.arrived = Some(ArrivedBeat {
                at: now,
                took,
                slowest,
            });
        }
    }

    pub(super) fn reading(
        &self,
        target: &HeartbeatTarget,
        now: Duration,
        facts: &PathFacts<'_>,
    ) -> HeartbeatReading {
        let reading = HeartbeatReading {
            application: target.application.clone(),
            namespace: target.namespace.clone(),
            interval: target.interval,
            ..HeartbeatReading::default()
        };
        let Some(probe) = self.probes.get(target.application.as_str()) else {
            return reading;
        };
        let own = |route: &&ProbedTarget| route.target.namespace == target.namespace;
        let Some(route) = probe.routes.iter().find(own) else {
            return reading;
        };
        let mut streak = route.streak;
        let verdicts = route.beats.iter().map(|beat| beat.verdict(now));
        verdicts.for_each(|verdict| streak.count(verdict));
        let mut beats = route.beats.iter();
        let missing = beats.find(|beat| beat.verdict(now) == BeatOutcome::Miss);
        HeartbeatReading {
            interval: probe.interval,
            since: route.since.map(|since| now.saturating_sub(since)),
            age: route.arrived.map(|last| now.saturating_sub(last.at)),
            end_to_end: route.arrived.map(|last| last.took),
            slowest: route.arrived.map(|last| slow_hop(last.slowest, target)),
            misses: streak.misses,
            hits: streak.hits,
            stuck: missing.map(|beat| diagnosis::stuck(beat, target, now, facts)),
            ..reading
        }
    }

    fn route(&mut self, application: &str, namespace: &str) -> Option<&mut ProbedTarget> {
        let routes = &mut self.probes.get_mut(application)?.routes;
        let mut routes = routes.iter_mut();
        routes.find(|route| route.target.namespace == namespace)
    }
}

fn slow_hop((hop, took): (&'static str, Duration), target: &HeartbeatTarget) -> SlowHop {
    SlowHop {
        hop: hop.to_owned(),
        object: diagnosis::object_at(hop, target),
        took,
    }
}

impl Probe {
    fn new(due: Duration) -> Self {
        Self {
            interval: Duration::ZERO,
            due,
            in_flight: None,
            routes: Vec::new(),
        }
    }

    /// When the next one is due. What should have been sent meanwhile is not made up for, and the place within the
    /// interval stays, so that all of them stay apart.
    fn next_after(&self, now: Duration) -> Duration {
        let late = now.saturating_sub(self.due).as_secs_f64();
        let missed = (late / self.interval.as_secs_f64()).floor();
        self.due.saturating_add(self.interval.mul_f64(missed + 1.0))
    }

    /// What is known of targets that stay is kept.
    fn follow(&mut self, targets: &[&HeartbeatTarget]) {
        let mut before = std::mem::take(&mut self.routes);
        let route = |target: &&HeartbeatTarget| {
            let known = before
                .iter()
                .position(|route| route.target.namespace == target.namespace);
            let mut route = match known {
                Some(index) => before.swap_remove(index),
                None => ProbedTarget::new(target),
            };
            route.target = (*target).clone();
            route
        };
        self.routes = targets.iter().map(route).collect();
    }

    /// One more is on its way to every target, unless it is refused at once.
    fn send(&mut self, sequence: u64, refused: Option<SourceRefusal>, now: Duration) {
        let interval = self.interval;
        for route in &mut self.routes {
            while route.beats.len() >= BEATS_MAX {
                let oldest = route.beats.pop_front().unwrap_or_default();
                route.streak.count(oldest.verdict(now));
            }
            route.since.get_or_insert(now);
            route.beats.push_back(Beat {
                sequence,
                sent: now,
                interval,
                refused: refused.clone(),
                ..Beat::default()
            });
        }
    }
}

impl ProbedTarget {
    fn new(target: &HeartbeatTarget) -> Self {
        Self {
            target: target.clone(),
            since: None,
            arrived: None,
            streak: Streak::default(),
            beats: VecDeque::new(),
        }
    }

    fn beat(&mut self, sequence: u64) -> Option<&mut Beat> {
        let mut beats = self.beats.iter_mut();
        beats.find(|beat| beat.sequence == sequence)
    }
}
