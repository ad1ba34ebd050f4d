//! Documents of events: what is in them, what they may not have in them, and what is written.

use ::http::StatusCode;
use heddle_api::attributes::Attributes as _;

use super::*;

/// A document with the required members and these.
fn document(members: &str) -> Bytes {
    let comma = if members.is_empty() { "" } else { "," };
    Bytes::from(format!(
        r#"{{"specversion":"1.0","type":"t","source":"/s","id":"1"{comma}{members}}}"#
    ))
}

fn read(members: &str) -> Result<Event, Refused> {
    read_one(&document(members), &Limits::default())
}

fn data_of(members: &str) -> Result<Option<Vec<u8>>, &'static str> {
    read(members)
        .map(|event| event.data().map(|data| data.to_vec()))
        .map_err(|refused| refused.code)
}

#[test]
fn attributes_have_the_types_of_their_values() {
    let event =
        read(r#""text":"a\u20ac","count":-5,"flag":false,"gone":null,"max":2147483647"#).unwrap();
    assert_eq!(event.attribute("text"), Some(Value::Text("a€")));
    assert_eq!(event.attribute("count"), Some(Value::Integer(-5)));
    assert_eq!(event.attribute("flag"), Some(Value::Boolean(false)));
    assert_eq!(event.attribute("max"), Some(Value::Integer(i32::MAX)));
    assert_eq!(event.attribute("gone"), None);
    assert_eq!(event.data(), None);
    assert_eq!(event.form(), Form::Structured);
}

#[test]
fn required_members_may_come_anywhere_and_in_any_spelling() {
    let text = Bytes::from_static(
        b" { \"ext\" : \"x\" , \"\\u0069d\" : \"1\", \"data\" : [ ] , \"source\":\"/s\",\"type\":\"t\", \"specversion\" : \"\\u0031.0\" } \n",
    );
    let event = read_one(&text, &Limits::default()).unwrap();
    assert_eq!(
        (event.type_(), event.source(), event.id()),
        ("t", "/s", "1")
    );
    assert_eq!(event.data().as_deref(), Some(&b"[ ]"[..]));
}

#[test]
fn json_data_is_kept_byte_for_byte() {
    for data in [
        r#"{ "b" : 1.50, "a":1e999, "a": "\u20ac\/" }"#,
        "null",
        "true",
        "12345678901234567890.0",
        r#""a string, \"quoted\"""#,
        "[ ]",
    ] {
        for content_type in [
            "",
            r#""datacontenttype":"application/json","#,
            r#""datacontenttype":"A/B+JSON; c=d","#,
        ] {
            let found = data_of(&format!("{content_type}\"data\": {data} "));
            assert_eq!(
                found,
                Ok(Some(data.as_bytes().to_vec())),
                "{content_type}{data}"
            );
        }
    }
}

#[test]
fn other_data_is_text_or_bytes() {
    for (members, expected) in [
        (
            r#""datacontenttype":"text/xml","data":"<a b=\"c\"/>""#,
            Ok(Some("<a b=\"c\"/>".into())),
        ),
        (
            r#""datacontenttype":"text/plain","data":"""#,
            Ok(Some(vec![])),
        ),
        (
            r#""datacontenttype":null,"data":"text""#,
            Ok(Some("\"text\"".into())),
        ),
        (
            r#""datacontenttype":"text/plain","data_base64":"AP8=""#,
            Ok(Some(vec![0, 255])),
        ),
        (r#""data_base64":"AP8=""#, Ok(Some(vec![0, 255]))),
        (r#""data_base64":"AP\/\/""#, Ok(Some(vec![0, 255, 255]))),
        (r#""data_base64":"""#, Ok(Some(vec![]))),
        (r#""data_base64":null"#, Ok(None)),
        (r#""data":null,"data_base64":null"#, Ok(Some("null".into()))),
        (
            r#""datacontenttype":"text/plain","data":{}"#,
            Err(code::DATA_INVALID),
        ),
        (
            r#""datacontenttype":"text/plain","data":null"#,
            Err(code::DATA_INVALID),
        ),
        (r#""data":1,"data_base64":"""#, Err(code::DATA_INVALID)),
        (
            r#""data":null,"data_base64":"AA==""#,
            Err(code::DATA_INVALID),
        ),
        (r#""data_base64":"AP8""#, Err(code::DATA_INVALID)),
        (r#""data_base64":"AP 8=""#, Err(code::DATA_INVALID)),
        (r#""data_base64":"A-_=""#, Err(code::DATA_INVALID)),
        (r#""data_base64":1"#, Err(code::DATA_INVALID)),
        (r#""data_base64":{}"#, Err(code::DATA_INVALID)),
    ] {
        assert_eq!(data_of(members), expected, "{members}");
    }
}

#[test]
fn a_document_that_is_no_event_is_refused_by_name() {
    for (members, code, attribute) in [
        (r#""a":1.5"#, code::ATTRIBUTE_TYPE, Some("a")),
        (r#""a":1e2"#, code::ATTRIBUTE_TYPE, Some("a")),
        (r#""a":2147483648"#, code::ATTRIBUTE_TYPE, Some("a")),
        (r#""a":[]"#, code::ATTRIBUTE_TYPE, Some("a")),
        (r#""a":{}"#, code::ATTRIBUTE_TYPE, Some("a")),
        (r#""subject":1"#, code::ATTRIBUTE_TYPE, Some("subject")),
        (r#""subject":"""#, code::ATTRIBUTE_INVALID, Some("subject")),
        (r#""time":"then""#, code::ATTRIBUTE_INVALID, Some("time")),
        (
            r#""datacontenttype":true"#,
            code::ATTRIBUTE_TYPE,
            Some("datacontenttype"),
        ),
        (r#""a":"\u0000""#, code::ATTRIBUTE_INVALID, Some("a")),
        (r#""a":"\ufffe""#, code::ATTRIBUTE_INVALID, Some("a")),
        (
            r#""camelCase":"x""#,
            code::ATTRIBUTE_NAME,
            Some("camelCase"),
        ),
        (r#""a-b":null"#, code::ATTRIBUTE_NAME, Some("a-b")),
        (r#""":"x""#, code::ATTRIBUTE_NAME, Some("")),
        (r#""id":"2""#, code::ATTRIBUTE_DUPLICATE, Some("id")),
        (r#""\u0069d":"2""#, code::ATTRIBUTE_DUPLICATE, Some("id")),
        (r#""a":null,"a":1"#, code::ATTRIBUTE_DUPLICATE, Some("a")),
        (
            r#""data":1,"data":1"#,
            code::ATTRIBUTE_DUPLICATE,
            Some("data"),
        ),
        (r#""a":"\ud800""#, code::JSON_INVALID, None),
        (r#""data":"\udead""#, code::JSON_INVALID, None),
        (r#""a":"x",,"#, code::JSON_INVALID, None),
        (r#""a":"x""b":"y""#, code::JSON_INVALID, None),
    ] {
        let refused = read(members).expect_err(members);
        assert_eq!(
            (refused.code, refused.attribute.as_deref()),
            (code, attribute),
            "{members}"
        );
        assert_eq!(
            (refused.status, refused.index),
            (StatusCode::BAD_REQUEST, None)
        );
    }
    for (text, code, attribute) in [
        ("", code::JSON_INVALID, None),
        ("null", code::JSON_INVALID, None),
        ("[]", code::JSON_INVALID, None),
        ("{}", code::ATTRIBUTE_MISSING, Some("specversion")),
        (
            r#"{"specversion":null}"#,
            code::ATTRIBUTE_MISSING,
            Some("specversion"),
        ),
        (
            r#"{"specversion":1.0}"#,
            code::ATTRIBUTE_TYPE,
            Some("specversion"),
        ),
        (
            r#"{"specversion":"0.3"}"#,
            code::SPECVERSION_UNSUPPORTED,
            Some("specversion"),
        ),
        (
            r#"{"specversion":"1.0","type":"t","source":"/s"}"#,
            code::ATTRIBUTE_MISSING,
            Some("id"),
        ),
        (
            r#"{"specversion":"1.0","type":null,"source":"/s","id":"1"}"#,
            code::ATTRIBUTE_MISSING,
            Some("type"),
        ),
        (
            r#"{"specversion":"1.0","type":"t","source":"","id":"1"}"#,
            code::ATTRIBUTE_INVALID,
            Some("source"),
        ),
        (
            r#"{"specversion":"1.0","type":"t","source":"/s","id":"1"} {}"#,
            code::JSON_INVALID,
            None,
        ),
    ] {
        let refused =
            read_one(&Bytes::from_static(text.as_bytes()), &Limits::default()).expect_err(text);
        assert_eq!(
            (refused.code, refused.attribute.as_deref()),
            (code, attribute),
            "{text}"
        );
    }
    let refused = read_one(
        &Bytes::from_static(b"{\"a\":\"\xc0\xa0\"}"),
        &Limits::default(),
    )
    .unwrap_err();
    assert_eq!(
        refused.message,
        "the body is not UTF-8 at byte 6; send JSON in UTF-8"
    );
}

#[test]
fn a_name_that_comes_twice_is_found_among_many() {
    let many: Vec<String> = (0..100).map(|number| format!("\"a{number}\":1")).collect();
    assert!(read(&many.join(",")).is_ok());
    for twice in ["a0", "a99", "id"] {
        let refused = read(&format!("{},\"{twice}\":1", many.join(","))).unwrap_err();
        assert_eq!(
            (refused.code, refused.attribute.as_deref()),
            (code::ATTRIBUTE_DUPLICATE, Some(twice))
        );
    }
}

#[test]
fn limits_hold_for_documents_too() {
    let limits = Limits {
        json_depth_max: 3,
        event_bytes_max: 200,
        batch_bytes_max: 500,
        attributes_max: 8,
        ..Limits::default()
    };
    let code =
        |members: &str| read_one(&document(members), &limits).map_err(|refused| refused.code);
    assert!(code(r#""data":[[[1]]]"#).is_ok());
    assert_eq!(code(r#""data":[[[[1]]]]"#), Err(code::JSON_TOO_DEEP));
    assert_eq!(
        code(&format!("\"a\":\"{}\"", "x".repeat(200))),
        Err(code::EVENT_TOO_LARGE)
    );
    assert_eq!(
        code(&format!("\"data\":\"{}\"", "x".repeat(200))),
        Err(code::EVENT_TOO_LARGE)
    );
    assert_eq!(
        code(&format!("\"data\":\"{}\"", "x".repeat(600))),
        Err(code::EVENT_TOO_LARGE)
    );
    // What counts is the event and not how it was written.
    let escaped = format!(
        "\"datacontenttype\":\"a/b\",\"data\":\"{}\"",
        "\\u0041".repeat(60)
    );
    assert!(document(&escaped).len() > 200);
    assert!(code(&escaped).is_ok());
    let data = ["\"data\":1"; 12].join(",");
    assert_eq!(code(&data), Err(code::ATTRIBUTES_TOO_MANY));
}

#[test]
fn a_batch_is_refused_as_a_whole_with_the_place_of_the_fault() {
    let limits = Limits {
        batch_events_max: 3,
        batch_bytes_max: 500,
        event_bytes_max: 100,
        ..Limits::default()
    };
    let event = String::from_utf8(document("").to_vec()).unwrap();
    let batch = |events: &[&str]| {
        let text = format!("[{}]", events.join(" , "));
        read_batch(&Bytes::from(text), &limits).map_err(|refused| (refused.code, refused.index))
    };
    assert_eq!(batch(&[]).map(|events| events.len()), Ok(0));
    assert_eq!(
        batch(&[&event, &event, &event]).map(|events| events.len()),
        Ok(3)
    );
    assert_eq!(
        batch(&[&event, &event, &event, &event]),
        Err((code::BATCH_TOO_LARGE, None))
    );
    assert_eq!(
        batch(&[&"x".repeat(500)]),
        Err((code::BATCH_TOO_LARGE, None))
    );
    assert_eq!(
        batch(&[&event, "{}"]),
        Err((code::ATTRIBUTE_MISSING, Some(1)))
    );
    assert_eq!(
        batch(&[&event, &event, "7"]),
        Err((code::JSON_INVALID, Some(2)))
    );
    assert_eq!(batch(&["[]"]), Err((code::JSON_INVALID, Some(0))));
    assert_eq!(batch(&[&event, ""]), Err((code::JSON_INVALID, Some(1))));
    for text in [&event[..], "", "[", "[]x", "[] []", "{}"] {
        let refused =
            read_batch(&Bytes::copy_from_slice(text.as_bytes()), &limits).expect_err(text);
        assert_eq!(refused.code, code::JSON_INVALID, "{text}");
    }
}

#[test]
fn a_batch_of_many_small_attributes_is_read_in_one_go() {
    // Near the limits in every direction; quadratic work in names or members would not come back.
    let members: Vec<String> = (0..250).map(|number| format!("\"a{number}\":1")).collect();
    let event = String::from_utf8(document(&members.join(",")).to_vec()).unwrap();
    let text = Bytes::from(format!("[{}]", vec![event; 1000].join(",")));
    assert_eq!(read_batch(&text, &Limits::default()).unwrap().len(), 1000);
}

/// The members that are written besides the required ones.
fn written(content_type: Option<&str>, data: &[u8]) -> String {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [("type", "t"), ("source", "/s"), ("id", "1")] {
        builder.push(name, Value::Text(value));
    }
    if let Some(content_type) = content_type {
        builder.push("datacontenttype", Value::Text(content_type));
    }
    let mut out = Vec::new();
    write(&builder.build(Some(data)), &mut out);
    let text = String::from_utf8(out).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).expect("what is written is JSON");
    let start = text
        .find("\"data\":")
        .or_else(|| text.find("\"data_base64\":"))
        .unwrap();
    text[start..text.len() - 1].to_owned()
}

#[test]
fn data_is_written_in_the_plainest_form_that_keeps_it() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    let deep_base64 = format!("\"data_base64\":\"{}\"", BASE64_STANDARD.encode(&deep));
    for (content_type, data, expected) in [
        (
            Some("application/json"),
            &b"{ \"a\":1.50 }"[..],
            "\"data\":{ \"a\":1.50 }",
        ),
        (Some("application/x+JSON; a=b"), b"null", "\"data\":null"),
        (Some("application/json"), b" 1\n", "\"data\":1"),
        (None, b"{}", "\"data\":{}"),
        (None, b"{", "\"data_base64\":\"ew==\""),
        (Some("application/json"), b"{", "\"data_base64\":\"ew==\""),
        (
            Some("application/json"),
            b"\"\\ud800\"",
            "\"data_base64\":\"Ilx1ZDgwMCI=\"",
        ),
        (
            Some("application/json"),
            b"\xff",
            "\"data_base64\":\"/w==\"",
        ),
        (Some("application/json"), b"", "\"data_base64\":\"\""),
        (Some("application/json"), deep.as_bytes(), &deep_base64),
        (Some("text/plain"), b"", "\"data\":\"\""),
        (Some("text/plain"), b"{}", "\"data\":\"{}\""),
        (
            Some("text/plain"),
            "a\"\\\n\u{1}€".as_bytes(),
            "\"data\":\"a\\\"\\\\\\u000a\\u0001€\"",
        ),
        (Some("text/plain; charset=UTF-8"), b"a", "\"data\":\"a\""),
        (
            Some("text/plain; charset=utf-16"),
            b"a",
            "\"data_base64\":\"YQ==\"",
        ),
        (
            Some("image/png"),
            b"\x89PNG",
            "\"data_base64\":\"iVBORw==\"",
        ),
    ] {
        assert_eq!(written(content_type, data), expected);
    }
}

#[test]
fn a_document_is_written_with_the_types_of_its_attributes() {
    let event = read(r#""count":-5,"flag":true,"text":"a\"b\\c","data_base64":"e30=""#).unwrap();
    let mut out = Vec::new();
    write(&event, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","count":-5,"flag":true,"text":"a\"b\\c","data_base64":"e30="}"#
    );
}
