//! Durable events: one log that everything is appended to once, read by offset, by key and by time.
//!
//! *Write, sync, then acknowledge; after a failed sync acknowledge nothing more until a restart.*
//! Offsets begin at 1, grow by one with every record, and are never given out twice. The records of
//! one append are neighbours and share one fate. What was acknowledged is read for as long as its
//! segment is kept; what was refused for want of room is never read.
//!
//! ```text
//!   append ─> pending ─> writer: write, sync ─┬─> cache ────> recent, read
//!                           │                 └─> segments ─> read, get, find, at_time
//!                           └─> keeper: seal, prepare, remove         open ─> recovery ─> segments
//! ```
//! A record whose bytes have changed on disk is left out and told as [`Damage`]; its neighbours are
//! read, its offset is not reused, its bytes stay where they are. What payloads mean, who has read
//! what and when a segment may go is left to others.

mod appending;
mod cache;
mod error;
mod export;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod limits;
mod manifest;
mod pending;
mod read;
mod recovery;
mod scan;
mod segment;
mod shared;
mod stats;
mod table;
mod time;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use heddle_rt::vfs::Vfs;
use heddle_rt::{Clock, OnError, Tasks};
use jiff::Timestamp;
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{mpsc, oneshot, watch};

pub use appending::Appending;
pub use error::{AppendError, Damage, DamageKind, ReadError, RemoveError};
pub use export::Export;
pub use limits::Limits;
pub use stats::EventStats;

use crate::mode::WriterDoor;
use crate::{Health, Mode, OpenError, lock_dir, open_error};
use appending::Promise;
use cache::Cache;
use format::{Head, PAYLOAD_BYTES_MAX};
use keeper::{CHORES_MAX, Chore, Helper, Keeper};
use pending::Pending;
use shared::{Segments, Shared};
use stats::AppendCounters;
use writer::Writer;

const SEGMENT_SUFFIX: &str = ".log";

/// Positions in a buffer are 32 bits long.
const PENDING_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Appends of up to so many records need no memory of their own.
const FEW: usize = 8;

/// How to open a log.
#[derive(Clone, Debug)]
pub struct Options {
    pub vfs: Arc<dyn Vfs>,
    /// Made when missing. Belongs to the log alone.
    pub dir: PathBuf,
    pub clock: Clock,
    /// Who owns the writer and the keeper; they get a group of their own.
    pub tasks: Tasks,
    pub limits: Limits,
    pub mode: Mode,
    /// What others know about it.
    pub known: Known,
}

/// What somebody outside the log knows about it, such as a copy of it or a record of who has read what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Everything below was safe once: bytes that are there and not sound were damaged, not torn by a power loss.
    pub safe: u64,
    /// Nothing below is given out any more, whether it was ever used or not.
    pub used: u64,
}

impl Options {
    /// With the usual limits and a task tree of its own.
    #[must_use]
    pub fn new(vfs: Arc<dyn Vfs>, dir: impl Into<PathBuf>, clock: Clock) -> Self {
        Self {
            vfs,
            dir: dir.into(),
            clock,
            tasks: Tasks::new("heddle"),
            limits: Limits::default(),
            mode: Mode::default(),
            known: Known::default(),
        }
    }
}

/// A record to append. Its payload is the two parts, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Whatever the caller tells records apart by.
    pub stream: u32,
    /// What [`EventLog::find`] finds it by; 0 is not found.
    pub key: u64,
    pub parts: [&'a [u8]; 2],
}

impl Draft<'_> {
    fn payload_bytes(&self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    fn record_bytes(&self) -> usize {
        format::record_bytes(self.payload_bytes())
    }
}

/// A record that is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub offset: u64,
    /// When it was accepted; never earlier than the record before.
    pub at: Timestamp,
    pub stream: u32,
    pub key: u64,
    /// A part of a larger buffer: who keeps it for long copies it.
    pub payload: Bytes,
}

impl Record {
    fn of(head: &Head, payload: Bytes) -> Self {
        Self {
            offset: head.offset,
            at: time::timestamp(head.at),
            stream: head.stream,
            key: head.key,
            payload,
        }
    }
}

