//! Files that are cut, emptied, lost, swapped, copied or put back: told, and nothing else is lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Open, Vfs as _};
use heddle_store::OpenError;
use heddle_store::events::{DamageKind, EventLog};

use crate::damage::files;
use crate::support::*;

const RECORDS: u64 = 30;

/// Four segments or more, closed.
async fn closed() -> (MemoryVfs, Vec<PathBuf>) {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    for number in 1..=RECORDS {
        let payload = format!("{number:0>100}");
        log.append(&[draft(number, payload.as_bytes())])
            .await
            .expect("nothing is in the way");
    }
    log.close().await;
    let mut segments = files(&vfs);
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    assert!(segments.len() >= 4);
    (vfs, segments)
}

fn offsets(log: &EventLog) -> BTreeSet<u64> {
    all(log).iter().map(|record| record.offset).collect()
}

fn kinds(log: &EventLog) -> BTreeSet<String> {
    let kind = |damage: &heddle_store::events::Damage| format!("{:?}", damage.kind);
    log.damage().iter().map(kind).collect()
}

/// Checks what has to hold whatever was done: records are told as lost or are there, and offsets
/// are not reused. Returns the lost ones.
async fn check(hurt: &MemoryVfs, last: &Path) -> BTreeSet<u64> {
    let before: Vec<_> = files(hurt)
        .into_iter()
        .map(|path| (hurt.read(&path).expect("nothing is in the way"), path))
        .collect();
    let log = try_open(hurt).expect("a hurt log opens");
    let found = offsets(&log);
    let lost: BTreeSet<u64> = (1..=RECORDS)
        .filter(|offset| !found.contains(offset))
        .collect();
    let told: BTreeSet<u64> = log
        .damage()
        .into_iter()
        .flat_map(|damage| damage.offsets)
        .collect();
    assert_ne!(log.damage(), [], "it was noticed");
    assert_eq!(told, lost, "what is lost is told, and nothing else");
    for offset in &found {
        assert_eq!(
            log.find(*offset, 2).expect("nothing is in the way"),
            [*offset]
        );
    }
    assert_eq!(
        one(&log, "on").await,
        Ok(RECORDS + 1),
        "no offset comes twice"
    );
    for (bytes, path) in before {
        // The manifest is put in place anew, and the last segment is appended to.
        if path.ends_with("manifest") || path == last {
            continue;
        }
        let now = hurt.read(&path).expect("no file is removed");
        assert!(now.starts_with(&bytes), "{} was changed", path.display());
    }
    log.close().await;
    let again = open(hurt);
    assert_eq!(
        offsets(&again).len() as u64,
        RECORDS + 1 - lost.len() as u64
    );
    lost
}

#[tokio::test]
async fn a_segment_cut_anywhere_loses_only_what_was_cut_off() {
    let (vfs, segments) = closed().await;
    let starts: Vec<u64> = open(&vfs.kill())
        .segments()
        .iter()
        .map(|s| s.first)
        .collect();
    for (number, path) in segments.iter().enumerate() {
        let bytes = vfs.read(path).unwrap();
        let records = starts.get(number + 1).unwrap_or(&(RECORDS + 1)) - starts[number];
        for len in (0..bytes.len()).step_by(13) {
            let hurt = vfs.kill();
            hurt.overwrite(path, &bytes[..len]).unwrap();
            let lost = check(&hurt, &segments[segments.len() - 1]).await;
            let whole = (len.saturating_sub(60) / 160) as u64;
            let kept = if len < 64 { 0 } else { whole.min(records) };
            assert_eq!(
                lost.len() as u64,
                records - kept,
                "{} at {len}",
                path.display()
            );
        }
    }
}

#[tokio::test]
async fn a_missing_segment_is_told_with_all_its_offsets() {
    let (vfs, segments) = closed().await;
    for path in &segments {
        let hurt = vfs.kill();
        hurt.remove(path).unwrap();
        let log = open(&hurt.kill());
        assert_eq!(kinds(&log), [format!("{:?}", DamageKind::Missing)].into());
        assert!(!check(&hurt, &segments[segments.len() - 1]).await.is_empty());
    }
}

#[tokio::test]
async fn when_the_newest_segment_of_a_killed_log_is_lost_its_offsets_are_not_reused() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    for number in 0..20 {
        one(&log, &format!("{number:0>100}")).await.unwrap();
    }
    let active = log.segments().last().unwrap().first;
    let hurt = vfs.kill();
    hurt.remove(&Path::new(DIR).join(format!("{active:020}.log")))
        .unwrap();
    let log = open(&hurt);
    assert_eq!(kinds(&log), ["Missing".to_owned()].into());
    let next = one(&log, "on").await.unwrap();
    assert!(next > 21, "offset {next} may have been given out before");
    assert_eq!(offsets(&log).len() as u64, active);
    let reopened = open(&hurt.kill());
    assert_eq!(one(&reopened, "on").await, Ok(next + 1));
}

