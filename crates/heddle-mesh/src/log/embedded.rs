//! The log in this process: two segmented logs of heddle-store, one for events and one for the journal.
//!
//! The only file of the mesh that knows heddle-store's engine. Snapshots of the journal are files beside it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use heddle_rt::{Clock, Tasks, Vfs};
use heddle_store::events::{self, AppendError, EventLog, Slot};
use heddle_store::{Health, Mode, OpenError};
use jiff::Timestamp;
use tokio::sync::watch;

use super::room::Gate;
use super::{
    Answer, Batch, Draft, Journal, Log, Lookup, Offset, Record, Refused, Reserve, Room, Stretch,
    Unavailable,
};

const EVENTS_DIR: &str = "log";
const JOURNAL_DIR: &str = "journal";
const SNAPSHOT_PREFIX: &str = "positions-";
/// The newest, and the one before it in case the newest is damaged.
const SNAPSHOTS_KEPT: usize = 2;

/// A record of the journal may hold a dead letter, which is an event and more, behind other lines.
const JOURNAL_RECORD_BYTES_MAX: usize = 8 << 20;
/// Only one append of the journal is under way at a time, and it cannot be divided: the mark in it counts on every line.
/// What is in it came from attempts, so their number bounds it; refusing it as too much would refuse it for ever.
const JOURNAL_PENDING_BYTES_MAX: usize = 1 << 30;

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
    events: EventLog,
    journal: EventLog,
    gate: Gate,
}

impl EmbeddedLog {
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let open = |name: &str| {
            let dir = options.dir.join(name);
            let mut inner = events::Options::new(options.vfs.clone(), dir, options.clock.clone());
            inner.tasks = options.tasks.child(name);
            inner.mode = options.mode;
            if let Some(bytes) = options.segment_bytes {
                inner.limits.segment_bytes = bytes;
                inner.limits.reserve_bytes = inner.limits.reserve_bytes.min(bytes);
            }
            if name == JOURNAL_DIR {
                inner.limits.record_bytes_max = JOURNAL_RECORD_BYTES_MAX;
                inner.limits.pending_bytes_max = JOURNAL_PENDING_BYTES_MAX;
            }
            EventLog::open(inner)
        };
        let (events, journal) = (open(EVENTS_DIR)?, open(JOURNAL_DIR)?);
        let dir = options.dir.clone();
        let gate = Gate::new(&*options.vfs, dir, options.clock, options.reserve);
        Ok(Self {
            events,
            journal,
            gate,
            dir: options.dir.join(JOURNAL_DIR),
            vfs: options.vfs,
        })
    }

    /// The engine underneath, for its statistics.
    #[must_use]
    pub fn engine(&self) -> &EventLog {
        &self.events
    }
}

fn append(log: &EventLog, drafts: &[Draft<'_>]) -> Answer<Range<Offset>, Refused> {
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

fn refused(error: AppendError) -> Refused {
    match error {
        AppendError::TooLarge { bytes, bytes_max } => Refused::TooLarge {
            bytes,
            max: bytes_max,
        },
        AppendError::Busy => Refused::Busy,
        AppendError::Full => Refused::Full,
        other => Refused::Broken(other.to_string()),
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

fn stretches(log: &EventLog) -> Vec<Stretch> {
    let segments = log.segments().into_iter();
    segments
        .map(|segment| Stretch {
            first: segment.first,
            next: segment.next,
            // A segment without a record has nothing to keep; it is the newest, which stays anyway.
            last_at: segment.last_at.unwrap_or(Timestamp::MAX),
            bytes: segment.bytes,
            sealed: segment.sealed,
        })
        .collect()
}

fn trim(log: &EventLog, first: Offset) -> Answer<(), Unavailable> {
    let log = log.clone();
    async move { log.remove_segment(first).await.map_err(unavailable) }.boxed()
}

fn unavailable(error: impl std::error::Error) -> Unavailable {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Unavailable(format!("{error}{}", cause.unwrap_or_default()))
}

impl Log for EmbeddedLog {
    fn append(&self, drafts: &[Draft<'_>]) -> Answer<Range<Offset>, Refused> {
        let begun = self.events.segments_begun() + self.journal.segments_begun();
        if let Err(room) = self.gate.pass(&*self.vfs, begun) {
            return ready(Err(Refused::Low(Box::new(room)))).boxed();
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

    fn at_time(&self, at: Timestamp) -> Offset {
        self.events.at_time(at)
    }

    fn stretches(&self) -> Vec<Stretch> {
        stretches(&self.events)
    }

    fn trim(&self, first: Offset) -> Answer<(), Unavailable> {
        trim(&self.events, first)
    }

    fn acknowledge(&self, lines: &[Draft<'_>]) -> Answer<Range<Offset>, Refused> {
        append(&self.journal, lines)
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn health(&self) -> Health {
        match self.events.health() {
            // Without its journal the mesh could deliver and not remember it.
            Health::Serving => self.journal.health(),
            other => other,
        }
    }

    fn survey(&self) {
        self.gate.look(&*self.vfs);
    }

    fn room(&self) -> watch::Receiver<Room> {
        self.gate.room()
    }

    fn damaged(&self) -> u64 {
        (self.events.damage().len() + self.journal.damage().len()) as u64
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (events, journal) = (self.events.clone(), self.journal.clone());
        async move {
            journal.close().await;
            events.close().await;
        }
        .boxed()
    }
}

impl Journal for EmbeddedLog {
    fn bounds(&self) -> Range<Offset> {
        self.journal.first()..self.journal.committed()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        read(&self.journal, from, bytes_max)
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        get(&self.journal, offset)
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        self.journal.find(key, limit).map_err(unavailable)
    }

    fn stretches(&self) -> Vec<Stretch> {
        stretches(&self.journal)
    }

    fn trim(&self, first: Offset) -> Answer<(), Unavailable> {
        trim(&self.journal, first)
    }

    fn snapshots(&self) -> Result<Vec<(Offset, Vec<u8>)>, Unavailable> {
        let mut found = Vec::new();
        for (next, name) in self.snapshot_names()?.into_iter().rev() {
            let bytes = self.vfs.read(&self.dir.join(name)).map_err(unavailable)?;
            found.push((next, bytes));
        }
        Ok(found)
    }

    fn keep_snapshot(&self, next: Offset, bytes: &[u8]) -> Result<(), Unavailable> {
        // Padded, so that names sort like the numbers in them.
        let path = self.dir.join(format!("{SNAPSHOT_PREFIX}{next:020}"));
        self.vfs
            .write_atomic(&path, bytes, 0o600)
            .map_err(unavailable)?;
        let names = self.snapshot_names()?;
        for (_, name) in names.iter().rev().skip(SNAPSHOTS_KEPT) {
            self.vfs.remove(&self.dir.join(name)).map_err(unavailable)?;
        }
        self.vfs.sync_dir(&self.dir).map_err(unavailable)
    }
}

impl EmbeddedLog {
    /// Oldest first.
    fn snapshot_names(&self) -> Result<Vec<(Offset, String)>, Unavailable> {
        let names = self.vfs.list(&self.dir).map_err(unavailable)?.into_iter();
        let numbered = names.filter_map(|name| {
            let next = name.strip_prefix(SNAPSHOT_PREFIX)?.parse().ok()?;
            Some((next, name))
        });
        Ok(numbered.collect())
    }
}
