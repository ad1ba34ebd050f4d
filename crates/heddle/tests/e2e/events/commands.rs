//! What people find out and do with the commands: trace, explain, doctor, demo, publish.

use serde_json::{Value, json};

use super::stage::{self, BROKER, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::{Outcome, heddle};

// A command blocks the thread of its test; where the subscriber has to answer meanwhile, there are more.

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_tells_where_an_event_is_until_it_has_ended() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let wanting = |name: &str, type_: &str| {
        let spec = json!({"filters": [{"exact": {"type": type_}}]});
        trigger(name, &subscriber.url(&format!("/{name}")), spec)
    };
    server
        .apply_trigger(&wanting("orders", "order.created"))
        .await;
    server
        .apply_trigger(&wanting("refunds", "order.cancelled"))
        .await;
    server.publish(BROKER, "order-17", "order.created").await;

    let followed = server.heddle(&[
        "trace",
        "order-17",
        "--follow",
        "--timeout",
        "50",
        "-o",
        "json",
    ]);
    let followed = parsed(&followed.ok());
    let asked = server.heddle(&["trace", "order-17", "--source", "/test", "-o", "json"]);
    assert_eq!(parsed(&asked.ok())["events"], followed["events"]);
    assert_eq!(
        server.question::<Value>("trace?id=order-17").await,
        followed
    );
    let event = &followed["events"][0];
    assert_eq!(
        (&event["summary"], &event["entry"]),
        (&json!("done"), &json!("broker/team-a/default"))
    );
    let states: Vec<(&str, &str)> = event["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| {
            (
                verdict["consumer"].as_str().unwrap(),
                verdict["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            ("trigger/team-a/orders", "delivered"),
            ("trigger/team-a/refunds", "filtered")
        ]
    );
    let reason = event["verdicts"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("type"), "{reason}");

    let unknown = server.heddle(&["trace", "order-18"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    subscriber.behave("/refunds", Manner::Hang);
    server.publish(BROKER, "order-19", "order.cancelled").await;
    let waiting = server.heddle(&["trace", "order-19", "--follow", "--timeout", "1"]);
    assert_eq!(waiting.code, Some(7), "{waiting:?}");
    assert!(
        waiting.err.contains("order-19 has not ended"),
        "{}",
        waiting.err
    );
}

#[tokio::test]
async fn explain_tries_a_filter_on_what_is_stored_and_changes_nothing() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let spec = json!({"filters": [{"prefix": {"type": "order."}}]});
    server
        .apply_trigger(&trigger("orders", &subscriber.url("/orders"), spec))
        .await;
    for (id, type_) in [
        ("1", "order.created"),
        ("2", "order.cancelled"),
        ("3", "ping"),
    ] {
        server.publish(BROKER, id, type_).await;
    }
    server.until_quiet().await;
    let explain = |more: &[&str]| {
        let mut args = vec!["explain", "trigger", "team-a/orders", "-o", "json"];
        args.extend(more);
        parsed(&server.heddle(&args).ok())
    };
    let told = explain(&[]);
    let explanation = &told["explanation"];
    assert_eq!(
        (&explanation["examined"], &explanation["matched"]),
        (&json!(3), &json!(2)),
        "{told}"
    );
    assert_eq!(explanation["misses"][0]["id"], "3", "{told}");
    assert_eq!(told["account"]["delivered"], 2, "{told}");

    let told = explain(&["--filter", "type=ping"]);
    assert_eq!(told["explanation"]["matched"], 1, "{told}");
    assert_eq!(told["explanation"]["matches"][0]["id"], "3", "{told}");
    server.until_quiet().await;
    assert_eq!(subscriber.tally("/orders").len(), 2, "nothing was sent");
    let missing = server.heddle(&["explain", "trigger", "team-a/nothing"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
}

#[tokio::test]
async fn the_doctor_is_content_with_a_healthy_server_and_names_what_is_not_ready() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    server
        .apply_trigger(&trigger("orders", &subscriber.url("/orders"), json!({})))
        .await;
    server.publish(BROKER, "1", "ping").await;
    server.until_quiet().await;
    let well = parsed(&server.heddle(&["doctor", "-o", "json"]).ok());
    let levels = well["findings"].as_array().unwrap();
    assert!(
        levels.iter().all(|finding| finding["level"] == "ok"),
        "{well}"
    );

    let lost = trigger(
        "lost",
        &subscriber.url("/lost"),
        json!({"broker": "nowhere"}),
    );
    server.apply(&lost).await;
    server
        .until_condition("triggers", "lost", "Ready", "False")
        .await;
    let ill = server.heddle(&["doctor"]);
    assert_eq!(ill.code, Some(1), "{ill:?}");
    let first = ill.out.lines().find(|line| line.contains("bad ")).unwrap();
    assert!(
        first.contains("trigger/team-a/lost") && first.contains("BrokerNotFound"),
        "{}",
        ill.out
    );
    assert!(first.starts_with("  bad   HD-030  "), "{first}");
    assert!(ill.out.contains("docs/reference/checks.md#hd-030"));
    let waited = server.heddle(&["doctor", "-o", "short", "--wait", "--timeout", "1"]);
    assert_eq!(waited.code, Some(7), "{waited:?}");
    assert_eq!(waited.out.lines().count(), 1, "{waited:?}");
    let path = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/lost";
    server.ask("DELETE", path, &[], b"").await;
    let mended = server.heddle(&["doctor", "-o", "short", "--wait"]);
    assert_eq!((mended.code, &*mended.out), (Some(0), ""), "{mended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_events_are_published_at_once_and_each_arrives_once() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_busy_broker().await;
    server
        .apply_trigger(&trigger("load", &subscriber.url("/load"), json!({})))
        .await;
    let args = [
        "publish",
        "--broker",
        "team-a/default",
        "--type",
        "load",
        "--count",
        "200",
        "--concurrency",
        "8",
        "-o",
        "json",
    ];
    let figures = parsed(&server.heddle(&args).ok());
    assert_eq!(
        (&figures["sent"], &figures["accepted"]),
        (&json!(200), &json!(200)),
        "{figures}"
    );
    server.until_quiet().await;
    let tally = subscriber.tally("/load");
    assert_eq!(tally.len(), 200);
    assert!(tally.values().all(|times| *times == 1), "{tally:?}");

    let refused = server.heddle(&["publish", "--broker", "team-a/nothing", "--type", "load"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("entry-not-found"), "{}", refused.err);
}

#[test]
fn the_demo_shows_three_events_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let demo = heddle()
        .args(["demo", "--once"])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let demo = Outcome::of(demo).ok();
    for id in ["demo-1", "demo-2", "demo-3"] {
        assert!(demo.contains(id), "{demo}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "the demo's directory is still there");
}
