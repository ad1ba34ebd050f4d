//! What is taken over HTTP, what is refused and why, and that nothing is lost on the way.

mod round_trips;

use ::http::{HeaderName, StatusCode};
use heddle_api::attributes::{Attributes as _, Value};

use super::*;
use crate::event::{ATTRIBUTE_BYTES_MAX, Form};

const REQUIRED: [(&str, &str); 4] = [
    ("ce-specversion", "1.0"),
    ("ce-type", "order.created"),
    ("ce-source", "/shop"),
    ("ce-id", "1"),
];

fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

/// The required headers with one changed or added.
fn with(name: &str, value: &[u8]) -> HeaderMap {
    let mut headers = headers(&REQUIRED.map(|(name, value)| (name, value.as_bytes())));
    headers.insert(
        HeaderName::from_bytes(name.as_bytes()).unwrap(),
        HeaderValue::from_bytes(value).unwrap(),
    );
    headers
}

fn read_binary(headers: &HeaderMap, body: &'static [u8]) -> Result<Event, Refused> {
    read(headers, &Bytes::from_static(body), &Limits::default()).map(|received| match received {
        Received::One(event) => event,
        Received::Batch(_) => panic!("a batch"),
    })
}

fn typed(content_type: &'static str) -> HeaderMap {
    headers(&[("content-type", content_type.as_bytes())])
}

