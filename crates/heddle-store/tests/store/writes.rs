//! Batches: all or nothing, compared and swapped, numbered, bounded, grouped.

use heddle_rt::{MemoryVfs, Tasks};
use heddle_store::{CommitError, Draft, Expect, Health, Limits, Mode, Op, Options, Store, Write};

use crate::support::*;

#[tokio::test]
async fn every_write_gets_the_next_version_and_carries_it_in_its_bytes() {
    let store = open(&MemoryVfs::new());
    let a = one(&store, create("a", "1")).await.unwrap();
    let written = store
        .commit(vec![update(&a, "2"), create("b", "3")])
        .await
        .unwrap();
    let versions: Vec<u64> = written.iter().map(|object| object.version.get()).collect();
    assert_eq!(versions, [2, 3]);
    assert_eq!(written[0].json(), json_of(version(2), "2"));
    assert_eq!(
        (written[0].created, written[1].created),
        (version(1), version(3))
    );
    assert_eq!(store.get(&key("a")).unwrap(), written[0]);
    assert_eq!(store.version(), version(3));
}

#[tokio::test]
async fn a_batch_with_one_failing_expectation_leaves_no_trace() {
    let store = open(&MemoryVfs::new());
    let a = one(&store, create("a", "1")).await.unwrap();
    let mut watch = store.watch("things", store.version()).unwrap();
    let stale = put("a", Expect::Version(version(77)), "never");
    let refused = store
        .commit(vec![create("b", "1"), update(&a, "2"), stale])
        .await
        .unwrap_err();
    let CommitError::Conflict { key: which, actual } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(which, key("a"));
    assert_eq!(
        data(&actual.unwrap()),
        "2",
        "each write sees the earlier ones of its batch"
    );
    assert!(store.get(&key("b")).is_none());
    assert_eq!(store.version(), version(1));
    assert!(drain(&mut watch).is_empty());
    assert_eq!(store.stats().conflicts_count, 1);
}

#[tokio::test]
async fn expectations_are_met_exactly() {
    let store = open(&MemoryVfs::new());
    let a = one(&store, create("a", "1")).await.unwrap();
    for write in [
        create("a", "again"),
        put("a", Expect::Version(version(2)), "future"),
        put("missing", Expect::Version(version(1)), "nothing there"),
        Write {
            key: key("a"),
            expect: Expect::Absent,
            op: Op::Check,
        },
    ] {
        assert!(matches!(
            one(&store, write).await,
            Err(CommitError::Conflict { .. })
        ));
    }
    let checked = Write {
        key: key("a"),
        expect: Expect::Version(a.version),
        op: Op::Check,
    };
    let absent = Write {
        key: key("z"),
        expect: Expect::Absent,
        op: Op::Check,
    };
    let written = store
        .commit(vec![checked.clone(), create("b", "2"), absent])
        .await
        .unwrap();
    assert_eq!(written.len(), 1, "checks write nothing");
    assert_eq!(store.commit(vec![checked]).await.unwrap(), []);
    let absurd = Write {
        key: key("z"),
        expect: Expect::Absent,
        op: Op::Remove(draft("x")),
    };
    assert!(matches!(
        one(&store, absurd).await,
        Err(CommitError::Invalid { .. })
    ));
    assert_eq!(store.version(), version(2));
}

