//! After records of the journal were lost: what nobody can find any more is counted and told.

use super::{Consumer, State, note};
use crate::journal::Line;
use crate::log::Offset;
use crate::shared::Shared;

impl Consumer {
    /// Every event that is left was met. What should have been met besides is lost; what was met besides was its own.
    pub(super) fn reconcile(&self, shared: &Shared, state: &mut State, scanned: Offset) {
        let Some(from) = state.unsure_from.take() else {
            return;
        };
        let known = state.tally.ended() + state.at_hand();
        let events = state.tally.matched.saturating_sub(known);
        state.tally.matched = state.tally.matched.max(known);
        if events == 0 {
            return;
        }
        tracing::error!(
            consumer = %self.key, events, from, to = scanned,
            "what became of these events is not known: the journal lost it, and the log no longer has them",
        );
        state.tally.lost += events;
        let line = Line::Lost {
            consumer: self.id,
            from,
            to: scanned,
            events,
            at: shared.clock.now(),
        };
        note(shared, state, line);
    }
}
