//! CloudEvents as others see them: the project's own Rust SDK reads what we write and writes what we read.
//!
//! The SDK is an oracle for what well-formed events mean, not for which are well-formed: it takes much that the
//! specification forbids, and misreads one thing that it allows. The last two tests say where, so that a newer SDK that
//! changes its mind is noticed.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod soup;

use std::collections::BTreeMap;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use cloudevents::event::{ExtensionValue, SpecVersion};
use cloudevents::message::{
    BinaryDeserializer, BinarySerializer, MessageAttributeValue, Result as MessageResult,
};
use cloudevents::{AttributesReader as _, Data, EventBuilder as _, EventBuilderV10};
use heddle_api::attributes::{Attributes as _, Value};
use heddle_mesh::event::http::{self, Limits, Received, code};
use heddle_mesh::event::{Builder, Event, Form, json};
use proptest::prelude::*;

/// Text that an attribute may hold.
fn text() -> impl Strategy<Value = String> {
    "[ -~]{0,12}[a-z€😀é%\"\\\\ ]{1,8}"
}

fn extension() -> impl Strategy<Value = ExtensionValue> {
    prop_oneof![
        text().prop_map(ExtensionValue::String),
        any::<i32>().prop_map(|number| ExtensionValue::Integer(number.into())),
        any::<bool>().prop_map(ExtensionValue::Boolean),
    ]
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// A content type and data that fits it, as the SDK sees data.
fn typed_data() -> impl Strategy<Value = Option<(&'static str, Data)>> {
    prop_oneof![
        Just(None),
        json_value().prop_map(|value| Some(("application/json", Data::Json(value)))),
        json_value().prop_map(|value| Some(("application/vnd.order+json", Data::Json(value)))),
        text().prop_map(|text| Some(("text/plain; charset=utf-8", Data::String(text)))),
        proptest::collection::vec(any::<u8>(), 1..40)
            .prop_map(|bytes| Some(("application/octet-stream", Data::Binary(bytes)))),
    ]
}

prop_compose! {
    fn sdk_events()(
        id in text(),
        type_ in text(),
        source in proptest::sample::select(vec!["/shop", "https://example.com/a?b#c", "urn:a:b", "a%20b"]),
        subject in proptest::option::of(text()),
        time in proptest::option::of((0..28_u8, 0..24_u8, 0..1_000_000_000_u32)),
        schema in any::<bool>(),
        data in typed_data(),
        extensions in proptest::collection::btree_map("x[a-z0-9]{0,19}", extension(), 0..6),
    ) -> cloudevents::Event {
        let mut builder = EventBuilderV10::new().id(id).ty(type_).source(source);
        if let Some(subject) = subject {
            builder = builder.subject(subject);
        }
        if let Some((day, hour, nanos)) = time {
            builder = builder.time(format!("2024-02-{:02}T{hour:02}:59:59.{nanos:09}+01:00", day + 1));
        }
        builder = match data {
            Some((type_, data)) if schema => builder.data_with_schema(type_, "https://example.com/schema", data),
            Some((type_, data)) => builder.data(type_, data),
            None => builder,
        };
        for (name, value) in extensions {
            builder = builder.extension(&name, value);
        }
        builder.build().expect("id, type and source are there")
    }
}

/// Attributes as text, and data as bytes, or as a value where it is JSON: what is left of an event in any form.
#[derive(Debug, PartialEq)]
struct Content {
    attributes: BTreeMap<String, String>,
    data: Option<Result<serde_json::Value, Vec<u8>>>,
}

fn content_of_sdk(event: &cloudevents::Event) -> Content {
    let named = event.iter().filter(|(name, _)| *name != "specversion");
    let attributes = named.map(|(name, value)| (name.to_owned(), value.to_string()));
    let data = event.data().cloned().map(|data| {
        let bytes: Vec<u8> = data.try_into().expect("a value can be written");
        value_or_bytes(event.datacontenttype(), bytes)
    });
    Content {
        attributes: attributes.collect(),
        data,
    }
}

fn value_or_bytes(
    content_type: Option<&str>,
    bytes: Vec<u8>,
) -> Result<serde_json::Value, Vec<u8>> {
    let json = content_type.is_none_or(|content_type| content_type.ends_with("json"));
    let value = serde_json::from_slice(&bytes).ok().filter(|_| json);
    value.ok_or(bytes)
}

fn content(event: &Event) -> Content {
    let texts = event.texts().map(|(name, text)| {
        let text = String::from_utf8(text.to_vec()).expect("attributes are text");
        (
            name.to_owned(),
            if name == "time" {
                as_the_sdk_writes_time(&text)
            } else {
                text
            },
        )
    });
    Content {
        attributes: texts.collect(),
        data: event
            .data()
            .map(|data| value_or_bytes(event.text("datacontenttype"), data.to_vec())),
    }
}

/// The SDK keeps points in time and forgets how they were written; we keep what was written.
fn as_the_sdk_writes_time(text: &str) -> String {
    let event = EventBuilderV10::new()
        .id("1")
        .ty("t")
        .source("/s")
        .time(text);
    let event = event.build().expect("a time as RFC 3339 writes it");
    let time = event.iter().find(|(name, _)| *name == "time");
    time.expect("it was just set").1.to_string()
}

/// An SDK event on its way through headers, which the SDK leaves to bindings.
struct ToHeaders(HeaderMap);

impl ToHeaders {
    fn set(mut self, name: &str, value: &str) -> Self {
        let (name, value) = match name {
            "datacontenttype" => ("content-type".to_owned(), value.to_owned()),
            _ => (format!("ce-{name}"), percent_encoded(value)),
        };
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        self.0.insert(name, HeaderValue::from_str(&value).unwrap());
        self
    }
}

impl BinarySerializer<(HeaderMap, Bytes)> for ToHeaders {
    fn set_spec_version(self, version: SpecVersion) -> MessageResult<Self> {
        Ok(self.set("specversion", &version.to_string()))
    }

    fn set_attribute(self, name: &str, value: MessageAttributeValue) -> MessageResult<Self> {
        Ok(self.set(name, &value.to_string()))
    }

    fn set_extension(self, name: &str, value: MessageAttributeValue) -> MessageResult<Self> {
        Ok(self.set(name, &value.to_string()))
    }

    fn end_with_data(self, bytes: Vec<u8>) -> MessageResult<(HeaderMap, Bytes)> {
        Ok((self.0, Bytes::from(bytes)))
    }

    fn end(self) -> MessageResult<(HeaderMap, Bytes)> {
        self.end_with_data(Vec::new())
    }
}

/// Headers on their way to an SDK event.
struct FromHeaders(HeaderMap, Bytes);

impl BinaryDeserializer for FromHeaders {
    fn deserialize_binary<R: Sized, V: BinarySerializer<R>>(self, visitor: V) -> MessageResult<R> {
        let mut visitor = visitor.set_spec_version(SpecVersion::V10)?;
        for (name, value) in &self.0 {
            let value = value.to_str().unwrap();
            let text = |text: String| MessageAttributeValue::String(text);
            visitor = match name.as_str() {
                "content-type" => {
                    visitor.set_attribute("datacontenttype", text(value.to_owned()))?
                }
                "ce-specversion" => visitor,
                "ce-id" | "ce-type" | "ce-source" | "ce-subject" | "ce-time" | "ce-dataschema" => {
                    visitor.set_attribute(&name.as_str()[3..], text(percent_decoded(value)))?
                }
                extension => {
                    visitor.set_extension(&extension[3..], text(percent_decoded(value)))?
                }
            };
        }
        if self.1.is_empty() {
            visitor.end()
        } else {
            visitor.end_with_data(self.1.to_vec())
        }
    }
}

/// The encoding of the binding, written down a second time and as plainly as can be.
fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b' ' | b'"' | b'%' => format!("%{byte:02X}"),
        0x21..=0x7e => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn read_one(text: Vec<u8>) -> Event {
    json::read_one(&Bytes::from(text), &Limits::default()).expect("the SDK writes events")
}

fn read_by_sdk(event: &Event) -> cloudevents::Event {
    let mut text = Vec::new();
    json::write(event, &mut text);
    serde_json::from_slice(&text).expect("the SDK reads what we write")
}

prop_compose! {
    fn our_events()(
        id in text(),
        type_ in text(),
        content_type in proptest::sample::select(vec![
            None, Some("application/json"), Some("text/json"), Some("text/plain"), Some("application/octet-stream"),
        ]),
        extensions in proptest::collection::btree_map("x[a-z0-9]{0,19}", extension(), 0..6),
        data in prop_oneof![
            Just(None),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Some),
            json_value().prop_map(|value| Some(value.to_string().into_bytes())),
        ],
    ) -> Event {
        let mut builder = Builder::new(Form::Binary);
        builder.push("id", Value::Text(&id));
        builder.push("source", Value::Text("/shop"));
        builder.push("type", Value::Text(&type_));
        if let Some(content_type) = content_type {
            builder.push("datacontenttype", Value::Text(content_type));
        }
        for (name, value) in &extensions {
            builder.push(name, match value {
                ExtensionValue::String(text) => Value::Text(text),
                ExtensionValue::Integer(number) => Value::Integer(i32::try_from(*number).unwrap()),
                ExtensionValue::Boolean(flag) => Value::Boolean(*flag),
            });
        }
        builder.build(data.as_deref())
    }
}