#[tokio::test]
async fn what_is_too_large_or_malformed_is_refused_and_named() {
    let vfs = MemoryVfs::new();
    let limits = Limits {
        object_bytes_max: 100,
        ..Limits::default()
    };
    let store = Store::open(Options {
        limits,
        ..options(&vfs)
    })
    .unwrap();
    let error = one(&store, create("a", &"x".repeat(100)))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        CommitError::TooLarge { bytes_max: 100, .. }
    ));
    assert!(error.to_string().contains("things/default/a"), "{error}");
    for version_at in [0, 1, 35, 1000] {
        let broken = Draft {
            version_at,
            ..draft("x")
        };
        let write = Write {
            key: key("a"),
            expect: Expect::Absent,
            op: Op::Put(broken),
        };
        assert!(
            matches!(one(&store, write).await, Err(CommitError::Invalid { .. })),
            "{version_at}"
        );
    }
    assert!(matches!(
        one(&store, create(&"n".repeat(70_000), "x")).await,
        Err(CommitError::Invalid { .. })
    ));
    one(&store, create("a", "fits")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_incrementing_one_object_lose_no_increment() {
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 25;
    let store = open_threaded(&MemoryVfs::new());
    one(&store, create("counter", "0")).await.unwrap();
    let tasks = Tasks::new("test");
    for _ in 0..TASKS {
        let store = store.clone();
        tasks.spawn("increments", heddle_rt::OnError::Report, async move {
            for _ in 0..ROUNDS {
                loop {
                    let now = store.get(&key("counter")).expect("it was created");
                    let next: u64 = data(&now).parse::<u64>().expect("a number") + 1;
                    match one(&store, update(&now, &next.to_string())).await {
                        Ok(_) => break,
                        Err(CommitError::Conflict { .. }) => {}
                        Err(other) => return Err(other),
                    }
                }
            }
            Ok(())
        });
    }
    tasks.join().await;
    assert_eq!(tasks.failures(), []);
    assert_eq!(
        data(&store.get(&key("counter")).unwrap()),
        (TASKS * ROUNDS).to_string()
    );
    assert_eq!(store.version(), version(1 + TASKS * ROUNDS));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_wait_together_share_a_sync() {
    let store = open_threaded(&MemoryVfs::new());
    let tasks = Tasks::new("test");
    for n in 0..400 {
        let store = store.clone();
        tasks.spawn("creates", heddle_rt::OnError::Report, async move {
            one(&store, create(&format!("o{n}"), "x")).await.map(drop)
        });
    }
    tasks.join().await;
    assert_eq!(tasks.failures(), []);
    let stats = store.stats();
    assert_eq!((stats.batches_count, stats.objects_count), (400, 400));
    assert!(stats.commits_count < 400, "{} commits", stats.commits_count);
    assert_eq!(stats.group_writes.count(), stats.commits_count);
    assert_eq!(stats.commit_seconds.count(), stats.commits_count);
    store.close().await;
}

#[tokio::test]
async fn a_caller_that_stops_waiting_does_not_stop_the_write() {
    let store = open_threaded(&MemoryVfs::new());
    let mut watch = store.watch("things", version(0)).unwrap();
    {
        let commit = store.commit(vec![create("a", "1")]);
        let mut commit = std::pin::pin!(commit);
        // Polled once: the batch is with the writer, the answer is not here.
        let once = std::future::poll_fn(|cx| {
            drop(commit.as_mut().poll(cx));
            std::task::Poll::Ready(())
        });
        once.await;
    }
    assert_eq!(told(&[watch.next().await.unwrap()]), ["Added a@1"]);
    one(&store, create("b", "2")).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_refuses_writes_answers_reads_and_can_be_opened_again() {
    let vfs = MemoryVfs::new();
    for mode in [Mode::Thread, Mode::Inline] {
        let store = Store::open(Options {
            mode,
            ..options(&vfs)
        })
        .unwrap();
        let name = format!("{mode:?}");
        one(&store, create(&name, "1")).await.unwrap();
        let mut watch = store.watch("things", store.version()).unwrap();
        store.close().await;
        store.close().await;
        assert_eq!(
            one(&store, create("late", "1")).await,
            Err(CommitError::Closed)
        );
        assert!(store.get(&key(&name)).is_some());
        assert_eq!(watch.next().await, Err(heddle_store::Expired::Closed));
        assert_eq!(store.health(), Health::Serving);
    }
    assert_eq!(open(&vfs).list("things", None).items.len(), 2);
}
