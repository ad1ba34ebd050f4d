//! The parts of the demo that need no server.

use std::path::Path;

use heddle_api::ledger::{ConsumerTrace, TracedEvent};
use http::{Request, StatusCode};

use super::*;
use crate::cmd::testing::world;

#[test]
fn the_manifest_declares_what_the_demo_waits_for() {
    let documents =
        manifest::parse("demo", &MANIFEST.replace("SUBSCRIBERS", "http://here")).unwrap();
    let of = |kind: &str| -> Vec<String> {
        let documents = documents.iter().filter(|document| document.kind() == kind);
        documents
            .map(|document| {
                format!(
                    "{}/{}",
                    document.namespace().unwrap_or_default(),
                    document.name()
                )
            })
            .collect()
    };
    assert_eq!(
        of("Trigger"),
        TRIGGERS.map(|name| format!("{NAMESPACE}/{name}"))
    );
    assert_eq!(
        of("Subscription"),
        [format!("{INTEGRATION_NAMESPACE}/{SUBSCRIPTION}")]
    );
    for document in &documents {
        if document.kind() == "Trigger" {
            let trigger: Trigger = serde_json::from_value(document.object.clone()).unwrap();
            let uri = trigger.spec.subscriber.uri.unwrap();
            assert_eq!(uri, format!("http://here/{}", document.name()));
        }
    }
}

#[test]
fn the_guide_can_be_copied_into_a_shell() {
    let guide = Guide {
        path: "PATH=/opt/heddle:$PATH ",
        data_dir: Path::new("/tmp/heddle-demo-x"),
        events: "http://127.0.0.1:4334",
        subscribers: "http://127.0.0.1:1",
    };
    let text = guide.text(false);
    let commands = crate::cmd::tests::examples(&text);
    assert_eq!(commands.len(), 9, "{text}");
    for command in commands {
        crate::cmd::tests::check_example(&command);
    }
    assert!(text.contains("\n  export PATH=/opt/heddle:$PATH HEDDLE_DATA_DIR=/tmp/heddle-demo-x KUBECONFIG=/tmp/heddle-demo-x/admin.kubeconfig\n"), "{text}");
    assert!(
        text.contains("\n  curl -i http://127.0.0.1:4334/shop/events -H"),
        "{text}"
    );
    assert!(
        text.contains("\n  curl -X POST http://127.0.0.1:1/refunds/mend\n"),
        "{text}"
    );
}

#[tokio::test]
async fn one_subscriber_takes_events_and_the_other_fails() {
    let tasks = Tasks::new("test");
    let mut subscribers = Subscribers::start(&tasks, &world()).await.unwrap();
    let remote =
        Remote::anonymous(subscribers.url.parse().unwrap(), subscribers.url.clone()).unwrap();
    let send = async |path: &str, id: &str| {
        let request = Request::post(path)
            .header("ce-specversion", "1.0")
            .header("ce-type", "t")
            .header("ce-source", "s");
        let request = request.header("ce-id", id).body(Vec::new()).unwrap();
        remote.send(request).await.unwrap().code
    };
    assert_eq!(send("/orders", "1").await, StatusCode::OK);
    assert_eq!(send("/refunds", "2").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        send("/orders", "").await,
        StatusCode::BAD_REQUEST,
        "what is no event is no arrival"
    );
    let arrival = subscribers.next().await;
    assert_eq!(
        arrival_text(&arrival, false),
        "  1 arrived at /orders, t; answered 200"
    );
    assert_eq!(
        (
            subscribers.next().await.answer,
            subscribers.arrived("/orders")
        ),
        (503, 1)
    );
    let post = async |path: &str| {
        let request = Request::post(path).body(Vec::new()).unwrap();
        remote.send(request).await.unwrap().code
    };
    assert_eq!(post("/refunds/mend").await, StatusCode::OK);
    assert_eq!(send("/refunds", "3").await, StatusCode::OK);
    assert_eq!(post("/refunds/break").await, StatusCode::OK);
    assert_eq!(send("/refunds", "4").await, StatusCode::SERVICE_UNAVAILABLE);
    tasks.cancel();
    tasks.join().await;
}

#[test]
fn the_way_of_each_order_is_checked() {
    let way = |orders: EventState, refunds: EventState| {
        let verdict = |trigger: &str, state: EventState| ConsumerTrace {
            consumer: format!("trigger/team-a/{trigger}"),
            via: Vec::new(),
            state,
            reason: String::new(),
            attempts: Vec::new(),
            next_attempt_at: None,
            ended_at: None,
        };
        let event = TracedEvent {
            offset: 0,
            source: String::new(),
            id: String::new(),
            type_: String::new(),
            accepted_at: jiff::Timestamp::UNIX_EPOCH,
            entry: String::new(),
            request_id: None,
            data_bytes: 0,
            cause: None,
            verdicts: vec![verdict("orders", orders), verdict("refunds", refunds)],
            summary: "done".to_owned(),
        };
        Trace {
            events: vec![event],
            ..Trace::default()
        }
    };
    use EventState::{DeadLettered, Delivered, Filtered};
    assert!(check(&way(Delivered, Filtered), 1).is_ok());
    assert!(check(&way(Filtered, DeadLettered), 3).is_ok());
    assert!(check(&way(Filtered, DeadLettered), 1).is_err());
    assert!(check(&way(DeadLettered, Filtered), 2).is_err());
    assert!(check(&way(Filtered, Delivered), 3).is_err());
    assert!(check(&Trace::default(), 1).is_err());
}
