//! The lines on disk: a log of the same make as that of events, small, in `audit/` below the data directory.
//!
//! ```text
//!   record   as in every log (heddle-store: events/format.rs), with the payload:  layout u8 │ the entry as JSON
//! ```
//! *Write, sync, then acknowledge*, one sync for all that wait; a torn end is cut off, damaged records are passed over and told,
//! and none of it keeps a server from starting. What is kept is bounded in bytes and in time, whole segments at once, the
//! oldest first. A wrong clock costs one segment a day at most.

pub(crate) mod fuzzing;

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::audit::{AuditEntry, AuditLine, AuditQuery};
use heddle_rt::{Clock, Tasks};
use heddle_store::events::{
    Appending, Draft, EventLog, Export, Limits, Options, ReadError, Record, SegmentInfo,
};
use heddle_store::{Health, Mode};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::wire::World;

/// The log's own directory below the data directory.
pub(crate) const AUDIT: &str = "audit";

/// All lines together.
pub(crate) const BYTES_MAX: u64 = 1 << 30;
/// Lines are kept so long, unless they have more bytes than that.
pub(crate) const AGE_MIN: SignedDuration = SignedDuration::from_hours(90 * 24);
/// What is too old by the clock goes one segment at a time, and no faster than this.
const AGED_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// A segment is what goes at once.
const SEGMENT_BYTES: u64 = 4 << 20;
/// The longest line; entries are cut far below it.
const LINE_BYTES_MAX: usize = 16 << 10;
/// What may wait for the disk.
const PENDING_BYTES_MAX: usize = 4 << 20;
/// Recent lines in memory: for whoever follows.
const CACHE_BYTES_MAX: usize = 1 << 20;
/// Lines that are looked at in one go.
const STEP_LINES: u64 = 512;
const STEP_BYTES: usize = 1 << 20;

/// The layout of a payload. A higher number is passed over, not guessed at.
const LAYOUT: u8 = 1;

/// The lines on disk.
#[derive(Debug)]
pub(crate) struct AuditJournal {
    log: EventLog,
    clock: Clock,
    /// When a segment went for its age, by the monotonic clock.
    aged: Mutex<Option<Duration>>,
}

impl AuditJournal {
    pub(crate) fn open(dir: &Path, world: &World, tasks: &Tasks) -> anyhow::Result<Self> {
        let dir = dir.join(AUDIT);
        let options = Options {
            tasks: tasks.clone(),
            limits: limits(),
            mode: match world.clock.is_simulated() {
                true => Mode::Inline,
                false => Mode::Thread,
            },
            ..Options::new(world.vfs.clone(), &dir, world.clock.clone())
        };
        let log = EventLog::open(options)
            .with_context(|| format!("cannot open the audit log in {}", dir.display()))?;
        for damage in log.damage() {
            tracing::warn!(%damage, "the audit log is damaged; the rest of it is kept");
        }
        Ok(Self {
            log,
            clock: world.clock.clone(),
            aged: Mutex::default(),
        })
    }

    /// Appends a line; it is safe when the future says so, and on its way however long anybody waits.
    pub(crate) fn append(&self, entry: &AuditEntry) -> Appending {
        let payload = encode(entry);
        let draft = Draft {
            stream: 0,
            key: 0,
            parts: [&[LAYOUT], &payload],
        };
        self.log.append(&[draft])
    }

    pub(crate) fn health(&self) -> Health {
        self.log.health()
    }

    /// The place after the newest line.
    pub(crate) fn end(&self) -> u64 {
        self.log.committed()
    }

    /// When the oldest line that is kept was written.
    pub(crate) fn oldest_at(&self) -> Option<Timestamp> {
        let segments = self.log.segments();
        segments.iter().find_map(|segment| segment.first_at)
    }

    /// What was found damaged, and how many lines that are.
    pub(crate) fn damage(&self) -> (u64, Vec<String>) {
        let damage = self.log.damage();
        let lines = damage
            .iter()
            .map(|damage| damage.offsets.end.saturating_sub(damage.offsets.start));
        (
            lines.sum(),
            damage.iter().map(ToString::to_string).collect(),
        )
    }

    /// What to copy for a backup.
    pub(crate) fn export(&self) -> std::io::Result<Export> {
        self.log.export()
    }

    /// Begins to look for lines, the newest first: those below `below` and from `floor` on.
    pub(crate) fn search(&self, query: AuditQuery, below: u64, floor: u64) -> AuditSearch {
        let since = query.since.map_or(0, |since| self.log.at_time(since));
        let until = query
            .until
            .map_or(u64::MAX, |until| self.log.at_time(until));
        AuditSearch {
            log: self.log.clone(),
            below: below.min(until).min(self.log.committed()),
            floor: floor.max(since),
            query,
        }
    }

