//! Where events rest when delivery gives up, and what people do about them with the commands.

use heddle_api::ledger::EventState;
use serde_json::{Value, json};

use super::stage::{self, BROKER, impatient, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::Server;

/// A trigger whose subscriber refuses everything, and the events it refused.
async fn refused(subscriber: &Subscriber, ids: &[&str]) -> Server {
    subscriber.behave("/orders", Manner::Status(500));
    let server = stage::with_broker().await;
    let orders = trigger(
        "orders",
        &subscriber.url("/orders"),
        json!({"delivery": impatient(1)}),
    );
    server.apply_trigger(&orders).await;
    for id in ids {
        server.publish(BROKER, id, &format!("type.{id}")).await;
    }
    server.until_dead(ids.len() as u64).await;
    server
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn dead_letters_are_listed_and_shown_as_the_server_has_them() {
    let subscriber = Subscriber::start().await;
    let server = refused(&subscriber, &["1", "2", "3"]).await;
    let list = parsed(&server.heddle(&["dead-letters", "list", "-o", "json"]).ok());
    assert_eq!(list, server.question::<Value>("dead-letters").await);
    assert_eq!(list["total"], 3, "{list}");
    let letter = &list["items"][0];
    assert_eq!(letter["consumer"], "trigger/team-a/orders");
    assert_eq!(
        (&letter["status"], &letter["attempts"]),
        (&json!(500), &json!(2))
    );

    let name = letter["name"].as_str().unwrap();
    let shown = server
        .heddle(&["dead-letters", "show", name, "-o", "json"])
        .ok();
    let shown = parsed(&shown);
    let detail: Value = server.question(&format!("dead-letters/{name}")).await;
    assert_eq!(shown, detail);
    assert_eq!(shown["event"]["id"], letter["id"], "{shown}");
    assert_eq!(shown["answer"], "no", "{shown}");

    for (option, value) in [("--type", "type.2"), ("--id", "2")] {
        let some = server
            .heddle(&["dead-letters", "list", option, value, "-o", "json"])
            .ok();
        let some = parsed(&some);
        assert_eq!(
            some["items"].as_array().unwrap().len(),
            1,
            "{option}: {some}"
        );
        assert_eq!(some["items"][0]["id"], "2", "{option}: {some}");
    }
    let none = [
        "dead-letters",
        "list",
        "--trigger",
        "team-a/other",
        "-o",
        "json",
    ];
    assert_eq!(parsed(&server.heddle(&none).ok())["items"], json!([]));
    let unknown = server.heddle(&["dead-letters", "show", "999"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[tokio::test]
async fn a_dead_letter_that_is_redriven_is_delivered_and_one_that_is_discarded_is_not() {
    let subscriber = Subscriber::start().await;
    let server = refused(&subscriber, &["1", "2", "3"]).await;
    let page = server.until_dead(3).await;
    let name_of = |id: &str| {
        let letter = page.items.iter().find(|letter| letter.id == id);
        letter.unwrap().name.clone()
    };
    let unclear = server.heddle(&["dead-letters", "redrive"]);
    assert_eq!(unclear.code, Some(2), "{unclear:?}");
    let unconfirmed = server.heddle(&["dead-letters", "redrive", "--all"]);
    assert_ne!(unconfirmed.code, Some(0), "{unconfirmed:?}");
    server.until_dead(3).await;

    subscriber.behave("/orders", Manner::Accept);
    server
        .heddle(&["dead-letters", "redrive", &name_of("1")])
        .ok();
    let page = server.until_dead(2).await;
    assert!(page.items.iter().all(|letter| letter.id != "1"));
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "orders");
    assert_eq!((account.delivered, account.dead_letters), (1, 2));
    assert_eq!(subscriber.tally("/orders")["1"], 3);

    server
        .heddle(&["dead-letters", "discard", "--id", "2", "--yes"])
        .ok();
    server.until_dead(1).await;
    let trace = server.trace("2").await;
    let verdict = &trace.events[0].verdicts[0];
    assert_eq!(verdict.state, EventState::Removed, "{verdict:#?}");
    assert!(verdict.reason.contains("heddle-admin"), "{verdict:#?}");

    server
        .heddle(&[
            "dead-letters",
            "redrive",
            "--trigger",
            "team-a/orders",
            "--yes",
        ])
        .ok();
    server.until_dead(0).await;
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "orders");
    assert_eq!((account.delivered, account.removed), (2, 1));
    assert_eq!(subscriber.tally("/orders")["2"], 2, "it was thrown away");
}

#[tokio::test]
async fn an_event_that_dies_while_it_is_redriven_rests_again() {
    let subscriber = Subscriber::start().await;
    let server = refused(&subscriber, &["1"]).await;
    server
        .heddle(&["dead-letters", "redrive", "--all", "--yes"])
        .ok();
    crate::harness::eventually("the second death", async || {
        let page: heddle_api::ledger::DeadLetterPage = server.question("dead-letters").await;
        page.items
            .first()
            .filter(|letter| letter.redrives == 1)
            .map(drop)
    })
    .await;
    let account = server.account("orders").await;
    assert_eq!(
        (account.dead_letters, account.pending),
        (1, 0),
        "{account:#?}"
    );
}

#[tokio::test]
async fn an_external_sink_gets_the_event_with_the_reason() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/orders", Manner::Status(500));
    let server = stage::with_broker().await;
    let mut delivery = impatient(0);
    delivery["deadLetterSink"] = json!({"uri": subscriber.url("/sink")});
    let uri = subscriber.url("/orders");
    let orders = trigger("orders", &uri, json!({"delivery": delivery}));
    server.apply_trigger(&orders).await;
    server.publish(BROKER, "1", "order.created").await;
    subscriber.until_received("/sink", 1).await;
    let received = &subscriber.received("/sink")[0];
    assert_eq!(received.header("ce-type"), Some("order.created"));
    assert_eq!(received.header("ce-knativeerrordest"), Some(&*uri));
    assert_eq!(received.header("ce-knativeerrorcode"), Some("500"));
    assert_eq!(received.header("ce-knativeerrordata"), Some("bm8="));
    crate::harness::eventually("the sink's answer to be noted", async || {
        let page: heddle_api::ledger::DeadLetterPage = server.question("dead-letters").await;
        (page.items[0].sink.as_deref() == Some("sent")).then_some(())
    })
    .await;
}

/// As many as one consumer may have. Publishing is what takes the time, so they go in batches.
const MANY: usize = 10_000;

#[tokio::test]
async fn many_that_are_redriven_when_the_process_is_killed_go_on_and_leave_once_each() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/orders", Manner::Status(400));
    let mut server = stage::with_broker().await;
    let orders = trigger(
        "orders",
        &subscriber.url("/orders"),
        json!({"delivery": impatient(0)}),
    );
    server.apply_trigger(&orders).await;
    let numbers: Vec<usize> = (0..MANY).collect();
    for batch in numbers.chunks(500) {
        let events: Vec<Value> = batch
            .iter()
            .map(|number| {
                json!({
                    "specversion": "1.0", "id": number.to_string(), "source": "/many", "type": "order.created",
                })
            })
            .collect();
        let head = [("content-type", "application/cloudevents-batch+json")];
        let body = Value::from(events).to_string();
        let mut wire = server.publisher();
        let answer = wire
            .ask("POST", BROKER, &head, body.as_bytes())
            .await
            .unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text());
    }
    server.until_dead(MANY as u64).await;
    let by_cause = server.heddle(&["dead-letters", "list", "--by", "cause", "-o", "json"]);
    let groups = parsed(&by_cause.ok());
    assert_eq!(
        groups,
        server.question::<Value>("dead-letters/groups").await
    );
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1, "{groups}");
    let key = groups["groups"][0]["key"].as_str().unwrap();
    let preview = [
        "dead-letters",
        "redrive",
        "--group",
        key,
        "--dry-run",
        "-o",
        "json",
    ];
    let preview = parsed(&server.heddle(&preview).ok());
    assert_eq!(preview["count"], json!(MANY), "{preview}");
    assert_eq!(preview["hints"], json!(["notCuredByRepeating"]));

    subscriber.behave("/orders", Manner::Accept);
    let before = subscriber.received("/orders").len();
    let redrive = [
        "dead-letters",
        "redrive",
        "--group",
        key,
        "--yes",
        "--detach",
        "-o",
        "json",
    ];
    let begun = parsed(&server.heddle(&redrive).ok());
    let operation = format!("dead-letters/operations/{}", begun["id"].as_str().unwrap());
    crate::harness::eventually("a part of them to come", async || {
        (subscriber.received("/orders").len() > before + MANY / 10).then_some(())
    })
    .await;
    server.kill();
    server.launch().await;
    let found: Value = server.question(&operation).await;
    assert_eq!(
        found["state"], "running",
        "it was killed in the middle: {found}"
    );
    crate::harness::eventually("the operation to end", async || {
        let found: Value = server.question(&operation).await;
        (found["state"] == "done" && found["count"] == json!(MANY)).then_some(())
    })
    .await;
    let accounts = server.until_quiet().await;
    let account = stage::account_of(&accounts.consumers, "orders");
    assert_eq!(
        (account.delivered, account.dead_letters),
        (MANY as u64, 0),
        "{account:#?}"
    );
    // What was under way when it was killed, and nothing else, may have come twice.
    let twice = subscriber.received("/orders").len() - before - MANY;
    assert!(twice <= 200, "{twice} came twice");
}
