//! An unmodified publisher of old Kyma and the real binary: what it sends arrives byte for byte, once, also over a kill.

use serde_json::{Value, json};

use super::stage;
use super::subscriber::Subscriber;
use super::wire::Message;
use crate::harness::{Server, eventually};

const ID: &str = "31109198-4d69-4ae0-972d-76117f3748c8";
/// A double would round all of them, and a map would sort them.
const DATA: &str =
    r#"{"z":9007199254740993,"price":10.10,"a":123456789012345678901234567890,"text":"\u00e9"}"#;

async fn ask(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Message {
    let mut wire = server.publisher();
    let answer = wire.ask(method, path, headers, body.as_bytes()).await;
    answer.unwrap()
}

fn first_form(id: &str) -> String {
    format!(
        r#"{{"event-type":"order.created","event-type-version":"v1","event-id":"{id}","event-time":"2020-03-25T13:45:00Z","data":{DATA}}}"#
    )
}

#[tokio::test]
async fn an_unmodified_publisher_publishes_once_also_over_a_kill() {
    let subscriber = Subscriber::start().await;
    let mut server = stage::shop(&subscriber).await;
    let first = ask(&server, "POST", "/shop/v1/events", &[], &first_form(ID)).await;
    let published = json!({
        "event-id": ID, "status": "published", "reason": "Message successfully published to the channel",
    });
    assert_eq!((first.status(), first.json()), (200, published.clone()));
    subscriber.until_received("/orders", 1).await;

    server.kill();
    server.launch().await;
    let again = eventually("the mesh to have routes", async || {
        let again = ask(&server, "POST", "/shop/v1/events", &[], &first_form(ID)).await;
        if again.status() == 503 {
            assert!(again.header("retry-after").is_some(), "{again:?}");
            return None;
        }
        Some(again)
    })
    .await;
    assert_eq!(again.status(), 200, "{again:?}");
    assert_eq!(again.json()["event-id"], ID);

    let second = json!({
        "specversion": "0.3", "id": ID.replace("31", "32"), "type": "order.created",
        "eventtypeversion": "v1", "time": "2020-03-25T13:45:00Z", "data": {"order": 17},
    });
    let headers = [("source-id", "shop")];
    let answer = ask(&server, "POST", "/v2/events", &headers, &second.to_string()).await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    subscriber.until_received("/orders", 2).await;
    let trace = server.trace(ID).await;
    assert_eq!(trace.events.len(), 1, "{trace:?}");
    let received = subscriber.received("/orders");
    let one = received
        .iter()
        .find(|seen| seen.header("ce-id") == Some(ID));
    let one = one.unwrap();
    assert_eq!(one.text(), DATA, "the data changed on its way");
    assert_eq!(one.header("ce-source"), Some("shop"));
    assert_eq!(one.header("ce-eventtypeversion"), Some("v1"));
}

#[tokio::test]
async fn who_is_not_known_is_told_so_in_the_old_form_and_probes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::keeping(folder.path().join("data"));
    server
        .launch_with(|command| {
            command.arg("--events-require-identity");
        })
        .await;
    let refused = ask(&server, "POST", "/shop/v1/events", &[], &first_form(ID)).await;
    assert_eq!(
        (refused.status(), &refused.json()["code"]),
        (401, &json!(401))
    );
    assert!(refused.json()["error"].is_string(), "{refused:?}");
    let native = ask(&server, "POST", "/shop/events", &[], "").await;
    assert_eq!(native.json()["code"], "unauthorized");
    assert_eq!(
        ask(&server, "GET", "/v1/health", &[], "").await.status(),
        200
    );
    eventually("the mesh to have routes", async || {
        let ready = ask(&server, "GET", "/v1/status/ready", &[], "").await;
        (ready.status() == 200).then_some(())
    })
    .await;
    let token = format!("Bearer {}", server.token());
    let headers = [("authorization", token.as_str())];
    let missing = ask(
        &server,
        "POST",
        "/nobody/v1/events",
        &headers,
        &first_form(ID),
    )
    .await;
    let expected: Value = json!({
        "code": 404, "error": "there is no Application \"nobody\"; apply one first, or correct the path",
    });
    assert_eq!((missing.status(), missing.json()), (404, expected));
}
