//! Settling what came of an attempt: one change of the consumer's state, one line of the journal, one lock.
//!
//! State and line change together, so that a checkpoint made later counts on nothing that is not written.

mod sink;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use super::timer::TimerTask;
use super::{Consumer, Job, JobKind, State, note};
use crate::envelope;
use crate::journal::positions::Retry;
use crate::journal::{Attempted, Dead, JournalRecord};
use crate::path::dead_letter::Answered;
use crate::path::dead_letter::tries::TriedAttempt;
use crate::path::delivery::attempt::{
    ANSWER_BYTES_MAX, AttemptResult, FailedAttempt, FinishedAttempt,
};
use crate::path::delivery::plan::DeliveryPlan;
use crate::shared::Shared;

/// The first and the longest pause of an event that this mesh has no room for.
const ROOM_PAUSE: Duration = Duration::from_millis(200);
const ROOM_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Why the subscriber of a consumer is sent nothing more.
const GONE: &str =
    "the subscriber answered 410: it wants no more events; edit the trigger to go on";

/// A job that was attempted.
struct Tried {
    job: Job,
    payload: Bytes,
    accepted_at: Timestamp,
    latency: Duration,
    at: Timestamp,
    /// The same by the monotonic clock.
    ended: Duration,
}

impl Tried {
    /// Where the event came in; empty when its record cannot be read.
    fn entry(&self) -> &str {
        envelope::entry(&self.payload).unwrap_or_default()
    }

    fn attempted(&self, consumer: &Consumer, status: u16) -> Attempted {
        Attempted {
            consumer: consumer.id,
            offset: self.job.offset,
            number: self.job.attempts + 1,
            at: self.at,
            latency_us: u32::try_from(self.latency.as_micros()).unwrap_or(u32::MAX),
            status,
        }
    }
}

impl Consumer {
    pub(super) fn settle(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        plan: &DeliveryPlan,
        job: Job,
        finished: FinishedAttempt<'_>,
    ) {
        let kind = job.kind;
        let tried = Tried {
            job,
            payload: finished.payload,
            accepted_at: finished.accepted_at,
            latency: finished.latency,
            at: finished.at,
            ended: finished.ended,
        };
        match kind {
            JobKind::Sink(name) => self.settle_sink(shared, plan, &tried, name, finished.result),
            JobKind::Event | JobKind::Resent | JobKind::Redriven(_) => {
                self.settle_event(shared, plan, tried, finished.result);
            }
        }
        // Only now may others use the memory that the event took.
        drop(finished.room);
    }

    fn settle_event(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        plan: &DeliveryPlan,
        tried: Tried,
        result: AttemptResult,
    ) {
        let mut state = self.lock();
        let offset = tried.job.offset;
        state.window.finish(&tried.job);
        self.notify_attempt_finished();
        if state.forgotten {
            return;
        }
        state.read_succeeded(shared);
        if !matches!(result, AttemptResult::Backpressured { .. }) {
            self.mark_dirty(shared, &mut state);
            state.retries.backpressure.end(shared, offset);
            state.last_attempts.took(tried.latency);
        }
        let mut said = HeardAttempt::of(shared, &tried, &result);
        match result {
            AttemptResult::Delivered { status, bad_reply } => {
                state.window.breaker.succeeded();
                state.last_attempts.succeed(tried.ended);
                state.tally.delivered += 1;
                state.end(shared, &tried.job);
                state.answers.count(tried.entry(), status);
                let attempted = tried.attempted(self, status);
                note(shared, &state, JournalRecord::Delivered(attempted));
                if let Some(reply) = bad_reply {
                    let answered = Answered {
                        attempted,
                        accepted_at: tried.accepted_at,
                        record: tried.payload,
                    };
                    self.keep_reply(shared, &mut state, answered, *reply);
                }
                if plan.auto_redrive > 0 && state.tally.dead > 0 {
                    self.auto_redrive(shared, &mut state, plan.auto_redrive);
                }
            }
            AttemptResult::Expired(reason) => {
                state.tally.expired += 1;
                state.end(shared, &tried.job);
                let line = JournalRecord::Expired {
                    consumer: self.id,
                    offset,
                    at: tried.at,
                    reason: reason.into(),
                };
                note(shared, &state, line);
            }
            AttemptResult::Gone => {
                state.window.held = Some(GONE.to_owned());
                state.last_attempts.fail(tried.ended, GONE);
                let line = JournalRecord::Held {
                    consumer: self.id,
                    reason: GONE.into(),
                };
                note(shared, &state, line);
                state.return_job(tried.job);
                drop(state);
                said.tell(shared);
                shared.notify_changed();
                return;
            }
            AttemptResult::NotAttempted => {
                state.return_job(tried.job);
                return;
            }
            AttemptResult::Backpressured { why, called } => {
                self.wait_for_room(shared, &mut state, plan, &tried, &why, called);
            }
            AttemptResult::Failed(failed) => {
                said.rests_as(self.settle_failed(shared, &mut state, plan, &tried, failed));
            }
        }
        said.tell(shared);
        self.ask(shared, &mut state);
        self.wake(shared, &mut state);
    }

