//! What was told when: numbered batches, of which whoever was away for a moment gets those that it missed.
//!
//! ```text
//!   report ──> verdicts that changed ──> the last thousand changes ──> subscriber at 41: all since 41
//!        └───> numbers of the moment ──> against the ones before  ──> subscriber at 41 of 42: what changed; others: all
//! ```
//! There is one history for everybody and no queue for anybody: a subscriber has a number and nothing else, so one that is slow
//! holds no memory and hears less often. Nothing is worked out while nobody listens. A report is taken in by whoever notices it
//! first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::health::stream::{PulseEvent, StreamReset, VerdictEvent};
use heddle_controllers::Report;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::projection::{self, PulseNumbers};

/// Changes that can be told again; whoever missed more is told everything.
const CHANGES_MAX: usize = 1000;

/// One history of what was told.
#[derive(Debug, Default)]
pub(super) struct ChangeFeed(Mutex<FeedHistory>);

#[derive(Debug, Default)]
struct FeedHistory {
    /// The number of the newest batch; 0 before the first.
    seq: u64,
    at: Timestamp,
    taken: Option<TakenReport>,
    verdicts: BTreeMap<String, Arc<VerdictEvent>>,
    /// The oldest first, each with its batch.
    changes: VecDeque<(u64, Arc<VerdictEvent>)>,
    /// The newest batch of which changes are no longer kept.
    forgotten: u64,
    numbers: Arc<PulseNumbers>,
    /// Those of the batch before.
    numbers_before: Arc<PulseNumbers>,
}

/// What tells one report from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TakenReport {
    judged: Duration,
    revision: u64,
    silent: bool,
}

/// What one subscriber is to be told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FeedBatch {
    pub(super) seq: u64,
    /// Set when everything follows.
    pub(super) reset: Option<StreamReset>,
    pub(super) verdicts: Vec<Arc<VerdictEvent>>,
    pub(super) pulse: Option<PulseEvent>,
    /// How many busy consumers of each namespace are left out of that.
    pub(super) left_out_of: BTreeMap<String, u32>,
}

impl ChangeFeed {
    /// Takes a report in, and gives what is new since the batch `heard`; nothing when that is the newest.
    pub(super) fn news(&self, report: &Report, heard: Option<u64>) -> Option<FeedBatch> {
        let mut history = self.0.lock();
        history.take(report);
        history.since(heard)
    }
}

impl FeedHistory {
    fn take(&mut self, report: &Report) {
        let taken = TakenReport {
            judged: report.judged,
            revision: report.revision,
            silent: report.silent,
        };
        // Two may have read the board one after the other and come here in another order.
        let is_old = self.taken.is_some_and(|known| known.judged > taken.judged);
        if is_old || self.taken == Some(taken) {
            return;
        }
        let is_news =
            |known: TakenReport| (known.revision, known.silent) != (taken.revision, taken.silent);
        self.seq += 1;
        self.at = report.mesh.at;
        if self.taken.is_none_or(is_news) {
            self.change(projection::verdicts(report));
        }
        let numbers = Arc::new(projection::numbers(report));
        self.numbers_before = std::mem::replace(&mut self.numbers, numbers);
        self.taken = Some(taken);
    }

    fn change(&mut self, verdicts: BTreeMap<String, VerdictEvent>) {
        let gone: Vec<String> = (self.verdicts.keys())
            .filter(|scope| !verdicts.contains_key(*scope))
            .cloned()
            .collect();
        for scope in gone {
            self.verdicts.remove(&scope);
            self.remember(Arc::new(VerdictEvent::gone(scope, self.at)));
        }
        for (scope, verdict) in verdicts {
            let known = self.verdicts.get(&scope);
            if known.is_some_and(|known| known.says_the_same(&verdict)) {
                continue;
            }
            let verdict = Arc::new(verdict);
            self.verdicts.insert(scope, Arc::clone(&verdict));
            self.remember(verdict);
        }
    }

    fn remember(&mut self, verdict: Arc<VerdictEvent>) {
        self.changes.push_back((self.seq, verdict));
        while self.changes.len() > CHANGES_MAX {
            if let Some((seq, _)) = self.changes.pop_front() {
                self.forgotten = seq;
            }
        }
    }

    fn since(&self, heard: Option<u64>) -> Option<FeedBatch> {
        match heard {
            Some(heard) if heard == self.seq => None,
            Some(heard) if heard < self.seq && heard >= self.forgotten => {
                let missed = self.changes.iter().filter(|(seq, _)| *seq > heard);
                Some(FeedBatch {
                    seq: self.seq,
                    reset: None,
                    verdicts: missed.map(|(_, verdict)| Arc::clone(verdict)).collect(),
                    pulse: match heard + 1 == self.seq {
                        true => self.changed_pulse(),
                        false => Some(self.full_pulse()),
                    },
                    left_out_of: self.numbers.left_out_of.clone(),
                })
            }
            _ => Some(FeedBatch {
                seq: self.seq,
                reset: Some(StreamReset {
                    seq: self.seq,
                    at: self.at,
                    scopes: self.verdicts.len() as u64,
                }),
                verdicts: self.verdicts.values().cloned().collect(),
                pulse: Some(self.full_pulse()),
                left_out_of: self.numbers.left_out_of.clone(),
            }),
        }
    }

    fn full_pulse(&self) -> PulseEvent {
        let nothing = PulseNumbers::default();
        PulseEvent {
            full: true,
            ..self.pulse_against(&nothing)
        }
    }

    /// Nothing when no number is another.
    fn changed_pulse(&self) -> Option<PulseEvent> {
        let pulse = self.pulse_against(&self.numbers_before);
        (!pulse.n.is_empty() || !pulse.sources.is_empty()).then_some(pulse)
    }

    fn pulse_against(&self, before: &PulseNumbers) -> PulseEvent {
        PulseEvent {
            seq: self.seq,
            at: self.at,
            full: false,
            n: difference(&before.consumers, &self.numbers.consumers),
            sources: difference(&before.sources, &self.numbers.sources),
            left_out: self.numbers.left_out,
        }
    }
}

/// What is another number now; what is no longer there has none.
fn difference<T: PartialEq + Copy>(
    before: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
) -> BTreeMap<String, Option<T>> {
    let gone = before.keys().filter(|key| !now.contains_key(*key));
    let changed = now
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    gone.map(|key| (key.clone(), None))
        .chain(changed.map(|(key, value)| (key.clone(), Some(*value))))
        .collect()
}
