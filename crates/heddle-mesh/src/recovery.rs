//! From the journal to a mesh at work: the newest readable snapshot, and every line since.

use std::sync::Arc;

use crate::codec::Unreadable;
use crate::consumer::{CompiledRevision, Consumer, ReadMode};
use crate::envelope::Envelope;
use crate::journal::positions::{Position, Positions};
use crate::journal::{self, JournalRecord, Snapshot, SnapshotError};
use crate::log::{Journal, Log, Lookup, Offset, Unavailable};
use crate::path::trigger::Predicate;
use heddle_api::filter::FilterSource;

/// Bytes of the journal read in one go.
const READ_BYTES: usize = 4 << 20;
/// So many of the last events are tried for one that is not damaged.
const LAST_EVENTS: usize = 16;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(
        "the newest snapshot of the journal cannot be used: {0}; run a version that can read it"
    )]
    Newer(SnapshotError),
    /// Passing over it would forget what it says.
    #[error(
        "record {record} of the journal was written by a newer version: {what}; run a version that can read it, or restore a backup that was made before that version ran"
    )]
    NewerRecord { record: Offset, what: Unreadable },
    /// Passing over it, and all that came with it, would lose events.
    #[error(
        "the event at offset {offset} was written by a newer version: {what}; run a version that can read it, or restore a backup that was made before that version ran"
    )]
    NewerEvent { offset: Offset, what: Unreadable },
    /// Starting anyway would forget where every consumer is.
    #[error(
        "the journal begins at record {first}, after record {expected} where its newest readable snapshot ends; restore a backup, or run `heddle repair events --dry-run` to see what can be kept"
    )]
    Gap { first: Offset, expected: Offset },
    /// Starting anyway would give out offsets again that the journal has already spoken of.
    #[error(
        "the log ends at offset {end}, and the journal speaks of events up to {scanned}: an older copy of the log was put back, or its end is gone; put the newer one back, or run `heddle repair events --dry-run` to see what would be lost"
    )]
    LogBehind { end: Offset, scanned: Offset },
    /// A restart makes up for it.
    #[error("records of the journal can be read in neither copy; it is summed up after a restart")]
    InDoubt,
}

/// The state of everything when the last process ended.
pub(crate) fn positions(journal: &dyn Journal) -> Result<Snapshot, Error> {
    let mut start = Snapshot {
        journal_next: 1,
        ..Snapshot::default()
    };
    for (next, bytes) in journal.snapshots()? {
        match Snapshot::decode(&bytes) {
            Ok(snapshot) => {
                start = snapshot;
                break;
            }
            Err(error @ SnapshotError::Newer(_)) => return Err(Error::Newer(error)),
            Err(error) => tracing::warn!(next, %error, "a snapshot of the journal is passed over"),
        }
    }
    let mut snapshot = start;
    fold(journal, &mut snapshot)?;
    if snapshot.positions.in_doubt() {
        let positions = &mut snapshot.positions;
        tracing::error!(
            records = positions.lost_records, first = ?positions.losses.first(),
            "records of the journal are lost; events whose end may have been in them are delivered again",
        );
        positions.resolve();
        // So that the next start need not go back that far. Without it, it does, and comes to the same end.
        if let Err(error) = journal.keep_snapshot(snapshot.journal_next, &snapshot.encode()) {
            tracing::warn!(%error, "no snapshot of the journal could be kept");
        }
    }
    Ok(snapshot)
}

/// Refuses a log that a newer version has appended to.
///
/// Every version writes its own layout from its first event on, and none appends behind a newer one: the last event that
/// can be read tells for all of them.
pub(crate) fn check_newest_event(log: &dyn Log) -> Result<(), Error> {
    let segments = log.segments();
    let Some(end) = segments.iter().map(|segment| segment.next).max() else {
        return Ok(());
    };
    let bounds = log.bounds();
    let last = (bounds.start..end.min(bounds.end)).rev().take(LAST_EVENTS);
    for offset in last {
        if let Lookup::Found(record) = log.get(offset)? {
            return match Envelope::decode(&record.payload) {
                Err(what @ Unreadable::Newer(_)) => Err(Error::NewerEvent { offset, what }),
                Ok(_) | Err(Unreadable::Damaged(_)) => Ok(()),
            };
        }
    }
    Ok(())
}

