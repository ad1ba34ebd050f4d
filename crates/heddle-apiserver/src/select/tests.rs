use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

const LABELS: &[(&str, &str)] = &[
    ("app", "web"),
    ("tier", "front"),
    ("example.com/size", "12"),
    ("empty", ""),
    ("in", "x"),
];

fn label(key: &str) -> Option<&'static str> {
    LABELS
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| *value)
}

fn check(selector: &str, expected: bool) {
    let parsed =
        LabelSelector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
    assert_eq!(parsed.matches(label), expected, "{selector}");
}

fn check_refused(selector: &str, text: &str) {
    let error = LabelSelector::parse(selector).expect_err(selector);
    assert!(error.0.starts_with(text), "{selector}: {error}");
}

#[test]
fn label_requirements_are_all_met_or_the_object_is_left_out() {
    for (selector, expected) in [
        ("", true),
        ("   ", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web", true),
        ("app=api", false),
        ("app!=api", true),
        ("app!=web", false),
        ("missing!=web", true),
        ("missing=web", false),
        ("app in (web, api)", true),
        ("app in (api)", false),
        ("app notin (api)", true),
        ("app notin (web)", false),
        ("missing notin (web)", true),
        ("app", true),
        ("missing", false),
        ("!missing", true),
        ("!app", false),
        ("empty=", true),
        ("empty=,app=web", true),
        ("empty in ()", true),
        ("empty in (,)", true),
        ("app in (,web)", true),
        ("empty in (a,,b)", true),
        ("app=web,tier=front", true),
        ("app=web,tier=back", false),
        ("app=web,!missing,tier in (front,back)", true),
        ("example.com/size>11", true),
        ("example.com/size>12", false),
        ("example.com/size<13", true),
        ("app<13", false),
        ("missing>1", false),
        ("in=x", true),
        ("in in (in,x)", true),
        ("in", true),
    ] {
        check(selector, expected);
    }
}

#[test]
fn a_bad_label_selector_is_refused_in_the_servers_words() {
    for (selector, text) in [
        (
            ",",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        ("app=web,", "found '', expected: identifier after ','"),
        ("app=web,,", "found ',', expected: identifier after ','"),
        (
            "app=web tier",
            "found 'tier', expected: ',' or 'end of string'",
        ),
        (
            "app in web",
            "unable to parse requirement: found 'web' expected: '('",
        ),
        (
            "app in (web",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "app in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        ),
        (
            "app is web",
            "unable to parse requirement: found 'is', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "app=(",
            "unable to parse requirement: found '(', expected: identifier",
        ),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "a$b=c",
            "unable to parse requirement: <nil>: Invalid value: \"a$b\": name part must consist of alphanumeric",
        ),
        (
            "/b=c",
            "unable to parse requirement: <nil>: Invalid value: \"/b\": prefix part must be non-empty",
        ),
        (
            "A/b=c",
            "unable to parse requirement: <nil>: Invalid value: \"A/b\": prefix part a lowercase RFC 1123 subdomain",
        ),
        (
            "a/b/c=d",
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must consist of",
        ),
        (
            "a=b$",
            "unable to parse requirement: values[0][a]: Invalid value: \"b$\": a valid label must be an empty string",
        ),
        (
            "a in (b$,c$)",
            "unable to parse requirement: [values[0][a]: Invalid value: \"b$\": a valid",
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an",
        ),
    ] {
        check_refused(selector, text);
    }
    let long = format!("a={}", "x".repeat(64));
    check_refused(
        &long,
        &format!(
            "unable to parse requirement: values[0][a]: Invalid value: {:?}: must be no more than 63",
            "x".repeat(64)
        ),
    );
}

#[test]
fn field_terms_compare_an_absent_field_as_empty() {
    let lookup = |path: &str| match path {
        "metadata.name" => Some(Cow::Borrowed("a,b=c\\d")),
        "spec.size" => Some(Cow::Owned(3.to_string())),
        _ => None,
    };
    for (selector, expected) in [
        ("", true),
        (",", true),
        ("spec.size=3", true),
        ("spec.size==3", true),
        ("spec.size!=3", false),
        ("spec.size!=4", true),
        ("spec.size=3,spec.size=4", false),
        ("missing=", true),
        ("missing!=", false),
        (r"metadata.name=a\,b\=c\\d", true),
    ] {
        let parsed =
            FieldSelector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(parsed.matches(lookup), expected, "{selector}");
    }
    let parsed = FieldSelector::parse("a!=b,metadata.name=x").unwrap();
    assert_eq!(parsed.terms().len(), 2);
}

#[test]
fn a_bad_field_selector_is_refused_in_the_servers_words() {
    for (selector, text) in [
        ("name", "invalid selector: 'name'; can't understand 'name'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        (
            r"a=\b",
            r"invalid field selector: invalid escape sequence: \b",
        ),
        (
            r"a=b\",
            r"invalid field selector: invalid escape sequence: \",
        ),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
    ] {
        assert_eq!(
            FieldSelector::parse(selector),
            Err(Invalid(text.to_owned()))
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,80}", symbols in "[ab=!(),<> \\\\]{0,40}") {
        for input in [text, symbols] {
            drop(LabelSelector::parse(&input).map(|selector| selector.matches(label)));
            drop(FieldSelector::parse(&input).map(|selector| selector.matches(|_| None)));
        }
    }

    #[test]
    fn an_escaped_field_value_is_read_back(value in ".{0,30}") {
        let escaped = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        let parsed = FieldSelector::parse(&format!("x={escaped}")).unwrap();
        prop_assert_eq!(&parsed.terms()[0].value, &value);
    }

    #[test]
    fn set_membership_agrees_with_a_plain_search(values in prop::collection::btree_set("[a-d]", 1..4), label in "[a-e]") {
        let list = values.iter().cloned().collect::<Vec<_>>().join(",");
        let lookup = |_: &str| Some(label.as_str());
        let held = values.contains(&label);
        prop_assert_eq!(LabelSelector::parse(&format!("k in ({list})")).unwrap().matches(lookup), held);
        prop_assert_eq!(LabelSelector::parse(&format!("k notin ({list})")).unwrap().matches(lookup), !held);
    }
}
