//! From a publisher to a subscriber: what is taken arrives as it was sent, what is not taken is told why.

use heddle_rt::net;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::stage::{self, BROKER, event, shop, trigger};
use super::subscriber::{Manner, Subscriber};
use super::wire::{self, Message};
use crate::harness::Server;

/// Publishes and gives the answer, whatever it is.
async fn post(server: &Server, door: &str, headers: &[(&str, &str)], body: &[u8]) -> Message {
    let mut wire = server.publisher();
    wire.ask("POST", door, headers, body).await.unwrap()
}

fn structured(id: &str) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "/test", "type": "order.created", "data": {"order": id}})
}

#[tokio::test]
async fn an_event_of_an_application_reaches_the_subscribers_that_want_it_byte_for_byte() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/refunds", Manner::Status(503));
    let server = shop(&subscriber).await;
    let data: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "order-17"),
        ("ce-source", "/shop/checkout"),
        ("ce-type", "order.created"),
        ("ce-subject", "Euro%20%E2%82%AC%20%22%25%22%20%F0%9F%98%80"),
        ("ce-time", "2026-01-02T03:04:05.678901Z"),
        ("ce-tier", "gold"),
        ("content-type", "application/x-photo; quality=high"),
    ];
    let answer = post(&server, "/shop/events", &headers, &data).await;
    assert_eq!((answer.status(), answer.text()), (202, String::new()));
    subscriber.until_received("/orders", 1).await;
    let received = subscriber.received("/orders");
    for (name, value) in headers {
        assert_eq!(received[0].header(name), Some(value), "{name}");
    }
    assert!(received[0].body == data, "the data changed on its way");

    server
        .publish("/shop/events", "order-18", "order.cancelled")
        .await;
    let dead = server.until_dead(1).await;
    assert_eq!(dead.items[0].id, "order-18");
    assert_eq!(dead.items[0].attempts, 3, "the first, and two repetitions");
    assert_eq!(subscriber.ids("/orders"), ["order-17"]);
    assert_eq!(subscriber.ids("/refunds"), ["order-18"; 3]);
    server.until_quiet().await;
}

#[tokio::test]
async fn a_door_that_is_not_there_or_not_open_says_so() {
    let server = stage::with_broker().await;
    let unwanted = json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "asleep"}, "spec": {"skipInstallation": true, "services": []},
    });
    server.apply(&unwanted).await;
    let refused = async |door: &str| {
        let answer = post(&server, door, &event("1", "order.created"), b"").await;
        let body = answer.json();
        let text = |key: &str| body[key].as_str().unwrap().to_owned();
        (answer.status(), text("code"), text("message"), answer)
    };

    let (status, code, message, _) = refused("/nobody/events").await;
    assert_eq!((status, &*code), (404, "application-not-found"));
    assert!(message.contains("\"nobody\""), "{message}");
    let (status, code, message, _) = refused("/broker/team-a/nothing").await;
    assert_eq!((status, &*code), (404, "entry-not-found"));
    assert!(message.contains("Broker team-a/nothing"), "{message}");
    let (status, code, message, _) = refused("/channel/team-a/nothing").await;
    assert_eq!((status, &*code), (404, "entry-not-found"));
    assert!(message.contains("Channel team-a/nothing"), "{message}");
    let (status, code, ..) = refused("/somewhere/else").await;
    assert_eq!((status, &*code), (404, "no-such-path"));

    // The Application is known to the mesh a moment after it is applied.
    let (code, message, answer) =
        crate::harness::eventually_or_else("the mesh to know the Application", async || {
            let (status, code, message, answer) = refused("/asleep/events").await;
            if status == 503 {
                return Ok((code, message, answer));
            }
            Err(format!("{answer:?}"))
        })
        .await;
    assert_eq!(code, "application-not-ready");
    assert!(message.contains("spec.skipInstallation"), "{message}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
}

