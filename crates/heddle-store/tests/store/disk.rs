//! The real file system.

use heddle_rt::{Clock, DiskVfs};
use heddle_store::{OpenError, Options, Store};

use crate::script::{Reference, STORY, snapshot, tell};
use crate::support::*;

#[tokio::test]
async fn the_story_ends_the_same_on_a_real_disk_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options::new(DiskVfs::shared(), dir.path().join("store"), Clock::system());
    let reference = Reference::run().await;
    let store = Store::open(options()).unwrap();
    assert_eq!(tell(&store, 0).await, (STORY.len(), None));
    assert!(matches!(
        Store::open(options()),
        Err(OpenError::Busy { .. })
    ));
    store.backup(&dir.path().join("copy.redb")).await.unwrap();
    store.close().await;
    let store = Store::open(options()).unwrap();
    assert_eq!(
        *reference.after(STORY.len()),
        (store.version(), snapshot(&store))
    );
    assert_eq!(reference.judge(&store, STORY.len()).await, Ok(STORY.len()));
    store.close().await;
}

#[tokio::test]
async fn a_store_dropped_without_closing_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options::new(DiskVfs::shared(), dir.path().join("store"), Clock::system());
    let first = options();
    let tasks = first.tasks.clone();
    let store = Store::open(first).unwrap();
    one(&store, create("a", "1")).await.unwrap();
    drop(store);
    tasks.join().await;
    assert!(Store::open(options()).unwrap().get(&key("a")).is_some());
}
