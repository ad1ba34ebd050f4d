//! Bounds, who gives way to whom, and that nobody works for those who left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heddle_rt::{Clock, Tasks};
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{Aside, AsideError, QUESTIONS_MAX, QUESTIONS_PER_ASKER_MAX};

fn on_a_thread() -> (Arc<Aside>, Tasks) {
    let tasks = Tasks::new("test");
    (Aside::new(&Clock::system(), &tasks), tasks)
}

#[tokio::test]
async fn a_slice_runs_on_a_thread_of_its_own_that_ends_with_the_mesh() {
    let (aside, tasks) = on_a_thread();
    let here = std::thread::current().id();
    let there = aside.slice(|| std::thread::current().id()).await.unwrap();
    assert_ne!(here, there);
    let again = aside.slice(|| std::thread::current().id()).await.unwrap();
    assert_eq!(there, again, "one thread for everybody");
    aside.close();
    let refused = aside.slice(|| ()).await;
    assert_eq!(refused, Err(AsideError::Closed));
    tasks.join().await;
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_passed_over() {
    let (aside, tasks) = on_a_thread();
    let (go, wait) = oneshot::channel::<()>();
    let first = aside.slice(move || drop(wait.blocking_recv()));
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let second = aside.slice(move || counted.fetch_add(1, Ordering::SeqCst));
    {
        // Both are in the queue, and whoever asked the second has left.
        let (mut first, mut second) = (Box::pin(first), Box::pin(second));
        assert!(futures::poll!(&mut first).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        go.send(()).unwrap();
        first.await.unwrap();
    }
    aside.slice(|| ()).await.unwrap();
    assert_eq!(done.load(Ordering::SeqCst), 0);
    aside.close();
    tasks.join().await;
}

#[tokio::test]
async fn closing_waits_for_one_slice_and_no_more() {
    let (aside, tasks) = on_a_thread();
    let (begun, begins) = oneshot::channel::<()>();
    let (go, wait) = oneshot::channel::<()>();
    let first = aside.slice(move || {
        begun.send(()).unwrap();
        drop(wait.blocking_recv());
    });
    let (mut first, mut second) = (Box::pin(first), Box::pin(aside.slice(|| ())));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(futures::poll!(&mut second).is_pending());
    begins.await.unwrap();
    aside.close();
    go.send(()).unwrap();
    assert_eq!(first.await, Ok(()));
    assert_eq!(second.await, Err(AsideError::Closed));
    tasks.join().await;
}

#[tokio::test]
async fn a_slice_that_panics_ends_its_own_question_only() {
    let (aside, tasks) = on_a_thread();
    let ended = aside.slice(|| panic!("on purpose")).await;
    assert_eq!(ended, Err(AsideError::Closed));
    assert_eq!(aside.slice(|| 7).await, Ok(7));
    aside.close();
    tasks.join().await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_question_of_the_same_name_takes_the_place() {
    let tasks = Tasks::new("test");
    let aside = Aside::new(&Clock::simulated(Timestamp::UNIX_EPOCH), &tasks);
    let mut old = aside.enter("ada", Some("find")).unwrap();
    let mut other = aside.enter("ada", Some("try")).unwrap();
    let mut stranger = aside.enter("bob", Some("find")).unwrap();
    let mut new = aside.enter("ada", Some("find")).unwrap();
    assert_eq!(old.slice(|| ()).await, Err(AsideError::Superseded));
    old.superseded().await;
    for place in [&mut other, &mut stranger, &mut new] {
        assert_eq!(place.slice(|| ()).await, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_bounded_for_each_and_for_all_and_places_come_back() {
    let tasks = Tasks::new("test");
    let aside = Aside::new(&Clock::simulated(Timestamp::UNIX_EPOCH), &tasks);
    let many = |asker: &str| -> Vec<_> {
        let places = (0..QUESTIONS_MAX).map_while(|_| aside.enter(asker, None).ok());
        places.collect()
    };
    let ada = many("ada");
    assert_eq!(ada.len(), QUESTIONS_PER_ASKER_MAX);
    let others = 1..QUESTIONS_MAX / QUESTIONS_PER_ASKER_MAX;
    let others: Vec<_> = others.flat_map(|asker| many(&asker.to_string())).collect();
    assert_eq!(ada.len() + others.len(), QUESTIONS_MAX);
    assert!(many("cyd").is_empty());
    drop(ada);
    assert_eq!(many("cyd").len(), QUESTIONS_PER_ASKER_MAX);
    drop(others);
    assert_eq!(aside.questions(), 0);
}
