//! Snapshots and indexes.

use heddle_rt::MemoryVfs;
use heddle_store::{Expect, Facts, Op, Write};

use crate::support::*;

fn names(items: &[std::sync::Arc<heddle_store::Object>]) -> Vec<String> {
    items.iter().map(|object| object.key.to_string()).collect()
}

#[tokio::test]
async fn lists_are_sorted_and_of_one_version() {
    let store = open(&MemoryVfs::new());
    let batch = [
        "things/b/2",
        "things/a/9",
        "things/b/1",
        "others/b/0",
        "things/c",
    ];
    store
        .commit(batch.iter().map(|name| create(name, "x")).collect())
        .await
        .unwrap();
    let all = store.list("things", None);
    assert_eq!(all.version, version(5));
    assert_eq!(
        names(&all.items),
        ["things/c", "things/a/9", "things/b/1", "things/b/2"]
    );
    assert_eq!(
        names(&store.list("things", Some("b")).items),
        ["things/b/1", "things/b/2"]
    );
    assert_eq!(names(&store.list("things", Some("zz")).items), [""; 0]);
    assert_eq!(names(&store.list("nothing", None).items), [""; 0]);
    let counts: Vec<(String, usize)> = store
        .counts()
        .into_iter()
        .map(|(name, n)| (name.to_string(), n))
        .collect();
    assert_eq!(counts, [("others".to_owned(), 1), ("things".to_owned(), 4)]);
}

#[tokio::test]
async fn uids_and_owners_are_found_before_and_after_a_restart() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    let owned = |uid: &str, owners: &[&str]| Facts {
        uid: uid.into(),
        owners: owners.iter().map(|owner| (*owner).into()).collect(),
        labels: vec![("app".to_owned(), "x".to_owned())],
        deleting: true,
    };
    let create_with = |name: &str, facts| Write {
        key: key(name),
        expect: Expect::Absent,
        op: Op::Put(draft_of(facts, "x")),
    };
    let batch = vec![
        create_with("owner", owned("u1", &[])),
        create_with("one", owned("u2", &["u1"])),
        create_with("two", owned("u3", &["u1", "u2"])),
        create_with("gone", owned("u4", &["u1"])),
    ];
    let written = store.commit(batch).await.unwrap();
    one(&store, remove(&written[3])).await.unwrap();
    let moved = Write {
        key: key("one"),
        expect: Expect::Version(written[1].version),
        op: Op::Put(draft_of(owned("u2", &["u9"]), "y")),
    };
    one(&store, moved).await.unwrap();
    let check = |store: &heddle_store::Store| {
        assert_eq!(&*store.by_uid("u2").unwrap().key.name, "one");
        assert_eq!(store.by_uid("u4"), None);
        assert_eq!(names(&store.dependents("u1")), ["things/default/two"]);
        assert_eq!(names(&store.dependents("u9")), ["things/default/one"]);
        assert_eq!(store.dependents("u4"), []);
        assert_eq!(
            store.by_uid("u3").unwrap().facts,
            owned("u3", &["u1", "u2"]).into()
        );
    };
    check(&store);
    store.close().await;
    check(&open(&vfs));
}

#[tokio::test]
async fn everything_is_the_same_after_a_restart() {
    let vfs = MemoryVfs::new();
    let store = open(&vfs);
    let a = one(&store, create("a", "1")).await.unwrap();
    store
        .commit(vec![
            update(&a, "2"),
            create("b", "3"),
            create("nodes/n", "4"),
        ])
        .await
        .unwrap();
    let before = (
        store.list("things", None),
        store.list("nodes", None),
        store.version(),
    );
    store.close().await;
    let store = open(&vfs);
    assert_eq!(
        (
            store.list("things", None),
            store.list("nodes", None),
            store.version()
        ),
        before
    );
    let next = one(&store, create("c", "5")).await.unwrap();
    assert_eq!(next.version, version(5));
}
