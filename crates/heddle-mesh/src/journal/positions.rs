//! The state that follows from the journal: where every consumer is, what it owes, what rests.
//!
//! Pure: lines in, state out. The mesh starts from this after a restart, a snapshot is this written down, and traces read
//! from it. While the mesh runs it keeps its own account; a line is only ever written for what it has already done.
//!
//! An event is *on record* for a consumer when a failed attempt, a dead letter or a redrive names it. All others are
//! found again by reading the log from the consumer's floor, skipping what has ended.
//!
//! Records that the journal lost leave doubt, which `doubt` turns into work: what may not have ended is done again.

mod doubt;
mod short;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;

use super::bulk::BulkEntries;
use super::cause;
use super::mark::GroupMarks;
use super::record::{ConsumerCheckpoint, ConsumerId, Dead, JournalRecord, Routed};
use super::reply::ReplyFault;
use crate::log::Offset;
pub use doubt::Doubt;
use heddle_api::dead_letters::FailureClass;
pub use short::short;

/// Everything the journal says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Positions {
    /// Every event below was matched.
    pub scanned: Offset,
    pub consumers: BTreeMap<ConsumerId, Position>,
    /// Dead letters by name.
    pub dead: BTreeMap<u64, DeadLetterEntry>,
    /// The highest name given to a dead letter so far.
    pub dead_name_last: u64,
    /// The highest id given to a consumer so far.
    pub consumer_last: ConsumerId,
    /// Lines that speak of a consumer or a dead letter nobody introduced: what introduced them was damaged.
    pub strays: u64,
    /// Records of the journal that could be read in neither copy, so far.
    pub lost_records: u64,
    /// Where they were, the first of them.
    pub losses: Vec<Range<Offset>>,
    /// A consumer that nobody remembers may have taken part from here on: what introduced it may be lost.
    pub unknown_from: Option<Offset>,
    /// A repair accepted that everything below is gone from the log; 0 if none did.
    pub log_lost_below: Offset,
    /// What is done with many dead letters.
    pub bulks: BulkEntries,
    /// Which groups of dead letters are marked.
    pub marks: GroupMarks,
}

/// Where one consumer is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Position {
    pub key: String,
    pub revisions: Vec<Revision>,
    /// Since when it takes no part.
    pub unrouted: Option<(Offset, Timestamp)>,
    /// Below this nothing is unfinished but what is on record.
    pub floor: Offset,
    /// Ended at or above the floor.
    pub ended: BTreeSet<Offset>,
    /// Unfinished and on record.
    pub retrying: BTreeMap<Offset, Retry>,
    /// While it catches up by itself, events below this are counted.
    pub counted_to: Option<Offset>,
    pub tally: Counters,
    /// Why nothing is sent.
    pub held: Option<String>,
    /// What was known for sure before records were lost.
    pub doubt: Option<Doubt>,
    /// It goes through its events again from here on, because what became of some of them is not known.
    pub unsure_from: Option<Offset>,
}

/// Which events are a consumer's own, from an offset on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    pub from: Offset,
    pub uid: String,
    pub generation: i64,
    pub fingerprint: u64,
    pub feeds: Vec<(String, Vec<String>)>,
    pub filters: String,
    /// The consumer took no part from here on, until the next revision.
    pub until: Option<Offset>,
}

/// An event that was tried and will be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts that failed so far.
    pub attempts: u32,
    /// Those of them that count towards no limit.
    pub excused: u32,
    /// When the last of them ended: what was asked for is the time from here to `next_at`.
    pub tried_at: Timestamp,
    pub next_at: Timestamp,
    /// The dead letter it was before, whose record holds the event.
    pub redriven: Option<u64>,
    /// It had its end before, and somebody had it sent again from the log.
    pub resent: bool,
}

impl Retry {
    /// On its way again, as if never tried.
    #[must_use]
    pub fn untried(at: Timestamp, redriven: Option<u64>) -> Self {
        Self {
            attempts: 0,
            excused: 0,
            tried_at: at,
            next_at: at,
            redriven,
            resent: false,
        }
    }

    /// The same, and from the log.
    #[must_use]
    pub fn resent(at: Timestamp) -> Self {
        Self {
            resent: true,
            ..Self::untried(at, None)
        }
    }

