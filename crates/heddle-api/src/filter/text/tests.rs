//! Texts in, filters out, and back; and what is wrong with a text, at which character.

use serde_json::json;

use super::*;

fn filter(value: Value) -> Filter {
    Filter::deserialize(value).unwrap()
}

#[test]
fn a_line_is_a_filter() {
    let text = "  exact type = order.created \n\n# only those of Europe\nprefix subject = eu-\nsuffix source = /a=b\n\
                cesql amount > 100 AND EXISTS tier\n{\"not\": {\"exact\": {\"tier\": \"test\"}}}";
    let expected = [
        json!({"exact": {"type": "order.created"}}),
        json!({"prefix": {"subject": "eu-"}}),
        json!({"suffix": {"source": "/a=b"}}),
        json!({"cesql": "amount > 100 AND EXISTS tier"}),
        json!({"not": {"exact": {"tier": "test"}}}),
    ];
    assert_eq!(parse(text), Ok(expected.map(filter).to_vec()));
    assert_eq!(parse(" \n# nothing\n"), Ok(Vec::new()));
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    for (text, position, part) in [
        ("exact type", 10, "write the name"),
        ("exact type =  ", 12, "nothing to compare"),
        ("exact Type = a", 6, "not the name of an attribute"),
        ("exact data = a", 6, "not its data"),
        ("type = a", 0, "a line begins with"),
        ("# ü\n  like type = a", 6, "a line begins with"),
        ("exact type = ü\ncesql a = ", 24, ""),
        ("cesql subject LIKE 5", 19, ""),
        ("{\"exact\": {\"type\": 5}}", 0, ""),
        ("{\"exact\": ", 8, "EOF"),
        ("{\"sql\": \"TRUE\"}", 0, ""),
        (
            "{\"exact\": {\"type\": \"a\"}, \"sql\": \"TRUE\"}",
            0,
            "dialect",
        ),
        ("exact type = a\n{\"any\": []}", 15, ""),
    ] {
        let fault = parse(text).expect_err(text);
        assert_eq!(fault.position, position, "{text:?}: {fault}");
        assert!(fault.message.contains(part), "{text:?}: {fault}");
    }
}

#[test]
fn too_much_is_refused_as_admission_does() {
    let many = "exact type = a\n".repeat(FILTERS_MAX + 1);
    assert!(parse(&many).unwrap_err().message.contains("at most 256"));
    let dear = "cesql subject LIKE '%a%'\n".repeat(100);
    let fault = parse(&dear).unwrap_err();
    assert!(fault.message.contains("cost"), "{fault}");
}

/// Filters that cannot be written as a plain line stay what they are.
#[test]
fn what_is_printed_is_read_as_the_same() {
    for value in [
        json!({"exact": {"type": "order.created"}}),
        json!({"exact": {"type": " with blanks "}}),
        json!({"exact": {"type": "two\nlines"}}),
        json!({"exact": {"type": "a", "source": "b"}}),
        json!({"prefix": {"subject": "#1 = 2"}}),
        json!({"cesql": "amount > 100"}),
        json!({"cesql": "amount >\n 100"}),
        json!({"any": [{"exact": {"type": "a"}}, {"all": [{"cesql": "TRUE"}]}]}),
        json!({"not": {"suffix": {"type": "ü"}}}),
    ] {
        let filters = vec![filter(value.clone())];
        let text = print(&filters);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(parse(&text), Ok(filters), "{value}");
    }
}

/// A small generator of the test's own, so that the same texts are tried in each run.
struct Invention(u64);

impl Invention {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn text(&mut self, alphabet: &[&str], parts_max: usize) -> String {
        let parts = self.below(parts_max + 1);
        (0..parts)
            .map(|_| alphabet[self.below(alphabet.len())])
            .collect()
    }
}

const NASTY: &[&str] = &[
    "a",
    "order.created",
    " ",
    "\n",
    "\t",
    "=",
    "#",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "ü",
    "\u{0}",
    "\u{202e}",
    "🦀",
    "cesql ",
    "exact ",
    "%",
    "_",
    "AND",
    "\r",
];
const NAMES: &[&str] = &[
    "type", "source", "subject", "tier", "data", "a1", "Type", "x-y", "", "exists", "and", "true",
    "in",
];

/// Whatever is clicked, what comes of it is taken, wants the event that was the example, and nothing that was asked for
/// before is forgotten but another value of the same attribute.
#[test]
fn a_filter_by_example_is_never_refused() {
    let mut invention = Invention(17);
    let (mut taken, mut left) = (0, 0);
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..invention.below(5) {
            let name = NAMES[invention.below(NAMES.len())];
            let value = invention.text(NASTY, 4);
            let Some(next) = by_example(&text, name, &value) else {
                left += 1;
                continue;
            };
            let filters = parse(&next).unwrap_or_else(|fault| panic!("{next:?}: {fault}"));
            assert!(check(&filters).is_empty(), "{next:?}");
            let asks = |filter: &Filter| match value.is_empty() {
                true => filter.cesql.as_deref() == Some(&format!("EXISTS {name}")),
                false => filter.exact.get(name) == Some(&value),
            };
            assert!(filters.iter().any(asks), "{name} {value:?}: {next:?}");
            let before = parse(&text).unwrap();
            let kept = before
                .iter()
                .filter(|filter| !filter.exact.contains_key(name));
            assert!(
                kept.clone().all(|filter| filters.contains(filter)),
                "{text:?} {next:?}"
            );
            text = next;
            taken += 1;
        }
    }
    assert!(taken > 10_000 && left > 1000, "{taken} {left}");
    // What cannot be read is not thrown away for a click.
    assert_eq!(by_example("exact type", "type", "a"), None);
}

#[test]
fn the_older_form_is_a_filter_for_each_attribute() {
    let source = FilterSource::Attributes(
        [("tier", ""), ("type", "order.created")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    );
    assert_eq!(
        print(&source.filters()),
        "exact type = order.created\ncesql EXISTS tier"
    );
}
