//! A log that forgets everything: for tests of what is above it, and as a second opinion on the contract.
//!
//! Nothing here survives the value. It is simple enough to be believed, which is why the suite runs on it first.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use heddle_rt::Clock;
use heddle_store::Health;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    AppendRefused, Batch, Draft, Journal, Log, LogFuture, Lookup, Offset, Record, Room,
    SegmentInfo, Unavailable,
};

/// Records per segment: few, so that trimming is tried.
const SEGMENT_RECORDS: u64 = 16;

/// A log in memory. Clones are the same log.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    clock: Clock,
    events: Arc<MemoryRecords>,
    journal: Arc<MemoryRecords>,
    snapshots: Arc<Mutex<SnapshotList>>,
    refuse_reads: Arc<AtomicBool>,
    room: Arc<watch::Sender<Room>>,
}

/// Oldest first.
type SnapshotList = Vec<(Offset, Vec<u8>)>;

#[derive(Debug)]
struct MemoryRecords {
    inner: Mutex<Kept>,
    committed: watch::Sender<Offset>,
}

#[derive(Debug, Default)]
struct Kept {
    records: Vec<(u64, Record)>,
    next: Offset,
    refuse: Option<AppendRefused>,
}

impl MemoryLog {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            events: Arc::new(MemoryRecords::new()),
            journal: Arc::new(MemoryRecords::new()),
            snapshots: Arc::default(),
            refuse_reads: Arc::default(),
            room: Arc::default(),
        }
    }

    /// Fails to read segments of events from now on, or reads them again. Single events are still found.
    pub fn refuse_reads(&self, refuse: bool) {
        self.refuse_reads.store(refuse, Ordering::Release);
    }

    fn reads(&self) -> Result<(), Unavailable> {
        if self.refuse_reads.load(Ordering::Acquire) {
            return Err(Unavailable("it was told to fail".to_owned()));
        }
        Ok(())
    }

    /// Refuses appends of events from now on, or takes them again.
    pub fn refuse(&self, refusal: Option<AppendRefused>) {
        self.events.inner.lock().refuse = refusal;
    }

    /// Refuses lines of the journal from now on, or takes them again.
    pub fn refuse_lines(&self, refusal: Option<AppendRefused>) {
        self.journal.inner.lock().refuse = refusal;
    }
}

impl MemoryRecords {
    fn new() -> Self {
        let kept = Kept {
            next: 1,
            ..Kept::default()
        };
        Self {
            inner: Mutex::new(kept),
            committed: watch::Sender::new(1),
        }
    }

