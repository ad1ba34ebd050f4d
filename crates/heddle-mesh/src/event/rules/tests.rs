//! Which values attributes may hold, as tables.

use super::*;

fn check(rule: impl Fn(&str) -> bool, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(rule(text), "{text} is refused");
    }
    for text in bad {
        assert!(!rule(text), "{text} is taken");
    }
}

#[test]
fn times_are_those_of_rfc_3339() {
    check(
        time::is_rfc3339,
        &[
            "2018-04-05T17:31:00Z",
            "2018-04-05t17:31:00z",
            "1985-04-12T23:20:50.52Z",
            "1996-12-19T16:39:57-08:00",
            "1990-12-31T23:59:60Z",
            "1990-12-31T15:59:60-08:00",
            "1937-01-01T12:00:27.87+00:20",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "2018-04-05T17:31:00.123456789123456789Z",
            "2018-04-05T17:31:00-00:00",
            "2018-04-05T17:31:00+23:59",
        ],
        &[
            "",
            "2018-04-05",
            "2018-04-05T17:31:00",
            "2018-04-05 17:31:00Z",
            "2018-04-05T17:31Z",
            "2018-4-5T17:31:00Z",
            "2018-04-05T17:31:00.Z",
            "2018-04-05T17:31:00,5Z",
            "2018-04-05T17:31:00ZZ",
            "2018-04-05T17:31:00+0100",
            "2018-04-05T17:31:00+1:00",
            "2018-04-05T17:31:00+001:00",
            "2018-04-05T17:31:00+24:00",
            "2018-04-05T17:31:00+00:60",
            "2018-00-05T17:31:00Z",
            "2018-13-05T17:31:00Z",
            "2018-04-00T17:31:00Z",
            "2018-04-31T17:31:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2018-04-05T24:00:00Z",
            "2018-04-05T17:60:00Z",
            "2018-04-05T17:31:61Z",
            "2018-04-05T17:31:60Z",
            "+018-04-05T17:31:00Z",
            "２018-04-05T17:31:00Z",
        ],
    );
}

#[test]
fn references_are_those_of_rfc_3986() {
    check(
        uri::is_reference,
        &[
            "https://github.com/cloudevents",
            "mailto:cncf-wg-serverless@lists.cncf.io",
            "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
            "/cloudevents/spec/pull/123",
            "/sensors/tn-1234567/alerts",
            "1-555-123-4567",
            "cloudevents.conformance.tests",
            "a/b:c",
            "./a:b",
            "?query=1",
            "#fragment",
            "//host/path",
            "http://[::1]:8080/",
            "http://[v7.a:b]/",
            "http://user:pw@host:80/a%20b?x=/?#/?",
            "http://host:",
            "file:///etc/hosts",
            "a",
            "",
        ],
        &[
            "with space",
            "a:b c",
            ":no-scheme",
            "1a:b",
            "é",
            "a%2",
            "a%zz",
            "a#b#c",
            "a[1]",
            "<a>",
            "a\\b",
            "{a}",
            "\"a\"",
            "http://[::1/",
            "http://[zz]/",
            "http://[v.a]/",
            "http://[v1.]/",
            "http://host:80a/",
            "http://a@b@c/",
            "http://[::1]x/",
        ],
    );
    check(
        uri::is_absolute,
        &[
            "https://example.com/schema.json",
            "urn:a:b",
            "https://example.com/s#/definitions/a",
        ],
        &[
            "/relative",
            "relative",
            "//host/path",
            "",
            "https://example.com/a b",
        ],
    );
}

#[test]
fn media_types_have_a_type_and_a_subtype() {
    check(
        media::is_media_type,
        &[
            "application/json",
            "text/plain; charset=utf-8",
            "text/plain;charset=utf-8",
            "multipart/mixed; boundary=\"a b\"",
            "application/vnd.a+json",
            "text/plain ;a=b",
        ],
        &[
            "",
            "json",
            "text/",
            "/plain",
            "text /plain",
            "a/b/c",
            "text/plain; é",
            " text/plain",
            "text/plain ",
        ],
    );
    check(
        media::is_json,
        &[
            "application/json",
            "TEXT/JSON",
            "application/vnd.a+JSON;v=1",
            "application/json ; a=b",
        ],
        &[
            "application/jsonx",
            "application/x-json",
            "text/plain; a=+json",
            "json",
            "application/xml+jso",
            "text/é",
        ],
    );
    for (text, charset) in [
        ("text/plain", None),
        ("text/plain; charset=utf-8", Some("utf-8")),
        ("text/plain;a=b;CharSet=\"x\"", Some("x")),
        (
            "text/plain; a=\";charset=no\\\";charset=no\"; charset = yes",
            Some("yes"),
        ),
    ] {
        assert_eq!(media::charset(text), charset, "{text}");
    }
}

