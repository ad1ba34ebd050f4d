//! Every event accounted for, per consumer, and counted rather than derived where that can be done at once.
//!
//! No consumer waits for a question: what is read from the log is read while none is locked, from a copy of what decides. Who
//! asks is answered in slices (`aside.rs`), each of some consumers or a megabyte of one backlog. The numbers for Prometheus are
//! those that were counted as things happened.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use heddle_api::access::{Access, Scope};
use heddle_api::ledger::{Account, Accounts, LogFacts, SERVING};
use heddle_api::rate::DeliveryRate;
use heddle_store::Health;
use jiff::Timestamp;

use super::Error;
use super::forecasts::dead_letters_begin;
use super::trace::held;
use crate::consumer::{CompiledRevision, Consumer, ReadMode, State, is_own};
use crate::journal::record::ConsumerId;
use crate::log::{Offset, SegmentInfo};
use crate::mesh::Mesh;
use crate::metrics::{self, Answers};

/// A backlog no longer than this is counted event by event.
const COUNTED_MAX: u64 = 100_000;
const READ_BYTES: usize = 1 << 20;

/// Consumers of one slice, as long as nothing has to be read for them.
const SLICE_CONSUMERS: usize = 64;

/// How much is read to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Nothing of a backlog: what waits unread follows from what was counted.
    Tallied,
    /// A backlog that is not too long.
    Counted,
    Verified,
}

impl Depth {
    pub(crate) fn read(word: &str) -> Option<Self> {
        match word {
            "tallied" => Some(Self::Tallied),
            "counted" => Some(Self::Counted),
            "verified" => Some(Self::Verified),
            _ => None,
        }
    }
}

/// What of a backlog is not in memory, as it was at one moment. The log does not change behind it.
struct Unread {
    from: Offset,
    scanned: Offset,
    revisions: Vec<CompiledRevision>,
    /// Ended or on record.
    known: BTreeSet<Offset>,
}

/// The account of one consumer, while its backlog is being counted.
struct Counting {
    consumer: Arc<Consumer>,
    account: Account,
    rate: Option<DeliveryRate>,
    /// What follows from what was counted as things happened, should something be unreadable.
    tallied: u64,
    oldest: Option<Offset>,
    unread: Option<Unread>,
}

/// Dead letters of each consumer, by the entry at which they came in.
type AllResting = HashMap<ConsumerId, BTreeMap<String, u64>>;

/// Accounts that are being worked out.
struct Accounting {
    depth: Depth,
    segments: Vec<SegmentInfo>,
    left: std::vec::IntoIter<Arc<Consumer>>,
    counting: Option<Counting>,
    accounts: Accounts,
}

impl Accounting {
    fn new(mesh: &Mesh, consumers: Vec<Arc<Consumer>>, depth: Depth) -> Self {
        Self {
            depth,
            segments: mesh.shared.log.segments(),
            left: consumers.into_iter(),
            counting: None,
            accounts: Accounts::default(),
        }
    }

    /// One slice of it; whether that was the last. Blocks.
    fn slice(&mut self, mesh: &Mesh) -> bool {
        for _ in 0..SLICE_CONSUMERS {
            let begun = self.counting.take().or_else(|| {
                let consumer = self.left.next()?;
                Some(mesh.account(consumer, &self.segments, self.depth))
            });
            let Some(mut counting) = begun else {
                return true;
            };
            let reads = counting.unread.is_some();
            match counting.read_on(mesh) {
                true => self.counting = Some(counting),
                false => self.accounts.consumers.push(counting.concluded(mesh)),
            }
            if reads {
                return false;
            }
        }
        false
    }
}

impl Counting {
    /// Counts the consumer's own events in a megabyte of its backlog; whether there is more of it.
    fn read_on(&mut self, mesh: &Mesh) -> bool {
        let Some(unread) = (self.unread.as_mut()).filter(|unread| unread.from < unread.scanned)
        else {
            return false;
        };
        let batch = mesh.shared.log.read(unread.from, READ_BYTES).ok();
        let Some(batch) = batch.filter(|batch| batch.damaged.is_empty()) else {
            self.account.pending = self.tallied;
            return false;
        };
        let own = batch.records.iter().filter(|record| {
            record.offset < unread.scanned
                && !unread.known.contains(&record.offset)
                && is_own(&unread.revisions, record)
        });
        self.account.pending += own.count() as u64;
        let is_stuck = batch.next <= unread.from;
        unread.from = batch.next;
        unread.from < unread.scanned && !is_stuck
    }

    fn concluded(self, mesh: &Mesh) -> Account {
        let mut account = self.account;
        let delay = self.rate.map(|rate| rate.time_for(account.pending));
        account.rate_delay_s = delay.map(|delay| delay.as_secs_f64());
        let done = mesh.backlog_done(&self.consumer, &account);
        account.forecasts.extend(done);
        if account.pending > 0 {
            let oldest = self.oldest;
            account.oldest_pending_at =
                oldest.and_then(|oldest| mesh.accepted(&self.consumer, oldest));
        }
        account
    }
}