proptest! {
    #[test]
    fn a_document_of_the_sdk_is_read_and_comes_back(event in sdk_events()) {
        let ours = read_one(serde_json::to_vec(&event).unwrap());
        prop_assert_eq!(content(&ours), content_of_sdk(&event));
        prop_assert_eq!(content_of_sdk(&read_by_sdk(&ours)), content_of_sdk(&event));
        for (name, value) in event.iter_extensions() {
            let typed = match ours.attribute(name).unwrap() {
                Value::Text(text) => ExtensionValue::String(text.to_owned()),
                Value::Integer(number) => ExtensionValue::Integer(number.into()),
                Value::Boolean(flag) => ExtensionValue::Boolean(flag),
            };
            prop_assert_eq!(&typed, value);
        }
    }

    #[test]
    fn a_batch_of_the_sdk_is_read(events in proptest::collection::vec(sdk_events(), 0..4)) {
        let text = Bytes::from(serde_json::to_vec(&events).unwrap());
        let ours = json::read_batch(&text, &Limits::default()).unwrap();
        let expected: Vec<Content> = events.iter().map(content_of_sdk).collect();
        prop_assert_eq!(ours.iter().map(content).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn headers_of_the_sdk_are_read_and_come_back(event in sdk_events()) {
        let (headers, body) = event.clone().deserialize_binary(ToHeaders(HeaderMap::new())).unwrap();
        let ours = match http::read(&headers, &body, &Limits::default()) {
            Ok(Received::One(ours)) => ours,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(content(&ours), content_of_sdk(&event));
        let mut written = HeaderMap::new();
        let body = http::write_binary(&ours, &mut written);
        prop_assert_eq!(&written, &headers);
        let back = FromHeaders(written, body).into_event().unwrap();
        prop_assert_eq!(content_of_sdk(&back), content_of_sdk(&event));
    }

    #[test]
    fn what_we_write_the_sdk_reads(event in our_events()) {
        prop_assert_eq!(content_of_sdk(&read_by_sdk(&event)), content(&event));
    }

    #[test]
    fn any_bytes_are_events_or_are_refused(soup in proptest::collection::vec(any::<u8>(), 0..256)) {
        soup::http(&soup);
        soup::json(&soup);
    }

    #[test]
    fn almost_messages_are_events_or_are_refused(soup in almost_message()) {
        soup::http(&soup);
    }

    #[test]
    fn almost_documents_are_events_or_are_refused(soup in almost_document()) {
        soup::json(&soup);
    }
}

/// Parts put together so that some of it is read, which few random bytes are.
fn almost_message() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => Just("ce-x: a%20\"b\n".to_owned()),
        8 => "ce-[a-z]{1,3}: [ -~]{0,6}\n",
        4 => proptest::sample::select(vec![
            "content-type: application/json\n", "content-type: application/cloudevents+json\n",
            "content-type: application/cloudevents-batch+json\n", "content-type: text/plain\n", "ce-time: 2024-02-29T00:00:00Z\n",
            "ce-sampledrate: 3\n", "ce-x: \"a\\\"b\"\n", "ce-y: %E2%82%AC\n", "content-encoding: gzip\n", "ce-id: 2\n",
        ]).prop_map(str::to_owned),
    ];
    let body = prop_oneof![
        "[ -~\\n]{0,20}",
        almost_text(),
        almost_text().prop_map(|text| format!("[{text}]"))
    ];
    (any::<bool>(), proptest::collection::vec(line, 0..4), body).prop_map(
        |(required, lines, body)| {
            let required = if required {
                "ce-specversion: 1.0\nce-type: t\nce-source: /s\nce-id: 1\n"
            } else {
                ""
            };
            format!("{required}{}\n{body}", lines.concat()).into_bytes()
        },
    )
}

fn almost_document() -> impl Strategy<Value = Vec<u8>> {
    (
        almost_text(),
        any::<proptest::sample::Index>(),
        proptest::option::weighted(0.2, any::<u8>()),
    )
        .prop_map(|(text, at, byte)| {
            let mut text = text.into_bytes();
            if let Some(byte) = byte {
                let at = at.index(text.len());
                text[at] = byte;
            }
            text
        })
}

fn almost_text() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        4 => "\"[a-z€ ]{0,6}\"",
        4 => proptest::sample::select(vec![
            "null", "true", "0", "-0", "-7", "1.5", "2147483648", "\"\\u20ac\\n\"", "\"\\ud83d\\ude00\"", "\"\\ud800\"", "[]", "{}",
            "{\"a\":[1,{}]}", "\"text/plain\"", "\"application/json\"", "\"AP8=\"", "\"2024-02-29T00:00:00Z\"", "1e999", "",
        ]).prop_map(str::to_owned),
    ];
    let name = prop_oneof![
        "[a-z]{1,4}",
        proptest::sample::select(vec![
            "data",
            "data_base64",
            "datacontenttype",
            "time",
            "subject",
            "id",
            "sampledrate",
            "deprecated",
            "\\u0061",
            "A",
        ])
        .prop_map(str::to_owned),
    ];
    let space = proptest::sample::select(vec!["", "", "", " ", "\n\t"]);
    let member = (name, space, value)
        .prop_map(|(name, space, value)| format!(",{space}\"{name}\":{space}{value}{space}"));
    proptest::collection::vec(member, 0..4).prop_map(|members| {
        format!(
            "{{\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/s\",\"id\":\"1\"{}}}",
            members.concat()
        )
    })
}