    /// Tries again later, or gives up; then it gives the name of the dead letter.
    fn settle_failed(
        &self,
        shared: &Shared,
        state: &mut State,
        plan: &DeliveryPlan,
        tried: &Tried,
        failed: FailedAttempt,
    ) -> Option<u64> {
        state.last_attempts.fail(tried.ended, &failed.error);
        if failed.again {
            state.window.breaker.failed(shared.clock.monotonic());
        } else {
            // It did its part, be it to say no.
            state.window.breaker.succeeded();
        }
        let offset = tried.job.offset;
        let attempted = tried.attempted(self, failed.status);
        state.answers.count(tried.entry(), failed.status);
        let before = state.retries.on_record.get(&offset);
        let excused = before.map_or(0, |retry| retry.excused);
        let failures = attempted.number.saturating_sub(excused);
        let Some(pause) = pause(shared, plan, failures, &failed) else {
            return Some(state.give_up_trying(shared, plan, tried, attempted, failed));
        };
        let next_at = later(tried.at, pause);
        let retry = Retry {
            attempts: attempted.number,
            excused,
            tried_at: tried.at,
            next_at,
            redriven: tried.job.redriven(),
            resent: tried.job.kind == JobKind::Resent,
        };
        state.retries.on_record.insert(offset, retry);
        let line = JournalRecord::Failed {
            attempted,
            error: failed.error.into(),
            next_at,
            excused: false,
        };
        note(shared, state, line);
        self.schedule(shared, TimerTask::Event(offset), pause);
        None
    }

    /// Tries an event again until this mesh can take what comes of it. That is on record once, so that a restart knows, and
    /// again whenever the subscriber was called; looking for room in between is no attempt and costs the journal nothing,
    /// which may have no room either.
    fn wait_for_room(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        plan: &DeliveryPlan,
        tried: &Tried,
        why: &str,
        called: bool,
    ) {
        let offset = tried.job.offset;
        let waits = state.retries.backpressure.begin(shared, offset, why);
        let pause = if called {
            plan.policy.pause_without_end(waits, &shared.chance)
        } else {
            room_pause(shared, waits)
        };
        let next_at = later(tried.at, pause);
        let before = state.retries.on_record.get(&offset).copied();
        let retry = match before.filter(|_| !called && waits > 1) {
            Some(before) => Retry {
                tried_at: tried.at,
                next_at,
                ..before
            },
            None => {
                let attempted = tried.attempted(self, 0);
                state.answers.count(tried.entry(), 0);
                let line = JournalRecord::Failed {
                    attempted,
                    error: why.into(),
                    next_at,
                    excused: true,
                };
                note(shared, state, line);
                self.mark_dirty(shared, state);
                Retry {
                    attempts: attempted.number,
                    excused: before.map_or(0, |retry| retry.excused) + 1,
                    tried_at: tried.at,
                    next_at,
                    redriven: tried.job.redriven(),
                    resent: tried.job.kind == JobKind::Resent,
                }
            }
        };
        state.retries.on_record.insert(offset, retry);
        self.schedule(shared, TimerTask::Event(offset), pause);
    }
}

impl State {
    /// The event is no longer the consumer's to deliver.
    fn end(&mut self, shared: &Shared, job: &Job) {
        self.retries.on_record.remove(&job.offset);
        self.cursor.pass_over(job.offset);
        self.release_key(job);
        if let JobKind::Redriven(name) = job.kind {
            shared.dead.lock().forget(name);
        }
    }

    /// Makes an event a dead letter.
    fn give_up_trying(
        &mut self,
        shared: &Shared,
        plan: &DeliveryPlan,
        tried: &Tried,
        attempted: Attempted,
        failed: FailedAttempt,
    ) -> u64 {
        let redrives = match tried.job.kind {
            JobKind::Redriven(name) => shared.dead.lock().redrives(name) + 1,
            _ => 0,
        };
        self.end(shared, &tried.job);
        let FailedAttempt { error, answer, .. } = failed;
        let dead = Dead {
            attempted,
            name: Dead::UNKEPT,
            redrives,
            accepted_at: tried.accepted_at,
            reason: error,
            answer: answer[..answer.len().min(ANSWER_BYTES_MAX)].to_vec(),
            sink: plan.has_sink(),
            given_up: false,
            record: tried.payload.clone(),
            reply: None,
        };
        self.dead_letter(shared, dead)
    }
}

/// What an attempt came to, for whoever waits for just this one.
struct HeardAttempt(Option<(u64, TriedAttempt)>);

impl HeardAttempt {
    fn of(shared: &Shared, tried: &Tried, result: &AttemptResult) -> Self {
        let name = tried.job.redriven();
        let name = name.filter(|name| shared.tries.is_watched(*name));
        Self(name.and_then(|name| Some((name, TriedAttempt::of(result, tried.latency)?))))
    }

    fn rests_as(&mut self, name: Option<u64>) {
        if let Self(Some((_, tried))) = self {
            tried.rests_as = name;
        }
    }

    fn tell(self, shared: &Shared) {
        if let Self(Some((name, tried))) = self {
            shared.tries.tell(name, tried);
        }
    }
}

/// How long to wait before looking for room again. It has nothing to do with the subscriber, so neither has its schedule.
fn room_pause(shared: &Shared, waits: u32) -> Duration {
    let doubled = 1_u32.checked_shl(waits.saturating_sub(1));
    let pause = ROOM_PAUSE.saturating_mul(doubled.unwrap_or(u32::MAX));
    let pause = pause.min(ROOM_PAUSE_MAX);
    pause + shared.chance.jitter(pause / 10)
}

/// How long to wait before the next attempt; `None` gives up.
fn pause(
    shared: &Shared,
    plan: &DeliveryPlan,
    failures: u32,
    failed: &FailedAttempt,
) -> Option<Duration> {
    if !failed.again {
        return None;
    }
    plan.policy
        .pause(failures, failed.retry_after, &shared.chance)
}

fn later(at: Timestamp, pause: Duration) -> Timestamp {
    let pause = jiff::SignedDuration::try_from(pause).unwrap_or(jiff::SignedDuration::MAX);
    at.saturating_add(pause).unwrap_or(Timestamp::MAX)
}