#[tokio::test]
async fn what_is_no_event_is_refused_with_the_attribute_at_fault_and_not_kept() {
    let server = stage::with_broker().await;
    let good = event("1", "order.created");
    let without = |name: &str| -> Vec<(&str, &str)> {
        good.iter()
            .copied()
            .filter(|(known, _)| *known != name)
            .collect()
    };
    let with = |name, value| {
        let mut headers = without(name);
        headers.push((name, value));
        headers
    };
    let twice = |name, value| {
        let mut headers = good.to_vec();
        headers.push((name, value));
        headers
    };
    let binary = [
        (without("ce-id"), "attribute-missing", "id"),
        (without("ce-source"), "attribute-missing", "source"),
        (without("ce-type"), "attribute-missing", "type"),
        (twice("ce-id", "1"), "attribute-duplicate", "id"),
        (twice("CE-Type", "other"), "attribute-duplicate", "type"),
        (with("ce-id", ""), "attribute-invalid", "id"),
        (
            with("ce-source", "no uri at all"),
            "attribute-invalid",
            "source",
        ),
        (with("ce-time", "yesterday"), "attribute-invalid", "time"),
        (with("ce-subject", "%00"), "attribute-invalid", "subject"),
        (with("ce-bad_name", "1"), "attribute-name", "bad_name"),
        (
            with("ce-specversion", "0.3"),
            "specversion-unsupported",
            "specversion",
        ),
        (with("ce-knativebrokerttl", "0"), "loop", "knativebrokerttl"),
    ];
    for (headers, code, attribute) in binary {
        let answer = post(&server, BROKER, &headers, b"").await;
        let body = answer.json();
        assert_eq!(
            (answer.status(), &body["code"], &body["attribute"]),
            (400, &json!(code), &json!(attribute)),
            "{headers:?}: {body}"
        );
        let message = body["message"].as_str().unwrap();
        assert!(message.contains(attribute), "{message}");
    }

    let mut nameless = structured("2");
    nameless.as_object_mut().unwrap().remove("source");
    let json = [("content-type", "application/cloudevents+json")];
    let answer = post(&server, BROKER, &json, nameless.to_string().as_bytes()).await;
    assert_eq!(
        (answer.status(), &answer.json()["attribute"]),
        (400, &json!("source"))
    );
    let answer = post(&server, BROKER, &json, b"{\"specversion\": \"1.0\", ").await;
    assert_eq!(
        (answer.status(), &answer.json()["code"]),
        (400, &json!("json-invalid"))
    );
    let avro = [("content-type", "application/cloudevents+avro")];
    let answer = post(&server, BROKER, &avro, b"x").await;
    assert_eq!(
        (answer.status(), &answer.json()["code"]),
        (415, &json!("format-unsupported"))
    );
    let answer = post(&server, BROKER, &good, &vec![0; (1 << 20) + 1]).await;
    assert_eq!(
        (answer.status(), &answer.json()["code"]),
        (413, &json!("request-too-large"))
    );

    let accounts = server.accounts().await;
    assert_eq!(accounts.log.next, accounts.log.first, "something was kept");
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all_and_the_bad_event_is_counted_out() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let all = trigger("all", &subscriber.url("/all"), json!({}));
    server.apply_trigger(&all).await;
    let batch = [("content-type", "application/cloudevents-batch+json")];

    let mut bad = structured("bad");
    bad["time"] = json!("yesterday");
    let events = json!([structured("1"), structured("2"), bad, structured("3")]);
    let answer = post(&server, BROKER, &batch, events.to_string().as_bytes()).await;
    let body = answer.json();
    assert_eq!(
        (answer.status(), &body["index"], &body["attribute"]),
        (400, &json!(2), &json!("time")),
        "{body}"
    );

    let events = json!([structured("4"), structured("5")]);
    let answer = post(&server, BROKER, &batch, events.to_string().as_bytes()).await;
    assert_eq!(answer.status(), 202, "{}", answer.text());
    let kind = [(
        "content-type",
        "application/cloudevents+json; charset=utf-8",
    )];
    let answer = post(
        &server,
        BROKER,
        &kind,
        structured("6").to_string().as_bytes(),
    )
    .await;
    assert_eq!(answer.status(), 202, "{}", answer.text());
    let accounts = server.until_quiet().await;
    assert_eq!(accounts.log.next - accounts.log.first, 3);
    let mut ids = subscriber.ids("/all");
    ids.sort();
    assert_eq!(ids, ["4", "5", "6"]);
}

#[tokio::test]
async fn senders_that_ask_first_are_answered() {
    let server = stage::with_broker().await;
    let mut wire = server.publisher();
    let origin = [
        ("webhook-request-origin", "eventemitter.example.com"),
        ("webhook-request-rate", "120"),
    ];
    let answer = wire.ask("OPTIONS", BROKER, &origin, b"").await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.header("webhook-allowed-origin"),
        Some("eventemitter.example.com")
    );
    assert_eq!(answer.header("webhook-allowed-rate"), Some("*"));
    assert!(answer.header("allow").unwrap().contains("POST"));

    let answer = wire.ask("GET", BROKER, &[], b"").await.unwrap();
    assert_eq!(answer.status(), 405);
    assert!(answer.header("allow").unwrap().contains("POST"));
}

#[tokio::test]
async fn a_refused_request_leaves_its_connection_usable_however_late_its_body_comes() {
    let server = stage::with_broker().await;
    let address = server.events.strip_prefix("http://").unwrap();
    let mut stream = net::connect(address.parse().unwrap()).await.unwrap();
    for refused in ["/broker/team-a/nowhere", BROKER, "/nothing/at/all"] {
        let head =
            format!("POST {refused} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 5\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // Somebody else's request takes its time meanwhile.
        server.publish(BROKER, refused, "meanwhile").await;
        stream.write_all(b"hello").await.unwrap();
        let answer = wire::read(&mut stream).await.unwrap();
        let answer = answer.expect("an answer on the same connection");
        assert!((400..500).contains(&answer.status()), "{}", answer.text());
    }
}
