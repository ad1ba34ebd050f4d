//! What dead letters have in common: which kind of failure it was, and its text without what differs from event to event.
//!
//! Pure, and part of what a group is found by: a change here gives groups other keys.

use heddle_api::dead_letters::FailureClass;

use super::Dead;
use crate::path::delivery::courier::NO_ANSWER_WITHIN;

/// Longer texts are cut.
const BYTES_MAX: usize = 120;
/// From this length on, letters and digits in one word are an id.
const MIXED_ID_CHARS_MIN: usize = 12;
/// From this length on, hexadecimal digits are an id, also if there is no decimal one among them.
const HEX_ID_CHARS_MIN: usize = 16;
/// The same if there is one.
const HEX_WITH_DIGIT_CHARS_MIN: usize = 6;
/// The lengths of the parts of a UUID.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// Which kind of failure it was.
pub(crate) fn class(status: u16, given_up: bool, reason: &str) -> FailureClass {
    if status > 0 {
        FailureClass::Answer
    } else if given_up {
        FailureClass::Policy
    } else if reason.starts_with(NO_ANSWER_WITHIN) {
        FailureClass::Timeout
    } else {
        FailureClass::NoAnswer
    }
}

/// What the subscriber said, or the reason if it said nothing, or if it is the reply that rests.
pub(crate) fn of(dead: &Dead) -> String {
    let said = match &dead.reply {
        None => normalise(&String::from_utf8_lossy(&dead.answer)),
        Some(_) => String::new(),
    };
    match said.is_empty() {
        true => normalise(&dead.reason),
        false => said,
    }
}

/// A text with `#` in the place of numbers and ids, one blank in the place of many, and not too long.
pub(crate) fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(BYTES_MAX + 4));
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        // More would be cut off again.
        if out.len() > 2 * BYTES_MAX {
            break;
        }
        if is_word(first) {
            let end = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            put_word(&mut out, word);
            rest = behind;
        } else {
            let blank = first.is_whitespace() || first.is_control();
            match (blank, out.ends_with(' ') || out.is_empty()) {
                (true, true) => {}
                (true, false) => out.push(' '),
                (false, _) => out.push(first),
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    let out = without_fractions(&out);
    let end = out.floor_char_boundary(BYTES_MAX);
    out[..end].trim_end().to_owned()
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '-' || char == '_'
}

fn put_word(out: &mut String, word: &str) {
    if is_uuid(word) {
        return out.push('#');
    }
    for part in word.split_inclusive(['-', '_']) {
        let (part, joint) = match part.char_indices().next_back() {
            Some((at, joint @ ('-' | '_'))) => (&part[..at], Some(joint)),
            _ => (part, None),
        };
        put_part(out, part);
        out.extend(joint);
    }
}

fn put_part(out: &mut String, part: &str) {
    let chars = part.chars().count();
    let has_digit = part.contains(char::is_numeric);
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id = (is_hex && chars >= HEX_ID_CHARS_MIN)
        || (has_digit && is_hex && chars >= HEX_WITH_DIGIT_CHARS_MIN)
        || (has_digit && chars >= MIXED_ID_CHARS_MIN);
    if is_id {
        return out.push('#');
    }
    for char in part.chars() {
        match char.is_numeric() {
            true if out.ends_with('#') => {}
            true => out.push('#'),
            false => out.push(char),
        }
    }
}

fn is_uuid(word: &str) -> bool {
    let parts = word.split('-');
    let is_hex = word
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_hex && parts.map(str::len).eq(UUID_PARTS)
}

/// `#.#` is one number, and so is `#,#`.
fn without_fractions(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('#') {
        let (before, behind) = rest.split_at(at + 1);
        out.push_str(before);
        rest = behind;
        while let Some(behind) = rest.strip_prefix(".#").or_else(|| rest.strip_prefix(",#")) {
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_and_ids_are_taken_out() {
        for (text, expected) in [
            ("pool exhausted after 812 ms", "pool exhausted after # ms"),
            ("pool exhausted after 12.5ms", "pool exhausted after #ms"),
            ("unknown field total", "unknown field total"),
            ("order ord-77121 is not known", "order ord-# is not known"),
            (
                "no user 3fa85f64-5717-4562-b3fc-2c963f66afa6!",
                "no user #!",
            ),
            ("no user abcdefab-abcd-abcd-abcd-abcdefabcdef", "no user #"),
            (
                "trace 4bf92f3577b34da6a3ce929d0e0e4736 failed",
                "trace # failed",
            ),
            ("  two\n\tlines\r\n", "two lines"),
            ("session V1StGXR8Z5jdHi6 ended", "session # ended"),
            ("1,204,551 waiting", "# waiting"),
            ("HTTP2 and utf8", "HTTP# and utf#"),
            ("the façade is défaced", "the façade is défaced"),
            ("", ""),
        ] {
            assert_eq!(normalise(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_class_is_that_of_the_last_attempt() {
        let late = format!("{NO_ANSWER_WITHIN} 30s");
        for (status, given_up, reason, expected) in [
            (503, false, "", FailureClass::Answer),
            (0, true, "", FailureClass::Policy),
            (0, false, late.as_str(), FailureClass::Timeout),
            (0, false, "connection refused", FailureClass::NoAnswer),
        ] {
            assert_eq!(class(status, given_up, reason), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_normal_stays_and_is_short_and_has_no_digits(text in "\\PC{0,300}") {
            let once = normalise(&text);
            prop_assert!(once.len() <= BYTES_MAX);
            prop_assert!(!once.contains(|char: char| char.is_ascii_digit()));
            prop_assert_eq!(normalise(&once), once);
        }

        #[test]
        fn the_same_text_with_other_numbers_is_the_same(
            words in proptest::collection::vec("[a-z]{0,8}", 1..6),
            one in proptest::collection::vec(0_u64..1_000_000, 6),
            other in proptest::collection::vec(0_u64..1_000_000, 6),
        ) {
            let said = |numbers: &[u64]| {
                let parts = words.iter().zip(numbers);
                parts.map(|(word, number)| format!("{word} {number} ")).collect::<String>()
            };
            prop_assert_eq!(normalise(&said(&one)), normalise(&said(&other)));
        }
    }
}
