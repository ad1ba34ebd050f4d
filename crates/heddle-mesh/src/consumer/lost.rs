//! Events that were matched, never attempted, and cannot be read any more.
//!
//! ```text
//!   matched ─ ended ─ at hand = owed     what is owed when everything was read can only be among the damaged records
//! ```
//! Whose event a damaged record was cannot be asked of its bytes, but the account knows how many there are. They become
//! dead letters without bytes, so that they end like everybody else and somebody hears of them. The floor stays below
//! them until then: after a restart they are met again.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Consumer, State};
use crate::journal::{Attempted, Dead};
use crate::log::Offset;
use crate::path::delivery::attempt::DAMAGED;
use crate::shared::Shared;

/// Damaged records that a consumer has read past, in order.
#[derive(Debug, Default)]
pub(super) struct Lost(Vec<Range<Offset>>);

impl Lost {
    pub(super) fn first(&self) -> Option<Offset> {
        self.0.first().map(|range| range.start)
    }

    fn push(&mut self, range: Range<Offset>) {
        if !range.is_empty() {
            self.0.push(range);
        }
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }
}

impl State {
    /// Takes note of what cannot be read among what was read now, unless it has ended, is on record, or was counted by
    /// nobody.
    pub(super) fn read_past(&mut self, damaged: &[Range<Offset>], read: &Range<Offset>) {
        for range in damaged {
            let mut start = range.start.max(read.start);
            let end = range.end.min(read.end);
            if start >= end {
                continue;
            }
            let ended = self.cursor.ended.range(start..end);
            let on_record = self
                .retries
                .on_record
                .range(start..end)
                .map(|(offset, _)| offset);
            let mut known: Vec<Offset> = ended.chain(on_record).copied().collect();
            known.sort_unstable();
            for offset in known {
                self.cursor.lost.push(start..offset);
                start = offset + 1;
            }
            self.cursor.lost.push(start..end);
        }
    }
}

impl Consumer {
    /// Everything was read: what is still owed is lost.
    pub(super) fn lay_lost_to_rest(self: &Arc<Self>, shared: &Shared, state: &mut State) {
        let lost = std::mem::take(&mut state.cursor.lost);
        let candidates = lost.len();
        if candidates == 0 {
            return;
        }
        let owed = state.tally.pending().saturating_sub(state.at_hand());
        let reason = if owed < candidates {
            format!(
                "{DAMAGED}: {owed} of {candidates} damaged records that lie close together were this consumer's"
            )
        } else {
            DAMAGED.to_owned()
        };
        let owed = usize::try_from(owed).unwrap_or(usize::MAX);
        for offset in lost.0.into_iter().flatten().take(owed) {
            tracing::error!(consumer = %self.key, offset, "a pending event is lost: {DAMAGED}");
            let dead = self.dead_without_bytes(shared, offset, reason.clone());
            state.dead_letter(shared, dead);
        }
        shared.notify_changed();
    }

    fn dead_without_bytes(&self, shared: &Shared, offset: Offset, reason: String) -> Dead {
        let at = shared.clock.now();
        Dead {
            attempted: Attempted {
                consumer: self.id,
                offset,
                number: 0,
                at,
                latency_us: 0,
                status: 0,
            },
            name: Dead::UNKEPT,
            redrives: 0,
            accepted_at: at,
            reason,
            answer: Vec::new(),
            // There is nothing to send to it.
            sink: false,
            given_up: true,
            record: Bytes::new(),
            reply: None,
        }
    }
}