    /// Removes what is more than is kept.
    pub(crate) async fn retain(&self, now: Timestamp) {
        self.retain_within(now, BYTES_MAX).await;
    }

    async fn retain_within(&self, now: Timestamp, bytes_max: u64) {
        let mut sealed: VecDeque<SegmentInfo> = self.log.segments().into();
        let mut bytes: u64 = sealed.iter().map(|segment| segment.bytes).sum();
        sealed.retain(|segment| segment.sealed);
        while bytes > bytes_max
            && let Some(oldest) = sealed.pop_front()
        {
            bytes -= oldest.bytes;
            self.remove(oldest.first).await;
        }
        let too_old = |segment: &SegmentInfo| {
            let age = segment.last_at.map(|last| now.duration_since(last));
            age.is_some_and(|age| age > AGE_MIN)
        };
        if let Some(oldest) = sealed.pop_front().filter(too_old)
            && self.may_age()
        {
            self.remove(oldest.first).await;
        }
    }

    fn may_age(&self) -> bool {
        let (now, mut aged) = (self.clock.monotonic(), self.aged.lock());
        let may = aged.is_none_or(|aged| now >= aged.saturating_add(AGED_EVERY));
        if may {
            *aged = Some(now);
        }
        may
    }

    async fn remove(&self, first: u64) {
        if let Err(error) = self.log.remove_segment(first).await {
            tracing::warn!(%error, "cannot remove a segment of the audit log that is too old");
        }
    }

    pub(crate) async fn close(&self) {
        self.log.close().await;
    }
}

const fn limits() -> Limits {
    Limits {
        record_bytes_max: LINE_BYTES_MAX,
        segment_bytes: SEGMENT_BYTES,
        pending_bytes_max: PENDING_BYTES_MAX,
        cache_bytes_max: CACHE_BYTES_MAX,
        batch_bytes_max: PENDING_BYTES_MAX,
        reserve_bytes: SEGMENT_BYTES,
    }
}

fn encode(entry: &AuditEntry) -> Vec<u8> {
    // There is nothing in it that cannot be written.
    serde_json::to_vec(entry).unwrap_or_default()
}

/// A line, unless a later version wrote it in another way.
pub(super) fn decode(record: &Record) -> Option<AuditLine> {
    let (layout, payload) = record.payload.split_first()?;
    if *layout != LAYOUT {
        return None;
    }
    Some(AuditLine {
        number: record.offset,
        at: record.at,
        entry: serde_json::from_slice(payload).ok()?,
    })
}

/// A search under way. Each step is short.
#[derive(Debug)]
pub(crate) struct AuditSearch {
    log: EventLog,
    query: AuditQuery,
    below: u64,
    floor: u64,
}

/// What one step found.
#[derive(Debug, Default)]
pub(crate) struct AuditStep {
    /// The newest first.
    pub(crate) lines: Vec<AuditLine>,
    /// Sound records that this release cannot read.
    pub(crate) unreadable: u64,
}

impl AuditSearch {
    /// Where it goes on; `None` at the end.
    pub(crate) fn next(&self) -> Option<u64> {
        (self.below > self.floor.max(self.log.first())).then_some(self.below)
    }

    /// Looks at some more lines.
    pub(crate) fn step(&mut self) -> Result<AuditStep, ReadError> {
        let mut step = AuditStep::default();
        let Some(stretch) = self.stretch() else {
            self.below = self.floor;
            return Ok(step);
        };
        let mut at = stretch.start;
        while at < stretch.end {
            let batch = self.log.read(at, STEP_BYTES)?;
            for record in &batch.records {
                if record.offset >= stretch.end {
                    break;
                }
                match decode(record) {
                    Some(line) if self.query.matches(&line) => step.lines.push(line),
                    Some(_) => {}
                    None => step.unreadable += 1,
                }
            }
            // Nothing is there any more: retention was faster.
            if batch.next <= at {
                break;
            }
            at = batch.next;
        }
        step.lines.reverse();
        self.below = stretch.start;
        Ok(step)
    }

    /// The places to look at next. They are all in one segment, so that the gap behind a lost one costs nothing.
    fn stretch(&self) -> Option<std::ops::Range<u64>> {
        let segments = self.log.segments();
        let segment = segments
            .iter()
            .rev()
            .find(|segment| segment.first < self.below && segment.next > segment.first)?;
        let end = self.below.min(segment.next);
        let start = end
            .saturating_sub(STEP_LINES)
            .max(segment.first)
            .max(self.floor);
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests;
