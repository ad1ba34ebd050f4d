use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;

fn schema() -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "inner": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "groups": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                           "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                      "items": {"type": "object", "properties": {
                          "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }}))
    .unwrap()
}

#[track_caller]
fn check_fields(spec: Value, expected: &[&str]) {
    let schema = schema();
    let set = FieldSet::of_value(schema.root(), &json!({"spec": spec}));
    let paths: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
    assert_eq!(paths, expected);
    assert_eq!(FieldSet::parse(&set.to_value()), Ok(set));
}

#[test]
fn an_object_has_the_fields_its_schema_lets_be_owned() {
    check_fields(
        json!({"size": 1, "inner": {"a": "x"}}),
        &[".spec.size", ".spec.inner.a"],
    );
    check_fields(
        json!({"whole": {"a": "x"}, "list": [1, 2]}),
        &[".spec.list", ".spec.whole"],
    );
    check_fields(
        json!({"labels": {"a": "x"}, "inner": {}}),
        &[".spec.inner", ".spec.labels.a"],
    );
    check_fields(
        json!({"groups": {"g": {"n": 1}}}),
        &[".spec.groups.g", ".spec.groups.g.n"],
    );
    check_fields(
        json!({"set": ["b", "a"]}),
        &[".spec.set[=\"a\"]", ".spec.set[=\"b\"]"],
    );
    check_fields(
        json!({"conditions": [{"type": "Ready", "status": "True"}]}),
        &[
            ".spec.conditions[type=\"Ready\"]",
            ".spec.conditions[type=\"Ready\"].status",
            ".spec.conditions[type=\"Ready\"].type",
        ],
    );
    check_fields(
        json!({"ports": [{"port": 80}]}),
        &[
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].port",
        ],
    );
    check_fields(
        json!({"free": {"x": {"y": [1], "z": null}}}),
        &[".spec.free.x", ".spec.free.x.y", ".spec.free.x.z"],
    );
    check_fields(json!({"set": [], "size": null}), &[".spec.size"]);
    check_fields(json!({"set": ["a", "a"]}), &[".spec.set[=\"a\"]"]);
    check_fields(json!({"set": [{"no": "scalar"}]}), &[".spec.set"]);
}

#[test]
fn the_encoding_is_that_of_fields_v1() {
    let document = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}},
            "f:list": {"i:0": {}},
            "f:set": {"v:\"a\"": {}, "v:1": {}},
        },
    });
    let set = FieldSet::parse(&document).unwrap();
    assert_eq!(set.to_value(), document);
    let paths: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
    assert_eq!(
        paths,
        [
            ".metadata.labels",
            ".metadata.labels.app",
            ".spec.conditions[type=\"Ready\"]",
            ".spec.conditions[type=\"Ready\"].status",
            ".spec.list[0]",
            ".spec.set[=\"a\"]",
            ".spec.set[=1]",
        ]
    );
    let spaced = FieldSet::parse(&json!({"f:a": {"k:{ \"y\": 1, \"x\": 2 }": {}}})).unwrap();
    assert_eq!(
        spaced.to_value(),
        json!({"f:a": {"k:{\"x\":2,\"y\":1}": {}}})
    );
    for broken in [
        json!([]),
        json!({"f:a": 1}),
        json!({"a": {}}),
        json!({"x:a": {}}),
        json!({"i:a": {}}),
        json!({"k:1": {}}),
        json!({"v:": {}}),
    ] {
        assert!(FieldSet::parse(&broken).is_err(), "{broken}");
    }
    let deep = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
    assert_eq!(FieldSet::parse(&deep), Err(Error::TooDeep));
}

#[track_caller]
fn check_comparison(old: Value, new: Value, added: &[&str], modified: &[&str], removed: &[&str]) {
    let schema = schema();
    let comparison = Comparison::of(schema.root(), &json!({"spec": old}), &json!({"spec": new}));
    let texts = |set: &FieldSet| {
        set.paths()
            .iter()
            .map(|path| path_text(path))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&comparison.added), added, "added");
    assert_eq!(texts(&comparison.modified), modified, "modified");
    assert_eq!(texts(&comparison.removed), removed, "removed");
}