    fn append(&self, at: Timestamp, drafts: &[Draft<'_>]) -> Result<Range<Offset>, AppendRefused> {
        let mut kept = self.inner.lock();
        if let Some(refusal) = &kept.refuse {
            return Err(refusal.clone());
        }
        let first = kept.next;
        for draft in drafts {
            let record = Record {
                offset: kept.next,
                at,
                payload: Bytes::from(draft.parts.concat()),
            };
            kept.records.push((draft.key, record));
            kept.next += 1;
        }
        self.committed.send_replace(kept.next);
        Ok(first..kept.next)
    }

    fn bounds(&self) -> Range<Offset> {
        let kept = self.inner.lock();
        let first = kept
            .records
            .first()
            .map_or(kept.next, |(_, record)| record.offset);
        first..kept.next
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Batch {
        let kept = self.inner.lock();
        let start = kept
            .records
            .partition_point(|(_, record)| record.offset < from);
        let mut bytes = 0;
        let mut records: Vec<Record> = Vec::new();
        for (_, record) in &kept.records[start..] {
            bytes += record.payload.len();
            if bytes > bytes_max && !records.is_empty() {
                break;
            }
            records.push(record.clone());
        }
        let next = records.last().map_or(kept.next, |record| record.offset + 1);
        Batch {
            records,
            next,
            damaged: Vec::new(),
        }
    }

    fn get(&self, offset: Offset) -> Lookup {
        let kept = self.inner.lock();
        let at = kept
            .records
            .binary_search_by_key(&offset, |(_, record)| record.offset);
        match at {
            Ok(at) => Lookup::Found(kept.records[at].1.clone()),
            Err(_) => Lookup::Gone,
        }
    }

    fn find(&self, key: u64, limit: usize) -> Vec<Offset> {
        let kept = self.inner.lock();
        let found = kept.records.iter().filter(|(kept, _)| *kept == key);
        found.map(|(_, record)| record.offset).take(limit).collect()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        let kept = self.inner.lock();
        let mut segments: Vec<SegmentInfo> = Vec::new();
        for (_, record) in &kept.records {
            let number = (record.offset - 1) / SEGMENT_RECORDS;
            let bytes = record.payload.len() as u64;
            match segments.last_mut() {
                Some(last) if (last.first - 1) / SEGMENT_RECORDS == number => {
                    last.next = record.offset + 1;
                    last.last_at = record.at;
                    last.bytes += bytes;
                }
                _ => segments.push(SegmentInfo {
                    first: record.offset,
                    next: record.offset + 1,
                    last_at: record.at,
                    bytes,
                    sealed: (number + 1) * SEGMENT_RECORDS < kept.next,
                }),
            }
        }
        segments
    }

    fn trim(&self, first: Offset) -> Result<(), Unavailable> {
        let segments = self.segments();
        let segment = segments
            .iter()
            .find(|segment| segment.first == first && segment.sealed);
        let Some(segment) = segment else {
            return Err(Unavailable(format!("no sealed stretch begins at {first}")));
        };
        let mut kept = self.inner.lock();
        kept.records
            .retain(|(_, record)| record.offset < segment.first || record.offset >= segment.next);
        Ok(())
    }
}

impl Log for MemoryLog {
    fn append(&self, drafts: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        ready(self.events.append(self.clock.now(), drafts)).boxed()
    }

    fn bounds(&self) -> Range<Offset> {
        self.events.bounds()
    }

    fn beyond(&self, offset: Offset) -> BoxFuture<'static, Offset> {
        let mut committed = self.events.committed.subscribe();
        let log = self.clone();
        async move {
            let found = committed.wait_for(|next| *next > offset).await;
            let next = found.map(|next| *next);
            drop(log);
            next.unwrap_or(offset)
        }
        .boxed()
    }

    fn recent(&self, from: Offset, bytes_max: usize) -> Option<Batch> {
        self.reads().ok()?;
        Some(self.events.read(from, bytes_max))
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        self.reads()?;
        Ok(self.events.read(from, bytes_max))
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        Ok(self.events.get(offset))
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        Ok(self.events.find(key, limit))
    }

    fn at_time(&self, at: Timestamp) -> Offset {
        let kept = self.events.inner.lock();
        let found = kept.records.partition_point(|(_, record)| record.at < at);
        kept.records
            .get(found)
            .map_or(kept.next, |(_, record)| record.offset)
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.events.segments()
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        ready(self.events.trim(first)).boxed()
    }

    fn acknowledge(&self, lines: &[Draft<'_>]) -> LogFuture<Range<Offset>, AppendRefused> {
        ready(self.journal.append(self.clock.now(), lines)).boxed()
    }

    fn journal(&self) -> &dyn Journal {
        self
    }

    fn health(&self) -> Health {
        match &self.events.inner.lock().refuse {
            None => Health::Serving,
            Some(AppendRefused::Broken(reason) | AppendRefused::Undetermined(reason)) => {
                Health::Poisoned(reason.clone())
            }
            Some(_) => Health::Full,
        }
    }

    fn survey(&self) {}

    fn room(&self) -> watch::Receiver<Room> {
        self.room.subscribe()
    }

    fn damaged(&self) -> u64 {
        0
    }

    fn damaged_at(&self) -> Vec<Range<Offset>> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        ready(()).boxed()
    }
}

impl Journal for MemoryLog {
    fn bounds(&self) -> Range<Offset> {
        self.journal.bounds()
    }

    fn read(&self, from: Offset, bytes_max: usize) -> Result<Batch, Unavailable> {
        Ok(self.journal.read(from, bytes_max))
    }

    fn get(&self, offset: Offset) -> Result<Lookup, Unavailable> {
        Ok(self.journal.get(offset))
    }

    fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, Unavailable> {
        Ok(self.journal.find(key, limit))
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        self.journal.segments()
    }

    fn trim(&self, first: Offset) -> LogFuture<(), Unavailable> {
        ready(self.journal.trim(first)).boxed()
    }

    fn snapshots(&self) -> Result<Vec<(Offset, Vec<u8>)>, Unavailable> {
        Ok(self.snapshots.lock().iter().rev().cloned().collect())
    }

    fn keep_snapshot(&self, next: Offset, bytes: &[u8]) -> Result<(), Unavailable> {
        let mut snapshots = self.snapshots.lock();
        snapshots.push((next, bytes.to_vec()));
        let surplus = snapshots.len().saturating_sub(2);
        snapshots.drain(..surplus);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_keeps_the_contract() {
        let open = || async { Arc::new(MemoryLog::new(Clock::system())) as Arc<dyn Log> };
        crate::log::conformance::all(open).await;
    }
}
