//! The lanes of a consumer: as many as there is work and permission for, and a few that are idle.
//!
//! ```text
//!   wake: work came ──> at work ──(no more work)──> idle ──(2 s, or too many)──> gone
//!                          ^                          │
//!                          └──────── woken <──────────┘
//! ```
//! Invariant: a lane is counted once. One that was woken is at work from then on, though it has not noticed yet; so the
//! same work wakes no second one.

use std::sync::Arc;
use std::time::Duration;

use heddle_rt::OnError;

use super::{Consumer, State};
use crate::path::delivery::attempt;
use crate::shared::Shared;

/// Lanes of one consumer that may be idle, and for how long.
const IDLE_LANES_MAX: u32 = 8;
const LANE_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// At work, or about to be.
    working: u32,
    idle: u32,
    /// How many were woken and have not noticed yet.
    woken: u32,
}

impl Lanes {
    /// One more goes to work. Gives whether one that was idle does; else one has to be started.
    fn begin(&mut self) -> bool {
        self.working += 1;
        let was_idle = self.idle > 0;
        if was_idle {
            self.idle -= 1;
            self.woken += 1;
        }
        was_idle
    }

    /// One has no more work.
    fn finish(&mut self) {
        self.working -= 1;
    }

    /// Whether one more may be idle, which it then is.
    fn rest(&mut self) -> bool {
        let rests = self.idle < IDLE_LANES_MAX;
        self.idle += u32::from(rests);
        rests
    }

    /// An idle one that heard a call takes it, unless another was faster.
    fn answer(&mut self) -> bool {
        let called = self.woken > 0;
        self.woken -= u32::from(called);
        called
    }

    /// An idle one goes.
    fn leave(&mut self) {
        self.idle -= 1;
    }
}

impl Consumer {
    /// Starts as many lanes as there is work and permission for.
    pub(crate) fn wake(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State) {
        if !shared.sends_for(&self.key) || !state.may_send() {
            return;
        }
        let in_flight = u32::try_from(state.window.in_flight()).unwrap_or(u32::MAX);
        let room = state.allowed().saturating_sub(in_flight);
        let room = room.min(state.lanes_throttled());
        let work = u32::try_from(state.takeable()).unwrap_or(u32::MAX);
        let starting = state.lanes.working.saturating_sub(in_flight);
        for _ in starting..room.min(work) {
            if state.lanes.begin() {
                self.lane_wakeup.notify_one();
            } else {
                start(Arc::clone(shared), Arc::clone(self));
            }
        }
    }

    /// A lane without work stays idle for a while, because starting one costs more than an event should. Gives whether it is
    /// to go on.
    pub(crate) async fn park(&self, shared: &Shared) -> bool {
        let mut wakeup = std::pin::pin!(self.lane_wakeup.notified());
        // Before looking: whoever rings after that is heard.
        wakeup.as_mut().enable();
        {
            let mut state = self.lock();
            // Work that came since this lane last looked counts on it.
            if shared.sends_for(&self.key) && state.has_work() {
                return true;
            }
            state.lanes.finish();
            if !shared.sends_for(&self.key) || !state.lanes.rest() {
                return false;
            }
        }
        loop {
            let late = shared
                .clock
                .timeout(LANE_IDLE_TIMEOUT, wakeup.as_mut())
                .await
                .is_err();
            let mut state = self.lock();
            if state.lanes.answer() {
                return true;
            }
            if late || !shared.sends_for(&self.key) {
                state.lanes.leave();
                return false;
            }
            // Somebody else answered the call. Still under the lock: the notification is kept for one that does not listen
            // yet, and two of them may be called at once.
            wakeup.set(self.lane_wakeup.notified());
            wakeup.as_mut().enable();
            drop(state);
        }
    }

    /// Stops idle lanes, when the mesh closes.
    pub(crate) fn stop_idle_lanes(&self) {
        drop(self.lock());
        self.lane_wakeup.notify_waiters();
    }
}

/// A lane: takes one event after the other, attempts it, and settles what came of it, until there is no more work.
/// Cancelling it drops the attempt under way.
fn start(shared: Arc<Shared>, consumer: Arc<Consumer>) {
    let lanes = shared.lanes.clone();
    // Boxed once: the future of an attempt is large, and is moved several times until it is a task.
    let lane = Box::pin(async move {
        loop {
            while let Some((mut job, plan)) = consumer.take(&shared) {
                match attempt::run(&shared, &consumer.key, &mut job, &plan).await {
                    Ok(finished) => consumer.settle(&shared, &plan, job, finished),
                    Err(unavailable) => consumer.postpone(&shared, job, &unavailable),
                }
            }
            if !consumer.park(&shared).await {
                return;
            }
        }
    });
    lanes.spawn("lane", OnError::Report, lane);
}