#[test]
fn a_comparison_tells_added_from_modified_from_removed() {
    check_comparison(json!({"size": 1}), json!({"size": 1}), &[], &[], &[]);
    check_comparison(
        json!({"size": 1}),
        json!({"size": 2}),
        &[],
        &[".spec.size"],
        &[],
    );
    check_comparison(
        json!({}),
        json!({"inner": {"a": "x"}}),
        &[".spec.inner", ".spec.inner.a"],
        &[],
        &[],
    );
    check_comparison(
        json!({"inner": {"a": "x"}}),
        json!({}),
        &[],
        &[],
        &[".spec.inner", ".spec.inner.a"],
    );
    check_comparison(
        json!({"inner": {"a": "x"}}),
        json!({"inner": {}}),
        &[],
        &[],
        &[".spec.inner.a"],
    );
    check_comparison(
        json!({"whole": {"a": "x"}}),
        json!({"whole": {"a": "y"}}),
        &[],
        &[".spec.whole"],
        &[],
    );
    check_comparison(
        json!({"list": [1]}),
        json!({"list": [1, 2]}),
        &[],
        &[".spec.list"],
        &[],
    );
    check_comparison(
        json!({"set": ["a", "b"]}),
        json!({"set": ["c", "b"]}),
        &[".spec.set[=\"c\"]"],
        &[],
        &[".spec.set[=\"a\"]"],
    );
    check_comparison(
        json!({"set": ["a", "b"]}),
        json!({"set": ["b", "a"]}),
        &[],
        &[],
        &[],
    );
    check_comparison(
        json!({"conditions": [{"type": "A", "status": "1"}, {"type": "B"}]}),
        json!({"conditions": [{"type": "B"}, {"type": "A", "status": "2"}]}),
        &[],
        &[".spec.conditions[type=\"A\"].status"],
        &[],
    );
    check_comparison(
        json!({"free": {"x": 1}}),
        json!({"free": {"x": {"y": 1}}}),
        &[".spec.free.x.y"],
        &[".spec.free.x"],
        &[],
    );
    check_comparison(
        json!({"size": null}),
        json!({"size": 1}),
        &[],
        &[".spec.size"],
        &[],
    );
    check_comparison(
        json!({"set": ["a", "a"]}),
        json!({"set": ["a"]}),
        &[".spec.set[=\"a\"]"],
        &[],
        &[".spec.set[=\"a\"]"],
    );
}

#[track_caller]
fn check_merge(live: Value, applied: Value, expected: Value) {
    let schema = schema();
    let merged = merge(
        schema.root(),
        Some(&json!({"spec": live})),
        Some(&json!({"spec": applied})),
    );
    assert_eq!(merged, Some(json!({"spec": expected})));
}

