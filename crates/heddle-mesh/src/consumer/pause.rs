//! A pause that ends by itself, when the wall clock shows its time.
//!
//! Somebody looks at the clock every few seconds rather than once, since a clock may be set while a consumer is paused. A
//! pause that was over once stays over in this process, whatever the clock shows later; a process that is started again
//! goes by its own clock. Nothing is lost either way: events are kept.

use std::sync::Arc;
use std::time::Duration;

use super::timer::TimerTask;
use super::{Consumer, State};
use crate::path::delivery::plan::DeliveryPlan;
use crate::shared::Shared;

/// How late a pause may end after the clock was set.
const LOOK_EVERY: Duration = Duration::from_secs(10);

impl Consumer {
    /// Sees to it that somebody looks when a pause may be over.
    pub(crate) fn await_resume(&self, shared: &Shared, state: &State) {
        let until = state.routing.plan.pause.as_ref();
        let Some(until) = until.and_then(|pause| pause.until) else {
            return;
        };
        let left = until.duration_since(shared.clock.now());
        let left = Duration::try_from(left).unwrap_or_default();
        self.schedule(shared, TimerTask::Resume, left.min(LOOK_EVERY));
    }

    /// Goes on if the pause is over.
    pub(super) fn look_at_pause(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State) {
        let Some(pause) = &state.routing.plan.pause else {
            return;
        };
        if pause.holds_at(shared.clock.now()) {
            return self.await_resume(shared, state);
        }
        tracing::info!(consumer = %self.key, pending = state.tally.pending(), "a pause is over");
        state.routing.pause_over = Some(pause.clone());
        if let Some(spec) = &state.routing.spec {
            let over = state.routing.pause_over.as_ref();
            state.routing.plan = Arc::new(DeliveryPlan::new(spec, shared, over));
        }
        self.wake(shared, state);
        self.ask(shared, state);
        shared.notify_changed();
    }
}
