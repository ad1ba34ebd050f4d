//! What strangers wrote: data, attributes, answers. It is text, whatever it looks like; what is long is folded, and what is no
//! text is shown as bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_api::raw_json::RawJson;
pub(crate) use heddle_api::raw_json::indented;
use maud::{Markup, html};
use serde_json::Value;

/// What is longer is folded, and only its beginning is sent.
const SHOWN_BYTES_MAX: usize = 256 << 10;
/// What is longer is folded.
const OPEN_BYTES_MAX: usize = 4 << 10;
/// Bytes in one line.
const LINE_BYTES: usize = 16;

/// A JSON value, indented, with its numbers as they were written.
pub(crate) fn json(value: &Value, label: &str) -> Markup {
    text(&format!("{value:#}"), label)
}

/// Text.
pub(crate) fn text(text: &str, label: &str) -> Markup {
    folded(text, label, text.len())
}

/// The text of a JSON value, indented, with its numbers as they were written.
pub(crate) fn exact_json(json: &str, label: &str) -> Markup {
    folded(&indented(json), label, json.len())
}

fn folded(text: &str, label: &str, bytes: usize) -> Markup {
    let shown = match text.len() > SHOWN_BYTES_MAX {
        true => &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)],
        false => text,
    };
    html! {
        details.content open[text.len() <= OPEN_BYTES_MAX] {
            summary { (label) " " span.quiet { (crate::words::bytes(bytes as u64)) } }
            pre tabindex="0" aria-label=(label) { (visible(shown)) }
            @if shown.len() < text.len() {
                p.notice { "The rest is left out: " (crate::words::bytes((text.len() - shown.len()) as u64)) "." }
            }
        }
    }
}

/// An event in the JSON format of CloudEvents: attributes as a list, data below it, with its numbers as they were written.
pub(crate) fn event(event: &RawJson) -> Markup {
    let (members, read) = (event.members(), event.value());
    let as_text = |name: &str| read.get(name).and_then(Value::as_str);
    html! {
        h2 { "Attributes" }
        (attributes(&read))
        @if let Some(data) = members.get("data") {
            @match as_text("data") { Some(data) => (text(data, "data")), None => (exact_json(data.text(), "data")) }
        }
        @if let Some(encoded) = as_text("data_base64") { (base64(encoded)) }
    }
}

/// The attributes of an event in the JSON format.
pub(crate) fn attributes(event: &Value) -> Markup {
    let is_data = |name: &&String| matches!(name.as_str(), "data" | "data_base64");
    let attributes = event.as_object().into_iter().flatten();
    html! {
        dl.facts.attributes {
            @for (name, value) in attributes.filter(|(name, _)| !is_data(name)) {
                dt { (name) } dd { @match value.as_str() { Some(text) => (visible(text)), None => (value) } }
            }
        }
    }
}

/// Instead of data, for those who may not read it.
pub(crate) fn withheld() -> Markup {
    html! { p.quiet { "Its data is not shown: it is for those who may read what events carry." } }
}

/// Beside data of which not all is shown.
pub(crate) fn masked() -> Markup {
    html! { p.quiet data-masked { "Parts of its data are hidden from you: " code { "***" } " stands in their place." } }
}

/// Data that is no text, as events carry it in JSON.
pub(crate) fn base64(encoded: &str) -> Markup {
    match STANDARD.decode(encoded) {
        Ok(decoded) => bytes(&decoded, "data, as bytes"),
        Err(_) => text(encoded, "data, as it came"),
    }
}

/// Bytes, as numbers and as far as they are letters.
pub(crate) fn bytes(bytes: &[u8], label: &str) -> Markup {
    let shown = &bytes[..bytes.len().min(OPEN_BYTES_MAX)];
    let mut lines = String::new();
    for (number, line) in shown.chunks(LINE_BYTES).enumerate() {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let letter = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let letters: String = line.iter().map(letter).collect();
        let (offset, width) = (number * LINE_BYTES, LINE_BYTES * 3);
        lines.push_str(&format!(
            "{offset:08x}  {:width$} {letters}\n",
            hex.join(" ")
        ));
    }
    html! {
        (text(&lines, label))
        @if shown.len() < bytes.len() {
            p.quiet { "The first " (crate::words::bytes(shown.len() as u64)) " of " (crate::words::bytes(bytes.len() as u64)) "." }
        }
    }
}

/// Characters that would change how the rest is read, such as those that turn the direction of writing, are shown as what they
/// are.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        let is_plain_space = matches!(character, '\n' | '\t' | '\r');
        (character.is_control() && !is_plain_space)
            || matches!(
                character,
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            )
    };
    if !text.contains(is_hidden) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) {
            true => shown.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
            false => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_strangers_is_text() {
        let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
        let shown = text(hostile, hostile).into_string();
        assert!(
            !shown.contains("<script") && !shown.contains("<img"),
            "{shown}"
        );
        let value = serde_json::json!({hostile: [hostile]});
        let shown = json(&value, "data").into_string();
        assert!(
            !shown.contains("<script") && !shown.contains("<img"),
            "{shown}"
        );
    }

    #[test]
    fn what_turns_writing_around_is_shown_as_what_it_is() {
        let shown = text("a\u{202e}b\u{0}c\nd", "data").into_string();
        assert!(shown.contains("a\\u{202e}b\\u{0}c\nd"), "{shown}");
    }

    #[test]
    fn what_is_long_is_folded_and_what_is_longer_is_cut() {
        let long = text(&"ü".repeat(3000), "data").into_string();
        assert!(
            !long.contains("<details class=\"content\" open"),
            "{}",
            &long[..80]
        );
        let longer = text(&"ü".repeat(SHOWN_BYTES_MAX), "data").into_string();
        assert!(longer.contains("The rest is left out") && longer.len() < SHOWN_BYTES_MAX + 1000);
    }

    #[test]
    fn numbers_of_an_event_are_shown_as_they_were_written() {
        let exact = r#"{"id":"1","data":{"a":9007199254740993,"b":10.10,"c":123456789012345678901234567890}}"#;
        let shown = event(&RawJson::read(exact).unwrap()).into_string();
        for number in [
            "9007199254740993",
            "10.10",
            "123456789012345678901234567890",
        ] {
            assert!(shown.contains(number), "{shown}");
        }
    }

    #[test]
    fn text_of_json_is_indented_and_says_the_same() {
        let exact = r#"{"n":12345678901234567890.10,"s":"a,{\"b\":\\","e":{},"l":[],"a":[1, 2]}"#;
        let told = indented(exact);
        assert!(told.contains("\"n\": 12345678901234567890.10,\n"), "{told}");
        assert!(told.contains(r#""s": "a,{\"b\":\\","#), "{told}");
        assert!(told.contains("\"e\": {},\n  \"l\": [],\n"), "{told}");
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&told), value(exact));
        let deep = "[".repeat(5000);
        assert!(indented(&deep).len() < 5000 * 70);
    }

    #[test]
    fn bytes_are_numbers_and_letters() {
        let shown = bytes(b"\x00\x01<b>ok", "data").into_string();
        assert!(
            shown.contains("00 01 3c 62 3e 6f 6b") && shown.contains("..&lt;b&gt;ok"),
            "{shown}"
        );
    }
}
