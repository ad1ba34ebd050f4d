//! What an answer is taken for, and what it may cost.

use super::*;
use crate::journal::ReplyFault;

const EVENT_HEAD: &str = "ce-specversion: 1.0\r\nce-type: t\r\nce-source: /s\r\nce-id: 9\r\n";

fn with_body(head: &str, body: &str) -> Act {
    let length = body.len();
    Act::say(&format!("{head}content-length: {length}\r\n\r\n{body}"))
}

fn reply_of(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Accepted { reply, .. } => reply,
        other => panic!("expected success: {other:?}"),
    }
}

#[tokio::test]
async fn an_ordinary_success_is_a_success_whatever_its_body() {
    let table = [
        (200, ""),
        (200, "OK"),
        (201, "<html>"),
        (202, "{\"specversion\":\"1.0\"}"),
        (204, ""),
        (299, "?"),
    ];
    for (status, body) in table {
        let act = with_body(&format!("HTTP/1.1 {status} X\r\n"), body);
        assert_eq!(outcome(act, PATIENT).await, accepted(status), "{body}");
    }
}

#[tokio::test]
async fn a_reply_is_taken_from_200_and_201_and_never_from_202() {
    for (status, replies) in [(200, true), (201, true), (202, false), (203, false)] {
        let act = with_body(&format!("HTTP/1.1 {status} X\r\n{EVENT_HEAD}"), "data");
        match reply_of(outcome(act, PATIENT).await) {
            Reply::Event(event) if replies => {
                assert_eq!((event.type_(), event.id()), ("t", "9"));
                assert_eq!(event.data().as_deref(), Some(&b"data"[..]));
            }
            Reply::None if !replies => {}
            other => panic!("{status}: {other:?}"),
        }
    }
    let json = r#"{"specversion":"1.0","type":"t","source":"/s","id":"9","data":1}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/cloudevents+json\r\n";
    let reply = reply_of(outcome(with_body(head, json), PATIENT).await);
    assert!(matches!(reply, Reply::Event(_)), "{reply:?}");
    let without_data = with_body(&format!("HTTP/1.1 200 OK\r\n{EVENT_HEAD}"), "");
    let reply = reply_of(outcome(without_data, PATIENT).await);
    assert!(matches!(reply, Reply::Event(_)), "{reply:?}");
}

#[tokio::test]
async fn a_reply_that_is_not_the_event_it_claims_to_be_is_reported_and_delivered_all_the_same() {
    let bad = [
        (
            "ce-specversion: 1.0\r\nce-type: t\r\n",
            "no source",
            ReplyFault::NotAnEvent,
        ),
        ("ce-specversion: 7\r\n", "", ReplyFault::NotAnEvent),
        (
            "content-type: application/cloudevents+json\r\n",
            "{\"spec",
            ReplyFault::NotAnEvent,
        ),
        (
            "content-type: application/cloudevents-batch+json\r\n",
            "[]",
            ReplyFault::Undecodable,
        ),
        (
            "content-type: application/cloudevents+avro\r\n",
            "binary",
            ReplyFault::Undecodable,
        ),
        (
            "content-type: application/cloudevents+json\r\ncontent-encoding: gzip\r\n",
            "\u{1f}zipped",
            ReplyFault::Undecodable,
        ),
    ];
    for (head, body, fault) in bad {
        let act = with_body(&format!("HTTP/1.1 200 OK\r\n{head}"), body);
        let reply = reply_of(outcome(act, PATIENT).await);
        let Reply::Bad(bad) = reply else {
            panic!("{head} {reply:?}");
        };
        assert!(!bad.reason.is_empty(), "{head}");
        assert_eq!(
            (bad.fault, &*bad.beginning),
            (fault, body.as_bytes()),
            "{head}"
        );
    }
}

