//! Every event accounted for, per consumer, and counted rather than derived where that can be done at once.
//!
//! No consumer waits for a question: what is read from the log is read while none is locked, from a copy of what decides. The
//! numbers for Prometheus are those that were counted as things happened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use heddle_api::ledger::{Account, Accounts, LogFacts, SERVING};
use heddle_store::Health;
use jiff::Timestamp;

use super::trace::held;
use crate::consumer::{CompiledRevision, Consumer, ReadMode, State, is_own};
use crate::journal::record::ConsumerId;
use crate::log::{Offset, SegmentInfo};
use crate::mesh::Mesh;
use crate::metrics::{self, Answers};

/// A backlog no longer than this is counted event by event.
const COUNTED_MAX: u64 = 100_000;
const READ_BYTES: usize = 1 << 20;

/// How much is read to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// Nothing of a backlog: what waits unread follows from what was counted.
    Tallied,
    /// A backlog that is not too long.
    Counted,
    Verified,
}

/// What of a backlog is not in memory, as it was at one moment. The log does not change behind it.
struct Unread {
    from: Offset,
    scanned: Offset,
    revisions: Vec<CompiledRevision>,
    /// Ended or on record.
    known: BTreeSet<Offset>,
}

/// The dead letters of one consumer.
#[derive(Debug, Default)]
struct Resting {
    /// By the entry at which they came in.
    events: BTreeMap<String, u64>,
    replies: u64,
}

type AllResting = HashMap<ConsumerId, Resting>;

impl Mesh {
    /// The accounts. With `verify` every backlog is counted by reading it, however long that takes.
    #[must_use]
    pub fn accounts(&self, verify: bool) -> Accounts {
        let all = self.consumers_by_key();
        let depth = if verify {
            Depth::Verified
        } else {
            Depth::Counted
        };
        self.accounts_of(&all, &self.dead_letters_by_entry(), depth)
    }

    /// The account of one consumer, if there is such a one.
    #[must_use]
    pub fn account_of(&self, key: &str) -> Accounts {
        let found = self.shared.consumers.read().by_key.get(key).cloned();
        let found = found.filter(|consumer| !consumer.hears_heartbeats());
        let found: Vec<_> = found.into_iter().collect();
        self.accounts_of(&found, &self.dead_letters_by_entry(), Depth::Counted)
    }

