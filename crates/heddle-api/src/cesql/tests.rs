//! The language, one line per promise. The compatibility kit is run by `tests/cesql_tck.rs`.

use std::collections::BTreeMap;

use super::*;
use crate::attributes::Value as AttributeValue;
use crate::filter::demand::Demand;

/// An event with one attribute of each type.
struct Sample(BTreeMap<&'static str, (AttributeValue<'static>, &'static str)>);

impl Sample {
    fn new() -> Self {
        let text = |value| (AttributeValue::Text(value), value);
        Self(BTreeMap::from([
            ("type", text("order.created")),
            ("source", text("shop")),
            ("id", text("1")),
            ("subject", text("Zürich")),
            ("sequence", text("5")),
            ("empty", text("")),
            ("hop", (AttributeValue::Integer(5), "5")),
            ("urgent", (AttributeValue::Boolean(true), "true")),
        ]))
    }
}

impl Attributes for Sample {
    fn attribute(&self, name: &str) -> Option<AttributeValue<'_>> {
        Some(self.0.get(name)?.0)
    }

    fn text(&self, name: &str) -> Option<&str> {
        Some(self.0.get(name)?.1)
    }
}

/// Anything that is a value, so that tables stay readable.
trait Expected {
    fn value(self) -> Value;
}

impl Expected for &str {
    fn value(self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl Expected for i32 {
    fn value(self) -> Value {
        Value::Integer(self)
    }
}

impl Expected for bool {
    fn value(self) -> Value {
        Value::Boolean(self)
    }
}

fn evaluate(text: &str) -> Evaluation {
    Expression::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .evaluate(&Sample::new())
}

fn check(text: &str, expected: impl Expected) {
    let evaluation = evaluate(text);
    assert_eq!(evaluation.error, None, "{text}");
    assert_eq!(evaluation.value, expected.value(), "{text}");
}

fn check_failure(text: &str, expected: impl Expected, kind: ErrorKind) {
    let evaluation = evaluate(text);
    assert_eq!(
        evaluation.error.map(|error| error.kind),
        Some(kind),
        "{text}"
    );
    assert_eq!(evaluation.value, expected.value(), "{text}");
}

fn check_refused(text: &str, position: usize, message: &str) {
    let error = Expression::parse(text).expect_err(text);
    assert_eq!(
        (error.position, error.message.as_str()),
        (position, message),
        "{text}"
    );
}

#[test]
fn literals_are_what_they_say() {
    check("'it''s'", "it's");
    check(r"'it\'s'", "it's");
    check(r#""say \"so\"""#, r#"say "so""#);
    check(r"'back\slash'", r"back\slash");
    check("-2147483648", i32::MIN);
    check("+7", 7);
    check("FaLSe", false);
}

#[test]
fn precedence_is_that_of_the_grammar() {
    check("2 + 3 * 4", 14);
    check("10 - 3 - 2", 5);
    check("10-3", 7);
    check("- 3 + 5", 2);
    check("--3", 3);
    check("1 + 1 = 2", true);
    check("NOT false = true", true);
    check("false AND false OR true", false);
    check("(false AND false) OR true", true);
    check("true XOR true XOR true", true);
    check("true XOR true OR false", false);
}

#[test]
fn not_binds_tighter_than_like() {
    // (NOT 'false') LIKE 'true'
    check("NOT 'false' LIKE 'true'", true);
    check("'x' NOT LIKE 'y' AND 3 NOT IN (4)", true);
}

#[test]
fn the_right_operand_decides_how_two_are_compared() {
    check("sequence = 5", true);
    check("hop = '5'", true);
    check("'05' = hop", true);
    check("hop = '05'", false);
    check("urgent = 'true'", true);
    check("'TRUE' = urgent", true);
    check("urgent = 1", true);
    check("sequence < 10 AND hop >= sequence", true);
}

#[test]
fn the_left_operand_decides_how_members_are_compared() {
    check("hop IN ('05', 'x')", true);
    check("sequence IN ('05', 5)", true);
    check("sequence NOT IN ('05')", true);
    check_failure("hop IN ('x', 5)", false, ErrorKind::Cast);
    check("source IN (TYPE, 'shop', missing)", true);
}

#[test]
fn names_and_keywords_have_no_case() {
    check("exists SOURCE And Type Like 'order.%'", true);
    check("length(SOURCE)", 4);
}

#[test]
fn evaluation_stops_where_the_rest_can_change_nothing() {
    check("false AND 1 / 0 = 1", false);
    check("true OR missing = 'x'", true);
    check("true XOR (true OR missing)", false);
    check("EXISTS missing AND missing = 'x'", false);
}

#[test]
fn an_operator_with_a_failed_operand_gives_its_zero_value() {
    check_failure("true AND (1 != 1 / 0)", false, ErrorKind::Math);
    check_failure("missing != 'x'", false, ErrorKind::MissingAttribute);
    check_failure("missing NOT LIKE 'x'", false, ErrorKind::MissingAttribute);
    check_failure("missing NOT IN (1)", false, ErrorKind::MissingAttribute);
    check_failure("NOT (missing = 'x')", false, ErrorKind::MissingAttribute);
    check_failure("LENGTH(missing)", 0, ErrorKind::MissingAttribute);
    check_failure("CONCAT('a', missing)", "", ErrorKind::MissingAttribute);
    check_failure("missing / 0", 0, ErrorKind::MissingAttribute);
    check_failure("'x' + missing", 0, ErrorKind::MissingAttribute);
    check_failure("true XOR missing", false, ErrorKind::MissingAttribute);
}

#[test]
fn casts_that_cannot_be_fail() {
    check_failure("'abc' < 3", false, ErrorKind::Cast);
    check_failure("subject = 3", false, ErrorKind::Cast);
    check_failure("-'abc'", 0, ErrorKind::Cast);
    check_failure("NOT 10", true, ErrorKind::Cast);
    check_failure("LEFT('abc', 'x')", "", ErrorKind::Cast);
    check_failure("INT(' 1')", 0, ErrorKind::Cast);
    check_failure("INT('2147483648')", 0, ErrorKind::Cast);
    check("INT('+1') + INT(TRUE)", 2);
}

#[test]
fn integers_have_32_bits_and_say_so() {
    check_failure("2147483647 + 1", 0, ErrorKind::Math);
    check_failure("-2147483648 - 1", 0, ErrorKind::Math);
    check_failure("65536 * 65536", 0, ErrorKind::Math);
    check_failure("-2147483648 / -1", 0, ErrorKind::Math);
    check_failure("-(-2147483648)", 0, ErrorKind::Math);
    check("-2147483648 % -1", 0);
    check("-7 / 2", -3);
    check("-7 % 2", -1);
}

#[test]
fn functions_count_characters() {
    check("LENGTH(subject)", 6);
    check("LEFT(subject, 2)", "Zü");
    check("RIGHT(subject, 5)", "ürich");
    check("RIGHT(subject, 50)", "Zürich");
    check("SUBSTRING(subject, 2, 1)", "ü");
    check("SUBSTRING(subject, -5, 99)", "ürich");
    check("UPPER(LEFT(CONCAT(subject, '!'), 2))", "ZÜ");
    check("TRIM(CONCAT_WS(' ', '', source, ''))", "shop");
    check_failure("SUBSTRING('abc', 1, -1)", "", ErrorKind::FunctionEvaluation);
    check_failure("SUBSTRING('', 1)", "", ErrorKind::FunctionEvaluation);
    check_failure("LOWER()", false, ErrorKind::MissingFunction);
    check_failure("NOW() = 1", false, ErrorKind::MissingFunction);
}

#[test]
fn patterns_match_characters_and_texts() {
    check("subject LIKE 'Z_rich'", true);
    check("subject LIKE '______'", true);
    check("subject LIKE '%_______%'", false);
    check("type LIKE 'order.%'", true);
    check("type LIKE '%.created'", true);
    check("type LIKE '%er%ea%'", true);
    check("type LIKE '%ea%er%'", false);
    check("type LIKE '%r.c%'", true);
    check("type LIKE '%e__e_'", true);
    check("'aba' LIKE 'ab%ba'", false);
    check("'abba' LIKE 'ab%ba'", true);
    check("'abab' LIKE '%_b'", true);
    check("empty LIKE ''", true);
    check("empty LIKE '%'", true);
    check("empty LIKE '_%'", false);
    check(r"'50%' LIKE '%\%'", true);
    check(r"'50x' LIKE '%\%'", false);
    check(r"'a\b' LIKE 'a\_'", false);
    check(r"'a\b' LIKE 'a\b'", true);
}

#[test]
fn a_pattern_made_to_hurt_is_decided_all_the_same() {
    let text = "a".repeat(8 * 1024);
    let pattern = "%a_".repeat(300);
    check(&format!("'{text}' LIKE '{pattern}b'"), false);
    check(&format!("'{text}' LIKE '{pattern}'"), true);
}

#[test]
fn what_is_no_expression_is_refused_where_it_stops_being_one() {
    check_refused("", 0, "expected a value, found the end");
    check_refused("ABC(", 4, "expected a value, found the end");
    check_refused("type = ", 7, "expected a value, found the end");
    check_refused("type == 'x'", 6, "expected a value, found =");
    check_refused(
        "type 'x'",
        5,
        "expected an operator or the end, found a text",
    );
    check_refused("x LIKE 123", 7, "expected a pattern in quotes, found 123");
    check_refused("x LIKE y", 7, "expected a pattern in quotes, found y");
    check_refused("x IN ()", 6, "expected a value, found )");
    check_refused(
        "EXISTS 'x'",
        7,
        "expected the name of an attribute, found a text",
    );
    check_refused(
        "my_attribute = 1",
        0,
        "expected the name of an attribute, found my_attribute",
    );
    check_refused("f2(1)", 0, "expected the name of a function, found f2");
    check_refused("a & b", 2, "'&' has no meaning here");
    check_refused("'open", 0, "the text that starts with ' does not end");
    check_refused("1 + 2147483648", 4, "2147483648 does not fit into 32 bits");
    check_refused("(true", 5, "expected ), found the end");
    check_refused("true)", 4, "expected an operator or the end, found )");
}

#[test]
fn an_expression_is_bounded_in_length_depth_and_size() {
    let refusal = |text: &str| Expression::parse(text).expect_err("too much").message;
    assert_eq!(
        refusal(&format!("'{}'", "x".repeat(TEXT_BYTES_MAX))),
        "the expression is longer than 16384 bytes"
    );
    for deep in [
        format!("{}true{}", "(".repeat(1000), ")".repeat(1000)),
        format!("{}true", "NOT ".repeat(1000)),
        format!("{}1", "- ".repeat(1000)),
        format!("{}1{}", "ABS(".repeat(1000), ")".repeat(1000)),
        format!("1{}", " + 1".repeat(1000)),
        format!("1{}", " IN (1)".repeat(1000)),
    ] {
        assert_eq!(refusal(&deep), "the expression is nested deeper than 64");
    }
    assert_eq!(
        refusal(&format!("1 IN (1{})", ",1".repeat(NODES_MAX))),
        "the expression has more than 4096 parts"
    );
    assert_eq!(
        refusal(&format!(
            "type LIKE '{}'",
            "x".repeat(PATTERN_BYTES_MAX + 1)
        )),
        "the pattern is longer than 1024 bytes"
    );
    // A long chain is flat.
    check(&format!("false{}", " OR type = 'x'".repeat(1000)), false);
}

#[test]
fn a_text_cannot_be_built_without_end() {
    let text = format!(
        "CONCAT({})",
        vec![format!("'{}'", "x".repeat(800)); 20].join(",")
    );
    check(&format!("LENGTH({text})"), 16_000);
    let huge = HugeAttribute("x".repeat(BUILT_BYTES_MAX));
    let evaluation = Expression::parse("CONCAT(big, big)")
        .unwrap()
        .evaluate(&huge);
    assert_eq!(
        evaluation.error.map(|error| error.kind),
        Some(ErrorKind::FunctionEvaluation)
    );
}

struct HugeAttribute(String);

impl Attributes for HugeAttribute {
    fn attribute(&self, _: &str) -> Option<AttributeValue<'_>> {
        Some(AttributeValue::Text(&self.0))
    }

    fn text(&self, _: &str) -> Option<&str> {
        Some(&self.0)
    }
}

#[test]
fn what_can_never_decide_is_no_filter() {
    let verdict = |text: &str| {
        Expression::parse(text)
            .unwrap()
            .check_filter()
            .map_err(|error| error.to_string())
    };
    for filter in [
        "true",
        "urgent",
        "NOT hop",
        "type = 'x'",
        "BOOL('x')",
        "EXISTS hop",
        "1 IN (1)",
    ] {
        assert_eq!(verdict(filter), Ok(()), "{filter}");
    }
    for (text, gives) in [
        ("1 + 1", "an integer"),
        ("'true'", "a string"),
        ("-urgent", "an integer"),
        ("type", "a string"),
        ("LENGTH(type)", "an integer"),
        ("STRING(true)", "a string"),
    ] {
        let message = format!("the expression gives {gives}, and a filter needs a boolean");
        assert_eq!(verdict(text), Err(message), "{text}");
    }
    assert_eq!(
        verdict("type = 'x' OR 1 IN (2, NOW(type))"),
        Err("there is no function NOW that takes 1 argument".to_owned())
    );
}

#[test]
fn a_filter_that_fails_lets_nothing_pass_and_says_why() {
    let matches = |text: &str| Expression::parse(text).unwrap().matches(&Sample::new());
    assert_eq!(matches("type = 'order.created'"), Ok(true));
    assert_eq!(matches("type = 'order.paid'"), Ok(false));
    assert_eq!(
        matches("NOT (missing = 'x')"),
        Err("the event has no attribute missing".to_owned())
    );
    assert_eq!(matches("NOT hop"), Err("5 is not a boolean".to_owned()));
    assert_eq!(
        matches("subject < 3"),
        Err("\"Zürich\" is not an integer".to_owned())
    );
    assert_eq!(
        matches("hop"),
        Err("gives an integer, not a boolean".to_owned())
    );
    for text in [
        "urgent",
        "NOT hop",
        "missing = 'x'",
        "hop",
        "type LIKE 'order%'",
    ] {
        let expression = Expression::parse(text).unwrap();
        let sample = Sample::new();
        assert_eq!(
            expression.passes(&sample),
            expression.matches(&sample) == Ok(true),
            "{text}"
        );
    }
}

#[test]
fn demands_are_necessary() {
    let demand = |text: &str, expected: Option<&[Demand<'_>]>| {
        let expression = Expression::parse(text).unwrap();
        let clause = expression.demand();
        assert_eq!(
            clause.as_ref().map(|clause| clause.demands()),
            expected,
            "{text}"
        );
    };
    let paid = Demand::Exact("type", "paid");
    let sent = Demand::Exact("type", "sent");
    demand("type = 'paid'", Some(&[paid]));
    demand("hop = '5'", Some(&[Demand::Exact("hop", "5")]));
    demand("type LIKE 'paid'", Some(&[paid]));
    demand("type LIKE 'paid%'", Some(&[Demand::Prefix("type", "paid")]));
    demand("type LIKE '%paid'", Some(&[Demand::Suffix("type", "paid")]));
    demand("type LIKE 'p%d'", Some(&[Demand::Prefix("type", "p")]));
    demand("type IN ('paid', 'sent')", Some(&[paid, sent]));
    demand("type = 'paid' OR type = 'sent'", Some(&[paid, sent]));
    demand(
        "source LIKE 'a%' AND hop > 3 AND type = 'paid'",
        Some(&[paid]),
    );
    demand(
        "hop > 3 AND (type = 'paid' OR type = 'sent')",
        Some(&[paid, sent]),
    );
    // Read to the right: source = 'a' AND (type = 'paid' OR hop > 3).
    demand(
        "source = 'a' AND type = 'paid' OR hop > 3",
        Some(&[Demand::Exact("source", "a")]),
    );
    for nothing in [
        "type != 'paid'",
        "NOT type = 'paid'",
        "'paid' = type",
        "type NOT LIKE 'paid'",
        "type NOT IN ('paid')",
        "type LIKE '%paid%'",
        "type LIKE '_paid'",
        "type = 'paid' OR hop > 3",
        "type = 'paid' XOR source = 'a'",
        "hop IN ('5')",
        "type IN ('paid', source)",
        "type = source",
        "LOWER(type) = 'paid'",
    ] {
        demand(nothing, None);
    }
}
