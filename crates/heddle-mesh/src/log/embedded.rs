//! The log in this process: segmented logs of heddle-store, one for events and two for the journal, which is kept twice.
//!
//! The only part of the mesh that knows heddle-store's engine. Snapshots of the journal are files beside both copies of it.

mod export;
mod identity;
mod journal;
mod mirror;
mod open;
mod repair;
mod snapshots;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use heddle_rt::{Clock, Tasks, Vfs};
use heddle_store::events::{self, AppendError, EventLog, Slot};
use heddle_store::{Health, Mode};
use jiff::Timestamp;
use tokio::sync::watch;

use super::room::RoomGate;
pub use export::{Content, Exported};
pub(crate) use journal::EmbeddedJournal;
pub use open::{Mismatch, OpenError};
pub use repair::{RepairError, Repaired, repair, skip_offsets};

use super::{
    AppendRefused, Batch, Derived, Draft, Journal, Log, LogFuture, Lookup, Offset, Record, Reserve,
    Room, SegmentInfo, Unavailable,
};

/// How to open it.
#[derive(Clone, Debug)]
pub struct Options {
    pub vfs: Arc<dyn Vfs>,
    /// Made when missing. Belongs to the log alone.
    pub dir: PathBuf,
    pub clock: Clock,
    pub tasks: Tasks,
    pub mode: Mode,
    /// Bytes of a segment; the journal's are as large.
    pub segment_bytes: Option<u64>,
    /// What events leave free on the disk. The journal does not, for without it nothing could be finished.
    pub reserve: Reserve,
}

/// The log on this machine's disk.
#[derive(Debug)]
pub struct EmbeddedLog {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// Which installation the directories say they belong to.
    signed: Option<u64>,
    /// They are no longer those that were opened.
    astray: AtomicBool,
    events: EventLog,
    journal: EmbeddedJournal,
    gate: RoomGate,
}

/// Beside the log; whoever removes it loses nothing but some time.
const DERIVED_DIR: &str = "hints";

/// What is said of a directory that went away under the server.
const ASTRAY: &str =
    "its directory was removed or replaced while the server ran; put it back and restart";

impl EmbeddedLog {
    /// The engine underneath, for its statistics.
    #[must_use]
    pub fn engine(&self) -> &EventLog {
        &self.events
    }
}

fn append(log: &EventLog, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
    // One event is the common case and needs no list.
    let appending = match drafts {
        [one] => log.append(&[draft(one)]),
        many => log.append(&many.iter().map(draft).collect::<Vec<_>>()),
    };
    async move { appending.await.map_err(refused) }.boxed()
}

fn draft<'a>(draft: &Draft<'a>) -> events::Draft<'a> {
    events::Draft {
        stream: 0,
        key: draft.key,
        parts: draft.parts,
    }
}

fn refused(error: AppendError) -> AppendRefused {
    match error {
        AppendError::TooLarge { bytes, bytes_max } => AppendRefused::TooLarge {
            bytes,
            max: bytes_max,
        },
        AppendError::Busy => AppendRefused::Busy,
        AppendError::Full => AppendRefused::Full,
        AppendError::Exhausted(reason) => AppendRefused::Exhausted(reason.to_string()),
        AppendError::Undetermined(reason) => AppendRefused::Undetermined(reason.to_string()),
        other => AppendRefused::Broken(other.to_string()),
    }
}

fn record(record: events::Record) -> Record {
    Record {
        offset: record.offset,
        at: record.at,
        payload: record.payload,
    }
}

fn read(log: &EventLog, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
    let batch = log.read(from, bytes_max).map_err(unavailable)?;
    Ok(Batch {
        records: batch.records.into_iter().map(record).collect(),
        next: batch.next,
        damaged: batch
            .damaged
            .into_iter()
            .map(|damage| damage.offsets)
            .collect(),
    })
}

fn get(log: &EventLog, offset: Offset) -> Result<Lookup, Unavailable> {
    Ok(match log.get(offset).map_err(unavailable)? {
        Slot::Record(found) => Lookup::Found(record(found)),
        Slot::Damaged => Lookup::Damaged,
        Slot::Gone => Lookup::Gone,
    })
}