#[test]
fn integers_are_those_of_json_in_32_bits() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("2147483647", Some(i32::MAX)),
        ("-2147483648", Some(i32::MIN)),
        ("2147483648", None),
        ("-2147483649", None),
        ("01", None),
        ("-01", None),
        ("+1", None),
        ("1.0", None),
        ("1e3", None),
        ("", None),
        ("-", None),
    ] {
        assert_eq!(parse_integer(text), expected, "{text}");
    }
}

#[test]
fn names_are_lower_case_letters_and_digits() {
    let long = "a".repeat(NAME_BYTES_MAX);
    check(
        |text| name(text).is_ok(),
        &[
            "a",
            "1",
            "partitionkey",
            "1abc",
            "longerthantwentycharacters",
            &long,
        ],
        &[
            "",
            "A",
            "camelCase",
            "a_b",
            "a-b",
            "a.b",
            "é",
            "data",
            "a b",
            &format!("{long}a"),
        ],
    );
}

/// Each attribute that has a rule, with what it takes and what it refuses.
#[test]
fn known_attributes_hold_what_they_are_specified_to() {
    use Value::{Boolean, Integer, Text};
    let cases: &[(&str, &[Value<'_>], &[Value<'_>])] = &[
        (
            "id",
            &[Text("1"), Text("€")],
            &[Text(""), Integer(1), Boolean(true)],
        ),
        ("type", &[Text("a b")], &[Text(""), Integer(1)]),
        ("subject", &[Text("a.jpg")], &[Text(""), Boolean(false)]),
        (
            "source",
            &[Text("/a")],
            &[Text(""), Text("a b"), Integer(1)],
        ),
        ("dataref", &[Text("/a")], &[Text(""), Text("a b")]),
        (
            "time",
            &[Text("2018-04-05T17:31:00Z")],
            &[Text(""), Text("now"), Integer(1)],
        ),
        (
            "expirytime",
            &[Text("2018-04-05T17:31:00Z")],
            &[Text("soon")],
        ),
        (
            "recordedtime",
            &[Text("2018-04-05T17:31:00Z")],
            &[Text("then")],
        ),
        (
            "deprecationfrom",
            &[Text("2018-04-05T17:31:00Z")],
            &[Text("then")],
        ),
        (
            "deprecationsunset",
            &[Text("2018-04-05T17:31:00Z")],
            &[Text("then")],
        ),
        (
            "deprecationmigration",
            &[Text("https://a/b")],
            &[Text("b"), Text("")],
        ),
        (
            "dataschema",
            &[Text("https://a/b")],
            &[Text("/b"), Text("")],
        ),
        (
            "datacontenttype",
            &[Text("text/plain")],
            &[Text("text"), Text(""), Boolean(true)],
        ),
        ("partitionkey", &[Text("k")], &[Text(""), Integer(1)]),
        ("sequence", &[Text("001")], &[Text(""), Integer(1)]),
        ("correlationid", &[Text("c")], &[Text("")]),
        ("causationid", &[Text("c")], &[Text("")]),
        ("traceparent", &[Text("00-a-b-01")], &[Text("")]),
        ("severitytext", &[Text("WARN")], &[Text("")]),
        (
            "sampledrate",
            &[Integer(1), Text("30")],
            &[Integer(0), Text("0"), Text("x"), Boolean(true)],
        ),
        (
            "severitynumber",
            &[Integer(0), Text("17")],
            &[Integer(-1), Text("-1"), Text("")],
        ),
        (
            "deprecated",
            &[Boolean(true), Text("true")],
            &[Boolean(false), Text("false"), Text("True"), Integer(1)],
        ),
        ("authtype", &[Text("user"), Text("anything")], &[]),
        (
            "anything",
            &[Text(""), Integer(-5), Boolean(false)],
            &[Text("\u{7f}"), Text("\u{fffe}"), Text("\u{85}")],
        ),
    ];
    for (name, good, bad) in cases {
        for sent in *good {
            assert!(value(name, *sent).is_ok(), "{name} {sent:?} is refused");
        }
        for sent in *bad {
            let refused = value(name, *sent).expect_err(&format!("{name} {sent:?} is taken"));
            assert_eq!(refused.attribute.as_deref(), Some(*name));
        }
    }
}

#[test]
fn text_of_a_known_type_becomes_that_type() {
    assert_eq!(
        value("sampledrate", Value::Text("30")),
        Ok(Value::Integer(30))
    );
    assert_eq!(
        value("deprecated", Value::Text("true")),
        Ok(Value::Boolean(true))
    );
    assert_eq!(
        value("anything", Value::Text("true")),
        Ok(Value::Text("true"))
    );
}
