//! Events whose bytes could not be read this time: no descriptors, no memory, a device that does not answer.
//!
//! That says nothing about them, so it costs no attempt, is written down nowhere and ends nothing: they are looked for
//! again after a pause. They keep their place in the order, and the floor stays below them. Kept in memory only: after a
//! restart they are where they were before they were taken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::throttle::Throttle;
use super::timer::TimerTask;
use super::{Consumer, Job, JobKind, State};
use crate::log::{Offset, Unavailable};
use crate::shared::Shared;

/// The first and the longest pause before the log is asked again.
const READ_PAUSE: Duration = Duration::from_millis(200);
const READ_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a consumer could not read.
#[derive(Debug, Default)]
pub(super) struct UnreadableJobs {
    jobs: BTreeMap<Offset, Job>,
    /// How often in a row the log could not be asked.
    failures: u32,
    /// What the last of them was told.
    why: Option<String>,
}

impl UnreadableJobs {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&Job) -> bool) {
        self.jobs.retain(|_, job| stays(job));
    }

    fn pause(&self, shared: &Shared) -> Duration {
        let doubled = 1_u32.checked_shl(self.failures.saturating_sub(1));
        let pause = READ_PAUSE.saturating_mul(doubled.unwrap_or(u32::MAX));
        let pause = pause.min(READ_PAUSE_MAX);
        pause + shared.chance.jitter(pause / 10)
    }
}

impl Consumer {
    /// An event was taken and could not be read.
    pub(crate) fn postpone(self: &Arc<Self>, shared: &Arc<Shared>, job: Job, why: &Unavailable) {
        let mut state = self.lock();
        state.window.finish(&job);
        self.notify_attempt_finished();
        let pause = self.read_failed(shared, &mut state, why);
        let what = match job.kind {
            JobKind::Sink(name) => TimerTask::Sink(name, job.attempts),
            JobKind::Event | JobKind::Resent | JobKind::Redriven(_) => {
                let offset = job.offset;
                state.waiting.unreadable.jobs.insert(offset, job);
                TimerTask::Event(offset)
            }
        };
        self.schedule(shared, what, pause);
        self.wake(shared, &mut state);
    }

    /// Nobody can say which event is next: all of them wait.
    pub(super) fn postpone_all(
        self: &Arc<Self>,
        shared: &Shared,
        state: &mut State,
        why: &Unavailable,
    ) {
        let pause = self.read_failed(shared, state, why);
        state.window.throttle = Throttle::Scheduled;
        self.schedule(shared, TimerTask::Throttle, pause);
    }

    fn read_failed(&self, shared: &Shared, state: &mut State, why: &Unavailable) -> Duration {
        if state.waiting.unreadable.why.is_none() {
            tracing::error!(consumer = %self.key, %why, "deliveries wait until their events can be read");
            shared.notify_changed();
        }
        let postponed = &mut state.waiting.unreadable;
        postponed.why = Some(why.to_string());
        postponed.failures = postponed.failures.saturating_add(1);
        postponed.pause(shared)
    }
}

impl State {
    /// The time of a postponed event has come. Gives whether it was one.
    pub(super) fn resume(&mut self, offset: Offset) -> bool {
        let job = self.waiting.unreadable.jobs.remove(&offset);
        job.map(|job| self.return_job(job)).is_some()
    }

    /// An event was found: the log answers.
    pub(crate) fn read_succeeded(&mut self, shared: &Shared) {
        if self.waiting.unreadable.why.is_none() {
            return;
        }
        self.waiting.unreadable.failures = 0;
        if self.waiting.unreadable.jobs.is_empty() {
            self.waiting.unreadable.why = None;
            shared.notify_changed();
        }
    }

    /// Why events wait that could be sent, if they cannot be read.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let why = self.waiting.unreadable.why.as_ref()?;
        Some(format!(
            "{why}; it is tried until it can be, at the cost of no attempt"
        ))
    }
}