#[test]
fn the_content_type_tells_the_mode() {
    for (content_type, expected) in [
        ("application/cloudevents+json", Ok(Mode::Structured)),
        (
            "Application/CloudEvents+JSON; Charset=UTF-8",
            Ok(Mode::Structured),
        ),
        (
            "application/cloudevents+json;charset=\"utf-8\"",
            Ok(Mode::Structured),
        ),
        (
            "application/cloudevents+json ; x=\";charset=latin1\"",
            Ok(Mode::Structured),
        ),
        ("application/cloudevents", Ok(Mode::Structured)),
        (
            "application/cloudevents; charset=utf-8",
            Ok(Mode::Structured),
        ),
        ("application/cloudevents-batch+json", Ok(Mode::Batched)),
        (
            "APPLICATION/CLOUDEVENTS-BATCH+JSON; charset=utf-8",
            Ok(Mode::Batched),
        ),
        ("application/cloudevents-batch", Ok(Mode::Batched)),
        ("application/json", Ok(Mode::Binary)),
        ("application/cloudevent", Ok(Mode::Binary)),
        (
            "text/plain; a=application/cloudevents+json",
            Ok(Mode::Binary),
        ),
        ("", Ok(Mode::Binary)),
        (
            "application/cloudevents+avro",
            Err(code::FORMAT_UNSUPPORTED),
        ),
        (
            "application/cloudevents-batch+protobuf",
            Err(code::FORMAT_UNSUPPORTED),
        ),
        (
            "application/cloudevents+jsonx",
            Err(code::FORMAT_UNSUPPORTED),
        ),
        (
            "application/cloudevents+json; charset=utf-16",
            Err(code::CHARSET_UNSUPPORTED),
        ),
        (
            "application/cloudevents-batch+json; a=b; charset=latin1",
            Err(code::CHARSET_UNSUPPORTED),
        ),
    ] {
        let found = mode(&typed(content_type));
        if let Err(refused) = &found {
            assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        assert_eq!(
            found.map_err(|refused| refused.code),
            expected,
            "{content_type}"
        );
    }
    assert_eq!(mode(&HeaderMap::new()), Ok(Mode::Binary));
}

#[test]
fn a_binary_event_has_its_headers_as_attributes_and_its_body_as_data() {
    let mut headers = with("ce-comexampleextension1", b"value");
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert("x-request-id", HeaderValue::from_static("no attribute"));
    let event = read_binary(&headers, b" {\"a\" : 1}\n").unwrap();
    assert_eq!(
        (event.type_(), event.source(), event.id()),
        ("order.created", "/shop", "1")
    );
    assert_eq!(event.text("comexampleextension1"), Some("value"));
    assert_eq!(
        event.text("datacontenttype"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(event.attributes().count(), 5);
    assert_eq!(event.data().as_deref(), Some(&b" {\"a\" : 1}\n"[..]));
    assert_eq!(event.form(), Form::Binary);
    assert_eq!(read_binary(&headers, b"").unwrap().data(), None);
}

/// Each line is one header besides the required ones, and the text it stands for or the code of the refusal.
#[test]
fn header_values_are_decoded_as_the_binding_says() {
    let long = "x".repeat(ATTRIBUTE_BYTES_MAX);
    let too_long = "x".repeat(ATTRIBUTE_BYTES_MAX + 1);
    let cases: &[(&[u8], Result<&str, &str>)] = &[
        (b"plain", Ok("plain")),
        (b"", Ok("")),
        (b" \t around \t", Ok("around")),
        (b"with space", Ok("with space")),
        (b"back\\slash", Ok("back\\slash")),
        (b"Euro%20%E2%82%AC%20%F0%9F%98%80", Ok("Euro € 😀")),
        (b"euro%20%e2%82%ac", Ok("euro €")),
        (b"%41%42C", Ok("ABC")),
        (b"%2541", Ok("%41")),
        (b"\"quoted text\"", Ok("quoted text")),
        (b"\"a \\\"word\\\" and a \\\\\"", Ok("a \"word\" and a \\")),
        (b"\"%E2%82%AC\"", Ok("€")),
        (b"\"\\%41\"", Ok("A")),
        (b"\"\"", Ok("")),
        (b"%22", Ok("\"")),
        (long.as_bytes(), Ok(&long)),
        (too_long.as_bytes(), Err(code::ATTRIBUTE_TOO_LONG)),
        (b"%C0%A0", Ok("%C0%A0")),
        (b"%FF", Ok("%FF")),
        (b"%ED%A0%80", Ok("%ED%A0%80")),
        (b"%E2%82", Ok("%E2%82")),
        (b"100%", Ok("100%")),
        (b"100% of %41", Ok("100% of %41")),
        (b"%4", Ok("%4")),
        (b"%zz", Ok("%zz")),
        (b"%+1", Ok("%+1")),
        ("raw €".as_bytes(), Ok("raw €")),
        (
            "Grüße %41 \"für\" 100%".as_bytes(),
            Ok("Grüße %41 \"für\" 100%"),
        ),
        (b"latin \xe9", Ok("latin é")),
        (b"\xfcber 100%", Ok("über 100%")),
        (b"\x85", Err(code::ATTRIBUTE_INVALID)),
        (b"a\tb", Err(code::ATTRIBUTE_INVALID)),
        (b"say \"hi\"", Ok("say \"hi\"")),
        (b"say \"%E2%82%AC\"", Ok("say \"€\"")),
        (b"\"open", Ok("\"open")),
        (b"\"open\\\"", Ok("\"open\\\"")),
        (b"\"one\" \"two\"", Ok("\"one\" \"two\"")),
        (b"\"", Ok("\"")),
        (b"%00", Err(code::ATTRIBUTE_INVALID)),
        (b"a%0D%0Ab", Err(code::ATTRIBUTE_INVALID)),
        (b"%7F", Err(code::ATTRIBUTE_INVALID)),
        (b"%C2%85", Err(code::ATTRIBUTE_INVALID)),
        (b"%EF%BF%BE", Err(code::ATTRIBUTE_INVALID)),
        (b"%EF%B7%90", Err(code::ATTRIBUTE_INVALID)),
        (b"%F4%8F%BF%BF", Err(code::ATTRIBUTE_INVALID)),
    ];
    for (value, expected) in cases {
        let found = read_binary(&with("ce-extension", value), b"");
        let found = found.map(|event| event.text("extension").unwrap().to_owned());
        let shown = String::from_utf8_lossy(&value[..value.len().min(60)]).into_owned();
        if let Err(refused) = &found {
            assert_eq!(refused.attribute.as_deref(), Some("extension"), "{shown}");
        }
        let expected = expected.map(str::to_owned);
        assert_eq!(found.map_err(|refused| refused.code), expected, "{shown}");
    }
}

/// Each value is one that an SDK of the project sends as it is, and whether that is what the binding asks for.
#[test]
fn what_was_not_encoded_is_counted() {
    let cases: &[(&[u8], u64)] = &[
        (b"plain", 0),
        (b"with space", 0),
        (b"%E2%82%AC", 0),
        (b"\"quoted\"", 0),
        ("Grüße".as_bytes(), 1),
        (b"caf\xe9", 1),
        (b"100%", 1),
        (b"say \"hi\"", 1),
    ];
    for (value, expected) in cases {
        let mut headers = with("ce-extension", value);
        let count = |headers: &HeaderMap| {
            let read = read_counting(headers, &Bytes::new(), &Limits::default());
            read.unwrap().1
        };
        assert_eq!(count(&headers), *expected, "{value:?}");
        headers.insert("ce-subject", HeaderValue::from_bytes(value).unwrap());
        assert_eq!(count(&headers), 2 * expected, "{value:?}");
    }
    let document =
        Bytes::from_static(br#"{"specversion":"1.0","type":"t","source":"/s","id":"\u00e9"}"#);
    let read = read_counting(&typed(STRUCTURED), &document, &Limits::default());
    assert_eq!(read.unwrap().1, 0);
}

#[test]
fn structured_deliveries_say_so_in_the_letters_that_others_compare() {
    assert_eq!(STRUCTURED, "application/cloudevents+json; charset=utf-8");
}

#[test]
fn a_refusal_names_the_attribute_and_what_to_send_instead() {
    for (header, value, code, attribute) in [
        (
            "ce-specversion",
            "0.3",
            code::SPECVERSION_UNSUPPORTED,
            "specversion",
        ),
        (
            "ce-specversion",
            "",
            code::SPECVERSION_UNSUPPORTED,
            "specversion",
        ),
        ("ce-type", "", code::ATTRIBUTE_INVALID, "type"),
        ("ce-source", "", code::ATTRIBUTE_INVALID, "source"),
        ("ce-source", "not a uri", code::ATTRIBUTE_INVALID, "source"),
        ("ce-id", "\"\"", code::ATTRIBUTE_INVALID, "id"),
        ("ce-subject", "", code::ATTRIBUTE_INVALID, "subject"),
        ("ce-time", "yesterday", code::ATTRIBUTE_INVALID, "time"),
        (
            "ce-dataschema",
            "/relative",
            code::ATTRIBUTE_INVALID,
            "dataschema",
        ),
        (
            "content-type",
            "json",
            code::ATTRIBUTE_INVALID,
            "datacontenttype",
        ),
        (
            "content-type",
            "",
            code::ATTRIBUTE_INVALID,
            "datacontenttype",
        ),
        (
            "ce-datacontenttype",
            "text/plain",
            code::ATTRIBUTE_NAME,
            "datacontenttype",
        ),
        ("ce-data", "x", code::ATTRIBUTE_NAME, "data"),
        ("ce-", "x", code::ATTRIBUTE_NAME, ""),
        ("ce-my-extension", "x", code::ATTRIBUTE_NAME, "my-extension"),
        ("ce-data_base64", "x", code::ATTRIBUTE_NAME, "data_base64"),
        (
            "ce-partitionkey",
            "",
            code::ATTRIBUTE_INVALID,
            "partitionkey",
        ),
        (
            "ce-sampledrate",
            "0",
            code::ATTRIBUTE_INVALID,
            "sampledrate",
        ),
        (
            "ce-sampledrate",
            "many",
            code::ATTRIBUTE_TYPE,
            "sampledrate",
        ),
    ] {
        let refused = read_binary(&with(header, value.as_bytes()), b"").unwrap_err();
        assert_eq!(
            (refused.status, refused.code),
            (StatusCode::BAD_REQUEST, code),
            "{header}: {value}"
        );
        assert_eq!(
            refused.attribute.as_deref(),
            Some(attribute),
            "{header}: {value}"
        );
    }
    for (missing, _) in REQUIRED {
        let mut headers = with("ce-subject", b"s");
        headers.remove(missing);
        let refused = read_binary(&headers, b"").unwrap_err();
        assert_eq!(refused.code, code::ATTRIBUTE_MISSING);
        assert_eq!(refused.attribute.as_deref(), missing.strip_prefix("ce-"));
    }
    let refused = read_binary(&with("ce-specversion", b"0.3"), b"").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "specversion \"0.3\" is not spoken here; send 1.0"
    );
}

#[test]
fn a_header_that_comes_twice_is_refused() {
    for (name, attribute) in [
        ("ce-id", "id"),
        ("ce-specversion", "specversion"),
        ("ce-extension", "extension"),
        ("content-type", "datacontenttype"),
    ] {
        let mut headers = with(name, b"1.0");
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_static("1.0"),
        );
        let refused = read_binary(&headers, b"").unwrap_err();
        assert_eq!(refused.code, code::ATTRIBUTE_DUPLICATE, "{name}");
        assert_eq!(refused.attribute.as_deref(), Some(attribute));
    }
}

#[test]
fn an_attribute_of_a_known_type_has_it_from_a_header_too() {
    let event = read_binary(&with("ce-sampledrate", b"30"), b"").unwrap();
    assert_eq!(event.attribute("sampledrate"), Some(Value::Integer(30)));
    let event = read_binary(&with("ce-deprecated", b"true"), b"").unwrap();
    assert_eq!(event.attribute("deprecated"), Some(Value::Boolean(true)));
    let event = read_binary(&with("ce-extension", b"30"), b"").unwrap();
    assert_eq!(event.attribute("extension"), Some(Value::Text("30")));
}

#[test]
fn a_content_type_keeps_its_quotes_and_percents() {
    let sent = b"multipart/mixed; boundary=\"a b%41\"";
    let event = read_binary(&with("content-type", sent), b"data").unwrap();
    let mut headers = HeaderMap::new();
    assert_eq!(write_binary(&event, &mut headers), "data");
    assert_eq!(headers["content-type"].as_bytes(), sent);
}

#[test]
fn compressed_bodies_are_not_taken() {
    for encoding in ["gzip", "deflate, gzip", "br"] {
        let headers = with("content-encoding", encoding.as_bytes());
        let refused = read_binary(&headers, b"data").unwrap_err();
        assert_eq!(
            (refused.status, refused.code),
            (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code::ENCODING_UNSUPPORTED
            )
        );
    }
    assert!(read_binary(&with("content-encoding", b"Identity"), b"data").is_ok());
    let mut headers = typed("application/cloudevents-batch+json");
    headers.insert("content-encoding", HeaderValue::from_static("gzip"));
    assert!(read(&headers, &Bytes::from_static(b"[]"), &Limits::default()).is_err());
}

#[test]
fn an_event_may_have_as_many_bytes_as_the_limit_and_none_more() {
    let headers = with("ce-extension", b"value");
    let body = Bytes::from(vec![b'x'; 100]);
    let exact = read(&headers, &body, &Limits::default()).unwrap();
    let bytes = exact.as_slice()[0].bytes().len();
    let limits = |event_bytes_max| Limits {
        event_bytes_max,
        ..Limits::default()
    };
    assert_eq!(read(&headers, &body, &limits(bytes)), Ok(exact));
    let refused = read(&headers, &body, &limits(bytes - 1)).unwrap_err();
    assert_eq!(
        (refused.status, refused.code),
        (StatusCode::PAYLOAD_TOO_LARGE, code::EVENT_TOO_LARGE)
    );
}

#[test]
fn an_event_may_have_as_many_attributes_as_the_limit_and_none_more() {
    let limits = |attributes_max| Limits {
        attributes_max,
        ..Limits::default()
    };
    let headers = with("ce-extension", b"value");
    assert!(read(&headers, &Bytes::new(), &limits(5)).is_ok());
    let refused = read(&headers, &Bytes::new(), &limits(4)).unwrap_err();
    assert_eq!(
        (refused.status, refused.code),
        (StatusCode::PAYLOAD_TOO_LARGE, code::ATTRIBUTES_TOO_MANY)
    );
    let document = Bytes::from_static(
        br#"{"specversion":"1.0","type":"t","source":"/s","id":"1","extension":"v","data":1}"#,
    );
    let headers = typed("application/cloudevents+json");
    assert!(read(&headers, &document, &limits(5)).is_ok());
    let refused = read(&headers, &document, &limits(4)).unwrap_err();
    assert_eq!(refused.code, code::ATTRIBUTES_TOO_MANY);
}

#[test]
fn in_structured_mode_headers_say_nothing() {
    let mut headers = with("ce-extension", b"from the header");
    headers.insert("content-type", HeaderValue::from_static(STRUCTURED));
    let document = br#"{"specversion":"1.0","type":"t","source":"/s","id":"from the body"}"#;
    let event = read_binary(&headers, document).unwrap();
    assert_eq!(
        (event.id(), event.text("extension")),
        ("from the body", None)
    );
}

#[test]
fn a_batch_is_events_in_their_order_and_may_be_empty() {
    let headers = typed("application/cloudevents-batch+json");
    let take = |body: &'static str| {
        read(
            &headers,
            &Bytes::from_static(body.as_bytes()),
            &Limits::default(),
        )
        .unwrap()
    };
    assert!(take(" [ ] ").as_slice().is_empty());
    let received = take(
        r#"[{"specversion":"1.0","type":"t","source":"/s","id":"1"},
            {"specversion":"1.0","type":"t","source":"/s","id":"2"}]"#,
    );
    let ids: Vec<String> = received
        .into_iter()
        .map(|event| event.id().to_owned())
        .collect();
    assert_eq!(ids, ["1", "2"]);
}

