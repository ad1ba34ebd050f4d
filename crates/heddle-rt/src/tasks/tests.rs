//! Tasks end, fail and restart as they were told to.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::{Chance, backoff};

#[tokio::test]
async fn join_waits_for_tasks_and_threads_of_the_whole_tree() {
    let root = Tasks::new("root");
    let leaf = root.child("middle").child("leaf");
    let count = Arc::new(AtomicU32::new(0));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (a, b) = (count.clone(), count.clone());
    leaf.spawn("task", OnError::Report, async move {
        tokio::task::yield_now().await;
        a.fetch_add(1, Ordering::SeqCst);
    });
    leaf.spawn_thread("thread", OnError::Report, move || {
        gate.recv().unwrap();
        b.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap();
    assert!(root.running() >= 1);
    open.send(()).unwrap();
    root.join().await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(root.running(), 0);
}

#[tokio::test]
async fn blocking_work_hands_over_its_result_and_goes_on_when_nobody_waits() {
    let root = Tasks::new("root");
    assert_eq!(root.blocking("sum", || 40 + 2).await.unwrap(), 42);
    let finished = Arc::new(AtomicU32::new(0));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let done = finished.clone();
    let slow = root.blocking("slow", move || {
        gate.recv().unwrap();
        done.fetch_add(1, Ordering::SeqCst)
    });
    tokio::select! {
        biased;
        _ = slow => panic!("it was not allowed to end"),
        () = std::future::ready(()) => {}
    }
    open.send(()).unwrap();
    root.join().await;
    assert_eq!(finished.load(Ordering::SeqCst), 1);
    let broken = root.blocking("broken", || -> () { panic!("in a thread") });
    let error = broken.await.unwrap_err().to_string();
    assert_eq!(error, "broken ended before its time");
}

#[tokio::test]
async fn cancel_drops_some_tasks_and_lets_others_finish() {
    let root = Tasks::new("root");
    let group = root.child("group");
    let finished = Arc::new(AtomicU32::new(0));
    group.spawn("endless", OnError::EndProcess, std::future::pending::<()>());
    let done = finished.clone();
    group.spawn_finishing("careful", OnError::Report, |cancel| async move {
        cancel.cancelled().await;
        done.fetch_add(1, Ordering::SeqCst);
    });
    root.cancel();
    root.join().await;
    assert_eq!(finished.load(Ordering::SeqCst), 1);
    assert!(root.failures().is_empty());
}

#[tokio::test]
async fn errors_and_panics_are_reported_with_the_name_of_the_task() {
    let root = Tasks::new("root");
    root.spawn("bad", OnError::Report, async { Err::<(), _>("no luck") });
    root.join().await;
    root.child("sub").spawn("worse", OnError::Report, async {
        assert_eq!(1, 2, "broken")
    });
    root.join().await;
    root.spawn_thread("worst", OnError::EndProcess, || -> () {
        panic!("thread broken")
    })
    .unwrap();
    let fatal = root.ended_by().await;
    let texts: Vec<String> = root.failures().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "task root/bad failed: no luck",
            "task root/sub/worse failed: panicked: assertion `left == right` failed: broken\n  left: 1\n right: 2",
            "task root/worst failed: panicked: thread broken"
        ]
    );
    assert_eq!(fatal.task, "root/worst");
}

#[tokio::test(start_paused = true)]
async fn a_restarting_task_comes_back_until_it_ends_well() {
    let root = Tasks::new("root");
    let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
    let limits = backoff::Limits {
        min: Duration::from_secs(1),
        max: Duration::from_secs(9),
    };
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    root.spawn_restarting(
        "flaky",
        clock,
        Backoff::new(limits, Chance::seeded(1)),
        move || {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                match run {
                    0 => Err("first"),
                    1 => panic!("second"),
                    _ => Ok(()),
                }
            }
        },
    );
    root.join().await;
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert_eq!(root.failures().len(), 2);
}

#[tokio::test]
async fn reports_are_bounded() {
    let root = Tasks::new("root");
    for n in 0..FAILURES_MAX + 10 {
        root.spawn("bad", OnError::Report, async move { Err::<(), _>(n) });
    }
    root.join().await;
    assert_eq!(root.failures().len(), FAILURES_MAX);
}