    /// How long to wait yet. Never longer than what was asked for, because the clock may have been set back since.
    #[must_use]
    pub fn wait(&self, now: Timestamp) -> Duration {
        let left = self.next_at.duration_since(now);
        let asked = self.next_at.duration_since(self.tried_at);
        Duration::try_from(left.min(asked)).unwrap_or_default()
    }
}

/// What became of a consumer's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub matched: u64,
    /// Sent again from the log, beside what became of them before.
    pub resent: u64,
    pub delivered: u64,
    pub dead: u64,
    pub expired: u64,
    pub removed: u64,
    /// Nobody knows what became of them: the journal lost it and the log no longer has them.
    pub lost: u64,
}

impl Counters {
    /// What has neither ended nor rests.
    #[must_use]
    pub fn pending(&self) -> u64 {
        (self.matched + self.resent).saturating_sub(self.ended())
    }

    /// What has ended, rests or is lost.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.delivered + self.dead + self.expired + self.removed + self.lost
    }
}

/// A dead letter, without its bytes. Its texts are [`short`]: whole ones are in its record.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetterEntry {
    pub consumer: ConsumerId,
    pub offset: Offset,
    /// The record of the journal that holds the event.
    pub journal: Offset,
    pub at: Timestamp,
    pub accepted_at: Timestamp,
    pub reason: String,
    pub status: u16,
    pub attempts: u32,
    pub redrives: u32,
    pub sink: Sink,
    /// It left when it was redriven, and is kept only because the retry needs its record.
    pub left: bool,
    /// Where it came in; empty in what older versions wrote.
    pub entry: String,
    pub source: String,
    pub id: String,
    pub type_: String,
    /// It is a reply to the event that rests.
    pub reply: Option<ReplyFault>,
    /// How long the record of its event is; 0 in what older versions wrote.
    pub bytes: u32,
    pub class: FailureClass,
    /// What the subscriber said, or the reason, with what differs from event to event taken out.
    pub cause: String,
}

/// How a dead letter stands with the external sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    None,
    Waiting,
    Sent,
    Failed(String),
}

impl Positions {
    /// Takes in the lines of one record, in order. `journal` is the record's own offset.
    pub fn apply(&mut self, journal: Offset, line: &JournalRecord) {
        match line {
            JournalRecord::Routed(routed) => self.routed(routed),
            JournalRecord::Checkpoint(mark) => {
                self.scanned = self.scanned.max(mark.scanned);
                for marked in &mark.consumers {
                    self.marked(marked);
                }
            }
            JournalRecord::Redriven {
                consumer,
                name,
                at,
                offset,
                ..
            } => self.redriven(*consumer, *name, *offset, *at),
            JournalRecord::Discarded {
                consumer,
                name,
                offset,
                reply,
                ..
            } => match reply {
                true => drop(self.dead.remove(name)),
                false => self.discarded(*consumer, *name, *offset),
            },
            JournalRecord::Sunk {
                name,
                status,
                error,
                ..
            } => {
                let Some(rest) = self.dead.get_mut(name) else {
                    self.strays += 1;
                    return;
                };
                rest.sink = if (200..300).contains(status) {
                    Sink::Sent
                } else {
                    Sink::Failed(short(error))
                };
            }
            JournalRecord::Bulk(entry) => self.bulks.apply(entry),
            JournalRecord::Mark(entry) => self.marks.apply(entry),
            other => self.about_consumer(journal, other),
        }
    }

