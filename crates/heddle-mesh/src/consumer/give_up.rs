//! What is left of one way into a broker: counting a consumer's unfinished events that came by it, and ending them.
//!
//! The backlog is walked in the order of the log, a batch at a time, and for each batch the consumer is locked once. Where
//! an event waits makes no difference: in memory, behind another with its key, on record after a failed attempt, or still
//! unread. Only an attempt under way is left to end as it will; whoever gives up walks again once it has landed.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::dataplane::Fate;
use jiff::Timestamp;
use tokio::sync::futures::Notified;

use super::{CompiledRevision, Consumer, Job, State, note};
use crate::draining::Ending;
use crate::envelope;
use crate::journal::{Attempted, Dead, JournalRecord};
use crate::log::{Offset, Record, Unavailable};
use crate::path::dead_letter;
use crate::shared::Shared;

/// From an entry to the consumers of a broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'a> {
    pub(crate) channel: &'a str,
    pub(crate) broker: &'a str,
}

/// What a look at one batch found, or did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnfinishedEvents {
    /// Not under way.
    pub(crate) waiting: u64,
    /// Under way at this moment.
    pub(crate) flying: u64,
}

/// The consumer began to count from an earlier place than where the walk is.
#[derive(Debug)]
pub(crate) struct CursorMoved;

/// Where an unfinished event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whereabouts {
    Waiting,
    Flying,
}

/// An event that is about to end.
struct GivenUpEvent {
    offset: Offset,
    attempts: u32,
    /// The dead letter it was before.
    redriven: Option<u64>,
    payload: Bytes,
    accepted_at: Timestamp,
}

impl Way<'_> {
    /// Whether events came this way while the revision decided.
    fn is_in(&self, revision: &CompiledRevision) -> bool {
        let feeds = || revision.feeds.iter();
        feeds().any(|(entry, via)| entry == self.broker && via.is_empty())
            && feeds().any(|(entry, _)| entry == self.channel)
    }

    fn began(&self, payload: &Bytes) -> bool {
        envelope::entry_and_event(payload).is_ok_and(|(entry, _)| entry == self.channel)
    }
}

impl Consumer {
    /// An attempt is over, however it ended.
    pub(crate) fn notify_attempt_finished(&self) {
        self.attempt_finished.notify_waiters();
    }

    /// The next landing.
    pub(crate) fn landing(&self) -> Notified<'_> {
        self.attempt_finished.notified()
    }

    /// The part of the log in which events of that way may be unfinished. `None` when none ever came by it, or all that
    /// the consumer has left are dead letters on their way again.
    pub(crate) fn backlog(&self, way: Way<'_>, scanned: Offset) -> Option<Range<Offset>> {
        let state = self.lock();
        let open = state.routing.revisions.iter().filter(|one| way.is_in(one));
        let upto = open
            .map(|one| one.until_of(&state.routing.revisions).unwrap_or(scanned))
            .max()?;
        let from = state.oldest(scanned);
        let upto = upto.min(scanned);
        (from < upto).then_some(from..upto)
    }

    /// Counts what is unfinished among these records.
    pub(crate) fn count_unfinished(&self, way: Way<'_>, records: &[Record]) -> UnfinishedEvents {
        let state = self.lock();
        let waiting = state.waiting_offsets();
        let mut found = UnfinishedEvents::default();
        for record in records {
            match state.whereabouts(way, record, &waiting) {
                Some(Whereabouts::Flying) => found.flying += 1,
                Some(Whereabouts::Waiting) => found.waiting += 1,
                None => {}
            }
        }
        found
    }

    /// Ends what is unfinished among these records, which follow each other in the log and begin at `from`.
    pub(crate) fn give_up(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        way: Way<'_>,
        ending: &Ending<'_>,
        records: &[Record],
        from: Offset,
    ) -> Result<UnfinishedEvents, CursorMoved> {
        let mut state = self.lock();
        if state
            .cursor
            .counted_to
            .is_some_and(|counted| counted < from)
        {
            return Err(CursorMoved);
        }
        let waiting = state.waiting_offsets();
        let mut flying = 0;
        let mut doomed = BTreeMap::new();
        for record in records {
            // Nothing ends before it was counted, and counting leaves nothing out.
            if state.cursor.is_uncounted(record.offset) && state.routing.is_own(record) {
                state.count(record.offset);
            }
            match state.whereabouts(way, record, &waiting) {
                Some(Whereabouts::Flying) => flying += 1,
                Some(Whereabouts::Waiting) => {
                    let retry = state.retries.on_record.get(&record.offset);
                    let one = GivenUpEvent {
                        offset: record.offset,
                        attempts: retry.map_or(0, |retry| retry.attempts),
                        redriven: None,
                        payload: record.payload.clone(),
                        accepted_at: record.at,
                    };
                    doomed.insert(record.offset, one);
                }
                None => {}
            }
        }
        let waiting = self.end_all(shared, &mut state, ending, doomed);
        Ok(UnfinishedEvents { waiting, flying })
    }

    /// The dead letters that are on their way again and came by that way in the first place.
    pub(crate) fn redriven(
        &self,
        shared: &Shared,
        way: Way<'_>,
    ) -> Result<Vec<(u64, Arc<Dead>)>, Unavailable> {
        let names: Vec<u64> = {
            let state = self.lock();
            if !state.routing.revisions.iter().any(|one| way.is_in(one)) {
                return Ok(Vec::new());
            }
            state.retries.redriven().collect()
        };
        let mut redriven = Vec::new();
        // Their bytes are in the journal: read without the lock.
        for name in names {
            let dead = dead_letter::record(shared, name)?.found();
            let began = dead.filter(|dead| way.began(&dead.record));
            redriven.extend(began.map(|dead| (name, dead)));
        }
        Ok(redriven)
    }

    /// Ends those of them that are still on their way.
    pub(crate) fn give_up_redriven(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        ending: &Ending<'_>,
        redriven: Vec<(u64, Arc<Dead>)>,
    ) -> UnfinishedEvents {
        let mut state = self.lock();
        let mut flying = 0;
        let mut doomed = BTreeMap::new();
        for (name, dead) in redriven {
            let offset = dead.attempted.offset;
            let Some(retry) = state.retries.on_record.get(&offset) else {
                continue;
            };
            if retry.redriven != Some(name) {
                continue;
            }
            if state.window.contains(offset) {
                flying += 1;
                continue;
            }
            let one = GivenUpEvent {
                offset,
                attempts: retry.attempts,
                redriven: Some(name),
                payload: dead.record.clone(),
                accepted_at: dead.accepted_at,
            };
            doomed.insert(offset, one);
        }
        let waiting = self.end_all(shared, &mut state, ending, doomed);
        UnfinishedEvents { waiting, flying }
    }

    fn end_all(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        ending: &Ending<'_>,
        doomed: BTreeMap<Offset, GivenUpEvent>,
    ) -> u64 {
        if !doomed.is_empty() {
            state.take_out(shared, |offset| doomed.contains_key(&offset));
        }
        let count = doomed.len() as u64;
        for one in doomed.into_values() {
            state.cursor.pass_over(one.offset);
            self.end(shared, state, ending, one);
        }
        self.go_on_without(shared, state, count);
        count
    }

    /// So many events were taken out and ended; what they stood in the way of goes on.
    pub(super) fn go_on_without(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        state: &mut State,
        count: u64,
    ) {
        if count > 0 && state.routing.plan.ordered {
            // If they cannot be read, whoever asks for work tries again.
            state.work_out_keys(shared).ok();
        }
        self.mark_dirty(shared, state);
        self.wake(shared, state);
        self.ask(shared, state);
    }

    fn end(&self, shared: &Shared, state: &mut State, ending: &Ending<'_>, one: GivenUpEvent) {
        let at = shared.clock.now();
        let redrives = one.redriven.map(|name| {
            let mut letters = shared.dead.lock();
            let redrives = letters.redrives(name) + 1;
            letters.forget(name);
            redrives
        });
        match ending.fate {
            Fate::DeadLetter => {
                let attempted = Attempted {
                    consumer: self.id,
                    offset: one.offset,
                    number: one.attempts,
                    at,
                    latency_us: 0,
                    status: 0,
                };
                let dead = Dead {
                    attempted,
                    name: Dead::UNKEPT,
                    redrives: redrives.unwrap_or_default(),
                    accepted_at: one.accepted_at,
                    reason: ending.why.to_owned(),
                    answer: Vec::new(),
                    sink: state.routing.plan.has_sink(),
                    given_up: true,
                    record: one.payload,
                    reply: None,
                };
                state.dead_letter(shared, dead);
            }
            Fate::Discard => {
                state.tally.removed += 1;
                let line = JournalRecord::Removed {
                    consumer: self.id,
                    offset: one.offset,
                    at,
                    by: ending.why.into(),
                };
                note(shared, state, line);
            }
        }
    }
}

