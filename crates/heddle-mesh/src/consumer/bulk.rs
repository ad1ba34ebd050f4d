//! How many dead letters of a consumer, or events of the log, may go on their way again at once when many are to.
//!
//! What is due goes before what was never tried. Fresh events therefore get their turn only if those that are sent again
//! leave them some: half of the window is theirs, and a consumer with a window of one alternates.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Consumer, State, note};
use crate::journal::JournalRecord;
use crate::log::Offset;
use crate::shared::Shared;

/// With so many on record, no more are sent again: beyond twice as many nothing fresh would be tried at all.
const ON_RECORD_MAX: usize = 1024;
/// An attempt takes so long where none was made yet.
const LATENCY: Duration = Duration::from_millis(20);
/// How often the room is looked at.
pub(crate) const BULK_TICK: Duration = Duration::from_millis(20);

impl State {
    /// How many may go on their way again now.
    pub(crate) fn redrive_room(&self) -> usize {
        let on_record = &self.retries.on_record;
        if on_record.len() >= ON_RECORD_MAX {
            return 0;
        }
        let again = on_record.values();
        let untried =
            again.filter(|retry| (retry.resent || retry.redriven.is_some()) && retry.attempts == 0);
        self.redriven_at_once().saturating_sub(untried.count())
    }

    fn redriven_at_once(&self) -> usize {
        (self.allowed() as usize / 2).max(1)
    }

    /// How long it takes to send so many again, if nothing else is to be done and the subscriber answers as it did lately.
    pub(crate) fn time_for(&self, count: u64) -> Duration {
        let latency = self.last_attempts.latency.unwrap_or(LATENCY);
        let turns = count.div_ceil(self.redriven_at_once() as u64);
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        latency.max(BULK_TICK).saturating_mul(turns)
    }

    /// Whether an event has not ended: it waits, is under way, on record, or still to be read. `own` says whether it was the
    /// consumer's own when it came, `waiting` what waits in memory.
    pub(crate) fn is_unfinished(
        &self,
        offset: Offset,
        own: bool,
        waiting: &HashSet<Offset>,
    ) -> bool {
        let unread = own && self.cursor.is_unread(offset);
        self.retries.contains(offset)
            || self.window.contains(offset)
            || waiting.contains(&offset)
            || (unread && !self.cursor.ended.contains(&offset))
    }
}

impl Consumer {
    /// Sends an event of the log again, one that has ended or was never the consumer's own.
    pub(crate) fn resend(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        offset: Offset,
        operation: u64,
        by: &str,
    ) {
        debug_assert!(!state.retries.contains(offset));
        let at = shared.clock.now();
        state.tally.resent += 1;
        state.retries.resend(offset, at);
        let line = JournalRecord::Resent {
            consumer: self.id,
            offset,
            at,
            operation,
            by: by.into(),
        };
        note(shared, state, line);
        self.mark_dirty(shared, state);
        self.wake(shared, state);
    }
}