#[test]
fn merging_keeps_what_is_live_and_takes_what_is_applied() {
    check_merge(
        json!({"size": 1, "inner": {"a": "x"}}),
        json!({"inner": {"b": "y"}}),
        json!({"size": 1, "inner": {"a": "x", "b": "y"}}),
    );
    check_merge(
        json!({"whole": {"a": "x"}}),
        json!({"whole": {"b": "y"}}),
        json!({"whole": {"b": "y"}}),
    );
    check_merge(
        json!({"list": [1, 2]}),
        json!({"list": [3]}),
        json!({"list": [3]}),
    );
    check_merge(
        json!({"set": ["a", "b", "c"]}),
        json!({"set": ["d", "c", "a"]}),
        json!({"set": ["b", "d", "c", "a"]}),
    );
    check_merge(
        json!({"set": ["a", "b"]}),
        json!({"set": ["a", "c"]}),
        json!({"set": ["a", "b", "c"]}),
    );
    check_merge(
        json!({"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "1"}]}),
        json!({"conditions": [{"type": "B", "status": "2"}]}),
        json!({"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}]}),
    );
    check_merge(
        json!({"size": 1}),
        json!({"size": null}),
        json!({"size": null}),
    );
    check_merge(
        json!({"inner": {"a": "x"}}),
        json!({"inner": null}),
        json!({"inner": {"a": "x"}}),
    );
    check_merge(
        json!({"free": 1}),
        json!({"free": {"x": 1}}),
        json!({"free": {"x": 1}}),
    );
}

#[test]
fn lists_that_say_one_thing_twice_are_refused() {
    let schema = schema();
    for (spec, text) in [
        (
            json!({"set": ["a", "b", "a"]}),
            ".spec.set: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({"conditions": [{"type": "A"}, {"type": "A"}]}),
            ".spec.conditions: duplicate entries for key [type=\"A\"]",
        ),
        (
            json!({"conditions": [1]}),
            ".spec.conditions: element 0: associative list with keys may not have non-map elements",
        ),
        (
            json!({"conditions": [{}]}),
            ".spec.conditions: element 0: associative list with keys has an element that omits all key",
        ),
        (
            json!({"set": [null]}),
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
    ] {
        let error = check_items(schema.root(), &json!({"spec": spec})).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }
    assert_eq!(
        check_items(
            schema.root(),
            &json!({"spec": {"list": [1, 1], "ports": [{"port": 1}, {"port": 2}]}})
        ),
        Ok(())
    );
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let element = prop_oneof![
        "[a-c]".prop_map(|name| Element::field(&name)),
        (0..2i64).prop_map(|value| Element::value(&json!(value))),
    ];
    prop::collection::vec(prop::collection::vec(element, 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert_path(path));
        set
    })
}

fn any_spec() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["a", "b", "c"]).prop_map(Value::from);
    let texts = prop::collection::btree_set("[a-c]", 0..4).prop_map(Value::from_iter);
    let conditions = prop::collection::btree_map("[A-C]", text(), 0..3).prop_map(|map| {
        Value::from_iter(
            map.into_iter()
                .map(|(kind, status)| json!({"type": kind, "status": status})),
        )
    });
    let labels = prop::collection::btree_map("[a-c]", text(), 0..3).prop_map(Value::from_iter);
    (0..3i64, texts.prop_shuffle_list(), conditions, labels)
        .prop_map(|(size, set, conditions, labels)| json!({"spec": {"size": size, "set": set, "conditions": conditions, "labels": labels}}))
}

/// Sets come out of their collection sorted; shuffling makes order matter.
trait Shuffled: Strategy<Value = Value> + Sized {
    fn prop_shuffle_list(self) -> impl Strategy<Value = Value> {
        self.prop_map(|list| list.as_array().cloned().unwrap_or_default())
            .prop_shuffle()
            .prop_map(Value::Array)
    }
}
impl<S: Strategy<Value = Value>> Shuffled for S {}

proptest! {
    /// The model of a field set is a plain set of its paths.
    #[test]
    fn the_algebra_is_that_of_sets(left in any_set(), right in any_set()) {
        let model = |set: &FieldSet| set.paths().into_iter().collect::<BTreeSet<_>>();
        let (l, r) = (model(&left), model(&right));
        prop_assert_eq!(model(&left.union(&right)), &l | &r);
        prop_assert_eq!(model(&left.intersection(&right)), &l & &r);
        prop_assert_eq!(model(&left.difference(&right)), &l - &r);
        prop_assert_eq!(left.difference(&left).is_empty(), true);
        prop_assert_eq!(left.intersection(&right).is_empty(), l.is_disjoint(&r));
        prop_assert_eq!(FieldSet::parse(&left.to_value()), Ok(left.clone()));
        for path in &r {
            prop_assert_eq!(left.contains(path), l.contains(path));
        }
    }

    #[test]
    fn comparing_merging_and_removing_agree(live in any_spec(), applied in any_spec()) {
        let schema = schema();
        let root = schema.root();
        let merged = merge(root, Some(&live), Some(&applied)).unwrap();
        let (live_fields, applied_fields) = (FieldSet::of_value(root, &live), FieldSet::of_value(root, &applied));
        prop_assert_eq!(FieldSet::of_value(root, &merged).difference(&live_fields.union(&applied_fields)).is_empty(), true);
        prop_assert_eq!(merge(root, Some(&merged), Some(&applied)), Some(merged.clone()));

        // What the merge changed is something that was applied, and it removed nothing.
        let changes = Comparison::of(root, &live, &merged);
        prop_assert_eq!(changes.removed.is_empty(), true);
        prop_assert_eq!(changes.changed().intersection(&live_fields.union(&applied_fields)).difference(&applied_fields).is_empty(), true);

        let mut stripped = merged;
        remove(root, &mut stripped, &applied_fields);
        prop_assert_eq!(FieldSet::of_value(root, &stripped).intersection(&applied_fields).is_empty(), true);
    }

    #[test]
    fn no_json_makes_a_walk_panic(old in any_json(), new in any_json()) {
        let schema = schema();
        let root = schema.root();
        let mut merged = merge(root, Some(&old), Some(&new)).unwrap_or_default();
        let comparison = Comparison::of(root, &old, &new);
        let set = FieldSet::of_value(root, &new).union(&comparison.removed);
        remove(root, &mut merged, &set.with_named_fields(root));
        drop(check_items(root, &new));
        drop(FieldSet::parse(&new));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[a-c]".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 32, 5, |inner| {
        let name = prop::sample::select(vec![
            "spec",
            "set",
            "conditions",
            "type",
            "inner",
            "free",
            "labels",
            "whole",
            "a",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..5)
                .prop_map(Value::from_iter),
        ]
    })
}
