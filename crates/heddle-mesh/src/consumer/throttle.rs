//! Taking turns: at a destination that allowed only so many events per minute, or that is down and left alone for a moment,
//! and of a consumer that is to be sent no more than so many.
//!
//! A consumer asks for a turn when it has work, and for one at a time. Until that has come nothing else is begun, and no lane
//! is kept waiting for it. Whoever takes one sees to it that somebody asks for the next, so that a slow answer holds up its
//! lane and nobody's turn. Those that are well and have neither rate nor consent never come here with more than a look.
//!
//! Of a destination's allowance a turn is taken by asking; of a rate of its own by beginning an event, so none is lost. The
//! later of the two holds. A retry needs a turn like a first attempt. A dead letter on its way to a sink waits for one and
//! takes none.

use std::sync::Arc;

use heddle_api::rate::DeliveryRate;

use super::timer::TimerTask;
use super::{Consumer, Job, State};
use crate::shared::Shared;

/// How a consumer stands with its next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Throttle {
    #[default]
    Unthrottled,
    /// It has a time, which is not yet.
    Scheduled,
    /// It has come and is not used yet.
    Elapsed,
    /// Its own rate lets nothing go yet.
    Paced {
        /// The turn at its destination has come meanwhile.
        elapsed: bool,
    },
}

impl Throttle {
    /// Whether nothing may begin.
    pub(super) fn holds_back(self) -> bool {
        matches!(self, Self::Scheduled | Self::Paced { .. })
    }

    /// There is nothing to wait for any more.
    fn elapsed(self) -> Self {
        match self {
            Self::Scheduled | Self::Paced { elapsed: true } => Self::Elapsed,
            Self::Paced { elapsed: false } => Self::Unthrottled,
            Self::Unthrottled | Self::Elapsed => self,
        }
    }
}

impl Consumer {
    /// Whether something may be sent now; if not, it will be looked into when it may.
    pub(super) fn passes_throttle(self: &Arc<Self>, shared: &Shared, state: &mut State) -> bool {
        let elapsed = std::mem::take(&mut state.window.throttle) == Throttle::Elapsed;
        let (consent, rests_until) = (
            &state.routing.plan.consent,
            state.window.breaker.rests_until(),
        );
        let asks_nobody = elapsed || (consent.is_none() && rests_until.is_none());
        if asks_nobody && !state.window.pace.is_set() {
            return true;
        }
        let now = shared.clock.monotonic();
        let own = state.window.pace.due(now);
        if own > now {
            state.window.throttle = Throttle::Paced { elapsed };
            self.schedule(shared, TimerTask::Throttle, own - now);
            return false;
        }
        if asks_nobody {
            return true;
        }
        let allowed = consent
            .as_ref()
            .map_or(now, |consent| consent.next_turn(now));
        let at = allowed.max(rests_until.unwrap_or(now));
        if at > now {
            state.window.throttle = Throttle::Scheduled;
            self.schedule(shared, TimerTask::Throttle, at - now);
        }
        at <= now
    }

    /// An event begins. Where there are turns, somebody asks for the next one now rather than when this one was answered.
    pub(super) fn turn_taken(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State, job: &Job) {
        if !job.is_sink() && state.window.pace.is_set() {
            state.window.pace.next(shared.clock.monotonic());
        }
        if state.takes_turns() {
            self.wake(shared, state);
        }
    }

    /// The time has come.
    pub(super) fn throttle_elapsed(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State) {
        state.window.throttle = state.window.throttle.elapsed();
        self.wake(shared, state);
    }
}

impl State {
    /// Another rate, or none. Nobody goes on waiting for a turn of the former one; those that were taken still count.
    pub(crate) fn set_rate(&mut self, rate: Option<DeliveryRate>) {
        let apart = rate.map(|rate| rate.apart());
        let window = &mut self.window;
        if window.pace.set(apart) && matches!(window.throttle, Throttle::Paced { .. }) {
            window.throttle = window.throttle.elapsed();
        }
    }

    fn takes_turns(&self) -> bool {
        let consent = self.routing.plan.consent.as_ref();
        self.window.pace.is_set() || consent.is_some_and(|consent| consent.is_paced())
    }

    /// More than one lane would only wait where there is one turn at a time.
    pub(super) fn lanes_throttled(&self) -> u32 {
        if self.takes_turns() { 1 } else { u32::MAX }
    }
}
