//! Snapshots of the journal, and forgetting what nobody needs.
//!
//! A segment of the log goes when retention no longer asks for it *and* no consumer has anything unfinished in it. A
//! segment of the journal goes when two snapshots sum it up, no dead letter rests in it, and the events it speaks of are
//! gone from the log too, for until then somebody may ask where they went.
//!
//! Retention is how long finished events are kept if there is room. While there is too little for new ones, the finished
//! ones go before their time, the oldest first and no more than needed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::journal::Snapshot;
use crate::log::{Offset, SegmentInfo};
use crate::path::delivery::job::JobKind;
use crate::quota::{self, Quota};
use crate::recovery;
use crate::shared::Shared;

const EVERY: Duration = Duration::from_secs(30);
/// Records of the journal since the last snapshot that make another one worth while.
const SNAPSHOT_RECORDS: u64 = 20_000;
/// After this time any record does: what is summed up needs no record of the journal to be sound any more.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(5 * 60);

/// How long finished events are kept, so that people can ask about them and triggers can start in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub age_max: Duration,
    /// Of the log as a whole; unfinished events stay even beyond it.
    pub bytes_max: u64,
}

impl Retention {
    /// The same, if so many bytes of a log of that size have to become free.
    fn giving(self, missing_bytes: u64, log_bytes: u64) -> Self {
        match missing_bytes {
            0 => self,
            _ => Self {
                bytes_max: self.bytes_max.min(log_bytes.saturating_sub(missing_bytes)),
                ..self
            },
        }
    }
}

impl Default for Retention {
    /// Three days, or ten gibibytes.
    fn default() -> Self {
        Self {
            age_max: Duration::from_secs(72 * 3600),
            bytes_max: 10 << 30,
        }
    }
}

/// Looks after one mesh.
#[derive(Debug)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    retention: Retention,
    quota: Quota,
    /// The journal, as far as it was summed up.
    folded: Snapshot,
    /// Where the last snapshot ends, and the one before it: from there on the journal is needed.
    kept: Offset,
    before_last: Offset,
    kept_at: Duration,
}

impl Keeper {
    pub(crate) fn new(
        shared: Arc<Shared>,
        retention: Retention,
        quota: Quota,
        folded: Snapshot,
    ) -> Self {
        Self {
            kept_at: shared.clock.monotonic(),
            kept: 1,
            shared,
            retention,
            quota,
            folded,
            before_last: 1,
        }
    }

    /// Sums up the journal if it has grown by so many records.
    pub(crate) fn sum_up(&mut self, records_min: u64) {
        let next = self.shared.log.journal().bounds().end;
        if next.saturating_sub(self.kept) < records_min {
            return;
        }
        match snapshot(&self.shared, &mut self.folded) {
            Ok(()) => {
                self.before_last = std::mem::replace(&mut self.kept, self.folded.journal_next);
                self.kept_at = self.shared.clock.monotonic();
            }
            Err(error) => tracing::warn!(%error, "no snapshot of the journal could be kept"),
        }
    }

    /// Sums up the journal if it has grown by so many records, holds consumers to their quotas, and removes what nobody
    /// needs.
    pub(crate) async fn tidy(&mut self, records_min: u64) {
        self.shared.log.survey();
        let age = self.shared.clock.monotonic().saturating_sub(self.kept_at);
        self.sum_up(match age >= SNAPSHOT_EVERY {
            true => 1,
            false => records_min,
        });
        quota::enforce(&self.shared, self.quota);
        if let Err(error) = trim(&self.shared, &self.retention, self.before_last).await {
            tracing::warn!(%error, "old events could not be removed");
        }
    }
}

pub(crate) async fn run(shared: Arc<Shared>, keeper: Arc<tokio::sync::Mutex<Keeper>>) {
    let mut room = shared.log.room();
    let mut low = false;
    loop {
        tokio::select! {
            () = shared.clock.sleep(EVERY) => {}
            // An error would mean that the log is gone, which this task holds.
            _ = room.changed() => {}
        }
        keeper.lock().await.tidy(SNAPSHOT_RECORDS).await;
        let is_low = room.borrow_and_update().low;
        if std::mem::replace(&mut low, is_low) != is_low {
            shared.notify_changed();
        }
    }
}