#[tokio::test]
async fn a_reply_that_was_cut_off_is_asked_for_again() {
    let head = format!("HTTP/1.1 200 OK\r\n{EVENT_HEAD}content-length: 100\r\n\r\n");
    let cut = outcome(Act::say_and_close(&format!("{head}half")), PATIENT).await;
    assert!(error_of(cut).starts_with("the reply was cut off"));
    let slow = outcome(Act::hang(&format!("{head}half")), HASTY).await;
    assert_eq!(error_of(slow), "the reply did not end in time");
    // Without an event in it the status is all that was asked for.
    let plain = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    let cut = outcome(Act::say_and_close(plain), PATIENT).await;
    assert_eq!(cut, accepted(200));
    let slow = outcome(Act::hang(plain), HASTY).await;
    assert_eq!(slow, accepted(200));
}

#[tokio::test]
async fn a_reply_larger_than_an_event_is_not_read() {
    let announced = format!("HTTP/1.1 200 OK\r\n{EVENT_HEAD}content-length: 1073741824\r\n\r\n");
    let endless = format!("HTTP/1.1 200 OK\r\n{EVENT_HEAD}transfer-encoding: chunked\r\n\r\n");
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    for (act, kept) in [
        (Act::hang(&format!("{announced}half")), 4),
        (Act::repeat(&endless, &chunk), REPLY_BYTES_MAX),
    ] {
        let reply = reply_of(outcome(act, PATIENT).await);
        let Reply::Bad(bad) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(bad.fault, ReplyFault::TooLarge);
        assert_eq!(bad.reason, "the reply has more than 1048576 bytes");
        assert_eq!(bad.beginning.len(), kept);
    }
}

#[tokio::test]
async fn a_success_that_never_ends_is_a_success() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let ended = outcome(Act::repeat(head, &chunk), PATIENT).await;
    assert_eq!(ended, accepted(200));
}

#[tokio::test]
async fn refusals_say_whether_to_try_again() {
    let again = [404, 408, 409, 429, 500, 503].map(|status| (status, true));
    let never = [400, 401, 403, 413, 301, 307].map(|status| (status, false));
    for (expected, again) in again.into_iter().chain(never) {
        let head = format!("HTTP/1.1 {expected} X\r\nlocation: http://127.0.0.1:1/\r\n");
        let ended = outcome(with_body(&head, "why"), PATIENT).await;
        assert_eq!(ended.answered(), !again);
        let refused = Outcome::Refused {
            status: expected,
            retry: again,
            retry_after: None,
            answer: Bytes::from_static(b"why"),
        };
        assert_eq!(ended, refused);
    }
    let gone = with_body("HTTP/1.1 410 Gone\r\n", "never again");
    assert_eq!(outcome(gone, PATIENT).await, Outcome::Gone);
}

/// Status and what was kept of the body.
async fn refusal(act: Act) -> (u16, Bytes) {
    match outcome(act, PATIENT).await {
        Outcome::Refused { status, answer, .. } => (status, answer),
        other => panic!("expected a refusal: {other:?}"),
    }
}

#[tokio::test]
async fn of_a_refusal_only_the_beginning_is_kept() {
    let head = "HTTP/1.1 500 Oops\r\n";
    let endless = "HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n";
    let huge = "HTTP/1.1 500 Oops\r\ncontent-length: 1073741824\r\n\r\n";
    let acts = [
        with_body(head, &"y".repeat(2048)),
        Act::repeat(endless, "3\r\nyyy\r\n"),
        Act::repeat(huge, &"y".repeat(0x4000)),
    ];
    for act in acts {
        assert_eq!(refusal(act).await, (500, Bytes::from("y".repeat(1024))));
    }
    let half = "HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf";
    for act in [Act::say_and_close(half), Act::hang(half)] {
        assert_eq!(refusal(act).await, (500, Bytes::from("half")));
    }
}

async fn asked_wait(status: u16, value: &str) -> Option<Duration> {
    let head = format!("HTTP/1.1 {status} X\r\nretry-after: {value}\r\n");
    match outcome(with_body(&head, ""), PATIENT).await {
        Outcome::Refused { retry_after, .. } => retry_after,
        other => panic!("expected a refusal: {other:?}"),
    }
}

