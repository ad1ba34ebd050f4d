//! Every bit of a small log flipped in turn: noticed, and no more than one record the worse for it.

use std::path::{Path, PathBuf};

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Open, Vfs as _};
use heddle_store::events::{EventLog, Options, Record, Slot};

use crate::support::*;

/// Payloads of multiples of eight bytes: every bit of a record says something.
async fn fill(log: &EventLog) {
    for number in 1..=12_u64 {
        let payload = format!("{number:0>width$}", width = 40 + 8 * (number as usize % 7));
        log.append(&[draft(number, payload.as_bytes())])
            .await
            .expect("nothing is in the way");
    }
}

/// The last segment is not continued, so that its tables are what is asked.
fn reader(vfs: &MemoryVfs) -> Options {
    let mut options = options_on(vfs.shared());
    options.limits.segment_bytes = 64;
    options
}

pub(crate) fn files(vfs: &MemoryVfs) -> Vec<PathBuf> {
    let names = vfs.list(DIR.as_ref()).expect("nothing is in the way");
    let dir = PathBuf::from(DIR);
    names.iter().map(|name| dir.join(name)).collect()
}

fn bits(vfs: &MemoryVfs, path: &Path) -> u64 {
    vfs.open(path, Open::existing())
        .expect("nothing is in the way")
        .len()
        .expect("nothing is in the way")
        * 8
}

/// Reads everything in every way, so that whatever is damaged is met.
fn look_everywhere(log: &EventLog) -> Vec<Record> {
    let records = all(log);
    for record in &records {
        let found = log.find(record.key, 2).expect("nothing is in the way");
        assert_eq!(found, [record.offset], "found by its key");
        assert!(log.at_time(record.at) <= record.offset);
        assert_eq!(
            log.get(record.offset).expect("nothing is in the way"),
            Slot::Record(record.clone())
        );
    }
    records
}

#[tokio::test]
async fn every_flipped_bit_of_a_closed_log_is_noticed_and_costs_at_most_one_record() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    fill(&log).await;
    log.close().await;
    let expected = all(&EventLog::open(reader(&vfs.kill())).unwrap());
    assert_eq!(expected.len(), 12);
    let mut flips = 0;
    for path in files(&vfs) {
        for bit in 0..bits(&vfs, &path) {
            let context = format!("{} bit {bit}", path.display());
            let hurt = vfs.kill();
            hurt.flip_bit(&path, bit).unwrap();
            let log = EventLog::open(reader(&hurt)).expect(&context);
            let found = look_everywhere(&log);
            assert_ne!(log.damage(), [], "{context} was not noticed");
            let mut lost = expected.clone();
            lost.retain(|record| !found.contains(record));
            assert!(lost.len() <= 1, "{context} cost {} records", lost.len());
            assert_eq!(found.len() + lost.len(), 12, "{context} changed a record");
            for record in &lost {
                let told = log.damage();
                let told = told
                    .iter()
                    .any(|damage| damage.offsets == (record.offset..record.offset + 1));
                assert!(
                    told,
                    "{context} cost record {} and did not say so",
                    record.offset
                );
            }
            assert_eq!(one(&log, "on").await, Ok(13), "{context}");
            flips += 1;
        }
    }
    assert!(flips > 10_000, "only {flips} bits were flipped");
}

#[tokio::test]
async fn a_flipped_bit_of_a_log_that_was_killed_costs_at_most_one_record() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    fill(&log).await;
    let expected = all(&open(&vfs.kill()));
    for path in files(&vfs) {
        for bit in 0..bits(&vfs, &path) {
            let context = format!("{} bit {bit}", path.display());
            let hurt = vfs.kill();
            hurt.flip_bit(&path, bit).unwrap();
            let log = try_open(&hurt).expect(&context);
            let found = all(&log);
            let mut lost = expected.clone();
            lost.retain(|record| !found.contains(record));
            assert!(lost.len() <= 1, "{context} cost {} records", lost.len());
            assert_eq!(found.len() + lost.len(), 12, "{context} changed a record");
            // A torn end and a decayed one look the same when nothing came after it.
            if lost.iter().any(|record| record.offset < 12) {
                assert_ne!(log.damage(), [], "{context} was not noticed");
            }
            assert_eq!(texts(&log), texts(&open(&hurt.kill())), "{context}");
        }
    }
}

#[tokio::test]
async fn damage_met_while_reading_is_told_once_and_the_rest_is_read() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    fill(&log).await;
    log.close().await;
    let log = EventLog::open(reader(&vfs)).unwrap();
    // Somewhere in the payload of the second record.
    vfs.flip_bit(&files(&vfs)[0], (64 + 104 + 60 + 20) * 8)
        .unwrap();
    for _ in 0..2 {
        let batch = log.read(1, 1000).unwrap();
        let offsets: Vec<u64> = batch.records.iter().map(|record| record.offset).collect();
        assert_eq!(offsets[..3], [1, 3, 4]);
        assert_eq!(batch.damaged.len(), 1);
        assert_eq!(batch.damaged[0].offsets, 2..3);
        assert_eq!(log.damage(), batch.damaged);
        assert_eq!(log.stats().damaged_count, 1);
    }
    assert_eq!(log.get(2).unwrap(), Slot::Damaged);
    let next = log.read(2, 1).unwrap();
    assert_eq!((next.records[0].offset, next.damaged.len()), (3, 1));
}
