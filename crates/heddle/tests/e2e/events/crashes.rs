//! Ended under load, gently or not: what was acknowledged is delivered, and nothing is made up.

use serde_json::json;

use super::load::{Load, Sent};
use super::stage::{self, BROKER, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::eventually_or_else;

const PUBLISHERS: usize = 8;
const ACKNOWLEDGED_PER_CYCLE: usize = 150;
const CYCLES: usize = 10;
/// What a Trigger sends at once when nobody says otherwise.
const WINDOW: usize = 64;
const BACKLOG: usize = 5_000;
const BATCH: usize = 250;

/// More cycles for those who have the time.
#[expect(
    clippy::disallowed_methods,
    reason = "the knob of a test is no configuration"
)]
fn cycles() -> usize {
    let asked = std::env::var("HEDDLE_KILL_CYCLES").ok();
    asked.map_or(CYCLES, |cycles| cycles.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_event_survives_being_killed_again_and_again() {
    let subscriber = Subscriber::start().await;
    let mut server = stage::with_busy_broker().await;
    let all = trigger("all", &subscriber.url("/all"), json!({}));
    server.apply_trigger(&all).await;
    let mut sent = Sent::default();
    for cycle in 0..cycles() {
        let load = Load::on(&server.events, &format!("c{cycle}"));
        let killer = async {
            load.until_acknowledged(ACKNOWLEDGED_PER_CYCLE).await;
            server.kill();
        };
        let (run, ()) = tokio::join!(load.run(PUBLISHERS), killer);
        assert!(run.acknowledged.len() >= ACKNOWLEDGED_PER_CYCLE);
        sent.add(run);
        server.launch().await;
    }
    sent.until_arrived(&subscriber, "/all").await;
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "all");
    assert_eq!(account.dead_lettered, 0, "{account:#?}");
    // What was taken but not acknowledged before a kill is delivered as well.
    let matched = usize::try_from(account.matched).unwrap();
    assert!(
        matched >= sent.acknowledged.len() && matched <= sent.tried.len(),
        "{account:#?}"
    );
    assert_eq!(account.delivered, account.matched, "{account:#?}");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_under_load_loses_nothing_and_repeats_little() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/all", Manner::Slow(std::time::Duration::from_millis(5)));
    let mut server = stage::with_busy_broker().await;
    let all = trigger("all", &subscriber.url("/all"), json!({}));
    server.apply_trigger(&all).await;
    let load = Load::on(&server.events, "s");
    let ender = async {
        load.until_acknowledged(500).await;
        server.terminate().await
    };
    let (sent, ended) = tokio::join!(load.run(PUBLISHERS), ender);
    assert_eq!(ended.code(), Some(0), "{}", server.log());
    server.launch().await;
    sent.until_arrived(&subscriber, "/all").await;
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "all");
    assert_eq!(account.dead_lettered, 0, "{account:#?}");
    let tally = subscriber.tally("/all");
    let repeated: usize = tally.values().map(|times| times - 1).sum();
    assert!(repeated <= WINDOW, "{repeated} came again");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_outlives_a_restart_and_is_delivered_once_when_its_trigger_goes_on() {
    let subscriber = Subscriber::start().await;
    let mut server = stage::with_busy_broker().await;
    let all = |paused: &str| {
        let mut all = trigger("all", &subscriber.url("/all"), json!({}));
        all["metadata"]["annotations"] = json!({"heddle.dev/paused": paused});
        all
    };
    server.apply(&all("true")).await;
    let reason = server.until_held("all").await;
    assert!(reason.contains("paused"), "{reason}");
    let kind = [("content-type", "application/cloudevents-batch+json")];
    let mut publisher = server.publisher();
    for first in (0..BACKLOG).step_by(BATCH) {
        let events: Vec<_> = (first..first + BATCH)
            .map(|number| {
                json!({"specversion": "1.0", "id": number.to_string(), "source": "/test", "type": "load"})
            })
            .collect();
        let body = serde_json::to_vec(&events).unwrap();
        let answer = publisher.ask("POST", BROKER, &kind, &body).await.unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text());
    }
    assert_eq!(server.terminate().await.code(), Some(0));
    server.launch().await;
    eventually_or_else("the backlog to be known", async || {
        let account = server.account("all").await;
        if account.pending == BACKLOG as u64 {
            return Ok(());
        }
        Err(format!("{account:#?}"))
    })
    .await;
    assert_eq!(
        subscriber.ids("/all").len(),
        0,
        "a paused trigger sent something"
    );

    server.apply(&all("false")).await;
    subscriber.until_received("/all", BACKLOG).await;
    server.until_quiet().await;
    let tally = subscriber.tally("/all");
    assert_eq!(tally.len(), BACKLOG);
    let again: Vec<_> = tally.iter().filter(|(_, times)| **times != 1).collect();
    assert!(again.is_empty(), "came more than once: {again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_acknowledged_just_before_a_kill_is_delivered_after_it() {
    let subscriber = Subscriber::start().await;
    let mut server = stage::with_busy_broker().await;
    let all = trigger("all", &subscriber.url("/all"), json!({}));
    server.apply_trigger(&all).await;
    for round in 0..3 {
        // Nothing is pending when the event comes, so only the log itself tells of it afterwards.
        server.until_quiet().await;
        subscriber.behave("/all", Manner::Hang);
        let id = format!("last-{round}");
        server.publish(BROKER, &id, "ping").await;
        server.kill();
        let before = subscriber.tally("/all").get(&id).copied().unwrap_or(0);
        subscriber.behave("/all", Manner::Accept);
        server.launch().await;
        eventually_or_else("the event to be sent after the restart", async || {
            let came = subscriber.tally("/all").get(&id).copied().unwrap_or(0);
            if came > before {
                return Ok(());
            }
            Err(format!("{id} came {before} times before and never since"))
        })
        .await;
    }
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "all");
    assert_eq!((account.matched, account.delivered), (3, 3), "{account:#?}");
}
