//! Who changed what: every change that comes in by the control listener leaves one line, on disk before its answer is sent.
//!
//! ```text
//!   request ─> is it a change? (change) ─> can it be recorded? ─> door, router, handler ─> answer
//!                                                                          │                 │
//!              who, told by the door (noted) ──────────────────> line <────┘                 v
//!                                                                 └─> append, sync (journal) ─> answer goes out
//! ```
//! One layer around everything ([`doorway`]) decides what a change is by the method: a route that somebody adds is recorded
//! without being told to. What an answer with 2xx says was done is recorded; what was refused is recorded too, and counted
//! instead when there is much of it ([`refusals`]), so that nobody fills the log by knocking. Whoever leaves before the answer
//! leaves a line all the same.
//!
//! When lines cannot be written, changes are refused, but for those that make room. What heddle's controllers write in this
//! process does not pass here, nor do events, which are data.

pub(crate) mod change;
pub(crate) mod doorway;
pub(crate) mod journal;
pub(crate) mod noted;
pub(crate) mod question;
mod refusals;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heddle_api::audit::{AuditDoor, AuditEntry, AuditOutcome};
use heddle_mesh::Aside;
use heddle_rt::{Clock, OnError, Tasks};
use heddle_store::Health;
use heddle_store::events::AppendError;
use parking_lot::Mutex;

use self::journal::AuditJournal;
use self::refusals::RefusalCounts;
use crate::wire::World;

/// How often counted refusals are looked at, and old segments.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// How often a full disk is tried again when somebody wants to change something.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// The log of changes. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct AuditLog(Arc<AuditParts>);

#[derive(Debug)]
struct AuditParts {
    journal: AuditJournal,
    clock: Clock,
    aside: Arc<Aside>,
    refusals: Mutex<RefusalCounts>,
    /// Changes that were refused, or made room unrecorded, since lines could not be written.
    missed: AtomicU64,
    /// When a full disk was tried last, by the monotonic clock.
    tried: Mutex<Option<Duration>>,
}

/// Why a change cannot be recorded now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unrecordable {
    /// Make room; it goes on by itself.
    #[error("there is no room on the disk for the audit log")]
    Full,
    /// Wait: the system has too little of something else; it goes on by itself.
    #[error("the audit log cannot be written for now: {0}")]
    Exhausted(String),
    /// Restart.
    #[error("the audit log takes nothing until a restart: {0}")]
    Broken(String),
}

impl From<AppendError> for Unrecordable {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Full => Self::Full,
            AppendError::Busy | AppendError::Exhausted(_) | AppendError::TooLarge { .. } => {
                Self::Exhausted(error.to_string())
            }
            AppendError::Poisoned(_) | AppendError::Undetermined(_) | AppendError::Closed => {
                Self::Broken(error.to_string())
            }
        }
    }
}

impl AuditLog {
    /// Opens the log below a data directory, or makes one.
    pub(crate) fn open(dir: &Path, world: &World, tasks: &Tasks) -> anyhow::Result<Self> {
        let tasks = tasks.child("audit");
        let parts = AuditParts {
            journal: AuditJournal::open(dir, world, &tasks)?,
            clock: world.clock.clone(),
            aside: Aside::new(&world.clock, &tasks),
            refusals: Mutex::default(),
            missed: AtomicU64::new(0),
            tried: Mutex::default(),
        };
        Ok(Self(Arc::new(parts)))
    }

    /// Starts what writes down counted refusals and removes what is too old.
    pub(crate) fn start(&self, tasks: &Tasks) {
        let log = self.clone();
        let tidying = async move { log.keep_tidy().await };
        tasks.spawn("audit", OnError::EndProcess, tidying);
    }

    async fn keep_tidy(&self) {
        loop {
            self.0.clock.sleep(TIDY_EVERY).await;
            self.tidy().await;
        }
    }