fn document(members: &str) -> Vec<u8> {
    format!(r#"{{"specversion":"1.0","type":"t","source":"/s","id":"1",{members}}}"#).into_bytes()
}

/// The specification forbids all of these, and the SDK takes them.
#[test]
fn the_sdk_takes_what_we_refuse() {
    for (members, code) in [
        (r#""a":"x","a":"y""#, code::ATTRIBUTE_DUPLICATE),
        (r#""camelCase":"x""#, code::ATTRIBUTE_NAME),
        (r#""a":2147483648"#, code::ATTRIBUTE_TYPE),
        (r#""a":"\u0007""#, code::ATTRIBUTE_INVALID),
        (r#""a":"\ufffe""#, code::ATTRIBUTE_INVALID),
        (r#""subject":"""#, code::ATTRIBUTE_INVALID),
        (r#""datacontenttype":"nonsense""#, code::ATTRIBUTE_INVALID),
        (r#""partitionkey":"""#, code::ATTRIBUTE_INVALID),
        (r#""sampledrate":0"#, code::ATTRIBUTE_INVALID),
    ] {
        let text = document(members);
        serde_json::from_slice::<cloudevents::Event>(&text).expect(members);
        let refused = json::read_one(&Bytes::from(text), &Limits::default()).expect_err(members);
        assert_eq!(refused.code, code, "{members}");
    }
    for text in [
        r#"{"specversion":"1.0","type":"t","source":"/s","id":""}"#,
        r#"{"specversion":"1.0","type":"","source":"/s","id":"1"}"#,
        r#"{"specversion":"1.0","type":"t","source":"no reference","id":"1"}"#,
    ] {
        serde_json::from_str::<cloudevents::Event>(text).expect(text);
        let refused = json::read_one(&Bytes::from(text), &Limits::default()).expect_err(text);
        assert_eq!(refused.code, code::ATTRIBUTE_INVALID, "{text}");
    }
}

/// Parameters and case say nothing about whether data is JSON; the SDK looks at the end of the whole text.
#[test]
fn the_sdk_misses_json_with_parameters() {
    for content_type in [
        "application/vnd.order+json; v=1",
        "Application/JSON",
        "image/json",
    ] {
        let text = document(&format!(
            r#""datacontenttype":"{content_type}","data":{{"a":1}}"#
        ));
        let event = read_one(text.clone());
        assert_eq!(event.data().as_deref(), Some(&br#"{"a":1}"#[..]));
        serde_json::from_slice::<cloudevents::Event>(&text).expect_err(content_type);
    }
    // And takes for JSON what only begins like it.
    let text = document(r#""datacontenttype":"application/json-seq","data":"text""#);
    let theirs: cloudevents::Event = serde_json::from_slice(&text).unwrap();
    assert_eq!(theirs.data(), Some(&Data::Json("text".into())));
    assert_eq!(read_one(text).data().as_deref(), Some(&b"text"[..]));
}
