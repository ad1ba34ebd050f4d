//! The index finds exactly those who want an event, and does not ask the others.

use std::cell::Cell;

use heddle_api::attributes::{self, Attributes};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Table, World, compile};
use crate::event::{Builder, Event, Form};

/// An event with these attributes; those that every event has are added.
pub(super) fn event(given: &[(&str, &str)]) -> Event {
    let mut builder = Builder::new(Form::Binary);
    for required in ["type", "source", "id"] {
        if given.iter().all(|(name, _)| *name != required) {
            builder.push(required, attributes::Value::Text("any"));
        }
    }
    for (name, value) in given {
        builder.push(name, attributes::Value::Text(value));
    }
    builder.build(None)
}

/// Who wants it, by asking everyone whom an event from this entry reaches.
fn by_asking_everyone(table: &Table, entry: &str, event: &dyn Attributes) -> Vec<u32> {
    let wants = |consumer: &super::ConsumerSpec| {
        consumer.feeds.iter().any(|feed| &*feed.entry == entry) && consumer.predicate.matches(event)
    };
    (0..)
        .zip(table.consumers())
        .filter(|(_, consumer)| wants(consumer))
        .map(|(number, _)| number)
        .collect()
}

/// Few letters, so that texts are often equal and often start or end with one another.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ab]{1,4}|ü[ab]?").expect("the pattern is valid")
}

fn attribute() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["type", "source", "subject", "ext", "num"])
}

fn map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(attribute(), text(), 1..3).prop_map(|map| json!(map))
}

/// A condition in CloudEvents SQL, of every shape that an index can and cannot use.
fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (attribute(), text()).prop_map(|(name, text)| format!("{name} = '{text}'")),
        (attribute(), text()).prop_map(|(name, text)| format!("'{text}' = {name}")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} != '{text}'")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} LIKE '{text}'")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} LIKE '{text}%'")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} LIKE '%{text}'")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} LIKE '{text}_%{text}'")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} NOT LIKE '{text}%'")),
        (attribute(), text(), text()).prop_map(|(name, a, b)| format!("{name} IN ('{a}', '{b}')")),
        (attribute(), text()).prop_map(|(name, text)| format!("{name} NOT IN ('{text}')")),
        attribute().prop_map(|name| format!("EXISTS {name}")),
        Just("num = 5".to_owned()),
        Just("num IN ('05', 'a')".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let operator = prop::sample::select(vec!["AND", "OR", "XOR"]);
        prop_oneof![
            (inner.clone(), operator.clone(), inner.clone())
                .prop_map(|(a, operator, b)| format!("({a}) {operator} ({b})")),
            // Without brackets, so that the chain is of three.
            (
                inner.clone(),
                operator.clone(),
                inner.clone(),
                operator,
                inner.clone()
            )
                .prop_map(|(a, first, b, second, c)| format!("({a}) {first} ({b}) {second} ({c})")),
            inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
}

fn filter() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        map().prop_map(|map| json!({"exact": map})),
        map().prop_map(|map| json!({"prefix": map})),
        map().prop_map(|map| json!({"suffix": map})),
        condition().prop_map(|text| json!({"cesql": text})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"all": all})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|any| json!({"any": any})),
            inner.prop_map(|not| json!({"not": not})),
        ]
    })
}

/// The spec of a trigger, in either way of writing filters, at one of three brokers.
fn trigger() -> impl Strategy<Value = Value> {
    let filters = prop_oneof![
        1 => Just(json!({})),
        2 => prop::collection::btree_map(attribute(), prop_oneof![Just(String::new()), text()], 1..3)
            .prop_map(|map| json!({"filter": {"attributes": map}})),
        6 => prop::collection::vec(filter(), 1..3).prop_map(|filters| json!({"filters": filters})),
    ];
    (filters, 0..3).prop_map(|(mut spec, broker)| {
        spec["broker"] = json!(format!("b{broker}"));
        spec
    })
}

/// Attributes as events have them, `num` as a number now and then.
fn random_event() -> impl Strategy<Value = Event> {
    let optional = || prop::option::weighted(0.7, text());
    let number = prop::option::of(prop::sample::select(vec![5, 7]));
    (text(), text(), optional(), optional(), number, optional()).prop_map(
        |(type_, source, subject, ext, number, num)| {
            let mut builder = Builder::new(Form::Binary);
            builder.push("type", attributes::Value::Text(&type_));
            builder.push("source", attributes::Value::Text(&source));
            builder.push("id", attributes::Value::Text("1"));
            for (name, value) in [("subject", &subject), ("ext", &ext)] {
                if let Some(value) = value {
                    builder.push(name, attributes::Value::Text(value));
                }
            }
            match (number, &num) {
                (Some(number), _) => builder.push("num", attributes::Value::Integer(number)),
                (None, Some(num)) => builder.push("num", attributes::Value::Text(num)),
                (None, None) => {}
            }
            builder.build(None)
        },
    )
}

