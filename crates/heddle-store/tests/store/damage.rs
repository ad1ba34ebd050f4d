//! Files that are not what they were: noticed, named, and left alone.

use heddle_rt::vfs::{Open, PowerLoss};
use heddle_rt::{MemoryVfs, Vfs as _};
use heddle_store::{Check, CommitError, OpenError, Options, Store};

use crate::script::{Snapshot, snapshot, tell};
use crate::support::*;

/// A store that was closed, and what is in it.
async fn closed() -> (MemoryVfs, Snapshot) {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    tell(&store, 0).await;
    let contents = snapshot(&store);
    store.close().await;
    (vfs, contents)
}

/// Damage is refused and named, or it hit nothing that matters, now or later. When only records
/// were checked, writing may find damage in what was not.
async fn judge(vfs: &MemoryVfs, check: Check, contents: &Snapshot, what: &str) -> bool {
    let store = match Store::open(Options {
        check,
        ..options(vfs)
    }) {
        Ok(store) => store,
        Err(OpenError::Corrupt { path, .. }) => {
            assert_eq!(path, database());
            return true;
        }
        Err(other) => panic!("{what}: {other:?}"),
    };
    assert_eq!(
        snapshot(&store),
        *contents,
        "{what} changed what the store says"
    );
    for n in 0..8 {
        match one(&store, create(&format!("later{n}"), &"x".repeat(3000))).await {
            Ok(_) => {}
            Err(CommitError::Poisoned) if check == Check::Records => return true,
            Err(other) => panic!("{what}: {other}"),
        }
    }
    let later = snapshot(&store);
    store.close().await;
    match try_open(vfs) {
        Ok(store) => assert_eq!(
            snapshot(&store),
            later,
            "{what} harmed what was written later"
        ),
        Err(error) => assert_eq!(check, Check::Records, "{what}: {error}"),
    }
    false
}

#[tokio::test]
async fn a_flipped_bit_is_noticed_or_hit_nothing() {
    let (vfs, contents) = closed().await;
    let file = vfs.read(database()).unwrap();
    let used = file.iter().enumerate().filter(|(_, byte)| **byte != 0);
    let used: Vec<u64> = used.map(|(at, _)| at as u64).collect();
    let mut noticed = 0;
    // An odd step, so that all kinds of places are hit.
    for (index, at) in used
        .iter()
        .enumerate()
        .step_by(used.len() / 400 / 2 * 2 + 1)
    {
        for check in [Check::Records, Check::Pages] {
            let copy = vfs.power_loss(PowerLoss::LoseUnsynced);
            copy.flip_bit(database(), at * 8 + index as u64 % 8)
                .unwrap();
            let what = format!("a flipped bit in byte {at}, {check:?}");
            noticed += u32::from(judge(&copy, check, &contents, &what).await);
        }
    }
    // Most of the file is what earlier commits left behind.
    assert!(noticed > 40, "only {noticed} flipped bits were noticed");
}

#[tokio::test]
async fn every_bit_of_a_stored_object_counts() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    one(&store, create("solo", "needle")).await.unwrap();
    let contents = snapshot(&store);
    store.close().await;
    let file = vfs.read(database()).unwrap();
    let json = json_of(version(1), "needle");
    let start = file
        .windows(json.len())
        .position(|bytes| bytes == json.as_bytes());
    let start = start.expect("it is in the file") as u64;
    // The header and the facts are in front of the JSON: 9 + 8 + 8 + 1 + 4 + 4 + 4 + 4 bytes.
    for bit in (start - 42) * 8..(start + json.len() as u64) * 8 {
        let copy = vfs.power_loss(PowerLoss::LoseUnsynced);
        copy.flip_bit(database(), bit).unwrap();
        assert!(
            judge(&copy, Check::Records, &contents, "a bit of the record").await,
            "bit {bit}"
        );
    }
}

#[tokio::test]
async fn a_file_that_is_cut_is_refused() {
    let (vfs, contents) = closed().await;
    let file = vfs.read(database()).unwrap();
    for keep in [
        0,
        1,
        100,
        4096,
        5000,
        file.len() / 2,
        file.len() - 4096,
        file.len() - 1,
    ] {
        for check in [Check::Records, Check::Pages] {
            let copy = vfs.power_loss(PowerLoss::LoseUnsynced);
            copy.overwrite(database(), &file[..keep]).unwrap();
            judge(
                &copy,
                check,
                &contents,
                &format!("a file cut to {keep} bytes, {check:?}"),
            )
            .await;
        }
    }
}

#[tokio::test]
async fn a_file_of_something_else_is_refused_and_left_alone() {
    let (vfs, contents) = closed().await;
    let foreign = b"this is not a database".repeat(1000);
    vfs.overwrite(database(), &foreign).unwrap();
    assert!(judge(&vfs, Check::Pages, &contents, "a foreign file").await);
    assert_eq!(vfs.read(database()).unwrap(), foreign);
    let error = try_open(&vfs).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the store in /data/resources/resources.redb is damaged: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_second_store_on_the_same_directory_is_refused_until_the_first_is_closed() {
    let vfs = MemoryVfs::new();
    let first = open_threaded(&vfs);
    let error = try_open(&vfs).unwrap_err();
    assert!(matches!(error, OpenError::Busy { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the store in /data/resources is in use by another process"
    );
    first.close().await;
    open(&vfs);
}

#[tokio::test]
async fn what_a_broken_off_creation_left_behind_is_no_hindrance() {
    let vfs = MemoryVfs::new();
    vfs.create_dir_all(std::path::Path::new(DIR)).unwrap();
    let left = std::path::Path::new(DIR).join(".resources.redb.new");
    vfs.open(&left, Open::or_create())
        .unwrap()
        .write_at(0, &[7; 10_000])
        .unwrap();
    let store = open(&vfs);
    one(&store, create("a", "1")).await.unwrap();
}
