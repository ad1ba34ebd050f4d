//! What is put into an event comes out of it again.

use super::*;

#[test]
fn required_attributes_come_first_whatever_the_order() {
    let mut builder = Builder::new(Form::Binary);
    builder.push("subject", Value::Text("s"));
    builder.push("id", Value::Text("1"));
    builder.push("count", Value::Integer(-7));
    builder.push("type", Value::Text("t"));
    builder.push("flag", Value::Boolean(true));
    builder.push("source", Value::Text("/a"));
    let event = builder.build(Some(b"data"));
    let names: Vec<&str> = event.attributes().map(|(name, _)| name).collect();
    assert_eq!(names, ["type", "source", "id", "subject", "count", "flag"]);
    assert_eq!(
        (event.type_(), event.source(), event.id()),
        ("t", "/a", "1")
    );
    assert_eq!(event.attribute("count"), Some(Value::Integer(-7)));
    assert_eq!(event.text("count"), Some("-7"));
    assert_eq!(event.attribute("flag"), Some(Value::Boolean(true)));
    assert_eq!(event.data().as_deref(), Some(&b"data"[..]));
    assert_eq!(Event::decode(event.bytes().clone()), Ok(event));
}

#[test]
fn attributes_are_set_and_taken_away() {
    let mut builder = Builder::new(Form::Structured);
    for (name, value) in [("type", "t"), ("source", "/a"), ("id", "1"), ("gone", "x")] {
        builder.push(name, Value::Text(value));
    }
    let event = builder.build(None);
    let changed = event.with(&[("gone", None), ("ttl", Some(Value::Integer(3)))]);
    assert_eq!(changed.text("gone"), None);
    assert_eq!(changed.attribute("ttl"), Some(Value::Integer(3)));
    assert_eq!(changed.data(), None);
    assert_eq!(changed.form(), Form::Structured);
}

#[test]
fn cut_off_bytes_are_no_event() {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [("type", "t"), ("source", "/a"), ("id", "1")] {
        builder.push(name, Value::Text(value));
    }
    let whole = builder.build(None).bytes().clone();
    for length in 0..whole.len() {
        assert!(
            Event::decode(whole.slice(..length)).is_err(),
            "{length} bytes"
        );
    }
}

#[test]
fn an_event_remembers_that_its_data_is_opaque() {
    let mut builder = Builder::new(Form::Structured);
    for (name, value) in [("type", "t"), ("source", "/a"), ("id", "1")] {
        builder.push(name, Value::Text(value));
    }
    builder.opaque();
    assert_eq!(builder.bytes_with(2), builder.bytes.len() + 2);
    let event = builder.build(Some(b"{}"));
    assert!(event.is_opaque());
    assert!(event.with(&[("a", Some(Value::Boolean(true)))]).is_opaque());
}

#[test]
fn damaged_bytes_are_an_event_or_an_error_and_nothing_else() {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [
        ("type", "t"),
        ("source", "/€"),
        ("id", "1"),
        ("subject", "é"),
    ] {
        builder.push(name, Value::Text(value));
    }
    let whole = builder.build(Some(b"data")).bytes().clone();
    for at in 0..whole.len() {
        for byte in 0..=u8::MAX {
            let mut damaged = whole.to_vec();
            damaged[at] = byte;
            // Whatever is still taken for an event can be looked at.
            if let Ok(event) = Event::decode(Bytes::from(damaged)) {
                assert!(event.attributes().count() >= 3);
                assert_eq!(event.text("type"), Some(event.type_()));
                assert_eq!(event.with(&[]).data(), event.data());
            }
        }
    }
}