#[tokio::test]
async fn swapped_segments_are_noticed_and_read_in_the_right_order() {
    let (vfs, segments) = closed().await;
    let (a, b) = (
        vfs.read(&segments[0]).unwrap(),
        vfs.read(&segments[2]).unwrap(),
    );
    vfs.overwrite(&segments[0], &b).unwrap();
    vfs.overwrite(&segments[2], &a).unwrap();
    let log = open(&vfs.kill());
    assert_eq!(kinds(&log), ["Misnamed".to_owned()].into());
    assert!(check(&vfs, &segments[segments.len() - 1]).await.is_empty());
}

#[tokio::test]
async fn a_second_copy_is_noticed_and_left_alone_also_under_a_name_of_the_future() {
    let (vfs, segments) = closed().await;
    let bytes = vfs.read(&segments[1]).unwrap();
    for name in [3, RECORDS + 1, RECORDS + 500] {
        let hurt = vfs.kill();
        let path = Path::new(DIR).join(format!("{name:020}.log"));
        hurt.open(&path, Open::or_create()).unwrap();
        hurt.overwrite(&path, &bytes).unwrap();
        let log = open(&hurt.kill());
        let expected = ["Duplicate".to_owned(), "Misnamed".to_owned()];
        assert_eq!(kinds(&log), expected.into());
        assert!(check(&hurt, &segments[segments.len() - 1]).await.is_empty());
        assert_eq!(hurt.read(&path).unwrap(), bytes);
    }
}

#[tokio::test]
async fn an_old_copy_that_was_put_back_is_noticed() {
    let vfs = MemoryVfs::new();
    let log = open(&vfs);
    for number in 1..=10 {
        one(&log, &format!("{number:0>100}")).await.unwrap();
    }
    let active = log.segments().last().unwrap().first;
    let path = Path::new(DIR).join(format!("{active:020}.log"));
    let old = vfs.read(&path).unwrap();
    for number in 11..=RECORDS {
        let payload = format!("{number:0>100}");
        one(&log, &payload).await.unwrap();
    }
    log.close().await;
    vfs.overwrite(&path, &old).unwrap();
    let log = open(&vfs);
    let lost: BTreeSet<u64> = (1..=RECORDS)
        .filter(|offset| !offsets(&log).contains(offset))
        .collect();
    assert!(!lost.is_empty());
    let told: BTreeSet<u64> = log
        .damage()
        .into_iter()
        .flat_map(|damage| damage.offsets)
        .collect();
    assert_eq!(told, lost);
    assert_eq!(one(&log, "on").await, Ok(RECORDS + 1));
}

#[tokio::test]
async fn a_segment_of_another_log_or_another_time_is_noticed() {
    let (vfs, segments) = closed().await;
    let (other, others) = closed().await;
    let theirs = other.read(&others[1]).unwrap();
    vfs.overwrite(&segments[1], &theirs).unwrap();
    let log = open(&vfs.kill());
    let expected = ["Foreign".to_owned(), "Missing".to_owned()];
    assert_eq!(kinds(&log), expected.into());
    assert!(!check(&vfs, &segments[segments.len() - 1]).await.is_empty());
    assert_eq!(vfs.read(&segments[1]).unwrap(), theirs);
}

#[tokio::test]
async fn without_its_manifest_a_log_is_read_whole() {
    let (vfs, segments) = closed().await;
    vfs.remove(&Path::new(DIR).join("manifest")).unwrap();
    assert!(check(&vfs, &segments[segments.len() - 1]).await.is_empty());
}

#[tokio::test]
async fn bytes_after_the_end_of_the_format_are_refused_when_they_are_newer() {
    let (vfs, segments) = closed().await;
    let mut bytes = vfs.read(&segments[0]).unwrap();
    bytes[16] = 2;
    let crc = crc32c::crc32c(&bytes[12..64]).to_le_bytes();
    bytes[8..12].copy_from_slice(&crc);
    vfs.overwrite(&segments[0], &bytes).unwrap();
    let operations = vfs.operations();
    let refused = try_open(&vfs);
    let newer = OpenError::Newer {
        path: segments[0].clone(),
        found: 2,
        supported: 1,
    };
    assert_eq!(refused.unwrap_err().to_string(), newer.to_string());
    // Making sure of the directory is all that was done.
    assert!(vfs.operations() <= operations + 1);
    assert_eq!(vfs.read(&segments[0]).unwrap(), bytes);
}
