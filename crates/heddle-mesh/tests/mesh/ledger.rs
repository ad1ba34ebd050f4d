//! Questions: where an event is, what a filter would do, and what is left after tidying up.

use std::time::Duration;

use heddle_api::ledger::{EventState, ExplainRequest};
use heddle_mesh::Retention;
use serde_json::json;

use crate::world::{Manner, World};

/// From now on, whatever is finished may go.
pub(crate) async fn keep_nothing(world: &mut World) {
    world.retention = Retention {
        age_max: Duration::ZERO,
        bytes_max: 0,
    };
    world.restart().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_found_at_every_stage() {
    let mut world = World::with_broker();
    let slowly = json!({"timeout": "PT1H", "retry": 3, "backoffDelay": "PT30S"});
    world.trigger("hangs", "hangs", json!({"spec": {"delivery": slowly}}));
    world.trigger("fails", "fails", json!({"spec": {"delivery": slowly}}));
    world.trigger("dies", "dies", json!({"spec": {"delivery": {"retry": 0}}}));
    world.trigger("done", "done", json!({}));
    world.trigger(
        "paused",
        "paused",
        json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}}),
    );
    world.trigger(
        "other",
        "other",
        json!({"spec": {"filter": {"attributes": {"type": "order.paid"}}}}),
    );
    world.manner("hangs", Manner::Hang);
    world.manner("fails", Manner::Answer(503));
    world.manner("dies", Manner::Answer(500));
    world.route().await;
    world.publish("1", &[]).await;
    world
        .until("everywhere", |world| {
            world.account("done").delivered == 1
                && world.account("dies").dead_lettered == 1
                && world.account("fails").retrying == 1
                && world.account("hangs").in_flight == 1
        })
        .await;
    let trace = world.trace("1").await;
    let event = &trace.events[0];
    let verdict = |name: &str| {
        let key = format!("trigger/ns/{name}");
        let found = event.verdicts.iter().find(|one| one.consumer == key);
        found.unwrap_or_else(|| panic!("no verdict of {name}: {event:?}"))
    };
    assert_eq!(verdict("done").state, EventState::Delivered);
    assert_eq!(verdict("hangs").state, EventState::Delivering);
    assert_eq!(verdict("dies").state, EventState::DeadLettered);
    assert!(verdict("dies").reason.contains("500"));
    assert_eq!(verdict("fails").state, EventState::Retrying);
    assert_eq!(verdict("fails").attempts[0].status, Some(503));
    assert!(verdict("fails").next_attempt_at > Some(world.clock.now()));
    assert_eq!(verdict("paused").state, EventState::Waiting);
    assert!(verdict("paused").reason.contains("paused"));
    assert_eq!(verdict("other").state, EventState::Filtered);
    assert!(verdict("other").reason.contains("order.paid"));
    assert!(event.summary.contains("trigger/ns/"), "{}", event.summary);
}