    fn about_consumer(&mut self, journal: Offset, line: &JournalRecord) {
        let id = line.consumer().unwrap_or_default();
        self.introduce(id);
        if let Some(offset) = line.offset() {
            self.notice_redrive(id, offset);
        }
        let Some(position) = self.consumers.get_mut(&id) else {
            self.strays += 1;
            return;
        };
        match line {
            JournalRecord::Unrouted { at, when, .. } => {
                position.unrouted = Some((*at, *when));
                if let Some(revision) = position.revisions.last_mut() {
                    revision.until = Some(*at);
                }
            }
            JournalRecord::Forgotten { .. } => {
                position.tally.removed += position.tally.pending();
                let left: Vec<u64> = position
                    .retrying
                    .values()
                    .filter_map(|r| r.redriven)
                    .collect();
                position.retrying.clear();
                position.ended.clear();
                position.revisions.clear();
                position.unrouted = None;
                position.counted_to = None;
                for name in left {
                    self.dead.remove(&name);
                }
                let rests = self.dead.values().any(|rest| rest.consumer == id);
                if !rests {
                    self.consumers.remove(&id);
                }
            }
            JournalRecord::Failed {
                attempted,
                next_at,
                excused,
                ..
            } => {
                let before = position.retrying.get(&attempted.offset);
                let redriven = before.and_then(|retry| retry.redriven);
                let resent = before.is_some_and(|retry| retry.resent);
                let excused_before = before.map_or(0, |retry| retry.excused);
                let retry = Retry {
                    attempts: attempted.number,
                    excused: excused_before + u32::from(*excused),
                    tried_at: attempted.at,
                    next_at: *next_at,
                    redriven,
                    resent,
                };
                position.retrying.insert(attempted.offset, retry);
            }
            JournalRecord::Resent {
                offset,
                at,
                operation,
                ..
            } => {
                position.tally.resent += 1;
                position.ended.remove(offset);
                position.retrying.insert(*offset, Retry::resent(*at));
                self.bulks.resent(*operation, *offset);
            }
            JournalRecord::Delivered(attempted) => {
                position.tally.delivered += 1;
                let left = position.end(attempted.offset);
                self.forget_record(left);
            }
            JournalRecord::Expired { offset, .. } => {
                position.tally.expired += 1;
                let left = position.end(*offset);
                self.forget_record(left);
            }
            JournalRecord::Removed { offset, .. } => {
                position.tally.removed += 1;
                let left = position.end(*offset);
                self.forget_record(left);
            }
            JournalRecord::Dead(dead) if dead.reply.is_some() => self.reply(journal, dead),
            JournalRecord::Dead(dead) => {
                position.tally.dead += 1;
                let left = position.end(dead.attempted.offset);
                self.forget_record(left);
                self.dead_name_last = self.dead_name_last.max(dead.name);
                self.dead
                    .insert(dead.name, DeadLetterEntry::new(journal, dead));
            }
            JournalRecord::Lost { events, .. } => position.tally.lost += events,
            JournalRecord::Held { reason, .. } => {
                position.held = (!reason.is_empty()).then(|| reason.to_string());
            }
            JournalRecord::Routed(_)
            | JournalRecord::Redriven { .. }
            | JournalRecord::Discarded { .. }
            | JournalRecord::Sunk { .. }
            | JournalRecord::Checkpoint(_)
            | JournalRecord::Bulk(_)
            | JournalRecord::Mark(_) => unreachable!("taken care of before"),
        }
    }

    fn routed(&mut self, routed: &Routed) {
        self.consumer_last = self.consumer_last.max(routed.consumer);
        let position = self
            .consumers
            .entry(routed.consumer)
            .or_insert_with(|| Position {
                key: routed.key.clone(),
                floor: routed.from,
                ..Position::default()
            });
        let from = position.named(routed.consumer, &routed.key, routed.from);
        position.unrouted = None;
        position.held = None;
        // Whatever the last revision said from here on was never used.
        position.revisions.retain(|revision| revision.from < from);
        if let Some(last) = position.revisions.last_mut() {
            last.until = last.until.filter(|until| *until < from);
        }
        position.revisions.push(Revision {
            from,
            uid: routed.uid.clone(),
            generation: routed.generation,
            fingerprint: routed.fingerprint,
            feeds: routed.feeds.clone(),
            filters: routed.filters.clone(),
            until: None,
        });
        if routed.backfill_to > routed.from {
            position.counted_to = Some(routed.from);
            position.floor = position.floor.min(routed.from);
        }
    }

    fn marked(&mut self, marked: &ConsumerCheckpoint) {
        self.introduce(marked.consumer);
        let Some(position) = self.consumers.get_mut(&marked.consumer) else {
            self.strays += 1;
            return;
        };
        position.tally.matched = marked.matched;
        position.floor = marked.floor;
        position.counted_to = (marked.counted_to > 0).then_some(marked.counted_to);
        if position.counted_to.is_none() {
            // It has gone through everything, and told what it did not find.
            position.unsure_from = None;
        }
        let floor = position.sure_floor();
        position.ended = position.ended.split_off(&floor);
    }

