//! What admission refuses, one line per fault.

use serde_json::json;

use super::*;
use crate::filter::FilterSource;
use crate::trigger::{TriggerFilter, TriggerSpec};

/// Checks one filter and compares `path: message` of everything that is said against it.
fn check_one(filter: Value, expected: &[&str]) {
    let filter_read: Filter = serde_json::from_value(filter.clone()).expect("the schema holds");
    let said: Vec<String> = check(&[filter_read])
        .into_iter()
        .map(|fault| format!("{}: {}", fault.path, fault.message))
        .collect();
    assert_eq!(said, expected, "{filter}");
}

#[test]
fn what_can_be_decided_is_accepted() {
    for filter in [
        json!({"exact": {"type": "a", "source": "b"}}),
        json!({"prefix": {"type": "a"}}),
        json!({"suffix": {"my2ext": "a"}}),
        json!({"cesql": "type = 'a' AND EXISTS subject"}),
        json!({"not": {"any": [{"exact": {"type": "a"}}, {"all": [{"cesql": "true"}]}]}}),
    ] {
        check_one(filter, &[]);
    }
}

#[test]
fn what_cannot_is_refused_with_its_place() {
    check_one(
        json!({}),
        &["[0]: a filter needs a dialect with something in it"],
    );
    check_one(
        json!({"exact": {}}),
        &["[0]: a filter needs a dialect with something in it"],
    );
    check_one(
        json!({"all": []}),
        &["[0]: a filter needs a dialect with something in it"],
    );
    check_one(
        json!({"exact": {"type": "a"}, "cesql": "true"}),
        &["[0]: a filter is written in one dialect; combine several with all or any"],
    );
    check_one(
        json!({"exact": {"type": ""}}),
        &["[0].exact.type: must not be empty"],
    );
    check_one(
        json!({"prefix": {"Type": "x"}}),
        &[
            "[0].prefix: \"Type\" is not the name of an attribute: those are lowercase letters and digits",
        ],
    );
    check_one(
        json!({"exact": {"data": "x"}}),
        &["[0].exact: filters see the attributes of an event, not its data"],
    );
    check_one(
        json!({"cesql": "type = "}),
        &["[0].cesql: expected a value, found the end, at byte 7"],
    );
    check_one(
        json!({"cesql": "1 + 1"}),
        &["[0].cesql: the expression gives an integer, and a filter needs a boolean"],
    );
}

#[test]
fn nested_filters_are_looked_into() {
    check_one(
        json!({"all": [
            {"exact": {"type": 5}},
            {"regex": {"type": "x"}},
            {"sql": "true"},
            {"any": []},
            {"not": "x"},
            {"cesql": "'true'"},
            {"suffix": {}},
            {},
            {"all": {}},
        ]}),
        &[
            "[0].all[0].exact.type: must be a string",
            "[0].all[1].regex: there is no such dialect; choose from exact, prefix, suffix, all, any, not and cesql",
            "[0].all[2].sql: this dialect is called cesql here",
            "[0].all[3].any: needs at least one filter",
            "[0].all[4].not: a filter is an object",
            "[0].all[5].cesql: the expression gives a string, and a filter needs a boolean",
            "[0].all[6].suffix: needs at least one attribute",
            "[0].all[7]: a filter needs a dialect with something in it",
            "[0].all[8].all: must be a list of filters",
        ],
    );
}

#[test]
fn filters_nest_sixteen_deep_and_no_deeper() {
    let nested = |times: usize| {
        (1..times).fold(
            json!({"exact": {"type": "x"}}),
            |inner, _| json!({"not": inner}),
        )
    };
    check_one(nested(NESTING_MAX), &[]);
    let place = format!("[0]{}: filters nest deeper than 16", ".not".repeat(16));
    check_one(nested(NESTING_MAX + 1), &[&place]);
}

#[test]
fn the_filters_of_a_trigger_win_over_its_filter() {
    let mut spec = TriggerSpec::default();
    assert_eq!(FilterSource::from(&spec), FilterSource::Everything);
    spec.filter = Some(TriggerFilter::default());
    assert_eq!(FilterSource::from(&spec), FilterSource::Everything);
    let attributes = BTreeMap::from([("Type".to_owned(), String::new())]);
    spec.filter = Some(TriggerFilter {
        attributes: attributes.clone(),
    });
    let source = FilterSource::from(&spec);
    assert_eq!(source, FilterSource::Attributes(attributes));
    assert_eq!(source.check()[0].path, "filter.attributes.Type");
    spec.filters = vec![Filter::default()];
    let source = FilterSource::from(&spec);
    assert_eq!(source, FilterSource::Filters(vec![Filter::default()]));
    assert_eq!(source.check()[0].path, "filters[0]");
}

#[test]
fn what_costs_every_event_too_much_is_refused_and_the_message_says_what_costs() {
    let searches = |times: usize| {
        let all: Vec<Value> = (0..times)
            .map(|_| json!({"cesql": "subject LIKE '%a_b%'"}))
            .collect();
        json!({"all": all})
    };
    check_one(searches(60), &[]);
    let expected = format!(": {}", too_much(61 * 34));
    check_one(searches(61), &[&expected]);
    assert!(expected.contains("no more than 2048"), "{expected}");

    let many: BTreeMap<String, &str> = (0..2049).map(|at| (format!("a{at}"), "x")).collect();
    check_one(json!({"exact": many}), &[&format!(": {}", too_much(2049))]);
    let attributes = many
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()));
    let source = FilterSource::Attributes(attributes.collect());
    assert_eq!(source.check()[0].path, "filter.attributes");
}

#[test]
fn an_expression_costs_what_it_may_have_to_read() {
    for (text, cost) in [
        ("TRUE", 0),
        ("type = 'a'", 2),
        ("'a' = type", 2),
        ("EXISTS subject", 1),
        ("type = 'a' AND source = 'b'", 5),
        ("subject LIKE 'a%z'", 2),
        ("subject LIKE 'a%%z'", 2),
        ("subject LIKE '%a%'", 34),
        ("subject LIKE 'a%_%z'", 34),
        ("NOT subject LIKE '%a%'", 35),
        ("type IN ('a', 'b')", 2),
        ("type IN ('a', subject)", 35),
        ("type = subject", 35),
        ("number > 5", 34),
        ("LENGTH(subject) > 5", 67),
        ("UPPER(LOWER(subject)) = 'A'", 68),
    ] {
        let expression = Expression::parse(text).unwrap();
        assert_eq!(expression.cost(), cost, "{text}");
    }
    let many = vec!["'aaaaaaaaaa'"; 1000].join(", ");
    let expression = Expression::parse(&format!("type IN ({many})")).unwrap();
    assert_eq!(expression.cost(), 64);
}
