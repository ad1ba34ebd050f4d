//! Whatever an event holds, it holds after any way through the two modes.

use heddle_api::attributes::{Attributes as _, Value};
use proptest::prelude::*;

use super::super::*;
use crate::event::{Builder, Form};

/// Text that an attribute may hold, with characters that need encoding well represented.
fn text() -> impl Strategy<Value = String> {
    let chars = prop_oneof![
        4 => proptest::char::range(' ', '~'),
        1 => proptest::sample::select(vec!['%', '"', '\\', ' ', ';', '€', '😀', 'é', '\u{a0}']),
        1 => any::<char>().prop_filter("allowed", |char| {
            let point = u32::from(*char);
            !char.is_control() && point & 0xfffe != 0xfffe && !(0xfdd0..=0xfdef).contains(&point)
        }),
    ];
    proptest::collection::vec(chars, 1..24).prop_map(|chars| chars.into_iter().collect())
}

fn content_type() -> impl Strategy<Value = Option<&'static str>> {
    proptest::sample::select(vec![
        None,
        Some("application/json"),
        Some("Application/Vnd.Order+JSON; v=1"),
        Some("text/plain"),
        Some("text/plain; charset=iso-8859-1"),
        Some("application/octet-stream"),
    ])
}

fn data() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        Just(None),
        proptest::collection::vec(any::<u8>(), 1..64).prop_map(Some),
        text().prop_map(|text| Some(text.into_bytes())),
        proptest::sample::select(vec![
            "null",
            "{\"a\":[1,2.50,\"\\u20ac\"]}",
            "\"text\"",
            "1e999",
            "[[[]]]"
        ])
        .prop_map(|text| Some(text.as_bytes().to_vec())),
    ]
}

prop_compose! {
    fn events()(
        type_ in text(),
        id in text(),
        subject in proptest::option::of(text()),
        extensions in proptest::collection::btree_map("x[a-z0-9]{0,30}", text(), 0..6),
        content_type in content_type(),
        data in data(),
    ) -> Event {
        let mut builder = Builder::new(Form::Binary);
        builder.push("type", Value::Text(&type_));
        builder.push("source", Value::Text("https://example.com/a%20b?c#d"));
        builder.push("id", Value::Text(&id));
        if let Some(content_type) = content_type {
            builder.push("datacontenttype", Value::Text(content_type));
        }
        if let Some(subject) = &subject {
            builder.push("subject", Value::Text(subject));
        }
        for (name, value) in &extensions {
            builder.push(name, Value::Text(value));
        }
        builder.build(data.as_deref())
    }
}

/// Attributes in an order of their own, for headers have none, and data.
fn content(event: &Event) -> (Vec<(String, String)>, Option<Bytes>) {
    let texts = event
        .attributes()
        .map(|(name, value)| (name.to_owned(), format!("{value:?}")));
    let mut attributes: Vec<_> = texts.collect();
    attributes.sort();
    (attributes, event.data())
}

/// White space around JSON is no part of a value, so a document does not keep it.
fn trimmed(event: &Event) -> Event {
    let json = event.text("datacontenttype").is_none_or(media::is_json);
    let data = event.data().map(|data| match std::str::from_utf8(&data) {
        Ok(text) if json && serde_json::from_str::<serde_json::Value>(text).is_ok() => {
            Bytes::copy_from_slice(text.trim_matches([' ', '\t', '\n', '\r']).as_bytes())
        }
        _ => data,
    });
    let mut builder = Builder::new(event.form());
    for (name, value) in event.attributes() {
        builder.push(name, value);
    }
    builder.build(data.as_deref())
}

fn through_binary(event: &Event) -> Event {
    let mut headers = HeaderMap::new();
    let body = write_binary(event, &mut headers);
    match read(&headers, &body, &Limits::default()) {
        Ok(Received::One(event)) => event,
        other => panic!("{other:?} from {headers:?}"),
    }
}

fn through_structured(event: &Event) -> Event {
    let mut headers = HeaderMap::new();
    let body = write_structured(event, &mut headers);
    match read(&headers, &body, &Limits::default()) {
        Ok(Received::One(event)) => event,
        other => panic!("{other:?} from {body:?}"),
    }
}

proptest! {
    #[test]
    fn an_event_is_the_same_after_binary_mode(event in events()) {
        prop_assert_eq!(content(&through_binary(&event)), content(&event));
    }

    #[test]
    fn an_event_is_the_same_after_structured_mode(event in events()) {
        prop_assert_eq!(content(&through_structured(&event)), content(&trimmed(&event)));
    }

    #[test]
    fn an_event_is_the_same_after_one_mode_and_the_other(event in events()) {
        let there = through_binary(&through_structured(&event));
        let mut expected = trimmed(&event);
        if event.text("datacontenttype").is_none() && there.text("datacontenttype").is_some() {
            // Once it was in a document as JSON it is JSON, and binary mode has to say so.
            prop_assert!(!through_structured(&event).is_opaque());
            expected = expected.with(&[("datacontenttype", Some(Value::Text("application/json")))]);
        }
        prop_assert_eq!(content(&there), content(&expected));
        prop_assert_eq!(content(&through_structured(&through_binary(&event))), content(&trimmed(&event)));
    }

    #[test]
    fn encoded_values_are_printable_and_decode_to_what_they_were(text in text()) {
        let encoded = header::encode(Bytes::from(text.clone()));
        prop_assert!(encoded.as_bytes().iter().all(|byte| matches!(byte, b'!'..=b'~') && *byte != b'"'));
        let decoded = header::decode(encoded.as_bytes());
        prop_assert!(decoded.encoded);
        prop_assert_eq!(decoded.text, text);
    }
}
