//! Reading: by offset, by key, by time. From memory when it is recent, else from the files.
//!
//! Every record that comes from a file is checked. What does not hold is left out and told as
//! damage; its neighbours are read. Files are opened for one question and closed again.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use heddle_rt::vfs::VfsFile;

use super::format::SEGMENT_HEADER_BYTES;
use super::scan::{Found, Scanner, Scope, WINDOW_BYTES};
use super::segment::{Lookup, Segment};
use super::shared::Shared;
use super::table::Unreadable;
use super::time::nanoseconds_to_key;
use super::{Batch, Damage, DamageKind, ReadError, Record, Slot, cache};

/// The least that is read at once: a record of a usual size is rarely alone.
const READ_BYTES_MIN: usize = 64 * 1024;

impl Shared {
    /// From memory only.
    pub(super) fn recent(&self, from: u64, bytes_max: usize) -> Option<Vec<Record>> {
        let writes = self.cache.read().from(from, bytes_max);
        if writes.is_empty() {
            return None;
        }
        Some(cache::records(&writes, from, bytes_max))
    }

    pub(super) fn read(&self, from: u64, bytes_max: usize) -> Result<Batch, ReadError> {
        if let Some(records) = self.recent(from, bytes_max) {
            let next = records.last().map_or(from, |record| record.offset + 1);
            return Ok(Batch {
                records,
                next,
                damaged: Vec::new(),
            });
        }
        self.read_files(from, u64::MAX, bytes_max)
    }

    pub(super) fn get(&self, offset: u64) -> Result<Slot, ReadError> {
        let batch = match self.recent(offset, 1) {
            Some(records) => Batch {
                records,
                ..Batch::default()
            },
            // What lies behind it is not asked for: it may be unreadable where this is not.
            None => self.read_files(offset, offset.saturating_add(1), 1)?,
        };
        let found = batch.records.into_iter().next();
        if let Some(record) = found.filter(|record| record.offset == offset) {
            return Ok(Slot::Record(record));
        }
        let lost = |damage: &Damage| damage.offsets.contains(&offset);
        Ok(if batch.damaged.iter().any(lost) {
            Slot::Damaged
        } else {
            Slot::Gone
        })
    }

    /// Reads on until there is a record, or nothing below `until`.
    fn read_files(&self, from: u64, until: u64, bytes_max: usize) -> Result<Batch, ReadError> {
        let committed = self.committed();
        let mut batch = Batch {
            records: Vec::new(),
            next: from,
            damaged: Vec::new(),
        };
        while batch.records.is_empty() && batch.next < committed.min(until) {
            let segment = self.segment_from(batch.next);
            let begin = segment.as_ref().map_or(committed, |segment| segment.first);
            if batch.next < begin {
                batch.damaged.extend(self.missing(&(batch.next..begin)));
                batch.next = begin;
            }
            if let Some(segment) = segment {
                self.read_segment(&segment, committed, bytes_max, &mut batch)?;
            }
        }
        Ok(batch)
    }

    /// Reads on in one segment, and past its end when there is nothing more in it.
    fn read_segment(
        &self,
        segment: &Segment,
        committed: u64,
        bytes_max: usize,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        let from = batch.next;
        let Some(file) = self.file(segment)? else {
            batch.next = segment.next();
            return Ok(());
        };
        let io = io_error(&segment.path);
        let (offset, position) = self.mark_before(segment, &*file, from).map_err(&io)?;
        let file_bytes = file.len().map_err(&io)?;
        let (end, next) = {
            let extent = segment.extent.read();
            (extent.end.min(file_bytes), extent.next.min(committed))
        };
        let mut scanner = Scanner::new(Scope {
            file: &*file,
            mark: self.mark,
            positions: position..end,
            offsets: offset..next,
            chain: None,
            window_bytes: bytes_max.clamp(READ_BYTES_MIN, WINDOW_BYTES),
        });
        let mut bytes = 0;
        while let Some(found) = scanner.next().map_err(&io)? {
            match found {
                Found::Record(located) if located.head.offset < from => {}
                Found::Record(located) => {
                    if bytes >= bytes_max && !batch.records.is_empty() {
                        batch.next = located.head.offset;
                        return Ok(());
                    }
                    bytes += located.payload.len();
                    batch
                        .records
                        .push(Record::of(&located.head, located.payload));
                }
                Found::Hole(hole) => {
                    let offsets = hole.offsets.start.max(from)..hole.offsets.end.max(from);
                    self.damaged(segment, hole.position, offsets, batch);
                }
            }
        }
        let rest = scanner.expected().max(from)..next;
        self.damaged(segment, scanner.position(), rest, batch);
        batch.next = next;
        Ok(())
    }

