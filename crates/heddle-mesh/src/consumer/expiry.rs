//! Holding a consumer to its quota: what is beyond it expires, wherever it waits.
//!
//! What is in memory or on record expires at once, what is still unread when it is read. An attempt under way is left to
//! end as it will; if it fails, the event expires the next time somebody looks. Dead letters that were sent on their way
//! again are not in the log, so no quota is about them, nor about events that somebody had sent again from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Consumer, State, note};
use crate::journal::JournalRecord;
use crate::log::Offset;
use crate::quota::Limit;
use crate::shared::Shared;

/// How a consumer stands with its quota.
#[derive(Debug, Default)]
pub(super) struct QuotaState {
    /// Unread events below this expire.
    below: Offset,
    /// What the quota is, in words.
    reason: Arc<str>,
    /// Something expired, and the backlog has not become much smaller since.
    over: bool,
}

impl Consumer {
    /// Lets everything expire that is beyond the limit; without one, nothing.
    pub(crate) fn hold_to(self: &Arc<Self>, shared: &Arc<Shared>, limit: Option<&Limit>) {
        let mut state = self.lock();
        let Some(limit) = limit else {
            if std::mem::take(&mut state.quota).over {
                shared.notify_changed();
            }
            return;
        };
        if state.quota.over && state.oldest_own(shared.scanned()) >= limit.eased {
            state.quota.over = false;
            shared.notify_changed();
        }
        state.quota.below = limit.cut;
        state.quota.reason = Arc::clone(&limit.reason);
        // What cannot be written down does not happen.
        if !shared.sends() {
            return;
        }
        let beyond = state.waiting_below(limit.cut);
        if beyond.is_empty() {
            return;
        }
        state.take_out(shared, |offset| beyond.contains(&offset));
        for offset in &beyond {
            state.cursor.pass_over(*offset);
            self.expire(shared, &mut state, *offset);
        }
        self.go_on_without(shared, &mut state, beyond.len() as u64);
    }

    /// Whether an event that was just read expires instead of waiting for an attempt.
    pub(super) fn expires(
        self: &Arc<Self>,
        shared: &Shared,
        state: &mut State,
        offset: Offset,
    ) -> bool {
        let expires = offset < state.quota.below && shared.sends();
        if expires {
            self.expire(shared, state, offset);
        }
        expires
    }

    fn expire(self: &Arc<Self>, shared: &Shared, state: &mut State, offset: Offset) {
        if !std::mem::replace(&mut state.quota.over, true) {
            tracing::warn!(consumer = %self.key, reason = %state.quota.reason, "events expire undelivered");
            shared.notify_changed();
        }
        state.tally.expired += 1;
        let line = JournalRecord::Expired {
            consumer: self.id,
            offset,
            at: shared.clock.now(),
            reason: (&*state.quota.reason).into(),
        };
        note(shared, state, line);
    }
}

impl State {
    /// Why events end without being delivered, if they do.
    pub(crate) fn over_quota(&self) -> Option<String> {
        let QuotaState { over, reason, .. } = &self.quota;
        over.then(|| format!("events expire undelivered: {reason}"))
    }

    /// The quota may have changed; nothing expires by the old one.
    pub(crate) fn forget_limit(&mut self) {
        self.quota.below = 0;
    }

    /// Every event of the log below `cut` that waits, in memory or on record. An attempt under way is not among them.
    fn waiting_below(&self, cut: Offset) -> BTreeSet<Offset> {
        let in_memory = self.waiting.untried().map(|job| job.offset);
        let on_record = self.retries.in_log();
        let on_record = on_record.take_while(|offset| *offset < cut);
        let on_record = on_record.filter(|offset| !self.retries.is_resent(*offset));
        in_memory
            .filter(|offset| *offset < cut)
            .chain(on_record.filter(|offset| !self.window.contains(*offset)))
            .collect()
    }
}