/// Sums up what is safe in the journal, not what this process believes.
fn snapshot(shared: &Shared, snapshot: &mut Snapshot) -> Result<(), recovery::Error> {
    let journal = shared.log.journal();
    recovery::fold(journal, snapshot)?;
    if snapshot.positions.in_doubt() {
        return Err(recovery::Error::InDoubt);
    }
    if shared.in_force.load().ready {
        // Whoever was forgotten has been met again.
        snapshot.positions.unknown_from = None;
    }
    journal.keep_snapshot(snapshot.journal_next, &snapshot.encode())?;
    Ok(())
}

async fn trim(
    shared: &Arc<Shared>,
    retention: &Retention,
    journal_before: Offset,
) -> Result<(), crate::log::Unavailable> {
    let segments = shared.log.segments();
    let needed = needed(shared);
    // A restart must not look for what is gone, so whatever made it superfluous is safe first.
    shared.settled().await;
    let missing_bytes = shared.log.room().borrow().missing_bytes();
    let log_bytes = segments.iter().map(|segment| segment.bytes).sum();
    let retention = retention.giving(missing_bytes, log_bytes);
    let gone = removable(&segments, &retention, &needed, shared.clock.now());
    for first in &gone {
        shared.log.trim(*first).await?;
    }
    if missing_bytes > 0 && !gone.is_empty() {
        tracing::info!(
            segments = gone.len(),
            "finished events made room for new ones"
        );
        shared.log.survey();
    }
    let oldest = shared.log.segments().first().map(|segment| segment.first);
    let oldest_at = match oldest {
        Some(first) => shared.log.get(first)?.found().map(|record| record.at),
        None => None,
    };
    let resting: BTreeSet<Offset> = shared.dead.lock().records().collect();
    let journal = shared.log.journal();
    let old: Vec<Offset> = journal
        .segments()
        .into_iter()
        .filter(|segment| {
            segment.sealed
                && segment.next <= journal_before
                && oldest_at.is_some_and(|at| segment.last_at < at)
                && resting.range(segment.first..segment.next).next().is_none()
        })
        .map(|segment| segment.first)
        .collect();
    for first in old {
        shared.log.journal().trim(first).await?;
    }
    Ok(())
}

/// What consumers still need: single offsets, and everything from a floor on.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    single: BTreeSet<Offset>,
    from: Offset,
}

fn needed(shared: &Shared) -> Needed {
    let scanned = shared.scanned();
    let mut needed = Needed {
        single: BTreeSet::new(),
        from: scanned,
    };
    for consumer in shared.all_consumers() {
        let state = consumer.lock();
        needed.from = needed.from.min(state.floor(scanned));
        // A deleted consumer may come back and go on where it left.
        if let Some((left, _)) = state.routing.unrouted {
            needed.from = needed.from.min(left);
        }
        needed.single.extend(state.retries.in_log());
        let due = state.retries.due.iter();
        let again = due.filter(|job| job.kind == JobKind::Event);
        needed.single.extend(again.map(|job| job.offset));
    }
    needed
}

/// The segments that may go, oldest first.
pub(crate) fn removable(
    segments: &[SegmentInfo],
    retention: &Retention,
    needed: &Needed,
    now: Timestamp,
) -> Vec<Offset> {
    let age_max = SignedDuration::try_from(retention.age_max).unwrap_or(SignedDuration::MAX);
    let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let mut gone = Vec::new();
    for segment in segments {
        let old = now.duration_since(segment.last_at) > age_max;
        let unfinished = segment.next > needed.from
            || needed
                .single
                .range(segment.first..segment.next)
                .next()
                .is_some();
        if segment.sealed && !unfinished && (old || bytes > retention.bytes_max) {
            bytes -= segment.bytes;
            gone.push(segment.first);
        }
    }
    gone
}

#[cfg(test)]
mod tests;
