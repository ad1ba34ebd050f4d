//! Every event accounted for, per consumer, and counted rather than derived where that can be done at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use heddle_api::ledger::{Account, Accounts, LogFacts, SERVING};
use heddle_store::Health;

use super::trace::held;
use crate::journal::line::ConsumerId;
use crate::log::{Lookup, Offset, Stretch};
use crate::mesh::Mesh;
use crate::metrics::{self, Answers};
use crate::path::delivery::consumer::{Consumer, Reading};

/// A backlog no longer than this is counted event by event.
const COUNTED_MAX: u64 = 100_000;
const READ_BYTES: usize = 1 << 20;

/// Dead letters by consumer and by the entry at which they came in.
type Resting = HashMap<ConsumerId, BTreeMap<String, u64>>;

impl Mesh {
    /// The accounts. With `verify` every backlog is counted by reading it, however long that takes.
    #[must_use]
    pub fn accounts(&self, verify: bool) -> Accounts {
        let all = self.consumers_by_key();
        self.accounts_of(&all, &self.dead_letters_by_entry(), verify)
    }

    /// The accounts as Prometheus reads them.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let all = self.consumers_by_key();
        let mut resting = self.dead_letters_by_entry();
        let accounts = self.accounts_of(&all, &resting, false);
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

    fn consumers_by_key(&self) -> Vec<Arc<Consumer>> {
        let consumers = self.shared.consumers.read();
        let mut all: Vec<Arc<Consumer>> = consumers.by_id.values().cloned().collect();
        drop(consumers);
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }

    /// How many rest, by consumer and by where they came in. One walk for everybody.
    fn dead_letters_by_entry(&self) -> Resting {
        let mut counts = Resting::new();
        let letters = self.shared.dead.lock();
        for (_, rest) in letters.resting() {
            let entries = counts.entry(rest.consumer).or_default();
            match entries.get_mut(&rest.entry) {
                Some(count) => *count += 1,
                None => {
                    entries.insert(rest.entry.clone(), 1);
                }
            }
        }
        counts
    }

    fn accounts_of(&self, all: &[Arc<Consumer>], resting: &Resting, verify: bool) -> Accounts {
        let stretches = self.shared.log.stretches();
        let account = |consumer: &Arc<Consumer>| {
            let entries = resting.get(&consumer.id);
            let dead_letters = entries.map_or(0, |entries| entries.values().sum());
            self.account(consumer, &stretches, dead_letters, verify)
        };
        Accounts {
            log: self.log_facts(&stretches),
            matched_up_to: self.shared.scanned(),
            consumers: all.iter().map(account).collect(),
        }
    }

    fn log_facts(&self, stretches: &[Stretch]) -> LogFacts {
        let log = &self.shared.log;
        let bounds = log.bounds();
        let room = log.room().borrow().clone();
        let known = !room.dir.as_os_str().is_empty();
        LogFacts {
            first: bounds.start,
            next: bounds.end,
            bytes: stretches.iter().map(|stretch| stretch.bytes).sum(),
            segments: stretches.len() as u64,
            health: match log.health() {
                Health::Serving if room.low => format!("too little room: {room}"),
                Health::Serving => SERVING.to_owned(),
                Health::Full => "full".to_owned(),
                Health::Poisoned(reason) => reason,
            },
            damaged: log.damaged(),
            free_bytes: known.then_some(room.free_bytes),
            needed_bytes: known.then_some(room.needed_bytes),
        }
    }

    fn account(
        &self,
        consumer: &Arc<Consumer>,
        stretches: &[Stretch],
        dead_letters: u64,
        verify: bool,
    ) -> Account {
        let scanned = self.shared.scanned();
        let state = consumer.lock();
        let tally = state.tally;
        let (pending, oldest) = match state.reading {
            Reading::Live => (state.at_hand(), oldest(&state, scanned)),
            Reading::Behind { next, .. } => {
                let counts = verify || scanned.saturating_sub(next) <= COUNTED_MAX;
                let pending = if counts && state.counted_to.is_none() {
                    state.at_hand() + self.unread(&state, next, scanned)
                } else {
                    tally.pending()
                };
                (pending, oldest(&state, scanned))
            }
        };
        let mut account = Account {
            consumer: consumer.key.to_string(),
            matched: tally.matched,
            delivered: tally.delivered,
            dead_lettered: tally.dead,
            expired: tally.expired,
            removed: tally.removed,
            pending,
            in_flight: state.in_flight.len() as u64,
            retrying: state.retrying.len() as u64,
            dead_letters,
            oldest_pending_at: None,
            held: held(&state).or_else(|| self.forgets()),
            schedule: state.plan.policy.in_words(),
            destination: state.plan.destination.clone(),
            kept_bytes: match pending {
                0 => 0,
                _ => kept_bytes(stretches, state.oldest(scanned)),
            },
            over_quota: state.over_quota(),
        };
        drop(state);
        if account.pending > 0
            && let Some(oldest) = oldest
        {
            let record = self.shared.log.get(oldest).ok().and_then(Lookup::found);
            account.oldest_pending_at = record.map(|record| record.at);
        }
        account
    }

    /// Counts a consumer's own events between where it reads and where the scanner is.
    fn unread(
        &self,
        state: &crate::path::delivery::consumer::State,
        from: Offset,
        scanned: Offset,
    ) -> u64 {
        let mut next = from;
        let mut count = 0;
        while next < scanned {
            let Ok(batch) = self.shared.log.read(next, READ_BYTES) else {
                break;
            };
            let own = batch.records.iter().filter(|record| {
                record.offset < scanned
                    && !state.ended.contains(&record.offset)
                    && !state.retrying.contains_key(&record.offset)
                    && state.is_own(record)
            });
            count += own.count() as u64;
            if batch.next <= next {
                break;
            }
            next = batch.next;
        }
        count
    }
}

/// Of the log, from an offset on; segments are kept whole.
fn kept_bytes(stretches: &[Stretch], from: Offset) -> u64 {
    let kept = stretches.iter().filter(|stretch| stretch.next > from);
    kept.map(|stretch| stretch.bytes).sum()
}

/// The oldest event that is not done.
fn oldest(state: &crate::path::delivery::consumer::State, scanned: Offset) -> Option<Offset> {
    let floor = Some(state.floor(scanned)).filter(|floor| *floor < scanned);
    let retrying = state.retrying.keys().next().copied();
    [floor, retrying].into_iter().flatten().min()
}