fn segments(log: &EventLog) -> Vec<SegmentInfo> {
    let segments = log.segments().into_iter();
    segments
        .map(|segment| SegmentInfo {
            first: segment.first,
            next: segment.next,
            // A segment without a record has nothing to keep; it is the newest, which stays anyway.
            last_at: segment.last_at.unwrap_or(Timestamp::MAX),
            bytes: segment.bytes,
            sealed: segment.sealed,
        })
        .collect()
}

fn trim(log: &EventLog, first: Offset) -> LogFuture<(), Unavailable> {
    let log = log.clone();
    async move { log.remove_segment(first).await.map_err(unavailable) }.boxed()
}

fn unavailable(error: impl std::error::Error) -> Unavailable {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Unavailable(format!("{error}{}", cause.unwrap_or_default()))
}

impl Log for EmbeddedLog {
    fn append(&self, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        let begun = self.events.segments_begun() + self.journal.mirrored.segments_begun();
        if let Err(room) = self.gate.pass(&*self.vfs, begun) {
            return ready(Err(AppendRefused::Low(Box::new(room)))).boxed();
        }
        if self.astray.load(Ordering::Relaxed) {
            return ready(Err(AppendRefused::Broken(ASTRAY.to_owned()))).boxed();
        }
        append(&self.events, drafts)
    }

    fn bounds(&self) -> Range<Offset> {
        self.events.first()..self.events.committed()
    }

    fn beyond(&self, offset: Offset) -> BoxFuture<'static, Offset> {
        let log = self.events.clone();
        async move { log.beyond(offset).await }.boxed()
    }

    fn recent(&self, from: Offset, bytes_max: usize) -> Option<Batch> {
        let records = self.events.recent(from, bytes_max)?;
        let next = records.last().map_or(from, |record| record.offset + 1);
        Some(Batch {
            records: records.into_iter().map(record).collect(),
            next,
            damaged: Vec::new(),
        })
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        read(&self.events, from, bytes_max)
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        get(&self.events, offset)
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        self.events.find(key, limit).map_err(unavailable)
    }

    fn find_from(&self, key: u64, from: Offset) -> Result<Vec<Offset>, Unavailable> {
        self.events.find_from(key, from).map_err(unavailable)
    }

    fn at_time(&self, at: Timestamp) -> Offset {
        self.events.at_time(at)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        segments(&self.events)
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        trim(&self.events, first)
    }

    fn acknowledge(&self, lines: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        let appending = append(&self.journal.mirrored.primary, lines);
        let grown = Arc::clone(&self.journal.mirrored.grown);
        async move {
            let appended = appending.await;
            grown.notify_one();
            appended
        }
        .boxed()
    }

    fn journal(&self) -> &dyn Journal {
        &self.journal
    }

    fn health(&self) -> Health {
        if self.astray.load(Ordering::Relaxed) {
            return Health::Poisoned(ASTRAY.to_owned());
        }
        match self.events.health() {
            // Without its journal the mesh could deliver and not remember it.
            Health::Serving => self.journal.mirrored.primary.health(),
            other => other,
        }
    }

    fn survey(&self) {
        if !self.is_at_home() && !self.astray.swap(true, Ordering::Relaxed) {
            tracing::error!(dir = %self.dir.display(), "events are refused: {ASTRAY}");
        }
        self.gate.look(&*self.vfs);
    }

    fn room(&self) -> watch::Receiver<Room> {
        self.gate.room()
    }

    fn damaged(&self) -> u64 {
        self.events.stats().damaged_count + self.journal.mirrored.damaged_count()
    }

    fn damaged_at(&self) -> Vec<Range<Offset>> {
        let damage = self.events.damage().into_iter();
        let mut ranges: Vec<_> = damage
            .map(|damage| damage.offsets)
            .filter(|offsets| !offsets.is_empty())
            .collect();
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    fn derived(&self) -> Option<Derived> {
        Some(Derived {
            vfs: Arc::clone(&self.vfs),
            dir: self.dir.join(DERIVED_DIR),
            mark: self.events.mark(),
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (events, journal) = (self.events.clone(), Arc::clone(&self.journal.mirrored));
        async move {
            journal.close().await;
            events.close().await;
        }
        .boxed()
    }
}