/// Three brokers, two of which a channel leads to.
fn brokers() -> World {
    World::default()
        .channel("hub", "c", json!({}))
        .broker("team", "b0", json!({}))
        .broker("team", "b1", json!({}))
        .broker("team", "b2", json!({}))
        .link("l0", "c", "Broker", "team", "b0")
        .link("l2", "c", "Broker", "team", "b2")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_index_finds_whom_asking_everyone_finds(
        triggers in prop::collection::vec(trigger(), 0..24),
        events in prop::collection::vec(random_event(), 1..12),
    ) {
        let world = triggers.iter().enumerate().fold(brokers(), |world, (number, spec)| {
            world.trigger("team", &format!("t{number}"), json!({"spec": spec}))
        });
        let table = world.compile();
        prop_assert_eq!(table.rejected(), &[]);
        let mut out = Vec::new();
        for entry in ["channel/hub/c", "broker/team/b0", "broker/team/b1", "broker/team/b2"] {
            for event in &events {
                table.matches(entry, event, &mut out);
                prop_assert_eq!(&out, &by_asking_everyone(&table, entry, event));
            }
        }
    }
}

/// Counts how often attributes are looked at: what a match costs, without a clock.
struct Counted<'a> {
    event: &'a Event,
    looks: Cell<usize>,
}

impl Attributes for Counted<'_> {
    fn attribute(&self, name: &str) -> Option<attributes::Value<'_>> {
        self.looks.set(self.looks.get() + 1);
        self.event.attribute(name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.looks.set(self.looks.get() + 1);
        self.event.text(name)
    }
}

/// How often a match looks at attributes when one trigger wants the event and `idle` others do not.
fn looks(idle: usize, wanted: &Value, unwanted: impl Fn(usize) -> Value) -> usize {
    let mut world = World::default()
        .channel("hub", "c", json!({}))
        .broker("team", "default", json!({}))
        .link("l", "c", "Broker", "team", "default")
        .trigger("team", "wanted", json!({"spec": wanted}));
    for number in 0..idle {
        world = world.trigger(
            "team",
            &format!("idle-{number}"),
            json!({"spec": unwanted(number)}),
        );
    }
    let table = compile(&world.0);
    let event = event(&[
        ("type", "order.paid.v1"),
        ("source", "shop"),
        ("subject", "s"),
    ]);
    let counted = Counted {
        event: &event,
        looks: Cell::new(0),
    };
    let mut out = Vec::new();
    table.matches("channel/hub/c", &counted, &mut out);
    let (number, _) = table.consumer("trigger/team/wanted").unwrap();
    assert_eq!(out, [number]);
    counted.looks.get()
}

#[test]
fn triggers_that_do_not_match_cost_nothing() {
    let filters = |filter: Value| json!({"filters": [filter]});
    let exact = |type_: &str| filters(json!({"exact": {"type": type_, "source": "shop"}}));
    let prefix = |text: &str| filters(json!({"prefix": {"type": text}}));
    let suffix = |text: &str| filters(json!({"suffix": {"type": text}}));
    let sql =
        |type_: &str| filters(json!({"cesql": format!("EXISTS subject AND type = '{type_}'")}));
    let any = |type_: &str| {
        filters(
            json!({"any": [{"exact": {"type": type_}}, {"cesql": format!("type LIKE '{type_}'")}]}),
        )
    };
    let check = |wanted: Value, unwanted: &dyn Fn(usize) -> Value| {
        let alone = looks(1, &wanted, unwanted);
        let crowded = looks(2_000, &wanted, unwanted);
        assert_eq!(alone, crowded, "{wanted}");
        assert!(alone < 12, "{wanted} looks {alone} times");
    };
    check(exact("order.paid.v1"), &|n| {
        exact(&format!("order.paid.v1.{n}"))
    });
    check(prefix("order."), &|n| prefix(&format!("order.paid.v1.{n}")));
    check(prefix("order.paid"), &|n| prefix(&format!("order.{n}")));
    check(suffix(".v1"), &|n| suffix(&format!("{n}.v1")));
    check(sql("order.paid.v1"), &|n| sql(&format!("order.paid.{n}")));
    check(any("order.paid.v1"), &|n| any(&format!("order.paid.{n}")));
}

#[test]
fn texts_of_any_length_are_found_by_their_ends() {
    let lengths = [1, 2, 127, 128, 129, 200, 5000];
    let world = lengths.iter().fold(brokers(), |world, length| {
        let filters = json!([{"suffix": {"type": "x".repeat(*length)}}]);
        let spec = json!({"spec": {"broker": "b0", "filters": filters}});
        world.trigger("team", &format!("t{length}"), spec)
    });
    let table = world.compile();
    let mut out = Vec::new();
    for length in lengths {
        let event = event(&[("type", &format!("y{}", "x".repeat(length)))]);
        table.matches("broker/team/b0", &event, &mut out);
        let expected = lengths.iter().filter(|other| **other <= length).count();
        assert_eq!(out.len(), expected, "{length}");
        assert_eq!(out, by_asking_everyone(&table, "broker/team/b0", &event));
    }
}
