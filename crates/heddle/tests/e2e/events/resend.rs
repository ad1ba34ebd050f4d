//! Stored events that are sent again to one trigger, with the commands and over HTTP, and over a kill.

use serde_json::{Value, json};

use super::stage::{self, BROKER, impatient, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::Server;

const TO: &str = "trigger/team-a/orders";
const MANY: usize = 3_000;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn account(server: &Server) -> Value {
    let accounts: Value = server.question(&format!("accounts?consumer={TO}")).await;
    accounts["consumers"][0].clone()
}

async fn until_delivered(server: &Server, count: usize) {
    crate::harness::eventually("all to be delivered", async || {
        (account(server).await["delivered"] == json!(count)).then_some(())
    })
    .await;
}

/// A trigger that got so many events.
async fn delivered(subscriber: &Subscriber, count: usize) -> Server {
    let server = stage::with_broker().await;
    let delivery = json!({"delivery": impatient(3)});
    let orders = trigger("orders", &subscriber.url("/orders"), delivery);
    server.apply_trigger(&orders).await;
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(500) {
        let events = batch.iter().map(|number| {
            json!({"specversion": "1.0", "id": number.to_string(), "source": "/many", "type": "order.created", "data": {"n": number}})
        });
        let head = [("content-type", "application/cloudevents-batch+json")];
        let body = Value::from(events.collect::<Vec<Value>>()).to_string();
        let mut wire = server.publisher();
        let answer = wire.ask("POST", BROKER, &head, body.as_bytes()).await;
        assert_eq!(answer.unwrap().status(), 202);
    }
    until_delivered(&server, count).await;
    server
}

#[tokio::test]
async fn a_time_is_previewed_and_sent_again_with_the_commands() {
    let subscriber = Subscriber::start().await;
    let server = delivered(&subscriber, 20).await;
    let words = ["events", "resend", "since:1d", "--to", TO];
    let with = |more: &[&'static str]| [&words[..], more].concat();
    let preview = parsed(&server.heddle(&with(&["--dry-run", "-o", "json"])).ok());
    assert_eq!(preview["count"], 20, "{preview}");
    assert_eq!(preview["oldest"]["id"], "0", "{preview}");
    assert_eq!(preview["newest"]["id"], "19", "{preview}");
    let unasked = server.heddle(&words);
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert_eq!(account(&server).await["sentAgain"], Value::Null);
    let told = server.heddle(&with(&["--yes"])).ok();
    assert_eq!(told, "20 of 20 events sent again\n");
    until_delivered(&server, 40).await;
    assert_eq!(account(&server).await["sentAgain"], 20);
    assert_eq!(subscriber.received("/orders").len(), 40);
    let listed = server.heddle(&["events", "operations"]).ok();
    assert!(listed.contains("resend") && listed.contains(TO), "{listed}");
    let trace = server.heddle(&["trace", "7"]).ok();
    assert!(trace.contains("delivered"), "{trace}");
    let nobody = server.heddle(&[
        "events",
        "resend",
        "since:1d",
        "--to",
        "trigger/team-a/none",
        "--yes",
    ]);
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    let audited = server.heddle(&["audit", "-o", "json"]).ok();
    assert!(audited.contains("resend"), "{audited}");
}

#[tokio::test]
async fn one_that_is_killed_goes_on_and_sends_each_event_once() {
    let subscriber = Subscriber::start().await;
    let mut server = delivered(&subscriber, MANY).await;
    let before = subscriber.received("/orders").len();
    let begun = [
        "events", "resend", "since:1d", "--to", TO, "--yes", "--detach", "-o", "json",
    ];
    let begun = parsed(&server.heddle(&begun).ok());
    let operation = format!("events/operations/{}", begun["id"].as_str().unwrap());
    crate::harness::eventually("a part of them to come", async || {
        (subscriber.received("/orders").len() > before + MANY / 10).then_some(())
    })
    .await;
    server.kill();
    server.launch().await;
    let found: Value = server.question(&operation).await;
    assert_eq!(found["state"], "running", "killed in the middle: {found}");
    crate::harness::eventually("the operation to end", async || {
        let found: Value = server.question(&operation).await;
        (found["state"] == "done" && found["count"] == json!(MANY)).then_some(())
    })
    .await;
    until_delivered(&server, 2 * MANY).await;
    let account = account(&server).await;
    assert_eq!(
        (&account["sentAgain"], &account["pending"]),
        (&json!(MANY), &json!(0))
    );
}

#[tokio::test]
async fn one_that_is_stopped_sends_no_more() {
    let subscriber = Subscriber::start().await;
    let server = delivered(&subscriber, 300).await;
    subscriber.behave("/orders", Manner::Hang);
    let begun = [
        "events", "resend", "since:1d", "--to", TO, "--yes", "--detach", "-o", "json",
    ];
    let begun = parsed(&server.heddle(&begun).ok());
    let id = begun["id"].as_str().unwrap();
    let stopped = parsed(&server.heddle(&["events", "stop", id, "-o", "json"]).ok());
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    let sent = account(&server).await["sentAgain"].as_u64().unwrap_or(0);
    assert!(sent < 300, "{sent}");
    let wrong = server.heddle(&["dead-letters", "stop", id]);
    assert_eq!(wrong.code, Some(3), "each kind where it belongs: {wrong:?}");
}