impl State {
    /// What waits in memory for its first attempt.
    pub(crate) fn waiting_offsets(&self) -> HashSet<Offset> {
        self.waiting.untried().map(|job| job.offset).collect()
    }

    /// Where an event of that way is, if it is the consumer's own and has not ended. Dead letters on their way again are
    /// not looked for: the log may have forgotten them.
    fn whereabouts(
        &self,
        way: Way<'_>,
        record: &Record,
        waiting: &HashSet<Offset>,
    ) -> Option<Whereabouts> {
        let offset = record.offset;
        // Of an event at hand the revision may be forgotten; then it is one of those that the others are like.
        let decided = self.routing.revision_at(offset);
        if decided.is_some_and(|revision| !way.is_in(revision)) || !way.began(&record.payload) {
            return None;
        }
        let retry = self.retries.on_record.get(&offset);
        if retry.is_some_and(|retry| retry.redriven.is_some()) {
            return None;
        }
        if self.window.contains(offset) {
            return Some(Whereabouts::Flying);
        }
        let unread = self.cursor.is_unread(offset) && !self.cursor.ended.contains(&offset);
        let unfinished =
            retry.is_some() || waiting.contains(&offset) || (unread && self.routing.is_own(record));
        unfinished.then_some(Whereabouts::Waiting)
    }

    /// Takes events out of all that waits, wherever they do.
    pub(super) fn take_out(&mut self, shared: &Shared, goes: impl Fn(Offset) -> bool) {
        let stays = |job: &Job| {
            // What waits for the external sink has ended already.
            let stays = !goes(job.offset) || job.is_sink();
            if let Some(record) = job.record.as_ref().filter(|_| !stays) {
                shared.give_back(record.payload.len());
            }
            stays
        };
        self.waiting.retain(stays);
        self.retries.due.retain(stays);
        let retries = &mut self.retries;
        let going = retries.on_record.extract_if(.., |offset, _| goes(*offset));
        for (offset, _) in going {
            retries.backpressure.end(shared, offset);
        }
    }
}

impl CompiledRevision {
    /// The first offset that it no longer decides about, if there is one.
    fn until_of(&self, all: &[Self]) -> Option<Offset> {
        let next = all
            .iter()
            .map(|one| one.from)
            .find(|from| *from > self.from);
        [self.until, next].into_iter().flatten().min()
    }
}
