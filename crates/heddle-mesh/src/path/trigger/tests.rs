//! Filters decide as written, and say why not.

use heddle_api::attributes::Value;
use heddle_api::filter::FilterSource;
use heddle_api::trigger::TriggerSpec;
use serde_json::json;

use super::*;
use crate::event::{Builder, Event, Form};

fn event() -> Event {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [
        ("type", "order.created"),
        ("source", "shop"),
        ("id", "7"),
        ("empty", ""),
    ] {
        builder.push(name, Value::Text(value));
    }
    builder.push("count", Value::Integer(5));
    builder.push("urgent", Value::Boolean(true));
    builder.build(None)
}

fn predicate(spec: serde_json::Value) -> Result<Predicate, Invalid> {
    let mut with_subscriber = spec;
    with_subscriber["subscriber"] = json!({"uri": "http://x"});
    let spec: TriggerSpec = serde_json::from_value(with_subscriber).unwrap();
    Predicate::compile(&FilterSource::from(&spec))
}

/// What becomes of the event: `Ok` when it is wanted, otherwise why not.
fn check(spec: serde_json::Value, expected: Result<(), &str>) {
    let predicate = predicate(spec.clone()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let explained = predicate.explain(&event());
    assert_eq!(explained, expected.map_err(str::to_owned), "{spec}");
    assert_eq!(predicate.matches(&event()), expected.is_ok(), "{spec}");
}

fn filters(filters: serde_json::Value, expected: Result<(), &str>) {
    check(json!({"filters": filters}), expected);
}

#[test]
fn without_a_filter_everything_is_wanted() {
    check(json!({}), Ok(()));
    check(json!({"filter": {}}), Ok(()));
    check(json!({"filters": []}), Ok(()));
    assert!(Predicate::everything().matches(&event()));
}

#[test]
fn attributes_are_compared_by_value_and_an_empty_value_means_present() {
    let by = |attributes, expected| check(json!({"filter": {"attributes": attributes}}), expected);
    by(json!({"type": "order.created", "source": "shop"}), Ok(()));
    by(json!({"count": "5", "urgent": "true"}), Ok(()));
    by(json!({"type": "", "empty": ""}), Ok(()));
    by(
        json!({"type": "order.paid"}),
        Err("type is \"order.created\", filter wants \"order.paid\""),
    );
    by(
        json!({"subject": ""}),
        Err("the event has no subject, filter wants it to be there"),
    );
}

#[test]
fn filters_win_over_filter() {
    check(
        json!({"filter": {"attributes": {"type": "x"}}, "filters": [{"exact": {"source": "shop"}}]}),
        Ok(()),
    );
}

#[test]
fn every_filter_of_the_list_must_hold() {
    filters(
        json!([{"exact": {"type": "order.created"}}, {"prefix": {"source": "sh"}}]),
        Ok(()),
    );
    filters(
        json!([{"exact": {"type": "order.created"}}, {"prefix": {"source": "x"}}]),
        Err("source is \"shop\", filter wants a text that starts with \"x\""),
    );
}

#[test]
fn every_entry_of_a_map_must_hold() {
    filters(
        json!([{"suffix": {"type": ".created", "source": "op"}}]),
        Ok(()),
    );
    filters(
        json!([{"suffix": {"type": ".created", "source": "x"}}]),
        Err("source is \"shop\", filter wants a text that ends with \"x\""),
    );
    filters(
        json!([{"not": {"exact": {"type": "order.created", "source": "x"}}}]),
        Ok(()),
    );
}

#[test]
fn values_of_every_type_are_compared_as_text() {
    filters(json!([{"exact": {"count": "5", "urgent": "true"}}]), Ok(()));
    filters(
        json!([{"exact": {"count": "05"}}]),
        Err("count is \"5\", filter wants \"05\""),
    );
    filters(json!([{"exact": {"specversion": "1.0"}}]), Ok(()));
}

#[test]
fn a_missing_attribute_is_no_and_its_negation_yes() {
    filters(
        json!([{"exact": {"subject": "x"}}]),
        Err("the event has no subject, filter wants \"x\""),
    );
    for dialect in ["exact", "prefix", "suffix"] {
        filters(json!([{"not": {dialect: {"subject": "x"}}}]), Ok(()));
    }
    filters(json!([{"not": {"cesql": "subject = 'x'"}}]), Ok(()));
}

#[test]
fn combinations_say_what_decided() {
    filters(
        json!([{"any": [{"exact": {"type": "x"}}, {"exact": {"source": "shop"}}]}]),
        Ok(()),
    );
    filters(
        json!([{"any": [{"exact": {"type": "x"}}, {"exact": {"source": "y"}}]}]),
        Err(
            "none of 2 holds: type is \"order.created\", filter wants \"x\"; \
             source is \"shop\", filter wants \"y\"",
        ),
    );
    filters(
        json!([{"all": [{"exact": {"source": "shop"}}, {"exact": {"type": "x"}}]}]),
        Err("type is \"order.created\", filter wants \"x\""),
    );
    filters(
        json!([{"not": {"exact": {"source": "shop"}}}]),
        Err("source is \"shop\", filter wants any but \"shop\""),
    );
    filters(
        json!([{"not": {"any": [{"exact": {"type": "x"}}, {"prefix": {"source": "sh"}}]}}]),
        Err("source is \"shop\", filter wants none that starts with \"sh\""),
    );
    filters(
        json!([{"not": {"not": {"exact": {"type": "x"}}}}]),
        Err("type is \"order.created\", filter wants \"x\""),
    );
}

#[test]
fn expressions_say_what_went_wrong() {
    filters(
        json!([{"cesql": "type LIKE 'order.%' AND count > 3"}]),
        Ok(()),
    );
    filters(
        json!([{"cesql": "count > 5"}]),
        Err("cesql count > 5: is false"),
    );
    filters(
        json!([{"cesql": "subject = 'x'"}]),
        Err("cesql subject = 'x': the event has no attribute subject"),
    );
    filters(
        json!([{"not": {"cesql": "urgent"}}]),
        Err("cesql urgent: is true, filter wants it not to be"),
    );
}

#[test]
fn what_is_not_understood_is_an_error_and_not_a_wider_filter() {
    let refusal = |spec| predicate(spec).expect_err("invalid").to_string();
    assert_eq!(
        refusal(json!({"filters": [{"all": [{"regex": {"type": "x"}}]}, {"cesql": "1 + 1"}]})),
        "filters[0].all[0].regex: there is no such dialect; choose from exact, prefix, suffix, all, any, not and cesql; \
         filters[1].cesql: the expression gives an integer, and a filter needs a boolean"
    );
    assert_eq!(
        refusal(json!({"filter": {"attributes": {"Type": "x"}}})),
        "filter.attributes.Type: \"Type\" is not the name of an attribute: those are lowercase letters and digits"
    );
}

#[test]
fn the_strongest_demand_is_found_by_any_way_of_writing_it() {
    let demand = |spec: serde_json::Value, expected: &[Demand<'_>]| {
        let predicate = predicate(spec.clone()).unwrap();
        let clause = predicate.demand();
        let found = clause.as_ref().map_or(&[][..], |clause| clause.demands());
        assert_eq!(found, expected, "{spec}");
    };
    let paid = Demand::Exact("type", "paid");
    let sent = Demand::Exact("type", "sent");
    demand(
        json!({"filter": {"attributes": {"source": "a", "type": "paid"}}}),
        &[paid],
    );
    demand(
        json!({"filters": [{"prefix": {"type": "p"}}, {"all": [{"exact": {"source": "a"}}, {"exact": {"type": "paid"}}]}]}),
        &[paid],
    );
    demand(
        json!({"filters": [{"cesql": "EXISTS subject AND type = 'paid'"}]}),
        &[paid],
    );
    demand(
        json!({"filters": [{"any": [{"exact": {"type": "paid"}}, {"cesql": "type = 'sent'"}]}]}),
        &[paid, sent],
    );
    demand(
        json!({"filters": [{"any": [{"exact": {"type": "paid"}}, {"not": {"exact": {"type": "x"}}}]}]}),
        &[],
    );
    demand(json!({"filter": {"attributes": {"type": ""}}}), &[]);
    demand(
        json!({"filters": [{"not": {"exact": {"type": "paid"}}}]}),
        &[],
    );
    demand(json!({}), &[]);
}