    fn damaged(&self, segment: &Segment, position: u64, offsets: Range<u64>, batch: &mut Batch) {
        if offsets.is_empty() {
            return;
        }
        let damage = Damage {
            path: segment.path.clone(),
            position,
            offsets,
            kind: DamageKind::Record,
        };
        self.note(damage.clone());
        batch.damaged.push(damage);
    }

    /// `None` when the segment has been removed since it was looked up.
    fn file(&self, segment: &Segment) -> Result<Option<Arc<dyn VfsFile>>, ReadError> {
        match segment.open(&*self.vfs) {
            Ok(file) => Ok(Some(file)),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && !self.segments.read().by_first.contains_key(&segment.first) =>
            {
                Ok(None)
            }
            Err(error) => Err(io_error(&segment.path)(error)),
        }
    }

    /// The offset and the position of a record at or before `from`.
    fn mark_before(
        &self,
        segment: &Segment,
        file: &dyn VfsFile,
        from: u64,
    ) -> io::Result<(u64, u64)> {
        let beginning = (segment.first, SEGMENT_HEADER_BYTES as u64);
        let tables = {
            let extent = segment.extent.read();
            if let Lookup::Memory(index) = &extent.lookup {
                let after = index.marks.partition_point(|(offset, _)| *offset <= from);
                return Ok(match after {
                    0 => beginning,
                    after => index.marks[after - 1],
                });
            }
            extent.tables(self.mark, segment.first)
        };
        let tables = tables.expect("what is not in memory is in tables");
        let found = self.told(segment, tables.marks.at_most(file, from))?;
        Ok(found.flatten().unwrap_or(beginning))
    }