impl Mesh {
    /// The accounts. With `verify` every backlog is counted by reading it, however long that takes.
    #[must_use]
    pub fn accounts(&self, verify: bool) -> Accounts {
        let depth = if verify {
            Depth::Verified
        } else {
            Depth::Counted
        };
        self.accounts_of(self.consumers_by_key(), depth)
    }

    /// The accounts of consumers that somebody may know of, or of one of them; and of the log, if they may know of all. Ends with whoever waits.
    pub(crate) async fn accounts_for(
        &self,
        access: &Access,
        consumer: Option<&str>,
        depth: Depth,
    ) -> Result<Accounts, Error> {
        let mut all = self.consumers_by_key();
        let is_meant = |key: &str| consumer.is_none_or(|meant| meant == key);
        all.retain(|consumer| access.sees(&consumer.key) && is_meant(&consumer.key));
        let mut accounting = Accounting::new(self, all, depth);
        loop {
            let slice = self.aside(move |mesh| {
                let ended = accounting.slice(mesh);
                Ok((accounting, ended))
            });
            let (back, ended) = slice.await?;
            accounting = back;
            if ended {
                break;
            }
        }
        Ok(match access.scope {
            Scope::All => self.concluded(accounting),
            Scope::Namespaces(_) => accounting.accounts,
        })
    }

    /// The accounts as Prometheus reads them.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let all = self.consumers_by_key();
        let mut resting = self.dead_letters_by_entry();
        let accounts = self.accounts_of(all.clone(), Depth::Tallied);
        let answers: Vec<Answers> = all
            .iter()
            .map(|consumer| consumer.lock().answers.clone())
            .collect();
        let dead: Vec<BTreeMap<String, u64>> = all
            .iter()
            .map(|consumer| resting.remove(&consumer.id).unwrap_or_default())
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

    /// How many events rest, by consumer and by where they came in. One walk for everybody.
    fn dead_letters_by_entry(&self) -> AllResting {
        let mut counts = AllResting::new();
        let letters = self.shared.dead.lock();
        for (_, rest) in letters.resting().filter(|(_, rest)| rest.reply.is_none()) {
            let own = counts.entry(rest.consumer).or_default();
            match own.get_mut(&rest.entry) {
                Some(count) => *count += 1,
                None => {
                    own.insert(rest.entry.clone(), 1);
                }
            }
        }
        counts
    }

    fn accounts_of(&self, consumers: Vec<Arc<Consumer>>, depth: Depth) -> Accounts {
        let mut accounting = Accounting::new(self, consumers, depth);
        while !accounting.slice(self) {}
        self.concluded(accounting)
    }

    fn concluded(&self, accounting: Accounting) -> Accounts {
        Accounts {
            log: self.log_facts(&accounting.segments),
            matched_up_to: self.shared.scanned(),
            consumers: accounting.accounts.consumers,
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
            disk_full: known.then(|| self.disk_full(&room)).flatten(),
        }
    }

    /// The account without what has to be read for it.
    fn account(&self, consumer: Arc<Consumer>, segments: &[SegmentInfo], depth: Depth) -> Counting {
        let (dead_letters, dead_replies) = {
            let letters = self.shared.dead.lock();
            (letters.count(consumer.id), letters.reply_count(consumer.id))
        };
        let scanned = self.shared.scanned();
        let state = consumer.lock();
        let tally = state.tally;
        let oldest = oldest(&state, scanned);
        let unread = unread(&state, scanned, depth);
        let pending = match (state.cursor.reading, &unread) {
            (ReadMode::CatchUp { .. }, None) => tally.pending(),
            _ => state.at_hand(),
        };
        let rate = state.routing.plan.rate;
        let signer = state.routing.plan.signer.as_ref();
        let mut account = Account {
            consumer: consumer.key.to_string(),
            matched: tally.matched,
            sent_again: tally.resent,
            delivered: tally.delivered,
            dead_lettered: tally.dead,
            expired: tally.expired,
            removed: tally.removed,
            lost: tally.lost,
            pending,
            in_flight: state.window.in_flight() as u64,
            retrying: state.retries.on_record.len() as u64,
            dead_letters,
            dead_replies,
            oldest_pending_at: None,
            held: held(&state).or_else(|| self.journal_stalled()),
            rate: rate.map(|rate| rate.to_string()),
            rate_delay_s: None,
            signing: signer.map(|signer| signer.facts(self.shared.clock.now())),
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
            forecasts: Vec::new(),
        };
        if account.held.is_none() {
            let dead = dead_letters_begin(&state, self.shared.clock.now());
            account.forecasts.extend(dead);
        }
        drop(state);
        Counting {
            consumer,
            account,
            rate,
            tallied: tally.pending(),
            oldest,
            unread,
        }
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
    // What was sent again is old, and does not wait for that long.
    let mut on_record = state.retries.on_record.iter();
    let retrying = on_record.find(|(_, retry)| !retry.resent);
    let retrying = retrying.map(|(offset, _)| *offset);
    [floor, retrying].into_iter().flatten().min()
}
