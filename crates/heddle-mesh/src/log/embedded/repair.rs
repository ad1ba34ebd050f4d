//! Accepting a loss: what is left of log and journal is made to fit together again.
//!
//! What is known to be lost is told, and told again by the accounts once the server runs. Offsets go on above everything
//! that was ever given out; after a restore, too, because a backup does not know what was accepted after it.

use heddle_api::{counted, counted_that};
use heddle_store::events::{Draft, EventLog, Known};

use super::journal::EmbeddedJournal;
use super::open::{self, EVENTS_DIR, Mismatch, OpenError};
use super::{Offset, Options};
use crate::journal::{self, Checkpoint, JournalRecord, Snapshot};
use crate::log::Journal as _;
use crate::recovery;

/// Nobody knows how many events were accepted after the last one that the journal speaks of. They were fewer than this.
const STEP: Offset = 1 << 32;

/// What was found, and what follows from accepting it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What is wrong; `None` when nothing is.
    pub problem: Option<String>,
    /// What is lost, what is done again and what stays, each a sentence.
    pub consequences: Vec<String>,
}

/// Why nothing could be repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Journal(#[from] recovery::Error),
    #[error("the repaired journal cannot be written: {0}")]
    Write(String),
}

/// Looks whether log and journal belong together, and unless `dry_run` makes them.
///
/// Works on a directory that no server uses. Directories of two installations are refused: which one is wanted only a
/// person knows.
pub fn repair(options: &Options, dry_run: bool) -> Result<Repaired, RepairError> {
    open::agreed(options)?;
    let log_dir = options.dir.join(EVENTS_DIR);
    let exists = EventLog::mark_of(&*options.vfs, &log_dir).map_err(OpenError::from)?;
    let journal = EmbeddedJournal::open(options)?;
    let (mut snapshot, gap) = match recovery::positions(&journal) {
        Ok(snapshot) => (snapshot, None),
        Err(gap @ recovery::Error::Gap { first, .. }) => {
            (recovery::remains(&journal, first)?, Some(gap))
        }
        Err(error) => return Err(error.into()),
    };
    let spoken_of = snapshot.positions.scanned.max(1);
    let mut problem = match exists {
        None if spoken_of > 1 => Some(Mismatch::LogMissing {
            dir: options.dir.clone(),
            used: spoken_of,
        }),
        _ => None,
    };
    let mut first = spoken_of;
    if problem.is_none() {
        let known = Known {
            safe: spoken_of,
            used: 0,
        };
        let log = open::open_one(options, EVENTS_DIR, known)?;
        problem = open::compare(&options.dir, &log, &journal, spoken_of).err();
        first = log.first();
        open::wait_for(log.close());
    }
    let wrong = problem.as_ref().map(ToString::to_string);
    let Some(wrong) = wrong.or_else(|| gap.as_ref().map(ToString::to_string)) else {
        return Ok(Repaired::default());
    };
    let log_lost = matches!(
        problem,
        Some(Mismatch::LogMissing { .. } | Mismatch::LogBehind { .. })
    );
    let used = if log_lost { spoken_of + STEP } else { 0 };
    let repaired = Repaired {
        problem: Some(wrong),
        consequences: match log_lost {
            true => without_log(&snapshot, used),
            false => without_journal(&snapshot),
        },
    };
    if dry_run {
        return Ok(repaired);
    }
    let known = Known { safe: 0, used };
    let log = open::open_one(options, EVENTS_DIR, known)?;
    let positions = &mut snapshot.positions;
    if log_lost {
        positions.scanned = log.committed();
        positions.log_lost_below = log.committed();
    } else {
        positions.unknown_from = Some(first);
    }
    write(&journal, &mut snapshot)?;
    open::wait_for(log.close());
    open::wait_for(journal.mirrored.close());
    Ok(repaired)
}

/// Lets offsets go on above everything that was given out after this copy of a directory was made, so that none of them
/// means two events to whoever noted it. Nothing that is in the log is touched. Gives the next offset.
///
/// Works on a directory that no server uses.
pub fn skip_offsets(options: &Options) -> Result<Offset, RepairError> {
    let journal = EmbeddedJournal::open(options)?;
    let mut snapshot = recovery::positions(&journal)?;
    let safe = snapshot.positions.scanned.max(1);
    let log = open::open_one(options, EVENTS_DIR, Known { safe, used: 0 })?;
    let used = log.committed() + STEP;
    open::wait_for(log.close());
    let log = open::open_one(options, EVENTS_DIR, Known { safe, used })?;
    let next = log.committed();
    // A log that has gone on without a journal that says so would be taken for one whose journal is gone.
    if journal.is_empty() {
        write(&journal, &mut snapshot)?;
    }
    open::wait_for(log.close());
    open::wait_for(journal.mirrored.close());
    Ok(next)
}

/// The state that was accepted, as a record of the journal and as a snapshot.
fn write(journal: &EmbeddedJournal, snapshot: &mut Snapshot) -> Result<(), RepairError> {
    let write = |error: &dyn std::fmt::Display| RepairError::Write(error.to_string());
    let mark = JournalRecord::Checkpoint(Checkpoint {
        scanned: snapshot.positions.scanned,
        consumers: Vec::new(),
    });
    for record in journal::encode(&[mark]) {
        let draft = Draft {
            stream: 0,
            key: record.key,
            parts: [&record.payload, &[]],
        };
        let appending = journal.mirrored.primary.append(&[draft]);
        open::wait_for(appending).map_err(|error| write(&error))?;
    }
    open::wait_for(journal.mirrored.copy()).map_err(|error| write(&error))?;
    snapshot.journal_next = journal.bounds().end;
    let kept = journal.keep_snapshot(snapshot.journal_next, &snapshot.encode());
    kept.map_err(|error| write(&error))
}

fn without_log(snapshot: &Snapshot, used: Offset) -> Vec<String> {
    let positions = &snapshot.positions;
    let mut told = Vec::new();
    for position in positions.consumers.values() {
        let from_log = position.retrying.values();
        let kept = from_log.filter(|retry| retry.redriven.is_some()).count() as u64;
        let pending = position.tally.pending().saturating_sub(kept);
        if pending > 0 {
            told.push(format!(
                "{}: up to {} not delivered yet and now lost",
                position.key,
                counted(pending, "event")
            ));
        }
    }
    told.push(format!(
        "events from offset {} on had not been matched with any trigger; how many there were is not known",
        positions.scanned
    ));
    let resting = positions.dead.values().filter(|rest| !rest.left).count();
    told.push(counted_that(resting as u64, "dead letter", "stays", "stay"));
    told.push(format!("new events get offsets from {used} on"));
    told
}

fn without_journal(snapshot: &Snapshot) -> Vec<String> {
    let resting = snapshot.positions.dead.values().filter(|rest| !rest.left);
    vec![
        "what became of events is not known: each trigger gets what the log still has once more, if it matches".to_owned(),
        format!(
            "{}, all others are lost",
            counted_that(resting.count() as u64, "dead letter", "stays", "stay")
        ),
    ]
}