    /// The accounts as Prometheus reads them.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let all = self.consumers_by_key();
        let mut resting = self.dead_letters_by_entry();
        let accounts = self.accounts_of(&all, &resting, Depth::Tallied);
        let answers: Vec<Answers> = all
            .iter()
            .map(|consumer| consumer.lock().answers.clone())
            .collect();
        let dead: Vec<BTreeMap<String, u64>> = all
            .iter()
            .map(|consumer| resting.remove(&consumer.id).unwrap_or_default().events)
            .collect();
        self.shared.metrics.text(&metrics::Reading {
            accounts: &accounts,
            answers: &answers,
            dead: &dead,
            now: self.shared.clock.now(),
        })
    }

    pub(super) fn consumers_by_key(&self) -> Vec<Arc<Consumer>> {
        let mut all = self.shared.user_consumers();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }

    /// How many rest, by consumer and by where they came in. One walk for everybody.
    fn dead_letters_by_entry(&self) -> AllResting {
        let mut counts = AllResting::new();
        let letters = self.shared.dead.lock();
        for (_, rest) in letters.resting() {
            let own = counts.entry(rest.consumer).or_default();
            if rest.reply.is_some() {
                own.replies += 1;
                continue;
            }
            let entries = &mut own.events;
            match entries.get_mut(&rest.entry) {
                Some(count) => *count += 1,
                None => {
                    entries.insert(rest.entry.clone(), 1);
                }
            }
        }
        counts
    }

    fn accounts_of(&self, all: &[Arc<Consumer>], resting: &AllResting, depth: Depth) -> Accounts {
        let segments = self.shared.log.segments();
        let account = |consumer: &Arc<Consumer>| {
            let own = resting.get(&consumer.id);
            Account {
                dead_letters: own.map_or(0, |own| own.events.values().sum()),
                dead_replies: own.map_or(0, |own| own.replies),
                ..self.account(consumer, &segments, depth)
            }
        };
        Accounts {
            log: self.log_facts(&segments),
            matched_up_to: self.shared.scanned(),
            consumers: all.iter().map(account).collect(),
        }
    }

    fn log_facts(&self, segments: &[SegmentInfo]) -> LogFacts {
        let log = &self.shared.log;
        let bounds = log.bounds();
        let room = log.room().borrow().clone();
        let known = !room.dir.as_os_str().is_empty();
        LogFacts {
            first: bounds.start,
            next: bounds.end,
            events: held_events(segments),
            bytes: segments.iter().map(|segment| segment.bytes).sum(),
            segments: segments.len() as u64,
            health: match log.health() {
                Health::Serving if room.low => format!("too little room: {room}"),
                Health::Serving => SERVING.to_owned(),
                Health::Full => "full".to_owned(),
                Health::Exhausted(reason) | Health::Poisoned(reason) => reason,
            },
            damaged: log.damaged(),
            journal_lost: self.shared.consumers.read().lost_records,
            free_bytes: known.then_some(room.free_bytes),
            needed_bytes: known.then_some(room.needed_bytes),
        }
    }

    /// Without what rests.
    fn account(&self, consumer: &Arc<Consumer>, segments: &[SegmentInfo], depth: Depth) -> Account {
        let scanned = self.shared.scanned();
        let state = consumer.lock();
        let tally = state.tally;
        let oldest = oldest(&state, scanned);
        let unread = unread(&state, scanned, depth);
        let pending = match (state.cursor.reading, &unread) {
            (ReadMode::CatchUp { .. }, None) => tally.pending(),
            _ => state.at_hand(),
        };
        let mut account = Account {
            consumer: consumer.key.to_string(),
            matched: tally.matched,
            delivered: tally.delivered,
            dead_lettered: tally.dead,
            expired: tally.expired,
            removed: tally.removed,
            lost: tally.lost,
            pending,
            in_flight: state.window.in_flight() as u64,
            retrying: state.retries.on_record.len() as u64,
            dead_letters: 0,
            dead_replies: 0,
            oldest_pending_at: None,
            held: held(&state).or_else(|| self.journal_stalled()),
            schedule: state.routing.plan.policy.in_words(),
            pauses_s: state.routing.plan.policy.pauses_s(),
            filter_from: state.routing.revisions.last().map(|revision| revision.from),
            generation: (state.routing.revisions.last()).map(|revision| revision.generation),
            destination: state.routing.plan.destination.clone(),
            kept_bytes: match pending.max(tally.pending()) {
                0 => 0,
                _ => kept_bytes(segments, state.oldest(scanned)),
            },
            over_quota: state.over_quota(),
        };
        drop(state);
        if let Some(unread) = unread {
            let count = self.count(&unread);
            account.pending =
                count.map_or_else(|| tally.pending(), |count| account.pending + count);
        }
        if account.pending > 0 {
            account.oldest_pending_at = oldest.and_then(|oldest| self.accepted(consumer, oldest));
        }
        account
    }

    /// When a consumer's oldest event was accepted. Read once for each.
    pub(super) fn accepted(&self, consumer: &Consumer, offset: Offset) -> Option<Timestamp> {
        let seen = *consumer.oldest_seen.lock();
        if let Some((_, at)) = seen.filter(|(known, _)| *known == offset) {
            return Some(at);
        }
        let at = self.shared.log.get(offset).ok()?.found()?.at;
        *consumer.oldest_seen.lock() = Some((offset, at));
        Some(at)
    }

    /// Counts a consumer's own events between where it reads and where the scanner is; `None` when not all can be read.
    fn count(&self, unread: &Unread) -> Option<u64> {
        let mut next = unread.from;
        let mut count = 0;
        while next < unread.scanned {
            let batch = self.shared.log.read(next, READ_BYTES).ok()?;
            if !batch.damaged.is_empty() {
                return None;
            }
            let own = batch.records.iter().filter(|record| {
                record.offset < unread.scanned
                    && !unread.known.contains(&record.offset)
                    && is_own(&unread.revisions, record)
            });
            count += own.count() as u64;
            if batch.next <= next {
                break;
            }
            next = batch.next;
        }
        Some(count)
    }
}

/// What has to be counted in the log, if it is to be and can be.
fn unread(state: &State, scanned: Offset, depth: Depth) -> Option<Unread> {
    let next = state.cursor.unread_from()?;
    let counts = match depth {
        Depth::Tallied => false,
        Depth::Counted => scanned.saturating_sub(next) <= COUNTED_MAX,
        Depth::Verified => true,
    };
    (counts && state.cursor.counted_to.is_none()).then(|| Unread {
        from: next,
        scanned,
        revisions: state.routing.revisions.clone(),
        known: state
            .cursor
            .ended
            .iter()
            .chain(state.retries.on_record.keys())
            .copied()
            .collect(),
    })
}

/// Places that are in the log. What lies between its first and its last need not be: segments go from anywhere, and a
/// repair goes on far above what was used.
fn held_events(segments: &[SegmentInfo]) -> u64 {
    let spans = segments.iter();
    spans.map(|segment| segment.next - segment.first).sum()
}

/// Of the log, from an offset on; segments are kept whole.
fn kept_bytes(segments: &[SegmentInfo], from: Offset) -> u64 {
    let kept = segments.iter().filter(|segment| segment.next > from);
    kept.map(|segment| segment.bytes).sum()
}

/// The oldest event that is not done.
fn oldest(state: &State, scanned: Offset) -> Option<Offset> {
    let floor = Some(state.floor(scanned)).filter(|floor| *floor < scanned);
    let retrying = state.retries.on_record.keys().next().copied();
    [floor, retrying].into_iter().flatten().min()
}
