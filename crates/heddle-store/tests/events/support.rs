//! Small words for the tests: logs on a file system in memory, drafts, everything a log holds.

use std::sync::Arc;

use heddle_rt::vfs::Vfs;
use heddle_rt::{Clock, MemoryVfs};
use heddle_store::events::{AppendError, Draft, EventLog, Limits, Options, Record};
use heddle_store::{Mode, OpenError};

pub(crate) const DIR: &str = "/data/events";

/// Small segments, and nothing kept in memory: every read is one of a file.
pub(crate) fn limits() -> Limits {
    Limits {
        segment_bytes: 1200,
        cache_bytes_max: 0,
        reserve_bytes: 1000,
        ..Limits::default()
    }
}

pub(crate) fn options_on(vfs: Arc<dyn Vfs>) -> Options {
    let mut options = Options::new(vfs, DIR, Clock::system());
    options.mode = Mode::Inline;
    options.limits = limits();
    options
}

pub(crate) fn try_open(vfs: &MemoryVfs) -> Result<EventLog, OpenError> {
    EventLog::open(options_on(vfs.shared()))
}

pub(crate) fn open(vfs: &MemoryVfs) -> EventLog {
    try_open(vfs).expect("the log opens")
}

pub(crate) fn draft(key: u64, payload: &[u8]) -> Draft<'_> {
    let (head, tail) = payload.split_at(payload.len() / 2);
    Draft {
        stream: 7,
        key,
        parts: [head, tail],
    }
}

/// Appends one record and returns its offset.
pub(crate) async fn one(log: &EventLog, payload: &str) -> Result<u64, AppendError> {
    let offsets = log.append(&[draft(0, payload.as_bytes())]).await?;
    assert_eq!(offsets.end, offsets.start + 1);
    Ok(offsets.start)
}

/// Every record that can be read, a few at a time.
pub(crate) fn all(log: &EventLog) -> Vec<Record> {
    let mut records = Vec::new();
    let mut from = 1;
    while from < log.committed() {
        let batch = log.read(from, 300).expect("the log can be read");
        assert!(batch.next > from, "reading stands still at {from}");
        let beyond = batch.records.iter().find(|record| record.offset < from);
        assert_eq!(beyond, None, "a record from before {from}");
        from = batch.next;
        records.extend(batch.records);
    }
    let sorted = records.is_sorted_by(|a, b| a.offset < b.offset && a.at <= b.at);
    assert!(sorted, "records come in order");
    records
}

pub(crate) fn texts(log: &EventLog) -> Vec<String> {
    let text = |record: Record| String::from_utf8(record.payload.to_vec()).expect("text");
    all(log).into_iter().map(text).collect()
}