    /// The answer of a table, or `None` when the table is damaged, which is noted.
    fn told<T>(&self, segment: &Segment, answer: Result<T, Unreadable>) -> io::Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Unreadable::Io(error)) => Err(error),
            Err(Unreadable::Damaged(position)) => {
                self.note(Damage {
                    path: segment.path.clone(),
                    position,
                    offsets: 0..0,
                    kind: DamageKind::Index,
                });
                Ok(None)
            }
        }
    }

    /// The offsets with this key, oldest first.
    pub(super) fn find(&self, key: u64, limit: usize) -> Result<Vec<u64>, ReadError> {
        let mut found = Vec::new();
        if key == 0 {
            return Ok(found);
        }
        for segment in self.all_segments() {
            if found.len() >= limit {
                break;
            }
            found.extend(self.find_in(&segment, key, limit - found.len())?);
        }
        Ok(found)
    }

    /// The offsets with this key from one on, oldest first.
    pub(super) fn find_from(&self, key: u64, from: u64) -> Result<Vec<u64>, ReadError> {
        let mut found = Vec::new();
        let segments = self.all_segments().into_iter();
        for segment in segments.filter(|segment| segment.next() > from) {
            found.extend(self.find_in(&segment, key, usize::MAX)?);
        }
        found.retain(|offset| *offset >= from);
        Ok(found)
    }

    fn find_in(&self, segment: &Segment, key: u64, limit: usize) -> Result<Vec<u64>, ReadError> {
        let tables = {
            let extent = segment.extent.read();
            if let Lookup::Memory(index) = &extent.lookup {
                let same = index.keys.iter().filter(|(other, _)| *other == key);
                return Ok(same.map(|(_, offset)| *offset).take(limit).collect());
            }
            extent.tables(self.mark, segment.first)
        };
        let tables = tables.expect("what is not in memory is in tables");
        let Some(file) = self.file(segment)? else {
            return Ok(Vec::new());
        };
        let io = io_error(&segment.path);
        let answer = tables.keys.equal(&*file, key, limit);
        if let Some(found) = self.told(segment, answer).map_err(&io)? {
            return Ok(found);
        }
        // Without its table the segment is read from end to end.
        let beginning = (segment.first, SEGMENT_HEADER_BYTES as u64);
        let mut found = Vec::new();
        self.walk(segment, &*file, beginning, |record, offset| {
            if record.key == key {
                found.push(offset);
            }
            found.len() < limit
        })
        .map_err(io)?;
        Ok(found)
    }

    /// The first offset that was accepted at or after a time.
    pub(super) fn at_time(&self, at: i64) -> u64 {
        let late = |segment: &Arc<Segment>| {
            let extent = segment.extent.read();
            extent.records > 0 && extent.last_at >= at
        };
        match self.all_segments().iter().find(|segment| late(segment)) {
            None => self.committed(),
            // What cannot be read is not skipped either: rather too much than too little.
            Some(segment) => self.at_time_in(segment, at).unwrap_or(segment.first),
        }
    }

    fn at_time_in(&self, segment: &Segment, at: i64) -> io::Result<u64> {
        let file = segment.open(&*self.vfs)?;
        // The last mark that is surely before.
        let before = match nanoseconds_to_key(at).checked_sub(1) {
            None => segment.first,
            Some(key) => self.offset_at(segment, &*file, key)?,
        };
        let mark = self.mark_before(segment, &*file, before)?;
        let mut first = None;
        self.walk(segment, &*file, mark, |record, offset| {
            if record.at >= at {
                first = Some(offset);
            }
            first.is_none()
        })?;
        Ok(first.unwrap_or(segment.first))
    }

    /// The offset of the last mark with at most this time.
    fn offset_at(&self, segment: &Segment, file: &dyn VfsFile, time: u64) -> io::Result<u64> {
        let tables = {
            let extent = segment.extent.read();
            if let Lookup::Memory(index) = &extent.lookup {
                let after = index.times.partition_point(|(at, _)| *at <= time);
                return Ok(match after {
                    0 => segment.first,
                    after => index.times[after - 1].1,
                });
            }
            extent.tables(self.mark, segment.first)
        };
        let tables = tables.expect("what is not in memory is in tables");
        let found = self.told(segment, tables.times.at_most(file, time))?;
        Ok(found.flatten().map_or(segment.first, |(_, offset)| offset))
    }

    /// Shows the records from a mark on until `visit` has seen enough.
    fn walk(
        &self,
        segment: &Segment,
        file: &dyn VfsFile,
        (offset, position): (u64, u64),
        mut visit: impl FnMut(&super::format::Head, u64) -> bool,
    ) -> io::Result<()> {
        let file_bytes = file.len()?;
        let (end, next) = {
            let extent = segment.extent.read();
            (extent.end.min(file_bytes), extent.next)
        };
        let mut scanner = Scanner::new(Scope {
            file,
            mark: self.mark,
            positions: position..end,
            offsets: offset..next,
            chain: None,
            window_bytes: WINDOW_BYTES,
        });
        while let Some(found) = scanner.next()? {
            if let Found::Record(located) = found
                && !visit(&located.head, located.head.offset)
            {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> ReadError {
    let path = path.to_owned();
    move |source| ReadError::Io {
        path: path.clone(),
        source,
    }
}
