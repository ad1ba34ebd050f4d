//! Every event accounted for, per consumer, and counted rather than derived where that can be done at once.

use std::sync::Arc;

use heddle_api::ledger::{Account, Accounts, LogFacts};
use heddle_store::Health;

use super::trace::held;
use crate::log::Offset;
use crate::mesh::Mesh;
use crate::path::delivery::consumer::{Consumer, Reading};

/// A backlog no longer than this is counted event by event.
const COUNTED_MAX: u64 = 100_000;
const READ_BYTES: usize = 1 << 20;

impl Mesh {
    /// The accounts. With `verify` every backlog is counted by reading it, however long that takes.
    #[must_use]
    pub fn accounts(&self, verify: bool) -> Accounts {
        let consumers = self.shared.consumers.read();
        let mut all: Vec<Arc<Consumer>> = consumers.by_id.values().cloned().collect();
        drop(consumers);
        all.sort_by(|one, other| one.key.cmp(&other.key));
        Accounts {
            log: self.log_facts(),
            matched_up_to: self.shared.scanned(),
            consumers: all
                .iter()
                .map(|consumer| self.account(consumer, verify))
                .collect(),
        }
    }

    /// The accounts as Prometheus reads them.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let now = self.shared.clock.now();
        self.shared.metrics.text(&self.accounts(false), now)
    }

    fn log_facts(&self) -> LogFacts {
        let log = &self.shared.log;
        let (bounds, stretches) = (log.bounds(), log.stretches());
        LogFacts {
            first: bounds.start,
            next: bounds.end,
            bytes: stretches.iter().map(|stretch| stretch.bytes).sum(),
            segments: stretches.len() as u64,
            health: match log.health() {
                Health::Serving => "serving".to_owned(),
                Health::Full => "full".to_owned(),
                Health::Poisoned(reason) => reason,
            },
            damaged: log.damaged(),
        }
    }

    fn account(&self, consumer: &Arc<Consumer>, verify: bool) -> Account {
        let letters = self.shared.dead.lock();
        let dead_letters = letters
            .resting()
            .filter(|(_, rest)| rest.consumer == consumer.id)
            .count();
        drop(letters);
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
            dead_letters: dead_letters as u64,
            oldest_pending_at: None,
            held: held(&state),
            schedule: state.plan.policy.in_words(),
            destination: state.plan.destination.clone(),
        };
        drop(state);
        if account.pending > 0
            && let Some(oldest) = oldest
        {
            let record = self.shared.log.get(oldest).ok().flatten();
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

/// The oldest event that is not done.
fn oldest(state: &crate::path::delivery::consumer::State, scanned: Offset) -> Option<Offset> {
    let floor = Some(state.floor(scanned)).filter(|floor| *floor < scanned);
    let retrying = state.retrying.keys().next().copied();
    [floor, retrying].into_iter().flatten().min()
}
