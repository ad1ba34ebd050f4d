//! What strangers wrote: data, attributes, answers. It is text, whatever it looks like; what is long is folded, and what is no
//! text is shown as bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    let shown = match text.len() > SHOWN_BYTES_MAX {
        true => &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)],
        false => text,
    };
    html! {
        details.content open[text.len() <= OPEN_BYTES_MAX] {
            summary { (label) " " span.quiet { (crate::words::bytes(text.len() as u64)) } }
            pre tabindex="0" aria-label=(label) { (visible(shown)) }
            @if shown.len() < text.len() {
                p.notice { "The rest is left out: " (crate::words::bytes((text.len() - shown.len()) as u64)) "." }
            }
        }
    }
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
fn visible(text: &str) -> String {
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
    fn bytes_are_numbers_and_letters() {
        let shown = bytes(b"\x00\x01<b>ok", "data").into_string();
        assert!(
            shown.contains("00 01 3c 62 3e 6f 6b") && shown.contains("..&lt;b&gt;ok"),
            "{shown}"
        );
    }
}
