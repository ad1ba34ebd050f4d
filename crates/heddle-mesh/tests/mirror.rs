//! The journal survives damage to either of its copies.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_mesh::log::embedded::{EmbeddedLog, Options};
use heddle_mesh::log::{Draft, Log, Lookup, Reserve};
use heddle_rt::vfs::{MemoryVfs, Vfs};
use heddle_rt::{Clock, Tasks};
use heddle_store::Mode;

const JOURNAL: &str = "/mesh/journal";
const MIRROR: &str = "/mesh/journal-mirror";
const RECORDS: u64 = 40;
const BUCKETS: u64 = 4;

fn open(disk: &MemoryVfs) -> Arc<EmbeddedLog> {
    let options = Options {
        vfs: disk.shared(),
        dir: "/mesh".into(),
        clock: Clock::system(),
        tasks: Tasks::new("test"),
        mode: Mode::Inline,
        // A few segments.
        segment_bytes: Some(1 << 10),
        reserve: Reserve::Bytes(0),
    };
    Arc::new(EmbeddedLog::open(options).unwrap())
}

fn text(number: u64) -> String {
    format!("record {number} {}", "x".repeat(number as usize % 7 * 9))
}

/// A journal with records in several segments, let go of in good order.
async fn written() -> MemoryVfs {
    let disk = MemoryVfs::new();
    let log = open(&disk);
    append(&log, 1..RECORDS + 1).await;
    log.close().await;
    disk.kill()
}

async fn append(log: &EmbeddedLog, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let text = text(number);
        let draft = Draft {
            key: number % BUCKETS + 1,
            parts: [text.as_bytes(), &[]],
        };
        assert_eq!(log.acknowledge(&[draft]).await, Ok(number..number + 1));
    }
}

/// Everything can be read, in order, one by one and by key.
fn check(log: &EmbeddedLog, records: u64, what: &str) {
    let journal = log.journal();
    assert_eq!(journal.bounds(), 1..records + 1, "{what}");
    let mut next = 1;
    while next <= records {
        let batch = journal.read(next, 100).unwrap();
        assert!(batch.damaged.is_empty(), "{what}: {:?}", batch.damaged);
        for record in batch.records {
            assert_eq!(
                (record.offset, &*record.payload),
                (next, text(next).as_bytes()),
                "{what}"
            );
            next += 1;
        }
        assert_eq!(batch.next, next, "{what}");
    }
    for number in 1..=records {
        let Lookup::Found(record) = journal.get(number).unwrap() else {
            panic!("{what}: {number} is not found");
        };
        assert_eq!(record.payload, text(number), "{what}");
    }
    for bucket in 0..BUCKETS {
        let expected: Vec<u64> = (1..=records)
            .filter(|number| number % BUCKETS == bucket)
            .collect();
        assert_eq!(journal.find(bucket + 1, 1000).unwrap(), expected, "{what}");
    }
}

fn files(disk: &MemoryVfs, dir: &str) -> Vec<PathBuf> {
    let names = disk.list(Path::new(dir)).unwrap().into_iter();
    let kept = names.filter(|name| name != "lock");
    kept.map(|name| Path::new(dir).join(name)).collect()
}

#[tokio::test]
async fn any_damage_to_one_copy_is_mended_by_the_other() {
    let disk = written().await;
    for dir in [JOURNAL, MIRROR] {
        for path in files(&disk, dir) {
            let bytes = disk.read(&path).unwrap();
            for at in (0..bytes.len() as u64).step_by(13) {
                let hurt = disk.kill();
                hurt.flip_bit(&path, at * 8 + at % 8).unwrap();
                let log = open(&hurt);
                check(&log, RECORDS, &format!("{} at byte {at}", path.display()));
            }
            for length in (0..bytes.len()).step_by(101) {
                let hurt = disk.kill();
                hurt.overwrite(&path, &bytes[..length]).unwrap();
                check(
                    &open(&hurt),
                    RECORDS,
                    &format!("{} cut to {length}", path.display()),
                );
                let hurt = disk.kill();
                let zeroes = [&bytes[..length], &vec![0; bytes.len() - length]].concat();
                hurt.overwrite(&path, &zeroes).unwrap();
                check(
                    &open(&hurt),
                    RECORDS,
                    &format!("{} blank from {length}", path.display()),
                );
            }
            let hurt = disk.kill();
            hurt.remove(&path).unwrap();
            check(
                &open(&hurt),
                RECORDS,
                &format!("{} removed", path.display()),
            );
        }
    }
}

#[tokio::test]
async fn either_copy_is_made_anew_when_it_is_gone() {
    let disk = written().await;
    for (gone, other) in [(JOURNAL, MIRROR), (MIRROR, JOURNAL)] {
        let hurt = disk.kill();
        for path in files(&hurt, gone) {
            hurt.remove(&path).unwrap();
        }
        let log = open(&hurt);
        check(&log, RECORDS, gone);
        append(&log, RECORDS + 1..RECORDS + 4).await;
        log.close().await;
        // What was made anew is as good as what it was made from.
        let hurt = hurt.kill();
        for path in files(&hurt, other) {
            hurt.remove(&path).unwrap();
        }
        check(&open(&hurt), RECORDS + 3, other);
    }
}

#[tokio::test]
async fn what_is_lost_in_both_copies_is_told_and_nothing_else_is_lost() {
    let disk = written().await;
    let needle = text(17);
    for dir in [JOURNAL, MIRROR] {
        for path in files(&disk, dir) {
            let bytes = disk.read(&path).unwrap();
            let found = bytes
                .windows(needle.len())
                .position(|part| part == needle.as_bytes());
            if let Some(at) = found {
                disk.flip_bit(&path, at as u64 * 8).unwrap();
            }
        }
    }
    let log = open(&disk.kill());
    let journal = log.journal();
    assert_eq!(journal.get(17).unwrap(), Lookup::Damaged);
    let (mut next, mut read, mut lost) = (1, Vec::new(), Vec::new());
    while next <= RECORDS {
        let batch = journal.read(next, 200).unwrap();
        read.extend(batch.records.iter().map(|record| record.offset));
        lost.extend(batch.damaged);
        next = batch.next;
    }
    assert_eq!(lost, vec![std::ops::Range { start: 17, end: 18 }]);
    let expected: Vec<u64> = (1..=RECORDS).filter(|number| *number != 17).collect();
    assert_eq!(read, expected);
}
