//! Settling what came of an attempt: one change of the consumer's state, one line of the journal, one lock.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use super::super::plan::DeliveryPlan;
use super::super::timer::TimerTask;
use super::{ANSWER_BYTES_MAX, AttemptResult, FinishedAttempt};
use crate::consumer::{Consumer, Job, JobKind, State, note};
use crate::journal::positions::Retry;
use crate::journal::{Attempted, Dead, JournalRecord};
use crate::path::dead_letter::{Answered, keep, keep_reply};
use crate::shared::Shared;

/// The first and the longest pause of an event that this mesh has no room for.
const ROOM_PAUSE: Duration = Duration::from_millis(200);
const ROOM_PAUSE_MAX: Duration = Duration::from_secs(5);

pub(super) fn settle(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    plan: &DeliveryPlan,
    tried: FinishedAttempt,
    done: AttemptResult,
) {
    let mut state = consumer.lock();
    let offset = tried.job.offset;
    state.window.finish(&tried.job);
    consumer.notify_attempt_finished();
    state.read_succeeded(shared);
    if !matches!(done, AttemptResult::Backpressured { .. }) {
        consumer.mark_dirty(shared, &mut state);
        state.retries.backpressure.end(shared, offset);
    }
    match done {
        AttemptResult::Delivered { status, bad_reply } => {
            state.window.breaker.succeeded();
            state.tally.delivered += 1;
            end(shared, &mut state, &tried.job);
            state.answers.count(tried.entry(), status);
            let attempted = tried.attempted(consumer, status);
            note(shared, &state, JournalRecord::Delivered(attempted));
            if let Some(reply) = bad_reply {
                let answered = Answered {
                    attempted,
                    accepted_at: tried.accepted_at,
                    record: tried.payload,
                };
                keep_reply(shared, consumer, &mut state, answered, *reply);
            }
            if plan.auto_redrive > 0 && state.tally.dead > 0 {
                crate::path::dead_letter::redrive_one_of(
                    shared,
                    consumer,
                    &mut state,
                    plan.auto_redrive,
                );
            }
        }
        AttemptResult::Expired(reason) => {
            state.tally.expired += 1;
            end(shared, &mut state, &tried.job);
            let line = JournalRecord::Expired {
                consumer: consumer.id,
                offset,
                at: tried.at,
                reason: reason.into(),
            };
            note(shared, &state, line);
        }
        AttemptResult::Gone => {
            let reason =
                "the subscriber answered 410: it wants no more events; edit the trigger to go on";
            state.window.held = Some(reason.to_owned());
            let line = JournalRecord::Held {
                consumer: consumer.id,
                reason: reason.into(),
            };
            note(shared, &state, line);
            state.return_job(tried.job);
            drop(state);
            shared.notify_changed();
            return;
        }
        AttemptResult::NotAttempted => {
            state.return_job(tried.job);
            return;
        }
        AttemptResult::Backpressured { why, called } => {
            wait_for_room(shared, consumer, &mut state, plan, &tried, &why, called);
        }
        AttemptResult::Failed {
            status,
            again,
            retry_after,
            error,
            answer,
        } => {
            if again {
                state.window.breaker.failed(shared.clock.monotonic());
            } else {
                // It did its part, be it to say no.
                state.window.breaker.succeeded();
            }
            let attempted = tried.attempted(consumer, status);
            state.answers.count(tried.entry(), status);
            let excused = state
                .retries
                .on_record
                .get(&offset)
                .map_or(0, |retry| retry.excused);
            let failures = attempted.number.saturating_sub(excused);
            let pause = pause(shared, plan, failures, again, retry_after);
            if let Some(pause) = pause {
                let next_at = later(tried.at, pause);
                let retry = Retry {
                    attempts: attempted.number,
                    excused,
                    tried_at: tried.at,
                    next_at,
                    redriven: tried.job.redriven(),
                };
                state.retries.on_record.insert(offset, retry);
                let line = JournalRecord::Failed {
                    attempted,
                    error: error.into(),
                    next_at,
                    excused: false,
                };
                note(shared, &state, line);
                consumer.schedule(shared, TimerTask::Event(offset), pause);
            } else {
                let death = DeadLetterCause {
                    attempted,
                    reason: error,
                    answer,
                };
                dead_letter(shared, &mut state, plan, &tried, death);
            }
        }
    }
    consumer.ask(shared, &mut state);
    consumer.wake(shared, &mut state);
}

