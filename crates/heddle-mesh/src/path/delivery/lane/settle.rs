//! Settling what came of an attempt: one change of the consumer's state, one line of the journal, one lock.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use super::super::consumer::{Consumer, Job, JobKind, State, note};
use super::super::plan::Plan;
use super::super::timer::What;
use super::{ANSWER_BYTES_MAX, Again, Done, Tried};
use crate::journal::positions::Retry;
use crate::journal::{Attempted, Dead, Line};
use crate::path::dead_letter::lay_to_rest;
use crate::shared::Shared;

pub(super) fn settle(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    plan: &Plan,
    tried: Tried,
    done: Done,
) {
    let mut state = consumer.lock();
    let offset = tried.job.offset;
    state.landed(&tried.job);
    consumer.tell_landed();
    consumer.touch(shared, &mut state);
    match done {
        Done::Delivered { status } => {
            state.breaker.succeeded();
            state.tally.delivered += 1;
            end(shared, &mut state, &tried.job);
            state.answers.count(tried.entry(), status);
            note(
                shared,
                &state,
                Line::Delivered(tried.attempted(consumer, status)),
            );
            if plan.auto_redrive > 0 && state.tally.dead > 0 {
                crate::path::dead_letter::redrive_one_of(
                    shared,
                    consumer,
                    &mut state,
                    plan.auto_redrive,
                );
            }
        }
        Done::Expired(reason) => {
            state.tally.expired += 1;
            end(shared, &mut state, &tried.job);
            let line = Line::Expired {
                consumer: consumer.id,
                offset,
                at: tried.at,
                reason: reason.into(),
            };
            note(shared, &state, line);
        }
        Done::Gone => {
            let reason =
                "the subscriber answered 410: it wants no more events; edit the trigger to go on";
            state.held = Some(reason.to_owned());
            let line = Line::Held {
                consumer: consumer.id,
                reason: reason.into(),
            };
            note(shared, &state, line);
            state.put_back(tried.job);
            drop(state);
            shared.announce();
            return;
        }
        Done::Back => {
            state.put_back(tried.job);
            return;
        }
        Done::Failed {
            status,
            again,
            retry_after,
            error,
            answer,
        } => {
            match again {
                Again::Yes => state.breaker.failed(),
                // It did its part, be it to say no.
                Again::No => state.breaker.succeeded(),
                Again::Always => {}
            }
            let attempted = tried.attempted(consumer, status);
            state.answers.count(tried.entry(), status);
            let pause = pause(shared, plan, attempted.number, again, retry_after);
            if let Some(pause) = pause {
                let next_at = later(tried.at, pause);
                let redriven = match tried.job.kind {
                    JobKind::Redriven(name) => Some(name),
                    _ => None,
                };
                let retry = Retry {
                    attempts: attempted.number,
                    next_at,
                    redriven,
                };
                state.retrying.insert(offset, retry);
                let line = Line::Failed {
                    attempted,
                    error: error.into(),
                    next_at,
                };
                note(shared, &state, line);
                consumer.schedule(shared, What::Event(offset), next_at);
            } else {
                let death = Death {
                    attempted,
                    reason: error,
                    answer,
                };
                bury(shared, &mut state, plan, &tried, death);
            }
        }
    }
    consumer.ask(shared, &mut state);
    consumer.wake(shared, &mut state);
}

/// The event is no longer the consumer's to deliver.
fn end(shared: &Shared, state: &mut State, job: &Job) {
    state.retrying.remove(&job.offset);
    state.pass_over(job.offset);
    state.release_key(job);
    if let JobKind::Redriven(name) = job.kind {
        shared.dead.lock().forget(name);
    }
}

/// Why trying ended.
struct Death {
    attempted: Attempted,
    reason: String,
    answer: Bytes,
}

/// Lays an event to rest.
fn bury(shared: &Shared, state: &mut State, plan: &Plan, tried: &Tried, death: Death) {
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
    };
    lay_to_rest(shared, state, dead);
}

pub(super) fn settle_sink(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    plan: &Plan,
    tried: &Tried,
    name: u64,
    done: Done,
) {
    let mut state = consumer.lock();
    state.landed(&tried.job);
    let (status, error) = match done {
        Done::Delivered { status } => (status, String::new()),
        Done::Failed {
            status,
            again,
            retry_after,
            error,
            ..
        } => {
            let failures = tried.job.attempts + 1;
            let pause = pause(shared, plan, failures, again, retry_after);
            if let Some(pause) = pause {
                let due = later(tried.at, pause);
                consumer.schedule(shared, What::Sink(name, failures), due);
                consumer.wake(shared, &mut state);
                return;
            }
            (status, error)
        }
        Done::Gone => (410, "the sink answered 410".to_owned()),
        Done::Expired(reason) => (0, reason),
        Done::Back => (0, "no sink is configured any more".to_owned()),
    };
    shared.dead.lock().sunk(name, status, &error);
    let line = Line::Sunk {
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
    plan: &Plan,
    failures: u32,
    again: Again,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let (policy, chance) = (&plan.policy, &shared.chance);
    match again {
        Again::No => None,
        Again::Yes => policy.pause(failures, retry_after, chance),
        Again::Always => Some(policy.pause_without_end(failures, chance)),
    }
}

fn later(at: Timestamp, pause: Duration) -> Timestamp {
    let pause = jiff::SignedDuration::try_from(pause).unwrap_or(jiff::SignedDuration::MAX);
    at.saturating_add(pause).unwrap_or(Timestamp::MAX)
}
