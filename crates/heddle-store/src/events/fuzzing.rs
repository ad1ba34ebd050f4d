//! For the fuzzer: any bytes, taken for the files of a log.
//!
//! Whatever lies there, the log opens or says why not. What it then reads is what was once written, in order, and it can
//! be appended to and opened again.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use heddle_rt::vfs::Vfs as _;
use heddle_rt::{Clock, MemoryVfs};

use super::{Draft, EventLog, Limits, Options, Record, manifest, segment_name};
use crate::Mode;

pub use manifest::fuzzing::manifest;

const DIR: &str = "/events";

/// Any bytes as the only segment of a log whose manifest is lost.
///
/// # Panics
/// When the promise does not hold.
pub fn segment(soup: &[u8]) {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all(Path::new(DIR)).expect("there is room");
    let path = Path::new(DIR).join(segment_name(1));
    vfs.write_atomic(&path, soup, 0o600).expect("there is room");
    drop(opens_twice(&vfs));
}

/// A log with five records in three segments, one of whose files is damaged: each byte pair of the soup is a place and what
/// it becomes there, and the first byte says which file, and whether it is cut.
///
/// # Panics
/// When the promise does not hold.
pub fn damage(soup: &[u8]) {
    let vfs = MemoryVfs::new();
    let written = write(&vfs);
    let files = files(&vfs);
    let Some((choice, edits)) = soup.split_first() else {
        return;
    };
    let path = &files[usize::from(*choice) % files.len()];
    let mut bytes = vfs.read(path).expect("it was listed");
    for edit in edits.as_chunks::<3>().0 {
        let [low, high, becomes] = *edit;
        let at = usize::from(u16::from_le_bytes([low, high]));
        if let Some(byte) = bytes.get_mut(at) {
            *byte = becomes;
        }
    }
    if *choice >= 128 && !edits.is_empty() {
        bytes.truncate(bytes.len() * usize::from(edits[0]) / 256);
    }
    vfs.overwrite(path, &bytes).expect("it was listed");
    for record in opens_twice(&vfs).unwrap_or_default() {
        if let Some(original) = written.iter().find(|it| it.offset == record.offset) {
            assert_eq!(
                &record, original,
                "a record is what was written, or damaged"
            );
        }
    }
}

fn write(vfs: &MemoryVfs) -> Vec<Record> {
    let log = EventLog::open(options(vfs)).expect("an empty directory is a log");
    for payload in ["one", "", "three", "four, which is longer", "five"] {
        append(&log, payload.as_bytes());
        if payload == "three" || payload.is_empty() {
            log.seal();
        }
    }
    all(&log)
}

/// What is read the first time, if it opens. The second time it is the same, and what was appended in between.
fn opens_twice(vfs: &MemoryVfs) -> Option<Vec<Record>> {
    let log = EventLog::open(options(vfs)).ok()?;
    let before = all(&log);
    let offset = append(&log, b"later");
    assert!(before.iter().all(|record| record.offset < offset));
    drop(log);
    let log = EventLog::open(options(&vfs.kill())).expect("what was opened opens again");
    let mut after = all(&log);
    let last = after.pop().expect("something was appended");
    assert_eq!((last.offset, &last.payload[..]), (offset, &b"later"[..]));
    assert_eq!(after, before);
    Some(before)
}

fn options(vfs: &MemoryVfs) -> Options {
    let mut options = Options::new(vfs.shared(), DIR, Clock::system());
    options.mode = Mode::Inline;
    options.limits = Limits {
        cache_bytes_max: 0,
        ..Limits::default()
    };
    options
}

fn files(vfs: &MemoryVfs) -> Vec<PathBuf> {
    let names = vfs.list(Path::new(DIR)).expect("a log is there");
    let of_log = names
        .iter()
        .filter(|name| name.ends_with(".log") || *name == "manifest");
    of_log.map(|name| Path::new(DIR).join(name)).collect()
}

/// Inline, an append is over when it is asked for the first time.
fn append(log: &EventLog, payload: &[u8]) -> u64 {
    let draft = Draft {
        stream: 1,
        key: 0,
        parts: [payload, &[]],
    };
    let appending = pin!(log.append(&[draft]));
    match appending.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(offsets)) => offsets.start,
        other => panic!("a disk with room takes an append: {other:?}"),
    }
}

fn all(log: &EventLog) -> Vec<Record> {
    let mut records = Vec::new();
    let mut from = log.first();
    while from < log.committed() {
        let batch = log.read(from, 1 << 20).expect("a sound disk can be read");
        assert!(batch.next > from, "reading stands still at {from}");
        from = batch.next;
        records.extend(batch.records);
    }
    assert!(records.is_sorted_by(|a, b| a.offset < b.offset));
    records
}
