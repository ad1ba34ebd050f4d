//! Settling an attempt to lay a dead letter down at its external sink. The event has ended before: its account is left alone.

use std::sync::Arc;

use super::super::timer::TimerTask;
use super::super::{Consumer, note};
use super::{Tried, pause, room_pause};
use crate::journal::JournalRecord;
use crate::path::delivery::attempt::AttemptResult;
use crate::path::delivery::plan::DeliveryPlan;
use crate::shared::Shared;

impl Consumer {
    pub(super) fn settle_sink(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        plan: &DeliveryPlan,
        tried: &Tried,
        name: u64,
        result: AttemptResult,
    ) {
        let mut state = self.lock();
        state.window.finish(&tried.job);
        state.read_succeeded(shared);
        let (status, error) = match result {
            AttemptResult::Delivered { status, .. } => (status, String::new()),
            AttemptResult::Failed(failed) => {
                let failures = tried.job.attempts + 1;
                if let Some(pause) = pause(shared, plan, failures, &failed) {
                    self.schedule(shared, TimerTask::Sink(name, failures), pause);
                    self.wake(shared, &mut state);
                    return;
                }
                (failed.status, failed.error)
            }
            AttemptResult::Backpressured { .. } => {
                let pause = room_pause(shared, u32::MAX);
                self.schedule(shared, TimerTask::Sink(name, tried.job.attempts), pause);
                self.wake(shared, &mut state);
                return;
            }
            AttemptResult::Gone => (410, "the sink answered 410".to_owned()),
            AttemptResult::Expired(reason) => (0, reason),
            AttemptResult::NotAttempted => (0, "no sink is configured any more".to_owned()),
        };
        shared.dead.lock().sunk(name, status, &error);
        let line = JournalRecord::Sunk {
            consumer: self.id,
            offset: tried.job.offset,
            name,
            at: tried.at,
            status,
            error: error.into(),
        };
        note(shared, &state, line);
        self.wake(shared, &mut state);
    }
}
