//! From arguments to requests, and from answers to what is said.

use std::time::Duration;

use clap::Parser as _;
use serde_json::Value;

use super::figures::Figures;
use super::many::Outcome;
use super::*;
use crate::client::stand_in::{Asked, StandIn};
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn line(words: &[&str]) -> Result<Args, clap::Error> {
    Line::try_parse_from([&["publish"], words].concat()).map(|line| line.args)
}

/// Publishes to a server that accepts everything; what arrived.
async fn sent(words: &[&str]) -> Vec<Asked> {
    let server = StandIn::start().await;
    for path in [
        "/shop/events",
        "/broker/team-a/default",
        "/channel/team-a/shop",
    ] {
        server.answers(&format!("POST {path}"), 202, &Value::Null);
    }
    let args = line(&[words, &["--events", &server.url]].concat()).unwrap();
    let screen = Screen::default();
    let done = run(args, &world(), &mut screen.terminal()).await;
    assert!(done.is_ok(), "{done:?}");
    server.asked()
}

#[tokio::test]
async fn an_event_of_flags_is_sent_as_headers_and_body() {
    let asked = sent(&[
        "shop",
        "--type",
        "order.created",
        "--id",
        "17",
        "--subject",
        "Euro € 100% \"x\"",
        "--extension",
        "tier=gold=plus",
        "--data",
        r#"{"n": 1.50}"#,
    ])
    .await;
    assert_eq!(asked[0].line, "POST /shop/events");
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-type", "order.created"),
        ("ce-id", "17"),
        ("ce-source", "/heddle/publish"),
        ("ce-subject", "Euro%20%E2%82%AC%20100%25%20%22x%22"),
        ("ce-tier", "gold=plus"),
        ("content-type", "application/json"),
    ];
    for (name, value) in headers {
        assert_eq!(asked[0].header(name), value, "{name}");
    }
    assert_eq!(&asked[0].body[..], br#"{"n": 1.50}"#);
}

#[tokio::test]
async fn a_structured_event_keeps_json_data_as_it_was_written() {
    let words = [
        "--broker",
        "team-a/default",
        "--type",
        "t",
        "--id",
        "i",
        "--source",
        "s",
    ];
    let structured = |more: &[&'static str]| [&words[..], &["--structured"], more].concat();
    let asked = sent(&structured(&["--data", "1.50e1"])).await;
    assert_eq!(asked[0].line, "POST /broker/team-a/default");
    assert_eq!(
        asked[0].header("content-type"),
        "application/cloudevents+json; charset=utf-8"
    );
    assert_eq!(
        &asked[0].body[..],
        br#"{"specversion":"1.0","id":"i","source":"s","type":"t","datacontenttype":"application/json","data":1.50e1}"#
    );
    let asked = sent(&structured(&["--data", "{oops"])).await;
    assert_eq!(asked[0].json()["data"], "{oops");
    let asked = sent(&structured(&[
        "--data",
        "{oops",
        "--content-type",
        "application/json",
    ]))
    .await;
    assert_eq!(
        asked[0].json()["data_base64"],
        "e29vcHM=",
        "what claims to be JSON and is not stays what it is"
    );
    let asked = sent(&structured(&[])).await;
    assert_eq!(asked[0].json().get("data"), None);
}

#[tokio::test]
async fn a_file_with_events_is_sent_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("event.json");
    let name = path.to_str().unwrap();
    let write = |text: &str| {
        heddle_rt::Vfs::write_atomic(&heddle_rt::DiskVfs, &path, text.as_bytes(), 0o600).unwrap()
    };
    let event = r#"{ "id": "a",  "data": 1.0 }"#;
    write(event);
    let asked = sent(&["--channel", "team-a/shop", "--event", name]).await;
    assert_eq!(asked[0].line, "POST /channel/team-a/shop");
    assert_eq!(&asked[0].body[..], event.as_bytes());
    write(&format!("[{event}, {event}]"));
    let asked = sent(&[
        "shop",
        "--event",
        name,
        "--count",
        "3",
        "--concurrency",
        "1",
    ])
    .await;
    assert_eq!(
        asked[0].header("content-type"),
        "application/cloudevents-batch+json; charset=utf-8"
    );
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].json()[1]["id"], "a-3");
    write("7");
    let args = line(&["shop", "--event", name, "--events", "http://127.0.0.1:1"]).unwrap();
    let error = run(args, &world(), &mut Screen::default().terminal())
        .await
        .unwrap_err();
    assert_eq!(exit_code(&error), 2, "{error}");
}