#[test]
fn an_answer_is_an_event_or_says_nothing_of_events() {
    let none = |headers: &HeaderMap| {
        reply(
            headers,
            &Bytes::from_static(b"{\"ok\":true}"),
            &Limits::default(),
        )
    };
    assert_eq!(none(&HeaderMap::new()), Ok(None));
    assert_eq!(none(&typed("application/json")), Ok(None));
    // An answer may carry other things that begin with ce-, and may be compressed, as long as it is no event.
    assert_eq!(
        none(&headers(&[("ce-id", b"1"), ("content-encoding", b"gzip")])),
        Ok(None)
    );

    let binary = reply(
        &with("ce-subject", b"s"),
        &Bytes::from_static(b"x"),
        &Limits::default(),
    );
    assert_eq!(binary.unwrap().unwrap().text("subject"), Some("s"));
    let document =
        Bytes::from_static(br#"{"specversion":"1.0","type":"t","source":"/s","id":"9"}"#);
    let structured = reply(&typed(STRUCTURED), &document, &Limits::default());
    assert_eq!(structured.unwrap().unwrap().id(), "9");

    let refused = |headers: &HeaderMap, body: &'static str| {
        let body = Bytes::from_static(body.as_bytes());
        reply(headers, &body, &Limits::default()).unwrap_err().code
    };
    assert_eq!(
        refused(&headers(&[("ce-specversion", b"1.0")]), ""),
        code::ATTRIBUTE_MISSING
    );
    assert_eq!(
        refused(&typed("application/cloudevents-batch+json"), "[]"),
        code::BATCH_UNEXPECTED
    );
    assert_eq!(
        refused(&typed("application/cloudevents+avro"), ""),
        code::FORMAT_UNSUPPORTED
    );
    assert_eq!(refused(&typed(STRUCTURED), ""), code::JSON_INVALID);
    assert_eq!(
        refused(&with("content-encoding", b"gzip"), ""),
        code::ENCODING_UNSUPPORTED
    );
}