    async fn tidy(&self) {
        let now = self.0.clock.monotonic();
        let over = self.0.refusals.lock().over(now);
        self.write_down(over).await;
        self.0.journal.retain(self.0.clock.now()).await;
    }

    /// Writes lines nobody waits for, all with one sync. What cannot be written is told in the process's log.
    async fn write_down(&self, entries: Vec<AuditEntry>) {
        let journal = &self.0.journal;
        let appending: Vec<_> = entries.iter().map(|entry| journal.append(entry)).collect();
        for (entry, appending) in entries.iter().zip(appending) {
            if let Err(error) = appending.await {
                tell(entry, &error.into());
            }
        }
    }

    /// Keeps a line. It is on disk when this returns, unless it is one of many refusals, which are counted.
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<(), Unrecordable> {
        let now = self.0.clock.monotonic();
        let (over, single) = {
            let mut refusals = self.0.refusals.lock();
            (refusals.over(now), refusals.hear(entry))
        };
        self.write_down(over).await;
        let Some(entry) = single else { return Ok(()) };
        let recorded = self.0.journal.append(&entry).await;
        recorded.map(drop).map_err(|error| {
            let error = error.into();
            self.0.missed.fetch_add(1, Ordering::Relaxed);
            tell(&entry, &error);
            error
        })
    }

    /// Keeps the line of somebody who left, as far as that is possible without waiting.
    fn record_left(&self, entry: AuditEntry) {
        let single = self.0.refusals.lock().hear(entry);
        if let Some(entry) = single {
            drop(self.0.journal.append(&entry));
        }
    }

    /// Whether a change could be recorded. When the disk was full, this finds out whether it still is.
    pub(crate) async fn is_recordable(&self) -> Result<(), Unrecordable> {
        match self.fault() {
            Some(fault @ Unrecordable::Broken(_)) => Err(fault),
            Some(fault) => self.resume().await.map_err(|()| fault),
            None => Ok(()),
        }
    }

    /// Why lines cannot be written at present.
    pub(crate) fn fault(&self) -> Option<Unrecordable> {
        match self.0.journal.health() {
            Health::Serving => None,
            Health::Full => Some(Unrecordable::Full),
            Health::Exhausted(reason) => Some(Unrecordable::Exhausted(reason)),
            Health::Poisoned(reason) => Some(Unrecordable::Broken(reason)),
        }
    }

    /// One more change that was refused because it could not be recorded.
    pub(crate) fn missed(&self) {
        self.0.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Tries whether there is room again, with a line that says what is missing.
    async fn resume(&self) -> Result<(), ()> {
        let now = self.0.clock.monotonic();
        {
            let mut tried = self.0.tried.lock();
            if tried.is_some_and(|tried| now < tried.saturating_add(TRY_EVERY)) {
                return Err(());
            }
            *tried = Some(now);
        }
        let missed = self.0.missed.load(Ordering::Relaxed);
        let mut entry = AuditEntry::new(AuditDoor::Log, "resume", String::new());
        entry.outcome = AuditOutcome::Refused;
        entry.reason = Some("NoRoom".to_owned());
        entry.count = missed.max(1);
        let appended = self.0.journal.append(&entry).await;
        appended.map_err(|_| ())?;
        self.0.missed.fetch_sub(missed, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn journal(&self) -> &AuditJournal {
        &self.0.journal
    }

    /// Writes down what was counted, and lets go of the files.
    pub(crate) async fn close(&self) {
        let rest = self.0.refusals.lock().all();
        self.write_down(rest).await;
        self.0.aside.close();
        self.0.journal.close().await;
    }
}

/// What is on no disk is at least in the log of the process.
fn tell(entry: &AuditEntry, error: &Unrecordable) {
    tracing::warn!(
        target: "heddle::audit",
        %error, user = entry.user.as_deref(), address = entry.address.as_deref(), verb = %entry.verb,
        object = %entry.object(), outcome = entry.outcome.name(), status = entry.status, count = entry.count,
        "a change could not be recorded"
    );
}
