//! Taking turns at a destination that allowed only so many events per minute, or that is down and left alone for a moment.
//!
//! A consumer asks for a time when it has work, and for one at a time. Until that time has come nothing else is begun, and
//! no lane is kept waiting for it. Those that are well and were not asked for consent never come here with more than a look.

use std::sync::Arc;

use super::timer::TimerTask;
use super::{Consumer, State};
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
}

impl Consumer {
    /// Whether something may be sent now; if not, it will be looked into when it may.
    pub(super) fn passes_throttle(self: &Arc<Self>, shared: &Shared, state: &mut State) -> bool {
        let come = std::mem::take(&mut state.window.throttle) == Throttle::Elapsed;
        let (consent, rests_until) = (
            &state.routing.plan.consent,
            state.window.breaker.rests_until(),
        );
        if come || (consent.is_none() && rests_until.is_none()) {
            return true;
        }
        let now = shared.clock.monotonic();
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

    /// The time has come.
    pub(super) fn throttle_elapsed(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State) {
        if state.window.throttle == Throttle::Scheduled {
            state.window.throttle = Throttle::Elapsed;
        }
        self.wake(shared, state);
    }
}

impl State {
    /// More than one lane would only wait where there is one turn at a time.
    pub(super) fn lanes_throttled(&self) -> u32 {
        let consent = self.routing.plan.consent.as_ref();
        if consent.is_some_and(|consent| consent.is_paced()) {
            1
        } else {
            u32::MAX
        }
    }
}
