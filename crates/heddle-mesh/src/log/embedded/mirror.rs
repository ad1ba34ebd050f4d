//! The journal, kept twice: one damaged sector costs nothing.
//!
//! ```text
//!   append ──> journal ──> safe, answered
//!                 └──(soon, many at once)──> mirror       read: the journal, and the mirror for what is damaged there
//! ```
//! The mirror is a log of its own, with its own segments and checksums. Each of its records is a record of the journal behind
//! the offset it has there, in order. It comes after the answer, so appending costs one sync as before; what a kill leaves
//! uncopied is copied at the next start. Where a record is lost in both, reading says so; making the best of that is left
//! to whoever reads.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use heddle_rt::{Clock, OnError, Tasks};
use heddle_store::events::{AppendError, Draft, EventLog, ReadError, Record, RemoveError};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Offset;

/// How long records wait for company before they are copied. A kill leaves at most these to one copy.
const COPY_EVERY: Duration = Duration::from_millis(100);
/// After the mirror could not be written.
const COPY_AGAIN: Duration = Duration::from_secs(1);
/// Bytes copied or healed in one go.
const COPY_BYTES: usize = 1 << 20;
/// What stands before each record of the mirror: its offset in the journal.
const PREFIX_BYTES: usize = size_of::<Offset>();

/// Two copies of the journal.
#[derive(Debug)]
pub(super) struct Mirrored {
    pub(super) primary: EventLog,
    mirror: EventLog,
    /// The first record that the mirror has not been given.
    copied: Mutex<Offset>,
    /// Told when the journal has grown, and when it is let go.
    pub(super) grown: Arc<Notify>,
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        self.grown.notify_one();
    }
}

/// Some records in order, whichever copy they came from.
#[derive(Debug, Default)]
pub(super) struct Healed {
    pub(super) records: Vec<Record>,
    pub(super) next: Offset,
    /// What can be read in neither copy.
    pub(super) damaged: Vec<Range<Offset>>,
}

impl Mirrored {
    /// Two logs that were opened, the mirror with an end that was looked up.
    pub(super) fn new(primary: EventLog, mirror: EventLog, mirrored_to: Offset) -> Self {
        Self {
            primary,
            mirror,
            copied: Mutex::new(mirrored_to),
            grown: Arc::default(),
        }
    }

    /// What is kept of the journal, in either copy.
    pub(super) fn bounds(&self) -> Range<Offset> {
        let end = self.primary.committed();
        let first = self.primary.first();
        // Offsets before the first segment that were not removed are lost here, and perhaps not in the mirror.
        let lost = first > 1 && !self.primary.has_removed(&(1..first));
        let mirrored = lost.then(|| start_of(&self.mirror).ok()).flatten();
        let start = mirrored.filter(|start| *start > 0).unwrap_or(first);
        start.min(first)..end
    }

    /// How many segments were begun.
    pub(super) fn segments_begun(&self) -> u64 {
        self.primary.segments_begun() + self.mirror.segments_begun()
    }

    /// Records from `from` on; at least one if there is one that can be read in either copy.
    pub(super) fn read(&self, from: Offset, bytes_max: usize) -> Result<Healed, ReadError> {
        let batch = self.primary.read(from, bytes_max)?;
        let mut told: Vec<Range<Offset>> = batch.damaged.into_iter().map(|d| d.offsets).collect();
        let void = |record: &&Record| record.payload.is_empty();
        let voids = batch.records.iter().filter(void);
        told.extend(voids.map(|record| record.offset..record.offset + 1));
        let mut healed = Healed {
            next: batch.next,
            ..Healed::default()
        };
        if told.is_empty() && batch.records.len() as u64 == batch.next.saturating_sub(from) {
            healed.records = batch.records;
            return Ok(healed);
        }
        let mut at = from;
        let mut bytes = 0;
        let own = batch
            .records
            .into_iter()
            .filter(|record| !record.payload.is_empty());
        let end = std::iter::once(None);
        for record in own.map(Some).chain(end) {
            let until = record.as_ref().map_or(batch.next, |record| record.offset);
            if at < until && !self.primary.has_removed(&(at..until)) {
                let stopped = self.heal(at..until, bytes_max, &mut bytes, &told, &mut healed)?;
                if let Some(next) = stopped {
                    healed.next = next;
                    return Ok(healed);
                }
            }
            at = until + 1;
            bytes += record.as_ref().map_or(0, |record| record.payload.len());
            healed.records.extend(record);
        }
        Ok(healed)
    }

