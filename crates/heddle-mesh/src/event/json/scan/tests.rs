//! The scanner takes exactly the texts of RFC 8259. A parser that many rely on is asked for its opinion.

use proptest::prelude::*;

use super::*;

const GOOD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "1.5",
    "1.50e+10",
    "1E-2",
    "1e999",
    "123456789012345678901234567890",
    "\"\"",
    "\"a\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
    "\"\\ud83d\\ude00\"",
    "\"\\uD800\\uDEAD\"",
    "\"\\u0000\"",
    "\"é€😀\"",
    "\"\u{7f}\"",
    "\"\u{2028}\"",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[ 1 , 2 ]",
    "[[],[[]],{}]",
    "[{},[1]]",
    "{\"a\":[1],\"b\":{\"c\":[]}}",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"a\":1,\"a\":2}",
    "{\"\":{}}",
    "{ \"a\" : [ { } , null ] , \"b\" : \"c\" }",
    " \t\r\n1 \t\r\n",
    "[\"\",[],{}]",
];

const BAD: &[&str] = &[
    "",
    " ",
    "nul",
    "nulll",
    "True",
    "undefined",
    "NaN",
    "Infinity",
    "+1",
    "01",
    "-",
    "-a",
    "1.",
    ".5",
    "1.e5",
    "1e",
    "1e+",
    "0x1",
    "00",
    "-01",
    "1 2",
    "'a'",
    "\"",
    "\"a",
    "\"\\\"",
    "\"\\a\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\u+123\"",
    "\"\n\"",
    "\"\t\"",
    "\"\u{0}\"",
    "\"\u{1f}\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\ud800\\ud800\"",
    "\"\\ud800\\n\"",
    "\"\\ud800u\"",
    "\"\\ude00\\ud83d\"",
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[,]",
    "[1 2]",
    "[1}",
    "{",
    "}",
    "{]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{\"a\" 1}",
    "{a:1}",
    "{1:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1]",
    "[]]",
    "{}}",
    "[[]",
    "// c\n1",
    "/**/1",
    "\u{feff}1",
    "\u{a0}1",
    "1\u{c}",
    "[1,,2]",
    "{\"a\":1,,\"b\":2}",
    "{\"a\"::1}",
    "truefalse",
    "[true false]",
    "\"a\"\"b\"",
];

#[test]
fn exactly_the_texts_of_json_are_taken() {
    for text in GOOD {
        assert!(is_value(text, 8), "{text:?} is refused");
    }
    for text in BAD {
        assert!(!is_value(text, 8), "{text:?} is taken");
    }
}

#[test]
fn a_value_may_be_nested_as_deep_as_the_limit_and_no_deeper() {
    for limit in [1, 2, 63, 64, 65, 128, 255, 256] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = |depth: usize| {
                let innermost = if open == "[" { "" } else { "1" };
                open.repeat(depth) + innermost + &close.repeat(depth)
            };
            assert!(is_value(&text(limit), limit), "{limit} {open}");
            let deeper = text(limit + 1);
            let fault = Scanner::new(&deeper, limit).value().unwrap_err();
            assert_eq!(
                fault,
                Fault::TooDeep {
                    at: limit * open.len()
                }
            );
        }
    }
    // More than there are bits for is not read, whatever the limit.
    assert!(!is_value(&("[".repeat(257) + &"]".repeat(257)), usize::MAX));
}

#[test]
fn nesting_remembers_which_of_the_two_is_open() {
    let pairs = "[{\"a\":".repeat(100);
    assert!(is_value(&(pairs.clone() + "1" + &"}]".repeat(100)), 256));
    assert!(!is_value(&(pairs.clone() + "1" + &"]}".repeat(100)), 256));
    assert!(!is_value(&(pairs + "1" + &"}]".repeat(99) + "]}"), 256));
}

#[test]
fn faults_say_where() {
    for (text, at) in [
        ("[1,]", 3),
        ("  x", 2),
        ("\"ab\u{1}\"", 3),
        ("{\"a\" 1}", 5),
        ("1 2", 2),
        ("[1}", 2),
    ] {
        let mut scanner = Scanner::new(text, 8);
        let fault = scanner.value().and_then(|_| scanner.end()).unwrap_err();
        assert!(
            matches!(fault, Fault::Unexpected { at: found, .. } if found == at),
            "{text} {fault:?}"
        );
    }
}

#[test]
fn hostile_texts_are_gone_over_once() {
    // Each of these takes hours when something behind every byte is looked at again.
    let bytes = 4 * 1024 * 1024;
    for text in [
        "[".repeat(bytes),
        "\"".to_owned() + &"\\\\".repeat(bytes / 2),
        "\"".to_owned() + &"\\ud83d\\ude00".repeat(bytes / 12) + "\\ud83d",
        "[".to_owned() + &"{},".repeat(bytes / 3),
        " ".repeat(bytes),
        "1".repeat(bytes) + "x",
    ] {
        assert!(!is_value(&text, 64));
    }
    assert!(is_value(&"9".repeat(bytes), 64));
}

/// What serde_json says, for texts that are no deeper than both can read. It has no room for some numbers.
fn opinion(text: &str) -> Option<bool> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().contains("number out of range") => None,
        Err(error) if error.to_string().contains("recursion limit") => None,
        Err(_) => Some(false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn another_parser_is_of_the_same_opinion(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "\\ude00", "a", "1", "0", "-", ".", "e", "+", "null", "true",
            " ", "\n", "\"a\"", "\"a\":", "{}", "[]", "€", "\u{1}", "12.5", "{\"a\":", "[1,",
        ]), 0..12),
    ) {
        let text = parts.concat();
        if let Some(expected) = opinion(&text) {
            prop_assert_eq!(is_value(&text, 64), expected, "{}", text);
        }
    }

    #[test]
    fn a_small_change_to_good_text_does_not_part_the_parsers(
        text in proptest::sample::select(GOOD),
        at in any::<proptest::sample::Index>(),
        with in proptest::option::of("[ -~]"),
    ) {
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let changed: String = chars[..at].iter().copied()
            .chain(with.unwrap_or_default().chars())
            .chain(chars[at + 1..].iter().copied())
            .collect();
        if let Some(expected) = opinion(&changed) {
            prop_assert_eq!(is_value(&changed, 64), expected, "{}", changed);
        }
    }

    #[test]
    fn text_is_unescaped_as_another_parser_does(
        parts in proptest::collection::vec(prop_oneof![
            proptest::sample::select(vec!["\\n", "\\\"", "\\\\", "\\/", "\\u20ac", "\\u0000", "\\ud83d\\ude00", "\\b", "\\f", "\\r", "\\t"])
                .prop_map(str::to_owned),
            "[a-z€ ]{0,4}",
        ], 0..8),
    ) {
        let text = format!("\"{}\"", parts.concat());
        let mut scanner = Scanner::new(&text, 1);
        let found = scanner.value().unwrap();
        let expected: String = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(scanner.text(&found), expected);
        prop_assert_eq!(scanner.raw(&found), text.as_str());
    }
}