#[tokio::test]
async fn retry_after_is_heard_from_those_who_may_ask_for_it() {
    let table = [
        (429, "7", Some(7)),
        (503, "1000000000", Some(1_000_000_000)),
        (503, "Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        (429, "soon", None),
        (500, "7", None),
        (404, "7", None),
    ];
    for (status, value, expected) in table {
        let wait = asked_wait(status, value).await;
        assert_eq!(wait, expected.map(Duration::from_secs), "{status} {value}");
    }
    let far = asked_wait(429, "Tue, 31 Dec 2999 00:00:00 GMT").await;
    assert!(far > Some(Duration::from_secs(3600)), "{far:?}");
}

#[tokio::test]
async fn provisional_answers_are_not_the_answer() {
    let first = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    let act = with_body(&format!("{first}HTTP/1.1 200 OK\r\n"), "");
    assert_eq!(outcome(act, PATIENT).await, accepted(200));
    let forever = Act::repeat("", "HTTP/1.1 102 Processing\r\n\r\n");
    let error = error_of(outcome(forever, HASTY).await);
    assert_eq!(error, "no answer within 100ms");
    let switched = Act::say("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n");
    let ended = outcome(switched, PATIENT).await;
    let refused = matches!(
        ended,
        Outcome::Refused {
            status: 101,
            retry: false,
            ..
        }
    );
    assert!(refused, "{ended:?}");
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure_that_says_why() {
    let long = format!("HTTP/1.1 200 OK\r\nlong: {}", "x".repeat(70_000));
    let cut = "the connection was closed before the answer was complete";
    let large = "the head of the answer has more than 65536 bytes";
    let cases = [
        (Act::say_and_close(""), cut),
        (Act::say_and_close("HTTP/1.1 200"), cut),
        (Act::say("SSH-2.0-OpenSSH\r\n"), "invalid HTTP version"),
        (Act::say("HTTP/1.1 abc\r\n\r\n"), "invalid response status"),
        (
            Act::say("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
            "invalid header name",
        ),
        (
            Act::repeat("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
            "too many headers",
        ),
        (Act::hang(&long), large),
    ];
    for (act, expected) in cases {
        let shown = format!("{act:?}").chars().take(80).collect::<String>();
        let error = error_of(outcome(act, PATIENT).await);
        assert!(error.contains(expected), "{shown}: {error}");
    }
}

#[tokio::test]
async fn a_destination_that_does_not_answer_is_let_go_of_when_the_time_is_up() {
    for beginning in ["", "HTTP/1.1 200 OK\r\nx"] {
        let server = Server::start(move |_| Act::hang(beginning)).await;
        let courier = courier(Limits::default());
        let address = courier.address(&server.url(), None).unwrap();
        let extra = Extra::default();
        let report = courier.send(&address, &order(), None, &extra, HASTY).await;
        assert!(report.latency >= HASTY);
        assert!(!report.outcome.answered());
        assert_eq!(error_of(report.outcome), "no answer within 100ms");
        server.let_go().await;
    }
}

#[tokio::test]
async fn a_destination_that_cannot_be_reached_is_a_failure_that_says_so() {
    let courier = courier(Limits::default());
    let closed = heddle_rt::net::bind("127.0.0.1:0".parse().unwrap()).await;
    let port = closed.unwrap().address().port();
    let nobody = format!("http://127.0.0.1:{port}/");
    let cases = [
        (&nobody[..], "cannot connect to 127.0.0.1:"),
        ("http://169.254.169.254/latest", "are not allowed"),
        ("http://[::ffff:169.254.169.254]/", "are not allowed"),
        ("http://0.0.0.0/", "are not allowed"),
    ];
    for (url, expected) in cases {
        let address = courier.address(url, None).unwrap();
        let error = error_of(send(&courier, &address, PATIENT).await);
        assert!(error.contains(expected), "{url}: {error}");
    }
}