/// Tries an event again until this mesh can take what comes of it. That is on record once, so that a restart knows, and
/// again whenever the subscriber was called; looking for room in between is no attempt and costs the journal nothing,
/// which may have no room either.
fn wait_for_room(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    state: &mut State,
    plan: &DeliveryPlan,
    tried: &FinishedAttempt,
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
            let attempted = tried.attempted(consumer, 0);
            state.answers.count(tried.entry(), 0);
            let line = JournalRecord::Failed {
                attempted,
                error: why.into(),
                next_at,
                excused: true,
            };
            note(shared, state, line);
            consumer.mark_dirty(shared, state);
            Retry {
                attempts: attempted.number,
                excused: before.map_or(0, |retry| retry.excused) + 1,
                tried_at: tried.at,
                next_at,
                redriven: tried.job.redriven(),
            }
        }
    };
    state.retries.on_record.insert(offset, retry);
    consumer.schedule(shared, TimerTask::Event(offset), pause);
}

/// How long to wait before looking for room again. It has nothing to do with the subscriber, so neither has its schedule.
fn room_pause(shared: &Shared, waits: u32) -> Duration {
    let doubled = 1_u32.checked_shl(waits.saturating_sub(1));
    let pause = ROOM_PAUSE.saturating_mul(doubled.unwrap_or(u32::MAX));
    let pause = pause.min(ROOM_PAUSE_MAX);
    pause + shared.chance.jitter(pause / 10)
}

/// The event is no longer the consumer's to deliver.
fn end(shared: &Shared, state: &mut State, job: &Job) {
    state.retries.on_record.remove(&job.offset);
    state.cursor.pass_over(job.offset);
    state.release_key(job);
    if let JobKind::Redriven(name) = job.kind {
        shared.dead.lock().forget(name);
    }
}

/// Why trying ended.
struct DeadLetterCause {
    attempted: Attempted,
    reason: String,
    answer: Bytes,
}

/// Makes an event a dead letter.
fn dead_letter(
    shared: &Shared,
    state: &mut State,
    plan: &DeliveryPlan,
    tried: &FinishedAttempt,
    death: DeadLetterCause,
) {
    let redrives = match tried.job.kind {
        JobKind::Redriven(name) => shared.dead.lock().redrives(name) + 1,
        _ => 0,
    };
    end(shared, state, &tried.job);
    let dead = Dead {
        attempted: death.attempted,
        name: shared.dead.lock().next_name(),
        redrives,
        accepted_at: tried.accepted_at,
        reason: death.reason,
        answer: death.answer[..death.answer.len().min(ANSWER_BYTES_MAX)].to_vec(),
        sink: plan.has_sink(),
        given_up: false,
        record: tried.payload.clone(),
        reply: None,
    };
    keep(shared, state, dead);
}

pub(super) fn settle_sink(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    plan: &DeliveryPlan,
    tried: &FinishedAttempt,
    name: u64,
    done: AttemptResult,
) {
    let mut state = consumer.lock();
    state.window.finish(&tried.job);
    state.read_succeeded(shared);
    let (status, error) = match done {
        AttemptResult::Delivered { status, .. } => (status, String::new()),
        AttemptResult::Failed {
            status,
            again,
            retry_after,
            error,
            ..
        } => {
            let failures = tried.job.attempts + 1;
            let pause = pause(shared, plan, failures, again, retry_after);
            if let Some(pause) = pause {
                consumer.schedule(shared, TimerTask::Sink(name, failures), pause);
                consumer.wake(shared, &mut state);
                return;
            }
            (status, error)
        }
        AttemptResult::Backpressured { .. } => {
            let pause = room_pause(shared, u32::MAX);
            consumer.schedule(shared, TimerTask::Sink(name, tried.job.attempts), pause);
            consumer.wake(shared, &mut state);
            return;
        }
        AttemptResult::Gone => (410, "the sink answered 410".to_owned()),
        AttemptResult::Expired(reason) => (0, reason),
        AttemptResult::NotAttempted => (0, "no sink is configured any more".to_owned()),
    };
    shared.dead.lock().sunk(name, status, &error);
    let line = JournalRecord::Sunk {
        consumer: consumer.id,
        offset: tried.job.offset,
        name,
        at: tried.at,
        status,
        error: error.into(),
    };
    note(shared, &state, line);
    consumer.wake(shared, &mut state);
}

/// How long to wait before the next attempt; `None` gives up.
fn pause(
    shared: &Shared,
    plan: &DeliveryPlan,
    failures: u32,
    again: bool,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    if !again {
        return None;
    }
    plan.policy.pause(failures, retry_after, &shared.chance)
}

fn later(at: Timestamp, pause: Duration) -> Timestamp {
    let pause = jiff::SignedDuration::try_from(pause).unwrap_or(jiff::SignedDuration::MAX);
    at.saturating_add(pause).unwrap_or(Timestamp::MAX)
}
