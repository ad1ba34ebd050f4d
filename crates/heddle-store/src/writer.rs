//! The one who writes: takes all that waits, makes it safe with one sync, shows it, answers.
//!
//! ```text
//!   queue ─> take all ─> check and number ─> engine: one sync ─> readers, watchers ─> answers
//! ```
//! In that order, so readers never see what power loss could take back, and an answer means safe.
//! Answers wait for the sync even when they are refusals: a conflict may be with a batch of the same
//! group. After a failed sync nothing is acknowledged any more; a full disk refuses one group and
//! the next one is tried again.

use std::sync::Arc;
use std::time::Duration;

use heddle_rt::Clock;
use heddle_rt::vfs::Lock;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot};

use crate::engine::{Engine, EngineError};
use crate::group::{CommitResult, Group, Planned, Prepared};
use crate::state::State;
use crate::stats::CommitCounters;
use crate::{CommitError, Health, Limits};

/// A batch and where its answer goes. Nobody has to be there to receive it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) batch: Vec<Prepared>,
    pub(crate) reply: oneshot::Sender<CommitResult>,
}

/// What the writer shares with the handles of the store.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) state: Arc<RwLock<State>>,
    pub(crate) counters: Arc<Mutex<CommitCounters>>,
}

pub(crate) struct Writer {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) shared: Shared,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    /// When the disk was last found full.
    pub(crate) full_at: Option<Duration>,
    /// Let go of after the engine.
    pub(crate) _lock: Option<Lock>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Serves the queue until it is closed and empty.
    pub(crate) fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        let _last_words = LastWords(self.shared.clone());
        while let Some(first) = queue.blocking_recv() {
            let mut bytes = size(&first);
            let mut group = vec![first];
            // Whoever is about to ask does so first. Where processors are scarce, groups are several times as large for it;
            // where they are not, nobody waits.
            std::thread::yield_now();
            while group.len() < self.limits.group_batches_max && bytes < self.limits.group_bytes_max
            {
                let Ok(request) = queue.try_recv() else { break };
                bytes += size(&request);
                group.push(request);
            }
            self.commit(group);
        }
        self.shared.close();
    }

    /// Commits one group and answers everybody in it.
    pub(crate) fn commit(&mut self, requests: Vec<Request>) {
        let (replies, verdicts, planned) = self.plan(requests);
        let refused = match planned {
            None => None,
            Some(planned) => self.make_safe(planned, verdicts.len()).err(),
        };
        let mut counters = self.shared.counters.lock();
        let refusals = verdicts.len() as u64;
        match &refused {
            Some(_) => counters.refusals += refusals,
            None => {
                let conflict =
                    |verdict: &&CommitResult| matches!(verdict, Err(CommitError::Conflict { .. }));
                counters.conflicts += verdicts.iter().filter(conflict).count() as u64;
            }
        }
        drop(counters);
        for (reply, verdict) in replies.into_iter().zip(verdicts) {
            let verdict = match &refused {
                Some(error) => Err(error.clone()),
                None => verdict,
            };
            // Whoever gave up waiting does not hear that it worked; the write stands.
            drop(reply.send(verdict));
        }
    }

    /// `None` when there is nothing to make safe.
    fn plan(
        &self,
        requests: Vec<Request>,
    ) -> (
        Vec<oneshot::Sender<CommitResult>>,
        Vec<CommitResult>,
        Option<Planned>,
    ) {
        let state = self.shared.state.read();
        let mut group = Group::new(&state);
        let (replies, verdicts) = requests
            .into_iter()
            .map(|request| (request.reply, group.accept(request.batch)))
            .unzip();
        // While the disk is full or has failed, an empty batch finds out whether it still is.
        let due = !group.is_empty() || state.health != Health::Serving;
        let planned = due.then(|| group.plan(self.limits.window(), self.clock.now().as_second()));
        (replies, verdicts, planned)
    }

    fn make_safe(&mut self, planned: Planned, batches: usize) -> Result<(), CommitError> {
        if let Health::Poisoned(_) = self.shared.state.read().health {
            return Err(CommitError::Poisoned);
        }
        let started = self.clock.monotonic();
        if self
            .full_at
            .is_some_and(|at| started < at + self.limits.full_pause)
        {
            return Err(CommitError::Full);
        }
        self.full_at = None;
        match self.engine.commit(&planned.batch) {
            Ok(()) => {
                let took = self.clock.monotonic().saturating_sub(started);
                self.shared
                    .counters
                    .lock()
                    .committed(batches, planned.changes.len(), took);
                self.shared.show(planned);
                Ok(())
            }
            Err(EngineError::Full) => {
                tracing::warn!("the disk is full: writes are refused until there is room");
                self.full_at = Some(self.clock.monotonic());
                self.shared.state.write().health = Health::Full;
                Err(CommitError::Full)
            }
            Err(EngineError::Failed(reason)) => {
                tracing::error!(%reason, "the disk has failed: nothing is written until a restart");
                self.shared.state.write().health = Health::Poisoned(reason);
                Err(CommitError::Poisoned)
            }
        }
    }
}

impl Shared {
    /// Lets readers and watchers see a group that is safe.
    fn show(&self, planned: Planned) {
        let mut state = self.state.write();
        let mut touched: Vec<Arc<str>> = planned
            .changes
            .iter()
            .map(|change| change.object.key.resource.clone())
            .collect();
        touched.sort();
        touched.dedup();
        planned
            .changes
            .into_iter()
            .for_each(|change| state.apply(change));
        for version in planned.expired_tombstones {
            state.tombstone_set.tombstones.remove(&version);
        }
        for tombstone in planned.new_tombstones {
            state
                .tombstone_set
                .tombstones
                .insert(tombstone.version, tombstone);
        }
        state.tombstone_set.horizon = planned.horizon;
        state.version = planned.version;
        state.health = Health::Serving;
        touched
            .iter()
            .for_each(|resource| state.history.wake(resource));
    }

    /// Tells watchers that nothing comes any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.write();
        state.closed = true;
        state.history.wake_all();
    }
}

/// Tells everybody when the writer breaks, so that nobody takes silence for health.
struct LastWords(Shared);

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.write().health = Health::Poisoned("the writer broke".to_owned());
        }
    }
}

fn size(request: &Request) -> usize {
    request.batch.iter().map(Prepared::bytes).sum()
}

#[cfg(test)]
mod tests;
