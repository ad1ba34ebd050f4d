//! After records of the journal or files of the log were lost: what nobody can find any more is counted and told.

use std::ops::Range;

use super::{Consumer, State, note};
use crate::journal::JournalRecord;
use crate::log::{Batch, Offset};
use crate::shared::Shared;

impl State {
    /// Records that are neither there nor known to be damaged went with their file. Nothing unfinished is ever trimmed, so
    /// events of the consumer's own may have been among them.
    pub(super) fn look_for_gaps(&mut self, batch: &Batch, read: Range<Offset>) {
        if is_unbroken(batch, &read) {
            return;
        }
        let here = batch
            .records
            .iter()
            .map(|record| record.offset..record.offset + 1);
        let mut known: Vec<Range<Offset>> = here.chain(batch.damaged.iter().cloned()).collect();
        known.sort_unstable_by_key(|range| range.start);
        let mut next = read.start;
        for range in known {
            if range.start > next {
                break;
            }
            next = next.max(range.end);
        }
        if next < read.end {
            self.cursor.replay_from.get_or_insert(next);
        }
    }
}

impl Consumer {
    /// Every event that is left was met. What should have been met besides is lost; what was met besides was its own.
    pub(super) fn reconcile(&self, shared: &Shared, state: &mut State, scanned: Offset) {
        let Some(from) = state.cursor.replay_from.take() else {
            return;
        };
        let known = state.tally.ended() + state.at_hand();
        let begun = state.tally.matched + state.tally.resent;
        let events = begun.saturating_sub(known);
        state.tally.matched += known.saturating_sub(begun);
        if events == 0 {
            return;
        }
        tracing::error!(
            consumer = %self.key, events, from, to = scanned,
            "what became of these events is not known: the journal does not say, and the log no longer has them",
        );
        state.tally.lost += events;
        let line = JournalRecord::Lost {
            consumer: self.id,
            from,
            to: scanned,
            events,
            at: shared.clock.now(),
        };
        note(shared, state, line);
    }
}

/// Whether every record of this range was read: what a backlog is caught up with looks like this.
fn is_unbroken(batch: &Batch, read: &Range<Offset>) -> bool {
    let (Some(first), Some(last)) = (batch.records.first(), batch.records.last()) else {
        return read.is_empty();
    };
    let count = batch.records.len() as Offset;
    let in_a_row = last.offset - first.offset + 1 == count;
    in_a_row && first.offset <= read.start && read.end <= last.offset + 1
}
