//! A disk with less room than events are to leave free: everything works but publishing, and says so.

use serde_json::Value;

use super::stage::{self, BROKER, broker, event};
use super::subscriber::{Manner, Subscriber};
use crate::harness::eventually_or_else;

/// No disk has that much.
const NEVER_ENOUGH: &str = "eventsReserveMebibytes: 4294967295\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_reserve_what_was_accepted_is_delivered_and_nothing_else_is_accepted() {
    let mut server = stage::with_broker().await;
    let subscriber = Subscriber::start().await;
    stage::refused_and_retried(&server, &subscriber).await;
    server.publish(BROKER, "before", "load").await;

    server.terminate().await;
    server.launch_configured(NEVER_ENOUGH).await;
    let refusal: Value = eventually_or_else("a refusal", async || {
        let mut wire = server.publisher();
        let answer = wire
            .ask("POST", BROKER, &event("refused", "load"), b"")
            .await;
        let answer = answer.unwrap();
        if answer.status() == 507 {
            assert_eq!(answer.header("retry-after"), Some("10"));
            return Ok(answer.json());
        }
        // The mesh has no routes yet.
        assert_eq!(answer.status(), 503, "{}", answer.text());
        Err(answer.text())
    })
    .await;
    assert_eq!(refusal["code"], "storage-low");
    let directory = server.data().join("events").display().to_string();
    assert_eq!(refusal["directory"], directory);
    let message = refusal["message"].as_str().unwrap();
    assert!(message.contains(&directory), "{message}");

    // Byte by byte: a Kubernetes client would take a 503 for a reason to ask again, for minutes.
    let ready = server.ask("GET", "/readyz", &[], b"").await;
    assert_eq!(ready.status(), 503);
    assert!(ready.text().contains("too little room"), "{}", ready.text());
    let stranger = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let stranger = crate::doors::raw(&server.control, stranger).await;
    assert!(stranger.starts_with("HTTP/1.1 503 "), "{stranger}");
    assert!(!stranger.contains("room"), "{stranger}");
    let doctor = server.heddle(&["doctor"]);
    assert!(doctor.out.contains("too little room"), "{}", doctor.out);
    let metrics = server.metrics().await;
    assert!(metrics.contains("\nheddle_log_serving 0\n"), "{metrics}");
    // Resources are written and the event that was accepted is delivered.
    server.apply(&broker("other")).await;
    subscriber.behave("/", Manner::Accept);
    eventually_or_else("the delivery", async || match server.account("t").await {
        account if account.delivered == 1 => Ok(()),
        account => Err(format!("{account:?}")),
    })
    .await;

    server.terminate().await;
    server.launch().await;
    server.publish(BROKER, "after", "load").await;
    eventually_or_else("the next delivery", async || {
        let ids = subscriber.tally("/");
        if ids.contains_key("after") {
            return Ok(ids);
        }
        Err(format!("{ids:?}"))
    })
    .await;
    assert!(!subscriber.tally("/").contains_key("refused"));
}
