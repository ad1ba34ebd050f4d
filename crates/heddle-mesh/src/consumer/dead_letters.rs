//! Dead letters of a consumer: an event ends as one, one is sent on its way again, or thrown away.
//!
//! Each is one change of the consumer's account, one of what rests ([`crate::path::dead_letter`]) and one line of the
//! journal, under the consumer's lock.

use std::sync::Arc;

use super::{Consumer, Job, JobKind, State, note};
use crate::journal::{BadReply, Dead, JournalRecord};
use crate::path::dead_letter::Answered;
use crate::shared::Shared;

impl State {
    /// An event of the consumer's own ends: counted, written down, and on its way to the external sink if there is one.
    /// A heartbeat does not rest: nobody would send it on its way again.
    /// Gives its name, which it gets only here: whoever sees a name has seen all lower ones, or never will.
    pub(super) fn dead_letter(&mut self, shared: &Shared, mut dead: Dead) -> u64 {
        if self.routing.plan.of_heartbeats {
            self.tally.expired += 1;
            let line = JournalRecord::Expired {
                consumer: dead.attempted.consumer,
                offset: dead.attempted.offset,
                at: dead.attempted.at,
                reason: dead.reason.into(),
            };
            note(shared, self, line);
            return Dead::UNKEPT;
        }
        self.tally.dead += 1;
        let full = {
            let mut letters = shared.dead.lock();
            dead.name = letters.next_name();
            letters.rest(dead.clone());
            letters.full(dead.attempted.consumer)
        };
        if full.is_some() && self.window.dead_full.is_none() {
            shared.notify_changed();
        }
        self.window.dead_full = full;
        if dead.sink {
            let job = Job::new(JobKind::Sink(dead.name), dead.attempted.offset, 0);
            self.retries.due.push_back(job);
        }
        let name = dead.name;
        note(shared, self, JournalRecord::Dead(Box::new(dead)));
        name
    }
}

impl Consumer {
    /// A reply cannot go on: counted, written down, and kept if there is room.
    pub(super) fn keep_reply(
        &self,
        shared: &Shared,
        state: &mut State,
        to: Answered,
        reply: BadReply,
    ) {
        tracing::info!(
            consumer = %self.key, offset = to.attempted.offset, reason = reply.reason,
            "a reply cannot go on",
        );
        state.answers.count_bad_reply(reply.fault);
        let (dead, first) = shared.dead.lock().rest_reply(to, reply);
        note(shared, state, JournalRecord::Dead(Box::new(dead)));
        if first {
            shared.notify_changed();
        }
    }

    /// Sends one on its way again. Gives whether it could be.
    pub(crate) fn redrive(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        name: u64,
        by: &str,
    ) -> bool {
        let offset = {
            let mut letters = shared.dead.lock();
            let rest = letters.get(name).filter(|rest| rest.reply.is_none());
            // The same event may have been redelivered by a second dead letter: one of them is enough at a time.
            if rest.is_none_or(|rest| state.retries.contains(rest.offset)) {
                return false;
            }
            match letters.leave(name) {
                Some(offset) => offset,
                None => return false,
            }
        };
        let at = shared.clock.now();
        state.tally.dead -= 1;
        state.retries.redrive(offset, name, at);
        let line = JournalRecord::Redriven {
            consumer: self.id,
            offset,
            name,
            at,
            by: by.into(),
        };
        note(shared, state, line);
        self.mark_dirty(shared, state);
        self.wake(shared, state);
        true
    }

    /// Throws one away. Gives whether it was there.
    pub(crate) fn discard(
        self: &Arc<Self>,
        shared: &Shared,
        state: &mut State,
        name: u64,
        by: &str,
    ) -> bool {
        let (offset, is_reply) = {
            let mut letters = shared.dead.lock();
            let Some(rest) = letters.get(name) else {
                return false;
            };
            let (offset, is_reply) = (rest.offset, rest.reply.is_some());
            letters.forget(name);
            if is_reply && !letters.has_replies(self.id) {
                shared.notify_changed();
            }
            (offset, is_reply)
        };
        if !is_reply {
            state.tally.dead -= 1;
            state.tally.removed += 1;
        }
        let line = JournalRecord::Discarded {
            consumer: self.id,
            offset,
            name,
            at: shared.clock.now(),
            by: by.into(),
            reply: is_reply,
        };
        note(shared, state, line);
        self.mark_dirty(shared, state);
        true
    }

    /// The subscriber is well again: the oldest dead letter that may, goes on its way. Its success brings the next.
    pub(super) fn auto_redrive(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        redrives_max: u32,
    ) {
        let found = {
            let letters = shared.dead.lock();
            let own = letters.of_consumer(self.id, 0);
            let mut own = own.filter(|(_, rest)| rest.reply.is_none());
            own.find(|(_, rest)| {
                rest.redrives < redrives_max && !state.retries.contains(rest.offset)
            })
            .map(|(name, _)| name)
        };
        if let Some(name) = found {
            self.redrive(shared, state, name, "auto-redrive");
        }
    }

    /// Looks whether it may have more dead letters; if it may again, it goes on.
    pub(crate) fn look_for_room(self: &Arc<Self>, shared: &Arc<Shared>) {
        let mut state = self.lock();
        let full = shared.dead.lock().full(self.id);
        let goes_on = state.window.dead_full.is_some() && full.is_none();
        state.window.dead_full = full;
        if goes_on {
            self.wake(shared, &mut state);
            self.ask(shared, &mut state);
            shared.notify_changed();
        }
    }
}
