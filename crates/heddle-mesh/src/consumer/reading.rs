//! Where a consumer's events come from: the scanner while it keeps up, the log itself once it has fallen behind.

use std::sync::Arc;

use super::{Consumer, QUEUE_MAX, ReadMode, State};
use crate::log::{Batch, Offset, Record};
use crate::shared::Shared;

/// A consumer that fell behind reads on once it has no more than this many waiting.
const REFILL_BELOW: usize = QUEUE_MAX / 2;

impl Consumer {
    /// From the scanner: an event of the consumer's own.
    pub(crate) fn offer(self: &Arc<Self>, shared: &Arc<Shared>, record: &Record) {
        let mut state = self.lock();
        if state.cursor.counted_to.is_some() {
            // It reads and counts everything itself until it has caught up.
            return;
        }
        state.tally.matched += 1;
        self.mark_dirty(shared, &mut state);
        match state.cursor.reading {
            ReadMode::Live if state.waiting.len() < QUEUE_MAX => {
                state.enqueue(shared, record);
                self.wake(shared, &mut state);
            }
            ReadMode::Live => state.cursor.read_from(record.offset),
            ReadMode::CatchUp { .. } => {}
        }
    }

    /// From the scanner, which alone moves `scanned`: records that the consumer asked for.
    pub(crate) fn refill(self: &Arc<Self>, shared: &Arc<Shared>, batch: &Batch, scanned: Offset) {
        let mut state = self.lock();
        let Some(next) = state.cursor.unread_from() else {
            return;
        };
        let counted = state.cursor.counted_to.unwrap_or(Offset::MAX);
        let mut at = next;
        for record in batch.records.iter().filter(|record| record.offset >= next) {
            if record.offset >= scanned || state.waiting.len() >= QUEUE_MAX {
                break;
            }
            at = record.offset + 1;
            if state.routing.is_own(record) {
                state.count(record.offset);
                if !state.cursor.ended.remove(&record.offset)
                    && !state.retries.contains(record.offset)
                    && !self.expires(shared, &mut state, record.offset)
                {
                    state.enqueue(shared, record);
                }
            }
        }
        if state.waiting.len() < QUEUE_MAX {
            at = at.max(batch.next.min(scanned));
        }
        let read = next..at.min(counted);
        state.read_past(&batch.damaged, &read);
        state.look_for_gaps(batch, read);
        state.cursor.ended = state.cursor.ended.split_off(&at);
        if at >= scanned {
            state.cursor.caught_up();
            self.lay_lost_to_rest(shared, &mut state);
            self.reconcile(shared, &mut state, scanned);
        } else {
            state.cursor.read_to(at);
        }
        self.mark_dirty(shared, &mut state);
        self.wake(shared, &mut state);
        self.ask(shared, &mut state);
    }

    /// Asks for more to read when there is room.
    pub(crate) fn ask(self: &Arc<Self>, shared: &Shared, state: &mut State) {
        if state.waiting.len() > REFILL_BELOW {
            return;
        }
        if let ReadMode::CatchUp { asked, .. } = &mut state.cursor.reading
            && !std::mem::replace(asked, true)
        {
            shared.refills.ask(self.id);
        }
    }
}