/// What a read found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub records: Vec<Record>,
    /// Where to read on. Beyond the last record when offsets behind it are gone.
    pub next: u64,
    /// What should have been between `from` and `next` and cannot be read.
    pub damaged: Vec<Damage>,
}

/// What is at one offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    Record(Record),
    /// It was appended, and its bytes are not what was written or in no file any more.
    Damaged,
    /// It was removed with its segment, or is not there yet.
    Gone,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub first: u64,
    /// The first offset after it.
    pub next: u64,
    pub records: u64,
    /// `None` when it is empty.
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
    pub bytes: u64,
    /// Nothing is added any more; it may be removed.
    pub sealed: bool,
}

/// A handle on the log. Clones are the same log; when the last one is gone the log is let go.
#[derive(Clone, Debug)]
pub struct EventLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    /// To the keeper, where there is one; the writer is woken by what is pending.
    door: WriterDoor<Chore, Writer>,
    tasks: Tasks,
}

impl EventLog {
    /// Opens the log in `options.dir`, or makes one. A second process is refused.
    ///
    /// Blocks while it reads the segment that was appended to last.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Options {
            vfs,
            dir,
            clock,
            tasks,
            mut limits,
            mode,
            known,
        } = options;
        limits.record_bytes_max = limits.record_bytes_max.min(PAYLOAD_BYTES_MAX);
        limits.pending_bytes_max = limits.pending_bytes_max.min(PENDING_BYTES_MAX);
        vfs.create_dir_all(&dir).map_err(open_error(&dir))?;
        let lock = lock_dir(vfs.as_ref(), &dir)?;
        let found = recovery::recover(&vfs, &dir, &limits, known, fresh_mark(&clock, &dir))?;
        let mark = found.manifest.mark;
        let pending = Pending::new(mark, found.next, found.chain, found.last_at);
        let shared = Arc::new(Shared {
            vfs,
            clock,
            limits,
            mode,
            mark,
            pending: Mutex::new(pending),
            work: Condvar::new(),
            segments: RwLock::new(Segments {
                by_first: found.segments,
                missing: found.missing,
            }),
            cache: RwLock::new(Cache::new(limits.cache_bytes_max)),
            committed: watch::Sender::new(found.next),
            counters: Mutex::new(AppendCounters::new(found.torn_bytes)),
            damage: Mutex::default(),
            manifest: Mutex::new(found.manifest),
            spare: Mutex::new(None),
            spares: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            full: AtomicBool::new(false),
            short_of: Mutex::new(None),
            lock: Mutex::new(Some(lock)),
            dir,
        });
        found
            .damage
            .into_iter()
            .for_each(|damage| shared.note(damage));
        let writer = |helper| Writer {
            shared: shared.clone(),
            helper,
            active: found.active,
            next: found.next,
            chain: found.chain,
        };
        let keeper = Keeper {
            shared: shared.clone(),
        };
        let tasks = tasks.child("events");
        let door = match mode {
            Mode::Inline => WriterDoor::inline(writer(Helper::Inline(keeper))),
            Mode::Thread => {
                let (chores, queue) = mpsc::channel(CHORES_MAX);
                let writer = writer(Helper::Thread(chores.clone()));
                tasks
                    .spawn_thread("log-keeper", OnError::EndProcess, move || keeper.run(queue))
                    .and_then(|()| {
                        tasks.spawn_thread("log-writer", OnError::EndProcess, || writer.run())
                    })
                    .map_err(open_error(&shared.dir))?;
                WriterDoor::thread(chores)
            }
        };
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                door,
                tasks,
            }),
        })
    }

    /// Appends all of the drafts or none. They are neighbours, and safe when the future says so.
    ///
    /// The append is under way when this returns: a caller that stops waiting does not stop it.
    /// Without drafts there is nothing to wait for.
    pub fn append(&self, drafts: &[Draft<'_>]) -> Appending {
        let shared = &self.inner.shared;
        if drafts.is_empty() {
            let next = shared.committed();
            return Appending::waiting(Promise::kept(), next..next);
        }
        if let Err(error) = self.check(drafts) {
            return Appending::refused(error);
        }
        let sum = |draft: &Draft<'_>| format::payload_checksum(&draft.parts);
        if drafts.len() > FEW {
            let sums: Vec<u32> = drafts.iter().map(sum).collect();
            return self.push(drafts, &sums);
        }
        let mut sums = [0; FEW];
        for (slot, draft) in sums.iter_mut().zip(drafts) {
            *slot = sum(draft);
        }
        self.push(drafts, &sums[..drafts.len()])
    }

    fn check(&self, drafts: &[Draft<'_>]) -> Result<(), AppendError> {
        let limits = &self.inner.shared.limits;
        let too_large = |bytes, bytes_max| Err(AppendError::TooLarge { bytes, bytes_max });
        for bytes in drafts.iter().map(Draft::payload_bytes) {
            if bytes > limits.record_bytes_max {
                return too_large(bytes, limits.record_bytes_max);
            }
        }
        match drafts.iter().map(Draft::record_bytes).sum() {
            bytes if bytes > limits.pending_bytes_max => too_large(bytes, limits.pending_bytes_max),
            _ => Ok(()),
        }
    }

    fn push(&self, drafts: &[Draft<'_>], sums: &[u32]) -> Appending {
        let shared = &self.inner.shared;
        // Held first where nobody else writes, so that appends are written in the order they come.
        let mut writer = match &self.inner.door {
            WriterDoor::Inline(writer) => Some(writer.lock()),
            WriterDoor::Thread(_) => None,
        };
        let at = time::nanoseconds(shared.clock.now());
        let mut pending = shared.pending.lock();
        let pushed = pending.push(drafts, sums, at, &shared.limits);
        let wake = std::mem::take(&mut pending.idle);
        let buffer = match writer {
            Some(_) => pending.take(),
            None => None,
        };
        drop(pending);
        if wake {
            shared.work.notify_one();
        }
        if let (Some(writer), Some(buffer)) = (&mut writer, buffer) {
            let writer = writer.as_mut().expect("a closed log takes no appends");
            writer.commit(buffer);
        }
        match pushed {
            Ok((offsets, answer)) => Appending::waiting(answer, offsets),
            Err(error) => Appending::refused(error),
        }
    }

    /// The first offset that is kept; [`EventLog::committed`] when none is.
    #[must_use]
    pub fn first(&self) -> u64 {
        let segments = self.inner.shared.segments.read();
        let first = segments.by_first.keys().next().copied();
        drop(segments);
        first.unwrap_or_else(|| self.committed())
    }

    /// The offset after the last record that is safe.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.inner.shared.committed()
    }

    /// Waits until there is a record at `offset`, and says how far the log goes then.
    pub async fn beyond(&self, offset: u64) -> u64 {
        let mut committed = self.inner.shared.committed.subscribe();
        *committed
            .wait_for(|committed| *committed > offset)
            .await
            .expect("the sender lives as long as this handle")
    }

    /// Records from memory, without touching a file. `None` when `from` is not there, or not there
    /// any more.
    #[must_use]
    pub fn recent(&self, from: u64, bytes_max: usize) -> Option<Vec<Record>> {
        self.inner.shared.recent(from, bytes_max)
    }

    /// The records from `from` on, until their payloads have `bytes_max` bytes, and at least one
    /// when there is one. May end early; never goes beyond what is safe.
    pub fn read(&self, from: u64, bytes_max: usize) -> Result<Batch, ReadError> {
        self.inner.shared.read(from, bytes_max)
    }

    /// What is at `offset`. An error says nothing about that: the file could not be read this time.
    pub fn get(&self, offset: u64) -> Result<Slot, ReadError> {
        self.inner.shared.get(offset)
    }

    /// The offsets of the records with this key, oldest first, at most `limit`.
    pub fn find(&self, key: u64, limit: usize) -> Result<Vec<u64>, ReadError> {
        self.inner.shared.find(key, limit)
    }

    /// The same from an offset on, all of them. Segments that end before it are not looked at.
    pub fn find_from(&self, key: u64, from: u64) -> Result<Vec<u64>, ReadError> {
        self.inner.shared.find_from(key, from)
    }

    /// The first offset that was accepted at or after a time.
    #[must_use]
    pub fn at_time(&self, at: Timestamp) -> u64 {
        self.inner.shared.at_time(time::nanoseconds(at))
    }

    /// All segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let segments = self.inner.shared.all_segments();
        segments.iter().map(|segment| segment.info()).collect()
    }

    /// The number that this log's files have in common and no other log's have.
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.inner.shared.mark
    }

    /// The mark of the log in a directory, if there is one; 0 when it is too damaged to tell. Changes nothing.
    pub fn mark_of(vfs: &dyn Vfs, dir: &Path) -> Result<Option<u32>, OpenError> {
        recovery::mark_of(vfs, dir)
    }

    /// Whether all of these offsets were given up on purpose.
    #[must_use]
    pub fn has_removed(&self, offsets: &std::ops::Range<u64>) -> bool {
        self.inner.shared.manifest.lock().has_removed(offsets)
    }

    /// How many segments were begun since the log was opened: a cheap way to notice that it has grown.
    #[must_use]
    pub fn segments_begun(&self) -> u64 {
        self.inner.shared.begun.load(Ordering::Relaxed)
    }

    /// Ends the active segment behind what is pending now, so that it can be removed soon.
    pub fn seal(&self) {
        match &self.inner.door {
            WriterDoor::Thread(_) => {
                let shared = &self.inner.shared;
                shared.pending.lock().seal = true;
                shared.work.notify_one();
            }
            WriterDoor::Inline(writer) => {
                if let Some(writer) = writer.lock().as_mut() {
                    writer.seal();
                }
            }
        }
    }

    /// Removes the sealed segment that begins at `first`, for good when this returns.
    pub async fn remove_segment(&self, first: u64) -> Result<(), RemoveError> {
        match &self.inner.door {
            WriterDoor::Inline(writer) => {
                let _alone = writer.lock();
                let shared = self.inner.shared.clone();
                if shared.is_closing() {
                    return Err(RemoveError::Closed);
                }
                Keeper { shared }.remove(first)
            }
            WriterDoor::Thread(chores) => {
                let chores = chores.lock().clone().ok_or(RemoveError::Closed)?;
                let (reply, answer) = oneshot::channel();
                let asked = chores.send(Chore::Remove { first, reply }).await;
                asked.map_err(|_| RemoveError::Closed)?;
                answer.await.map_err(|_| RemoveError::Closed)?
            }
        }
    }

    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.shared.health()
    }

    #[must_use]
    pub fn stats(&self) -> EventStats {
        let shared = &self.inner.shared;
        let mut stats = shared.counters.lock().stats();
        stats.damaged_count = shared.damage.lock().count;
        stats.pending_bytes = shared.pending.lock().bytes;
        stats.cache_bytes = shared.cache.read().bytes;
        let segments = self.segments();
        stats.segments_count = segments.len();
        stats.segments_bytes = segments.iter().map(|segment| segment.bytes).sum();
        stats
    }

    /// All that was found damaged so far, while opening and while reading.
    #[must_use]
    pub fn damage(&self) -> Vec<Damage> {
        self.inner.shared.damage.lock().list.clone()
    }

    /// Finishes what is pending, refuses what comes later, and returns when the files are let go.
    /// Reads go on.
    pub async fn close(&self) {
        let Inner {
            shared,
            door,
            tasks,
        } = &*self.inner;
        shared.close();
        match door {
            WriterDoor::Inline(writer) => {
                if let Some(mut writer) = writer.lock().take() {
                    writer.seal();
                    Keeper {
                        shared: shared.clone(),
                    }
                    .finish();
                }
            }
            WriterDoor::Thread(chores) => {
                drop(chores.lock().take());
                tasks.join().await;
            }
        }
        shared.lock.lock().take();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The threads notice, finish what is pending and let go of the files.
        if let WriterDoor::Thread(_) = self.door {
            self.shared.close();
        }
    }
}

fn segment_name(first: u64) -> String {
    format!("{first:020}{SEGMENT_SUFFIX}")
}

/// The offset a segment's name tells; `None` when it is no such name.
fn named_first(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(SEGMENT_SUFFIX)?;
    let digits = stem.rsplit('-').next()?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// A number of the log's own. Not zero, which is what unused bytes look like.
fn fresh_mark(clock: &Clock, dir: &Path) -> u32 {
    let moment = crc32c::crc32c(&clock.now().as_nanosecond().to_le_bytes());
    crc32c::crc32c_append(moment, dir.as_os_str().as_encoded_bytes()) | 1
}