#[tokio::test(start_paused = true)]
async fn an_event_behind_a_slow_subscriber_is_found_in_the_log() {
    let mut world = World::with_broker();
    world.trigger(
        "t",
        "a",
        json!({
            "metadata": {"annotations": {"heddle.dev/max-in-flight": "1"}},
            "spec": {"delivery": {"timeout": "PT10H"}},
        }),
    );
    world.manner("a", Manner::Hang);
    world.route().await;
    world
        .publish_many((0..5000).map(|number| number.to_string()))
        .await;
    world.until_pending("t", 5000).await;
    let near = world.trace("10").await.events.remove(0).verdicts.remove(0);
    assert_eq!(
        (near.state, &*near.reason),
        (EventState::Pending, "waiting for its turn")
    );
    let far = world
        .trace("4999")
        .await
        .events
        .remove(0)
        .verdicts
        .remove(0);
    assert_eq!(far.state, EventState::Pending);
    assert!(far.reason.contains("waiting in the log"), "{far:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filter_can_be_tried_before_it_is_used() {
    let mut world = World::with_broker();
    world.broker("ns", "other");
    world.route().await;
    for (id, type_) in [
        ("1", "order.created"),
        ("2", "order.paid"),
        ("3", "order.paid"),
    ] {
        world.publish(id, &[("type", type_)]).await;
    }
    assert_eq!(world.post("/broker/ns/other").await.0, 202);
    let question = |filters| ExplainRequest {
        entry: "broker/ns/default".to_owned(),
        filters: serde_json::from_value(filters).unwrap(),
        last: 1000,
        ..ExplainRequest::default()
    };
    let paid = question(json!([{"exact": {"type": "order.paid"}}]));
    let answer = world.explain(&paid).await.unwrap();
    assert_eq!((answer.examined, answer.matched), (3, 2));
    assert_eq!(answer.matches[0].id, "3", "the newest first");
    assert!(
        answer.misses[0].reason.contains("order.created"),
        "{answer:?}"
    );
    let bad = question(json!([{"cesql": "type ="}]));
    assert!(world.explain(&bad).await.is_err());
    let nowhere = ExplainRequest {
        entry: "broker/ns/missing".to_owned(),
        ..paid
    };
    let error = world.explain(&nowhere).await.unwrap_err();
    assert!(error.to_string().contains("broker/ns/missing"));
}

#[tokio::test(start_paused = true)]
async fn tidying_up_forgets_what_is_finished_and_nothing_else() {
    for mut world in World::each_with_broker() {
        keep_nothing(&mut world).await;
        let slowly = json!({"retry": 9, "backoffDelay": "PT500S", "backoffPolicy": "linear"});
        world.trigger("t", "a", json!({"spec": {"delivery": slowly}}));
        world.manner("a", Manner::AnswerTo(&["205"], 503));
        world.route().await;
        for round in 1..=6 {
            world
                .publish_many((0..60).map(|number| format!("{round}{number:02}")))
                .await;
            world
                .until("all but one", |world| {
                    let account = world.account("t");
                    account.delivered + account.retrying == round * 60
                })
                .await;
            world.pass(1).await;
            world.mesh.tidy().await;
        }
        let first = world.log.bounds().start;
        assert!(first > 1, "the beginning is gone");
        let unfinished = world.trace("205").await;
        assert_eq!(unfinished.events.len(), 1, "what is unfinished is kept");
        assert!(world.trace("301").await.events.is_empty());
        assert!(!world.log.journal().snapshots().unwrap().is_empty());
        let account = world.account("t");
        assert_eq!((account.matched, account.retrying), (360, 1));
        world.crash().await;
        world.route().await;
        assert_eq!(world.account("t"), account);
        world.manner("a", Manner::Accept);
        world.until_delivered("t", 360).await;
        assert_eq!(
            world.received("a").len(),
            361,
            "one event needed a second attempt"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_outlive_the_events_and_lines_around_them() {
    for mut world in World::each_with_broker() {
        keep_nothing(&mut world).await;
        world.trigger("t", "a", json!({}));
        world.manner("a", Manner::AnswerTo(&["101", "333"], 400));
        world.route().await;
        for round in 1..=6 {
            world
                .publish_many((0..60).map(|number| format!("{round}{number:02}")))
                .await;
            world.until_pending("t", 0).await;
            world.pass(1).await;
            world.mesh.tidy().await;
        }
        assert!(world.trace("101").await.events.is_empty());
        world.crash().await;
        world.route().await;
        assert_eq!(world.account("t").dead_letters, 2);
        world.manner("a", Manner::Accept);
        let all = heddle_api::ledger::DeadLetterSelection {
            all: true,
            ..Default::default()
        };
        assert_eq!(world.mesh.redrive(&all, "ann").await.count, 2);
        world.until_delivered("t", 360).await;
        let late = world.deliveries("a").into_iter().rev().take(2);
        let mut late: Vec<_> = late.map(|delivery| delivery.body).collect();
        late.sort();
        assert_eq!(late, ["data of 101", "data of 333"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_found_however_many_events_came_after_it_and_denied_only_after_a_look_at_all() {
    for world in World::each_with_broker() {
        world.route().await;
        world.publish("wanted", &[]).await;
        world.publish_many((0..3000).map(|n| format!("n{n}"))).await;
        world.publish("wanted", &[]).await;
        world.mesh.settled().await;
        let trace = world.mesh.trace_by_id("wanted", 0..u64::MAX).await.unwrap();
        let offsets: Vec<u64> = trace.events.iter().map(|event| event.offset).collect();
        assert_eq!((offsets, trace.older), (vec![1, 3002], None));
        assert_eq!(trace.next, Some(3003));
        let trace = world.mesh.trace_by_id("wanted", 2..3002).await.unwrap();
        assert_eq!((trace.events, trace.older), (Vec::new(), None));
        let trace = world.mesh.trace_by_id("never", 0..u64::MAX).await.unwrap();
        assert_eq!((trace.events, trace.older), (Vec::new(), None));
    }
}

#[tokio::test(start_paused = true)]
async fn more_events_with_one_id_than_one_answer_has_are_all_found_page_by_page() {
    let world = World::with_broker();
    world.route().await;
    for _ in 0..1150 {
        world.publish("same", &[]).await;
    }
    world.mesh.settled().await;
    let (mut seen, mut before) = (Vec::new(), u64::MAX);
    loop {
        let page = world.mesh.trace_by_id("same", 0..before).await.unwrap();
        assert!(page.events.len() <= 100);
        seen.extend(page.events.iter().rev().map(|event| event.offset));
        match page.older {
            Some(older) => before = older,
            None => break,
        }
    }
    assert_eq!(seen, (1..=1150).rev().collect::<Vec<u64>>());
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_judged_by_events_that_reach_its_broker_and_not_by_a_busy_neighbours() {
    let mut world = World::in_memory().await;
    world.broker("ns", "quiet");
    world.broker("ns", "default");
    world.route().await;
    for (id, type_) in [
        ("1", "order.paid"),
        ("2", "order.created"),
        ("3", "order.paid"),
    ] {
        world
            .publish_at("/broker/ns/quiet", id, &[("type", type_)])
            .await;
        world
            .publish_many((0..900).map(|n| format!("{id}-{n}")))
            .await;
    }
    let question = |last| ExplainRequest {
        entry: "broker/ns/quiet".to_owned(),
        filters: serde_json::from_value(json!([{"exact": {"type": "order.paid"}}])).unwrap(),
        last,
        ..ExplainRequest::default()
    };
    for (last, examined, matched) in [(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 2), (1000, 3, 2)] {
        let answer = world.explain(&question(last)).await.unwrap();
        assert_eq!(
            (answer.examined, answer.matched),
            (examined, matched),
            "{last}"
        );
        let shown = answer.matches.len() + answer.misses.len();
        assert_eq!(shown as u64, examined, "{answer:?}");
        assert_eq!(answer.looked_back_to, None, "all there is was looked at");
    }
}

#[tokio::test(start_paused = true)]
async fn scrapers_read_nothing_of_a_backlog_that_waits() {
    let mut world = World::on_disk_with_broker();
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    world.trigger("paused", "paused", paused);
    world.trigger("healthy", "healthy", json!({}));
    world.route().await;
    // More than waits in memory for one consumer.
    for batch in 0..5 {
        let event = |n: usize| {
            let id = format!("{batch}-{n}");
            json!({"specversion": "1.0", "id": id, "source": "/test", "type": "order.created"})
        };
        let events = json!((0..1000).map(event).collect::<Vec<_>>());
        assert_eq!(world.post_batch(&events).await.0, 202);
    }
    world.until_delivered("healthy", 5000).await;
    // A new process has nothing of it in memory.
    world.restart().await;
    world.route().await;
    world
        .until("all matched", |world| {
            world.account("paused").matched == 5000
        })
        .await;
    let disk = world.disk.clone().unwrap();
    let looks = |ask: &dyn Fn()| {
        let before = disk.looks();
        ask();
        disk.looks() - before
    };
    let backlog = looks(&|| drop(world.mesh.accounts(true)));
    assert!(backlog > 0, "the backlog is on disk");
    let scrape = || {
        let text = world.mesh.metrics_text();
        let line = text
            .lines()
            .find(|line| line.starts_with("heddle_pending") && line.contains("trigger=\"paused\""));
        assert!(line.is_some_and(|line| line.ends_with(" 5000")), "{line:?}");
    };
    for _ in 0..3 {
        assert_eq!(looks(&scrape), 0);
    }
    // Nor does anything wait for a disk that does not answer.
    disk.fail_looks(0..u64::MAX, heddle_rt::vfs::Fault::Eio);
    scrape();
}