/// What can be made of a journal whose beginning no snapshot sums up any more.
pub(crate) fn remains(journal: &dyn Journal, first: Offset) -> Result<Snapshot, Error> {
    let mut snapshot = Snapshot {
        journal_next: first,
        ..Snapshot::default()
    };
    snapshot.positions.lose(1..first);
    fold(journal, &mut snapshot)?;
    snapshot.positions.resolve();
    Ok(snapshot)
}

/// Takes in everything that was written since a snapshot. When it fails halfway, it can go on from there.
pub(crate) fn fold(journal: &dyn Journal, snapshot: &mut Snapshot) -> Result<(), Error> {
    let bounds = journal.bounds();
    let mut next = snapshot.journal_next;
    if bounds.start > next {
        return Err(Error::Gap {
            first: bounds.start,
            expected: next,
        });
    }
    while next < bounds.end {
        let batch = journal.read(next, READ_BYTES)?;
        let positions = &mut snapshot.positions;
        let mut lost = batch.damaged.into_iter().peekable();
        for record in &batch.records {
            while let Some(lost) = lost.next_if(|lost| lost.start < record.offset) {
                positions.lose(lost);
            }
            take_in(positions, record)?;
        }
        lost.for_each(|lost| positions.lose(lost));
        if batch.next <= next {
            break;
        }
        next = batch.next;
        snapshot.journal_next = next;
    }
    Ok(())
}

fn take_in(positions: &mut Positions, record: &crate::log::Record) -> Result<(), Error> {
    match journal::decode(&record.payload) {
        Ok(lines) => {
            let apply = |line: &JournalRecord| positions.apply(record.offset, line);
            lines.iter().for_each(apply);
        }
        Err(what @ Unreadable::Newer(_)) => {
            let record = record.offset;
            return Err(Error::NewerRecord { record, what });
        }
        Err(error) => {
            tracing::error!(record = record.offset, %error, "a record of the journal cannot be read");
            positions.lose(record.offset..record.offset + 1);
        }
    }
    Ok(())
}

/// A consumer as the journal left it. Without a table it has nowhere to send to yet.
///
/// Events from `scanned` up to `end` were accepted and matched by nobody when the last process ended. Whoever took part
/// then reads and counts them itself, by the revision that was in force, whatever the next table says.
pub(crate) fn consumer(
    id: u32,
    position: &Position,
    scanned: Offset,
    end: Offset,
) -> Arc<Consumer> {
    let consumer = Consumer::new(id, Arc::from(position.key.as_str()));
    let mut state = consumer.lock();
    state.routing.revisions = position.revisions.iter().map(revision).collect();
    state.routing.unrouted = position.unrouted;
    state.retries.on_record.clone_from(&position.retrying);
    state.tally = position.tally;
    state.window.held.clone_from(&position.held);
    state.cursor.counted_to = position.counted_to;
    state.cursor.replay_from = position.unsure_from;
    let unread = position
        .tally
        .pending()
        .saturating_sub(position.retrying.len() as u64);
    // With nothing unread below `scanned` there is nothing to go back for, however old the floor is.
    if unread > 0 || position.counted_to.is_some() {
        state.cursor.ended.clone_from(&position.ended);
        state.cursor.read_from(position.floor.min(scanned));
    }
    let took_part = position.unrouted.is_none() && !position.revisions.is_empty();
    if took_part && scanned < end && state.cursor.counted_to.is_none() {
        state.cursor.counted_to = Some(scanned);
        if state.cursor.reading == ReadMode::Live {
            state.cursor.read_from(scanned);
        }
    }
    drop(state);
    Arc::new(consumer)
}

fn revision(revision: &journal::positions::Revision) -> CompiledRevision {
    let filters: Option<FilterSource> = serde_json::from_str(&revision.filters).ok();
    let predicate = filters.and_then(|filters| Predicate::compile(&filters).ok());
    if predicate.is_none() {
        tracing::error!(
            filters = revision.filters,
            "a filter can no longer be read; every event passes it"
        );
    }
    CompiledRevision {
        from: revision.from,
        until: revision.until,
        uid: revision.uid.clone(),
        generation: revision.generation,
        fingerprint: revision.fingerprint,
        feeds: revision.feeds.clone(),
        // What was routed was compiled once, so this happens only when an older version accepted what this one does not.
        // Then an event too many is better than one too few.
        predicate: Arc::new(predicate.unwrap_or_else(Predicate::everything)),
    }
}

/// What rests, and the highest name given.
pub(crate) fn dead(positions: &Positions) -> crate::path::dead_letter::DeadLetters {
    crate::path::dead_letter::DeadLetters::restored(
        positions.dead.clone(),
        positions.dead_name_last,
    )
}