#[tokio::test]
async fn the_mesh_reads_what_was_meant_in_either_mode() {
    use heddle_mesh::event::http::{Limits, Received, read};
    let subject = "100 % \"größer\" \u{1f600}";
    let words = [
        "shop",
        "--type",
        "t",
        "--id",
        "a b",
        "--source",
        "/s?x=y",
        "--subject",
        subject,
        "--time",
        "now",
        "--extension",
        "tier=gold",
        "--data",
        "plain text",
    ];
    for more in [&[][..], &["--structured"]] {
        let asked = sent(&[&words[..], more].concat()).await;
        let Received::One(event) =
            read(&asked[0].headers, &asked[0].body, &Limits::default()).unwrap()
        else {
            panic!("one event was sent");
        };
        let text =
            |name: &str| heddle_api::attributes::Attributes::text(&event, name).map(str::to_owned);
        assert_eq!(
            (event.id(), event.source(), event.type_()),
            ("a b", "/s?x=y", "t"),
            "{more:?}"
        );
        assert_eq!(text("subject").as_deref(), Some(subject), "{more:?}");
        assert_eq!(text("tier").as_deref(), Some("gold"));
        assert!(text("time").is_some());
        assert_eq!(
            event.data().as_deref(),
            Some(&b"plain text"[..]),
            "{more:?}"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused: [&[&str]; 7] = [
        &["--type", "t"],
        &["shop"],
        &["shop", "--broker", "a/b", "--type", "t"],
        &["--broker", "b", "--type", "t"],
        &["shop", "--event", "f", "--type", "t"],
        &["shop", "--type", "t", "--extension", "novalue"],
        &["shop", "--type", "t", "--rate", "0"],
    ];
    for words in refused {
        assert!(line(words).is_err(), "{words:?}");
    }
    let odd = line(&["..", "--type", "t"]).unwrap();
    assert!(odd.path().is_err());
}

#[tokio::test]
async fn a_refusal_is_told_in_the_servers_words_and_fails_the_command() {
    let server = StandIn::start().await;
    let refusal = json!({"code": "attribute-invalid", "message": "time is not RFC 3339", "attribute": "time"});
    server.answers("POST /shop/events", 400, &refusal);
    let words = [
        "shop",
        "--type",
        "t",
        "--id",
        "17",
        "--time",
        "noon",
        "--events",
        &server.url,
    ];
    let error = run(
        line(&words).unwrap(),
        &world(),
        &mut Screen::default().terminal(),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "event 17: time is not RFC 3339 (code attribute-invalid, attribute time)"
    );
    assert_eq!(exit_code(&error), 1);

    let screen = Screen::default();
    let many = [&words[..], &["--count", "20"]].concat();
    let error = run(line(&many).unwrap(), &world(), &mut screen.terminal())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "20 of 20 requests were not accepted");
    assert!(
        screen
            .out()
            .contains("400 attribute-invalid: 20 times, the first: event 17-"),
        "{}",
        screen.out()
    );
}

#[tokio::test]
async fn many_events_have_ids_of_their_own() {
    let server = StandIn::start().await;
    server.answers("POST /shop/events", 202, &Value::Null);
    let words = [
        "shop",
        "--type",
        "t",
        "--id",
        "x",
        "--events",
        &server.url,
        "--count",
        "50",
        "--rate",
        "1000",
        "-o",
        "json",
    ];
    let screen = Screen::default();
    run(line(&words).unwrap(), &world(), &mut screen.terminal())
        .await
        .unwrap();
    let report: Value = serde_json::from_str(&screen.out()).unwrap();
    assert_eq!(report["accepted"], 50, "{report}");
    let ids: std::collections::BTreeSet<String> = (server.asked().iter())
        .map(|asked| asked.header("ce-id").to_owned())
        .collect();
    assert_eq!(ids.len(), 50);
    assert!(ids.contains("x-1") && ids.contains("x-50"), "{ids:?}");
}

#[test]
fn each_event_is_due_at_its_own_moment() {
    let words = ["shop", "--type", "t", "--count", "9", "--rate", "4"];
    let pace = line(&words).unwrap().pace.pace().unwrap();
    let due = |number| pace.due(number).unwrap();
    assert_eq!(
        [due(0), due(1), due(8)].map(|due| due.as_millis()),
        [0, 250, 2000]
    );
    let flat_out = line(&words[..5]).unwrap().pace.pace().unwrap();
    assert_eq!(flat_out.due(8), None);
    assert!(line(&words[..3]).unwrap().pace.pace().is_none());
}

#[tokio::test]
async fn nobody_there_is_told_at_once() {
    let words = ["shop", "--type", "t", "--events", "http://127.0.0.1:1"];
    for more in [&[][..], &["--count", "1000000"]] {
        let args = line(&[&words[..], more].concat()).unwrap();
        let error = run(args, &world(), &mut Screen::default().terminal())
            .await
            .unwrap_err();
        assert_eq!(exit_code(&error), 6, "{error}");
    }
}

#[test]
fn figures_add_up_and_fail_when_anything_was_lost() {
    let mut figures = Figures::default();
    assert!(figures.verdict().is_none());
    for _ in 0..98 {
        figures.add(Outcome::Accepted, Duration::from_millis(2));
    }
    figures.add(
        Outcome::Unanswered(anyhow::anyhow!("it broke off")),
        Duration::ZERO,
    );
    assert!(matches!(figures.verdict(), Some(Failure::Unreachable(_))));
    let busy = || {
        Outcome::Refused(
            "429 busy".to_owned(),
            Failure::Rejected("event x: later".to_owned()),
        )
    };
    figures.add(busy(), Duration::ZERO);
    assert!(matches!(figures.verdict(), Some(Failure::Rejected(_))));
    figures.took = Duration::from_secs(2);
    insta::assert_snapshot!(figures.to_text(), @r"
    sent 100, accepted 98, refused 1, unanswered 1
    49 accepted/s over 2.0 s
    latency p50 2.00 ms, p99 2.00 ms, max 2.00 ms
    429 busy: 1 time, the first: event x: later
    no answer: 1 time, the first: it broke off
    ");
    assert_eq!(
        figures.progress(200, Duration::from_secs(1)),
        "100 of 200 sent in 1.0 s, 100/s, 1 refused, 1 unanswered"
    );
}