    /// Takes what the journal does not have from the mirror. Gives where it stopped, if that was enough.
    fn heal(
        &self,
        lost: Range<Offset>,
        bytes_max: usize,
        bytes: &mut usize,
        told: &[Range<Offset>],
        healed: &mut Healed,
    ) -> Result<Option<Offset>, ReadError> {
        let mut at = lost.start;
        let mut place = self.place_of(lost.start)?;
        while let Some(from) = place {
            let batch = self.mirror.read(from, COPY_BYTES)?;
            for record in batch.records.into_iter().filter_map(unwrap) {
                if record.offset < at {
                    continue;
                }
                if record.offset >= lost.end {
                    tell(at..lost.end, told, &mut healed.damaged);
                    return Ok(None);
                }
                if *bytes >= bytes_max && !healed.records.is_empty() {
                    return Ok(Some(at));
                }
                tell(at..record.offset, told, &mut healed.damaged);
                at = record.offset + 1;
                *bytes += record.payload.len();
                healed.records.push(record);
            }
            place = (batch.next > from).then_some(batch.next);
        }
        tell(at..lost.end, told, &mut healed.damaged);
        Ok(None)
    }

    /// The offsets in the journal of the records with this key, oldest first.
    pub(super) fn find(&self, key: u64, limit: usize) -> Result<Vec<Offset>, ReadError> {
        let mut found = self.primary.find(key, limit)?;
        // Damage that would hide a key is known: what has tables finds its records by them, all else was read at the start.
        if self.primary.stats().damaged_count == 0 {
            return Ok(found);
        }
        for place in self.mirror.find(key, limit)? {
            found.extend(first_at(&self.mirror, place)?.map(|(_, record)| record.offset));
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(limit);
        Ok(found)
    }

    /// Forgets a segment of the journal, and of the mirror what only spoke of such.
    pub(super) async fn trim(&self, first: Offset) -> Result<(), RemoveError> {
        let segments = self.primary.segments();
        let segment = segments.iter().find(|segment| segment.first == first);
        let copied = segment.is_none_or(|segment| segment.next <= *self.copied.lock());
        if !copied && self.mirror_serves() {
            // Its turn comes again; what the mirror never had it would miss for ever.
            return Ok(());
        }
        self.primary.remove_segment(first).await?;
        for segment in self
            .mirror
            .segments()
            .iter()
            .filter(|segment| segment.sealed)
        {
            let Ok(Some(offsets)) = self.offsets_of(segment.first..segment.next) else {
                continue;
            };
            if self.primary.has_removed(&offsets) {
                self.mirror.remove_segment(segment.first).await?;
            }
        }
        Ok(())
    }

    /// The records of the journal between two places of the mirror.
    fn offsets_of(&self, places: Range<u64>) -> Result<Option<Range<Offset>>, ReadError> {
        let Some((_, first)) = first_at(&self.mirror, places.start)? else {
            return Ok(None);
        };
        let next = match first_at(&self.mirror, places.end)? {
            Some((_, after)) => after.offset,
            None => *self.copied.lock(),
        };
        Ok((first.offset < next).then_some(first.offset..next))
    }

    /// Whether the mirror takes records, now or when there is room again.
    pub(super) fn mirror_serves(&self) -> bool {
        !matches!(self.mirror.health(), heddle_store::Health::Poisoned(_))
    }

    /// Where records with this offset and later ones begin in the mirror.
    fn place_of(&self, offset: Offset) -> Result<Option<u64>, ReadError> {
        let (mut low, mut high) = (self.mirror.first(), self.mirror.committed());
        while low < high {
            let middle = low.midpoint(high);
            match first_at(&self.mirror, middle)? {
                Some((place, record)) if record.offset < offset => low = place + 1,
                _ => high = middle,
            }
        }
        Ok((low < self.mirror.committed()).then_some(low))
    }

    /// What the journal lost at its end comes back from the mirror, at the same offsets; what lies between and is in
    /// neither becomes an empty record. Gives how many came back.
    pub(super) async fn restore(&self) -> Result<u64, CopyError> {
        let end = *self.copied.lock();
        let mut restored = 0;
        let mut next = self.primary.committed();
        while next < end {
            let Some(place) = self.place_of(next)? else {
                break;
            };
            let batch = self.mirror.read(place, COPY_BYTES)?;
            let records: Vec<Record> = batch.records.into_iter().filter_map(unwrap).collect();
            for record in records.iter().filter(|record| record.offset >= next) {
                let voids = record.offset - self.primary.committed();
                for _ in 0..voids {
                    self.primary.append(&[draft(0, &[], &[])]).await?;
                }
                self.primary
                    .append(&[draft(record.key, &record.payload, &[])])
                    .await?;
                restored += 1;
            }
            next = self.primary.committed();
        }
        Ok(restored)
    }

    /// Copies what the mirror does not have yet.
    pub(super) async fn copy(&self) -> Result<(), CopyError> {
        loop {
            let from = *self.copied.lock();
            if from >= self.primary.committed() {
                return Ok(());
            }
            let batch = self.primary.read(from, COPY_BYTES)?;
            let prefixes: Vec<[u8; PREFIX_BYTES]> = batch
                .records
                .iter()
                .map(|record| record.offset.to_le_bytes())
                .collect();
            let drafts: Vec<Draft<'_>> = prefixes
                .iter()
                .zip(&batch.records)
                .map(|(prefix, record)| draft(record.key, prefix, &record.payload))
                .collect();
            let appending = self.mirror.append(&drafts);
            // Before it is safe: whoever stops waiting does not stop the append, and nothing may be given to it twice.
            *self.copied.lock() = batch.next;
            if let Err(error) = appending.await {
                *self.copied.lock() = from;
                return Err(error.into());
            }
        }
    }

    /// Copies for as long as the journal is held by anybody.
    pub(super) fn keep_copying(self: &Arc<Self>, clock: Clock, tasks: &Tasks) {
        let (grown, mirrored) = (Arc::clone(&self.grown), Arc::downgrade(self));
        grown.notify_one();
        tasks.spawn("journal-mirror", OnError::Report, async move {
            let mut well = true;
            loop {
                grown.notified().await;
                clock.sleep(COPY_EVERY).await;
                let Some(mirrored) = Weak::upgrade(&mirrored) else {
                    return;
                };
                let copied = mirrored.copy().await;
                drop(mirrored);
                if let Err(error) = &copied {
                    if well {
                        tracing::error!(%error, "the journal is not copied to its mirror; until it is, damage to it cannot be mended");
                    }
                    clock.sleep(COPY_AGAIN).await;
                    grown.notify_one();
                }
                well = copied.is_ok();
            }
        });
    }

    /// Everything that is appended is in both copies, and both are let go.
    pub(super) async fn close(&self) {
        self.primary.close().await;
        if let Err(error) = self.copy().await {
            tracing::warn!(%error, "the mirror of the journal is behind; the next start brings it up to date");
        }
        self.mirror.close().await;
    }

    /// Damage of either copy.
    pub(super) fn damaged_count(&self) -> u64 {
        self.primary.stats().damaged_count + self.mirror.stats().damaged_count
    }
}

/// Why the copies could not be made equal.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

fn draft<'a>(key: u64, head: &'a [u8], body: &'a [u8]) -> Draft<'a> {
    Draft {
        stream: 0,
        key,
        parts: [head, body],
    }
}

/// A record of the mirror as the journal has it.
fn unwrap(record: Record) -> Option<Record> {
    let (prefix, _) = record.payload.split_first_chunk::<PREFIX_BYTES>()?;
    let offset = Offset::from_le_bytes(*prefix);
    let payload = record.payload.slice(PREFIX_BYTES..);
    (!payload.is_empty()).then_some(Record {
        offset,
        payload,
        ..record
    })
}

/// The first sound record at a place of the mirror or after it, with its place.
fn first_at(mirror: &EventLog, place: u64) -> Result<Option<(u64, Record)>, ReadError> {
    let mut next = place;
    while next < mirror.committed() {
        let batch = mirror.read(next, 1)?;
        for record in batch.records {
            let place = record.offset;
            if let Some(record) = unwrap(record) {
                return Ok(Some((place, record)));
            }
        }
        if batch.next <= next {
            break;
        }
        next = batch.next;
    }
    Ok(None)
}

/// The offset in the journal of the mirror's first record; 0 when it has none.
pub(super) fn start_of(mirror: &EventLog) -> Result<Offset, ReadError> {
    let first = first_at(mirror, mirror.first())?;
    Ok(first.map_or(0, |(_, record)| record.offset))
}

/// The first offset of the journal that comes after everything the mirror has.
pub(super) fn end_of(mirror: &EventLog) -> Result<Offset, ReadError> {
    let (mut place, first) = (mirror.committed(), mirror.first());
    let mut step = 1;
    while place > first {
        place = place.saturating_sub(step).max(first);
        step *= 2;
        let mut last = None;
        let mut next = place;
        while let Some((found, record)) = first_at(mirror, next)? {
            last = Some(record.offset + 1);
            next = found + 1;
        }
        if let Some(end) = last {
            return Ok(end);
        }
    }
    Ok(1)
}

/// Of what is in neither copy, tells what was surely there.
fn tell(gap: Range<Offset>, told: &[Range<Offset>], damaged: &mut Vec<Range<Offset>>) {
    let overlaps = told.iter().filter_map(|range| {
        let both = range.start.max(gap.start)..range.end.min(gap.end);
        (!both.is_empty()).then_some(both)
    });
    damaged.extend(overlaps);
}
