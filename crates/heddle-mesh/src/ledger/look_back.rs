//! Looking through stored events from the newest to the oldest, for questions that no index answers.
//!
//! A log is read forwards, so it is gone through in chunks: the newest first, each from its start to its end. No lock is
//! held, and between two reads others get their turn; whoever no longer waits for the answer lets the look end there. One
//! look reads a bounded number of bytes and then says where it stopped: what was not looked at is never said not to exist.

use std::ops::{ControlFlow, Range};

use super::Error;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;

/// Records of the first chunk. How large they are is not known before they were read, so chunks grow and shrink until they
/// are of this many bytes.
const CHUNK_RECORDS: u64 = 512;
const CHUNK_RECORDS_MAX: u64 = 1 << 16;
const CHUNK_BYTES: Range<usize> = 2 << 20..8 << 20;
const READ_BYTES: usize = 1 << 20;
/// What one look reads before it answers: about a second's worth.
pub(super) const LOOK_BYTES_MAX: usize = 256 << 20;

/// Somebody who looks at records.
pub(super) trait Look {
    /// The next record of the chunk.
    fn record(&mut self, record: Record);

    /// The chunk is over; the next one is older.
    fn chunk(&mut self) -> ControlFlow<()>;
}

impl Mesh {
    /// Shows the records of a range, newest chunk first. `Some` is where the look stopped: nothing older was looked at.
    pub(super) async fn look_back(
        &self,
        range: Range<Offset>,
        bytes_max: usize,
        look: &mut (impl Look + Send),
    ) -> Result<Option<Offset>, Error> {
        let bounds = self.shared.log.bounds();
        let start = range.start.max(bounds.start);
        let mut end = range.end.min(bounds.end);
        let (mut bytes, mut records) = (0, CHUNK_RECORDS);
        while end > start {
            let chunk = start.max(end.saturating_sub(records))..end;
            end = chunk.start;
            let read = self.look_at(chunk, look).await?;
            records = match read {
                read if read < CHUNK_BYTES.start => (records * 2).min(CHUNK_RECORDS_MAX),
                read if read < CHUNK_BYTES.end => records,
                _ => (records / 2).max(1),
            };
            bytes += read;
            let enough = look.chunk().is_break() || bytes >= bytes_max;
            if enough && end > start {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Shows one chunk, and says how many bytes that were.
    async fn look_at(
        &self,
        chunk: Range<Offset>,
        look: &mut (impl Look + Send),
    ) -> Result<usize, Error> {
        let (mut next, mut bytes) = (chunk.start, 0);
        while next < chunk.end {
            let batch = self.shared.log.read(next, READ_BYTES)?;
            for record in batch.records {
                if record.offset >= chunk.end {
                    break;
                }
                bytes += record.payload.len();
                look.record(record);
            }
            if batch.next <= next {
                break;
            }
            next = batch.next;
            tokio::task::yield_now().await;
        }
        Ok(bytes)
    }
}
