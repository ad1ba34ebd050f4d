//! Copies that are made while serving and restored by putting the file in place.

use std::path::Path;

use heddle_rt::vfs::PowerLoss;
use heddle_rt::{MemoryVfs, Vfs as _};
use heddle_store::{BackupError, Expired};

use crate::script::{snapshot, tell};
use crate::support::*;

const COPY: &str = "/data/copy.redb";

#[tokio::test]
async fn a_restored_backup_holds_one_version_and_repeats_none() {
    let vfs = MemoryVfs::new();
    let store = open_threaded(&vfs);
    let (told, _) = tell(&store, 0).await;
    assert!(told > 0);
    let (contents, copied_at) = (snapshot(&store), store.version());
    store.backup(Path::new(COPY)).await.unwrap();
    one(&store, create("after", "x")).await.unwrap();
    let last = store.version();
    store.close().await;
    assert!(matches!(
        store.backup(Path::new(COPY)).await,
        Err(BackupError::Exists { .. })
    ));

    let vfs = vfs.power_loss(PowerLoss::LoseUnsynced);
    vfs.rename(Path::new(COPY), database()).unwrap();
    let store = open(&vfs);
    assert_eq!(snapshot(&store), contents);
    assert!(store.get(&key("after")).is_none());
    assert!(
        store.version() > last,
        "a version given out after the copy is not given out again"
    );
    assert!(matches!(
        store.watch("things", copied_at),
        Err(Expired::TooOld { .. })
    ));
    assert!(matches!(
        store.watch("things", last),
        Err(Expired::TooOld { .. })
    ));
    let next = one(&store, create("new", "x")).await.unwrap();
    assert!(next.version > last);
}

#[tokio::test]
async fn a_backup_that_fails_harms_nothing() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    one(&store, create("a", "1")).await.unwrap();
    let error = store
        .backup(Path::new("/nowhere/copy.redb"))
        .await
        .unwrap_err();
    assert!(matches!(error, BackupError::Io { .. }), "{error:?}");
    one(&store, create("b", "1")).await.unwrap();
    assert!(!vfs.exists(Path::new("/nowhere/copy.redb")).unwrap());
}
