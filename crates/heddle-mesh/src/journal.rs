//! What became of events, line by line, and the state that follows from it.
//!
//! Everything a consumer does ends up here: that it exists from an offset on, that an attempt failed, that an event was
//! delivered or a dead letter. [`positions::Positions`] is the fold of all lines and all that a restart needs; a snapshot
//! spares reading them from the beginning.
//!
//! Lines are gathered and made safe together, every few milliseconds. What was not yet safe when the power went is done
//! again: an event may be delivered twice, but no event is forgotten.

pub mod bulk;
pub(crate) mod cause;
pub mod mark;
pub mod positions;
pub mod record;
mod reply;
pub(crate) mod snapshot;
#[cfg(test)]
pub(crate) mod tests;

pub use record::{Attempted, Checkpoint, ConsumerCheckpoint, Dead, JournalRecord, Routed};
pub use reply::{BadReply, DeadReply, REPLY_BYTES_MAX, ReplyFault};
pub use snapshot::{Snapshot, SnapshotError};

use crate::codec::Unreadable;
use crate::log::Offset;

/// Lines about events that lie close together are kept together and found together.
const BUCKET_EVENTS: u64 = 4096;

/// The index key of the journal's records that speak of this event. Never zero, which means "not indexed".
#[must_use]
pub fn bucket_of(offset: Offset) -> u64 {
    offset / BUCKET_EVENTS + 1
}

/// The payload of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// What it is found by; 0 for lines about no single event.
    pub key: u64,
    pub payload: Vec<u8>,
    /// The names of the dead letters in it.
    pub dead: Vec<u64>,
}

/// Lines as the payloads of records, those about no single event last and in order.
///
/// The checkpoint, which says how far everything is, must come after what it counts on; it speaks of no event, so it does.
#[must_use]
pub fn encode(lines: &[JournalRecord]) -> Vec<Encoded> {
    let key = |line: &JournalRecord| line.offset().map_or(u64::MAX, bucket_of);
    let mut sorted: Vec<&JournalRecord> = lines.iter().collect();
    sorted.sort_by_key(|line| key(line));
    let mut records: Vec<Encoded> = Vec::new();
    for line in sorted {
        let key = match key(line) {
            u64::MAX => 0,
            key => key,
        };
        let fits = |last: &&mut Encoded| last.key == key && last.payload.len() < RECORD_BYTES;
        let record = match records.last_mut().filter(fits) {
            Some(_) => records.last_mut(),
            None => {
                records.push(Encoded {
                    key,
                    payload: Vec::with_capacity(64),
                    dead: Vec::new(),
                });
                records.last_mut()
            }
        };
        let record = record.expect("there is one, or one was just added");
        if let JournalRecord::Dead(dead) = line
            && dead.is_kept()
        {
            record.dead.push(dead.name);
        }
        line.encode(&mut record.payload);
    }
    records
}

/// A record of the journal is closed once it has grown to this; a line more may make it longer.
const RECORD_BYTES: usize = 256 * 1024;

/// The lines in the payload of one record.
pub fn decode(payload: &[u8]) -> Result<Vec<JournalRecord>, Unreadable> {
    let mut take = crate::codec::Take(payload);
    let mut lines = Vec::new();
    while !take.is_empty() {
        lines.push(JournalRecord::decode(&mut take)?);
    }
    Ok(lines)
}
