//! Promises that hold for any bytes whatsoever, for random tests and for fuzzing alike.
//!
//! Whatever comes is an event or is refused. What is an event stays the same event through either mode, and another
//! JSON parser finds the same in its document.

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use heddle_api::attributes::{Attributes as _, Value};
use heddle_mesh::event::http::{self, Limits, Received};
use heddle_mesh::event::{Event, Form, json};

/// Taken for a message: lines of `name: value`, an empty line, the body.
pub(crate) fn http(soup: &[u8]) {
    let (headers, body) = message(soup);
    let limits = Limits::default();
    let received = http::read(&headers, &body, &limits);
    if let Ok(Some(event)) = http::reply(&headers, &body, &limits) {
        assert_eq!(
            received,
            Ok(Received::One(event)),
            "an answer is read as a request is"
        );
    }
    match received {
        Ok(received) => received.as_slice().iter().for_each(stays_the_same),
        Err(refused) => {
            assert!(refused.status.is_client_error() && !refused.message.is_empty());
            assert!(
                refused.message.len() < 1024,
                "an answer is short whatever was asked"
            );
        }
    }
}

/// Taken for a document, alone and in a batch.
pub(crate) fn json(soup: &[u8]) {
    let limits = Limits::default();
    let text = Bytes::copy_from_slice(soup);
    let batch = [b"[", soup, b"]"].concat();
    match json::read_one(&text, &limits) {
        Ok(event) => {
            same_to_another_parser(&event, &text);
            stays_the_same(&event);
            assert_eq!(
                json::read_batch(&Bytes::from(batch), &limits),
                Ok(vec![event])
            );
        }
        Err(_) => {
            // Several documents, or none, may be a batch and are not one document.
            if let Ok(events) = json::read_batch(&Bytes::from(batch), &limits) {
                assert_ne!(events.len(), 1);
            }
        }
    }
}

fn message(soup: &[u8]) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    let mut rest = soup;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.get(1..).unwrap_or_default());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    (headers, Bytes::copy_from_slice(rest))
}

fn stays_the_same(event: &Event) {
    assert_eq!(Event::decode(event.bytes().clone()).as_ref(), Ok(event));
    // Room for a content type that becomes explicit.
    let limits = Limits {
        event_bytes_max: Limits::default().event_bytes_max + 64,
        attributes_max: Limits::default().attributes_max + 1,
        ..Limits::default()
    };
    let mut headers = HeaderMap::new();
    let body = http::write_structured(event, &mut headers);
    if body.len() <= limits.batch_bytes_max {
        let structured = only(http::read(&headers, &body, &limits));
        assert_eq!(attributes(&structured), attributes(event));
        assert_eq!(
            structured.data(),
            event.data().map(|data| trimmed(event, data))
        );
    }
    let mut headers = HeaderMap::new();
    let body = http::write_binary(event, &mut headers);
    let binary = only(http::read(&headers, &body, &limits));
    let implied = event.form() == Form::Structured && !event.is_opaque() && event.data().is_some();
    let expected = match event.text("datacontenttype") {
        None if implied => {
            event.with(&[("datacontenttype", Some(Value::Text("application/json")))])
        }
        _ => event.clone(),
    };
    assert_eq!(attributes(&binary), attributes(&expected));
    // In binary mode there is no difference between empty data and none.
    assert_eq!(binary.data(), event.data().filter(|data| !data.is_empty()));
}

fn only(received: Result<Received, http::Refused>) -> Event {
    match received {
        Ok(Received::One(event)) => event,
        other => panic!("what was written is not read again: {other:?}"),
    }
}

/// Headers have no order, and no types but those that are known.
fn attributes(event: &Event) -> Vec<(String, String)> {
    let texts = event.attributes().map(|(name, _)| {
        let text = event.text(name).expect("it was just there");
        (name.to_owned(), text.to_owned())
    });
    let mut attributes: Vec<_> = texts.collect();
    attributes.sort();
    attributes
}

/// White space around JSON is no part of it, and a document does not keep it.
fn trimmed(event: &Event, data: Bytes) -> Bytes {
    let json = event.text("datacontenttype").is_none_or(says_json) && !event.is_opaque();
    match std::str::from_utf8(&data) {
        Ok(text) if json => {
            let inner = text.trim_matches([' ', '\t', '\n', '\r']);
            let was_written_as_json = document_of(event).contains(&format!("\"data\":{inner}}}"));
            if was_written_as_json {
                Bytes::copy_from_slice(inner.as_bytes())
            } else {
                data
            }
        }
        _ => data,
    }
}

fn document_of(event: &Event) -> String {
    let mut document = Vec::new();
    json::write(event, &mut document);
    String::from_utf8(document).expect("a document is text")
}

fn says_json(content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim_end();
    let subtype = essence
        .split('/')
        .nth(1)
        .unwrap_or_default()
        .to_ascii_lowercase();
    subtype == "json" || subtype.ends_with("+json")
}

fn same_to_another_parser(event: &Event, text: &[u8]) {
    let document: serde_json::Value = match serde_json::from_slice(text) {
        Ok(document) => document,
        // It has no room for some numbers, and less depth.
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("out of range") || error.contains("recursion"),
                "{error}"
            );
            return;
        }
    };
    for (name, value) in event.attributes() {
        let other = match value {
            // Some attributes have a type, and may be written as text nevertheless.
            _ if document[name].is_string() => {
                assert_eq!(document[name].as_str(), event.text(name), "{name}");
                continue;
            }
            Value::Text(_) => panic!("{name} is no string"),
            Value::Integer(number) => serde_json::json!(number),
            Value::Boolean(flag) => serde_json::json!(flag),
        };
        // The integer -0 is a float to others.
        assert!(
            document[name] == other || document[name].as_f64() == Some(0.0),
            "{name}"
        );
    }
    let members = document.as_object().expect("an event is an object");
    let named = members.iter().filter(|(name, value)| {
        !value.is_null() && !["specversion", "data", "data_base64"].contains(&name.as_str())
    });
    assert_eq!(event.attributes().count(), named.count());
    let json = event.text("datacontenttype").is_none_or(says_json);
    match (event.data(), members.get("data")) {
        (Some(data), Some(other)) if json => {
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&data)
                    .ok()
                    .as_ref(),
                Some(other)
            );
        }
        (Some(data), Some(other)) => assert_eq!(other.as_str().map(str::as_bytes), Some(&data[..])),
        (data, None) => {
            let bytes = members.get("data_base64").filter(|bytes| !bytes.is_null());
            assert_eq!(data.is_some(), bytes.is_some());
        }
        (None, Some(_)) => panic!("data is lost"),
    }
}
