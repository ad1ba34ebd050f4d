//! One event of one consumer, on its way to an attempt.

use bytes::Bytes;
use jiff::Timestamp;

use crate::log::{Lookup, Offset, Record, Unavailable};
use crate::path::dead_letter;
use crate::shared::Shared;

/// One event that waits for an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) offset: Offset,
    /// Attempts that failed so far.
    pub(crate) attempts: u32,
    pub(crate) kind: JobKind,
    /// The event, if memory allowed to keep it.
    pub(crate) record: Option<Record>,
    /// What keeps it in order with others, once known.
    pub(crate) lane_key: Option<u64>,
    /// Its last attempt found no room in this mesh.
    pub(crate) backpressured: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// To the subscriber, from the log.
    Event,
    /// To the subscriber again, from the log, because somebody asked for it.
    Resent,
    /// To the subscriber again, from the dead letter of this name.
    Redriven(u64),
    /// To the external sink: the dead letter of this name.
    Sink(u64),
}

impl Job {
    /// Without its bytes, which are read when its turn comes.
    pub(crate) fn new(kind: JobKind, offset: Offset, attempts: u32) -> Self {
        Self {
            offset,
            attempts,
            kind,
            record: None,
            lane_key: None,
            backpressured: false,
        }
    }

    pub(crate) fn is_sink(&self) -> bool {
        matches!(self.kind, JobKind::Sink(_))
    }

    /// The dead letter it was before.
    pub(crate) fn redriven(&self) -> Option<u64> {
        match self.kind {
            JobKind::Redriven(name) => Some(name),
            JobKind::Event | JobKind::Resent | JobKind::Sink(_) => None,
        }
    }

    /// Its event and when that was accepted: from the log, or from the dead letter it was.
    pub(crate) fn find(&self, shared: &Shared) -> Result<Lookup<(Bytes, Timestamp)>, Unavailable> {
        match self.kind {
            JobKind::Event | JobKind::Resent => {
                let found = shared.log.get(self.offset)?;
                Ok(found.map(|record| (record.payload, record.at)))
            }
            JobKind::Redriven(name) | JobKind::Sink(name) => {
                let found = dead_letter::record(shared, name)?;
                Ok(found.map(|dead| (dead.record.clone(), dead.accepted_at)))
            }
        }
    }
}
