//! What a destination gets to see.

use http_body_util::BodyExt as _;
use jiff::Timestamp;

use super::*;
use crate::path::delivery::signing::tests::sample;

struct Seen {
    line: String,
    /// Sorted, without the host.
    headers: Vec<String>,
    body: String,
}

/// What a server saw of a delivery.
async fn seen(event: &Event, form: Option<DeliveryFormat>, extra: &Extra<'_>) -> Seen {
    let server = Server::start(|_| Act::say("HTTP/1.1 204 No Content\r\n\r\n")).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    let report = courier.send(&address, event, form, extra, PATIENT).await;
    assert_eq!(report.outcome, accepted(204));
    let text = server.requests().remove(0).text;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines().map(str::to_owned);
    let line = lines.next().unwrap();
    let host = format!("host: {}", server.address());
    let mut headers: Vec<String> = lines.filter(|header| *header != host).collect();
    assert_eq!(headers.len() + 2, head.lines().count(), "one host: {head}");
    headers.sort();
    Seen {
        line,
        headers,
        body: body.to_owned(),
    }
}

#[tokio::test]
async fn a_binary_event_is_headers_and_its_data() {
    let seen = seen(&order(), None, &Extra::default()).await;
    assert_eq!(seen.line, "POST /in?key=k HTTP/1.1");
    assert_eq!(
        seen.headers,
        [
            "ce-id: 1",
            "ce-source: /shop",
            "ce-specversion: 1.0",
            "ce-type: order.created",
            "content-length: 11",
            "content-type: application/json",
            "user-agent: heddle",
        ]
    );
    assert_eq!(seen.body, "{\"total\":7}");
}

#[tokio::test]
async fn the_form_is_kept_unless_another_is_asked_for() {
    let came_structured = event(Form::Structured, &[], Some(b"1"));
    let cases = [
        (order(), None, false),
        (order(), Some(DeliveryFormat::Json), true),
        (came_structured.clone(), None, true),
        (came_structured, Some(DeliveryFormat::Binary), false),
    ];
    for (event, form, structured) in cases {
        let seen = seen(&event, form, &Extra::default()).await;
        let content_type = format!("content-type: {}", ce::STRUCTURED);
        assert_eq!(seen.headers.contains(&content_type), structured, "{form:?}");
        let has_headers = seen.headers.iter().any(|header| header.starts_with("ce-"));
        assert_eq!(has_headers, !structured, "{form:?}");
        assert_eq!(seen.body.contains("\"specversion\""), structured);
    }
}

#[tokio::test]
async fn trace_and_preferences_travel_and_text_that_is_no_header_does_not() {
    let headers = [(
        HeaderName::from_static("webhook-request-origin"),
        HeaderValue::from_static("mesh.example"),
    )];
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let extra = Extra {
        traceparent: Some(traceparent),
        request_id: Some("request-1"),
        hops_left: Some(254),
        tracestate: Some("evil=1\r\nx-injected: yes"),
        prefer_reply: true,
        headers: &headers,
        signing: None,
    };
    let seen = seen(&order(), None, &extra).await;
    let has = |line: &str| seen.headers.iter().any(|header| header == line);
    assert!(has(&format!("traceparent: {traceparent}")));
    assert!(has("x-request-id: request-1"));
    assert!(has("prefer: reply"));
    assert!(has("heddle-hops-left: 254"));
    assert!(has("webhook-request-origin: mesh.example"));
    let all = seen.headers.join("\n");
    assert!(
        !all.contains("injected") && !all.contains("tracestate"),
        "{all}"
    );
}

#[tokio::test]
async fn attributes_never_become_headers_of_their_own() {
    let names = ["authorization", "cookie", "host", "connection", "expect"];
    let attributes = names.map(|name| (name, "secret\r\nx: y"));
    let event = event(Form::Binary, &attributes, None);
    let seen = seen(&event, None, &Extra::default()).await;
    for name in names {
        let own = format!("{name}: ");
        let leaked = seen.headers.iter().any(|header| header.starts_with(&own));
        assert!(!leaked, "{name}");
        let escaped = format!("ce-{name}: secret%0D%0Ax:%20y");
        assert!(seen.headers.contains(&escaped), "{:?}", seen.headers);
    }
}

#[tokio::test]
async fn what_is_signed_is_the_body_that_is_sent_over_either_protocol() {
    let (signer, clock) = (sample(), Clock::simulated(Timestamp::UNIX_EPOCH));
    let signing = MessageSigning {
        signer: &signer,
        id: "msg_1",
        clock: &clock,
    };
    let extra = Extra {
        signing: Some(signing),
        ..Extra::default()
    };
    let empty = event(Form::Binary, &[("webhook", "x")], None);
    for event in [order(), empty] {
        for form in [DeliveryFormat::Binary, DeliveryFormat::Json] {
            let seen = seen(&event, Some(form), &extra).await;
            let signed = |body: &[u8]| {
                let headers = signing.headers(body);
                headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            };
            for header in signed(seen.body.as_bytes()) {
                let count = seen.headers.iter().filter(|one| **one == header).count();
                assert_eq!(count, 1, "{header} in {:?}", seen.headers);
            }
            let courier = courier(Limits::default());
            let address = courier.address("http://s.example/", None).unwrap();
            let request = request(&address, Say::Event(&event, form), &extra);
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            assert_eq!(body, seen.body.as_bytes(), "the same over both");
            for (name, value) in signing.headers(&body) {
                let all: Vec<_> = parts.headers.get_all(name).iter().collect();
                assert_eq!(all, [&value], "{name}");
            }
        }
    }
}
