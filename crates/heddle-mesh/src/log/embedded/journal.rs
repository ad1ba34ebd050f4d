//! The journal as the mesh reads it: two copies and the snapshots beside them.

use std::ops::Range;
use std::sync::Arc;

use futures::FutureExt as _;
use heddle_rt::{Clock, Tasks, Vfs};

use super::mirror::Mirrored;
use super::snapshots::Snapshots;
use super::{Batch, Journal, LogFuture, Lookup, Offset, SegmentInfo, Unavailable, unavailable};
use crate::journal::{self, JournalRecord, Snapshot};

/// The last records that are looked through for how far the journal is. The last one says so, unless it is damaged.
const LAST_RECORDS: u64 = 16;
const READ_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct EmbeddedJournal {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) mirrored: Arc<Mirrored>,
    pub(super) snapshots: Snapshots,
}

impl EmbeddedJournal {
    pub(super) fn mark(&self) -> u32 {
        self.mirrored.primary.mark()
    }

    pub(super) fn keep_copying(&self, clock: Clock, tasks: &Tasks) {
        self.mirrored.keep_copying(clock, tasks);
    }

    /// Whether nothing was ever written.
    pub(super) fn is_empty(&self) -> bool {
        self.bounds().end <= 1
    }

    /// Up to where the journal speaks of events, as far as its last records and its snapshots tell.
    pub(super) fn scanned(&self) -> Result<Offset, heddle_store::events::ReadError> {
        let bounds = self.bounds();
        let mut scanned = 1;
        let mut next = bounds.end.saturating_sub(LAST_RECORDS).max(bounds.start);
        while next < bounds.end {
            let batch = self.mirrored.read(next, READ_BYTES)?;
            let lines = batch.records.iter();
            let lines = lines.filter_map(|record| journal::decode(&record.payload).ok());
            for line in lines.flatten() {
                if let JournalRecord::Checkpoint(mark) = line {
                    scanned = scanned.max(mark.scanned);
                }
            }
            if batch.next <= next {
                break;
            }
            next = batch.next;
        }
        let snapshots = self.snapshots.read(&*self.vfs).unwrap_or_default();
        let sound = snapshots.iter();
        let sound = sound.filter_map(|(_, bytes)| Snapshot::decode(bytes).ok());
        let newest = sound.map(|snapshot| snapshot.positions.scanned).max();
        Ok(scanned.max(newest.unwrap_or(1)))
    }
}

impl Journal for EmbeddedJournal {
    fn bounds(&self) -> Range<Offset> {
        self.mirrored.bounds()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        let healed = self.mirrored.read(from, bytes_max).map_err(unavailable)?;
        Ok(Batch {
            records: healed.records.into_iter().map(super::record).collect(),
            next: healed.next,
            damaged: healed.damaged,
        })
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        let healed = self.mirrored.read(offset, 1).map_err(unavailable)?;
        let lost = healed.damaged.iter().any(|lost| lost.contains(&offset));
        let found = healed.records.into_iter().next().map(super::record);
        Ok(match found.filter(|record| record.offset == offset) {
            Some(record) => Lookup::Found(record),
            None if lost => Lookup::Damaged,
            None => Lookup::Gone,
        })
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        self.mirrored.find(key, limit).map_err(unavailable)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        super::segments(&self.mirrored.primary)
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        let journal = Arc::clone(&self.mirrored);
        async move { journal.trim(first).await.map_err(unavailable) }.boxed()
    }

    fn snapshots(&self) -> Result<Vec<(Offset, Vec<u8>)>, Unavailable> {
        self.snapshots.read(&*self.vfs).map_err(unavailable)
    }

    fn keep_snapshot(&self, next: Offset, bytes: &[u8]) -> Result<(), Unavailable> {
        let kept = self.snapshots.keep(&*self.vfs, next, bytes);
        kept.map_err(unavailable)
    }
}