    fn redriven(&mut self, consumer: ConsumerId, name: u64, offset: Offset, at: Timestamp) {
        let rest = self.dead.get_mut(&name).filter(|rest| !rest.left);
        let known = rest.is_some();
        if let Some(rest) = rest {
            rest.left = true;
        }
        let Some(position) = self.consumers.get_mut(&consumer) else {
            self.strays += 1;
            return;
        };
        if known {
            position.tally.dead = position.tally.dead.saturating_sub(1);
        } else {
            self.strays += 1;
        }
        position.ended.remove(&offset);
        // A dead letter that was lost goes on its way from the log.
        let retry = Retry::untried(at, known.then_some(name));
        position.retrying.insert(offset, retry);
    }

    /// A reply rests. The event that it answers has ended already.
    fn reply(&mut self, journal: Offset, dead: &Dead) {
        if dead.is_kept() {
            self.dead_name_last = self.dead_name_last.max(dead.name);
            self.dead
                .insert(dead.name, DeadLetterEntry::new(journal, dead));
        }
    }

    fn discarded(&mut self, consumer: ConsumerId, name: u64, offset: Offset) {
        let known = self.dead.remove(&name).is_some();
        self.strays += u64::from(!known);
        let Some(position) = self.consumers.get_mut(&consumer) else {
            return;
        };
        position.tally.removed += 1;
        if known {
            position.tally.dead = position.tally.dead.saturating_sub(1);
        } else {
            position.end(offset);
        }
    }

    /// A redriven event has ended: the record it was kept in is needed no longer.
    fn forget_record(&mut self, redriven: Option<u64>) {
        if let Some(name) = redriven {
            self.dead.remove(&name);
        }
    }

    /// The consumers by key.
    #[must_use]
    pub fn by_key(&self) -> HashMap<&str, ConsumerId> {
        let keys = self.consumers.iter();
        keys.map(|(id, position)| (position.key.as_str(), *id))
            .collect()
    }
}

impl Position {
    /// Notes that an event has ended; gives the dead letter it was redriven from.
    fn end(&mut self, offset: Offset) -> Option<u64> {
        let retry = self.retrying.remove(&offset);
        if offset >= self.sure_floor() {
            self.ended.insert(offset);
        }
        retry.and_then(|retry| retry.redriven)
    }

    /// The revision that decides about an event.
    #[must_use]
    pub fn revision_at(&self, offset: Offset) -> Option<&Revision> {
        let mut newest = self.revisions.iter().rev();
        newest
            .find(|revision| revision.from <= offset)
            .filter(|revision| revision.until.is_none_or(|until| offset < until))
    }
}

impl DeadLetterEntry {
    pub(crate) fn new(journal: Offset, dead: &Dead) -> Self {
        let event = crate::envelope::entry_and_event(&dead.record).ok();
        let part = |of: fn(&crate::event::Event) -> &str| {
            event
                .as_ref()
                .map(|(_, event)| short(of(event)))
                .unwrap_or_default()
        };
        Self {
            consumer: dead.attempted.consumer,
            offset: dead.attempted.offset,
            journal,
            at: dead.attempted.at,
            accepted_at: dead.accepted_at,
            reason: short(&dead.reason),
            status: dead.attempted.status,
            attempts: dead.attempted.number,
            redrives: dead.redrives,
            sink: if dead.sink { Sink::Waiting } else { Sink::None },
            left: false,
            entry: event
                .as_ref()
                .map(|(entry, _)| short(entry))
                .unwrap_or_default(),
            source: part(crate::event::Event::source),
            id: part(crate::event::Event::id),
            type_: part(crate::event::Event::type_),
            reply: dead.reply.as_ref().map(|reply| reply.fault),
            bytes: u32::try_from(dead.record.len()).unwrap_or(u32::MAX),
            class: cause::class(dead.attempted.status, dead.given_up, &dead.reason),
            cause: cause::of(dead),
        }
    }
}