#[test]
fn plain_header_values_and_the_body_share_the_events_bytes() {
    let event = read_binary(&with("ce-subject", b"plain"), b"the data").unwrap();
    let kept = event.bytes().as_ptr_range();
    let mut headers = HeaderMap::new();
    let body = write_binary(&event, &mut headers);
    let shares = |bytes: &[u8]| kept.contains(&bytes.as_ptr());
    assert!(shares(&body));
    for name in ["ce-type", "ce-source", "ce-id", "ce-subject"] {
        assert!(shares(headers[name].as_bytes()), "{name}");
    }
}

#[test]
fn json_without_a_content_type_says_so_outside_of_its_document() {
    let content_type = |document: &'static str| {
        let event =
            json::read_one(&Bytes::from_static(document.as_bytes()), &Limits::default()).unwrap();
        let mut headers = HeaderMap::new();
        let body = write_binary(&event, &mut headers);
        let value = headers
            .get("content-type")
            .map(|value| value.to_str().unwrap().to_owned());
        (value, body)
    };
    let implied =
        content_type(r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","data":{"a": 1}}"#);
    assert_eq!(
        implied,
        (
            Some("application/json".to_owned()),
            Bytes::from_static(b"{\"a\": 1}")
        )
    );
    // Of bytes nothing is known, and without data there is nothing to say.
    let opaque = content_type(
        r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","data_base64":"e30="}"#,
    );
    assert_eq!(opaque, (None, Bytes::from_static(b"{}")));
    let without = content_type(r#"{"specversion":"1.0","type":"t","source":"/s","id":"1"}"#);
    assert_eq!(without, (None, Bytes::new()));
}

#[test]
fn what_senders_wrote_is_repeated_short_and_escaped() {
    let version = "\"".to_owned() + &"€".repeat(100);
    let encoded = header::encode(Bytes::from(version));
    let refused = read_binary(&with("ce-specversion", encoded.as_bytes()), b"").unwrap_err();
    assert!(refused.message.contains("\\\"€€"), "{refused}");
    assert!(refused.message.chars().count() < 140, "{refused}");
}
