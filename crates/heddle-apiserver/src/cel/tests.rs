use serde_json::{Value, json};

use crate::schema::Schema;

fn schema(spec: Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

#[track_caller]
fn check(spec_schema: Value, old: Value, new: Value, expected: &[(&str, &str, &str)]) {
    let old = (!old.is_null()).then(|| json!({"spec": old}));
    let found = schema(spec_schema).validate(&json!({"spec": new}), old.as_ref());
    let found: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|cause| (cause.field.as_str(), cause.reason, cause.message.as_str()))
        .collect();
    assert_eq!(found, expected);
}

fn ruled(rules: Value) -> Value {
    json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string"},
    }})
}

#[test]
fn a_broken_rule_says_so_in_its_own_words() {
    let bad = "FieldValueInvalid";
    let range = "self.min <= self.max";
    let new = json!({"min": 2, "max": 1});
    for (rule, expected) in [
        (
            json!({"rule": range}),
            (
                "spec",
                bad,
                "Invalid value: failed rule: self.min <= self.max",
            ),
        ),
        (
            json!({"rule": range, "message": "crossed"}),
            ("spec", bad, "Invalid value: crossed"),
        ),
        (
            json!({"rule": range, "message": "crossed", "messageExpression": "'min ' + string(self.min)"}),
            ("spec", bad, "Invalid value: min 2"),
        ),
        (
            json!({"rule": range, "message": "crossed", "messageExpression": "'line\\nbreak'"}),
            ("spec", bad, "Invalid value: crossed"),
        ),
        (
            json!({"rule": range, "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".max"}),
            ("spec.max", "FieldValueForbidden", "Forbidden: no"),
        ),
        (
            json!({"rule": range, "message": "give it", "reason": "FieldValueRequired"}),
            ("spec", "FieldValueRequired", "Required value: give it"),
        ),
    ] {
        check(ruled(json!([rule])), Value::Null, new.clone(), &[expected]);
    }
    check(
        ruled(json!([{"rule": range}])),
        Value::Null,
        json!({"min": 1, "max": 1}),
        &[],
    );
}

#[test]
fn a_rule_on_a_scalar_shows_the_value() {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')", "message": "must start with a"}]},
    }});
    let expected = (
        "spec.name",
        "FieldValueInvalid",
        "Invalid value: \"b\": must start with a",
    );
    check(schema, Value::Null, json!({"name": "b"}), &[expected]);
}

#[test]
fn a_rule_that_cannot_be_evaluated_refuses() {
    let found = schema(ruled(
        json!([{"rule": "self.min > 0", "message": "positive"}]),
    ))
    .validate(&json!({"spec": {}}), None);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].message.starts_with("Invalid value: \"object\": "),
        "{}",
        found[0].message
    );
    assert!(
        found[0].message.ends_with("evaluating rule: positive"),
        "{}",
        found[0].message
    );
}

#[test]
fn transition_rules_run_only_when_there_is_something_to_compare() {
    let fixed = ruled(json!([{"rule": "self.name == oldSelf.name", "message": "name is fixed"}]));
    check(fixed.clone(), Value::Null, json!({"name": "a"}), &[]);
    check(
        fixed.clone(),
        json!({"name": "a"}),
        json!({"name": "a", "min": 1}),
        &[],
    );
    let expected = ("spec", "FieldValueInvalid", "Invalid value: name is fixed");
    check(
        fixed,
        json!({"name": "a"}),
        json!({"name": "b"}),
        &[expected],
    );
}

#[test]
fn items_of_keyed_lists_are_compared_by_key_and_others_not_at_all() {
    let list = |kind: &str| {
        json!({"type": "object", "properties": {"parts": {
            "type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                      "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}]},
        }}})
    };
    let old = json!({"parts": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]});
    let swapped = json!({"parts": [{"k": "b", "v": 5}, {"k": "a", "v": 1}]});
    let shrunk = json!({"parts": [{"k": "b", "v": 4}, {"k": "a", "v": 1}]});
    check(list("map"), old.clone(), swapped, &[]);
    let expected = (
        "spec.parts[0]",
        "FieldValueInvalid",
        "Invalid value: shrinks",
    );
    check(list("map"), old.clone(), shrunk.clone(), &[expected]);
    check(list("atomic"), old, shrunk, &[]);
}

#[test]
fn what_is_unchanged_is_not_held_against_the_writer() {
    let schema = json!({"type": "object", "properties": {
        "inner": ruled(json!([{"rule": "self.min > 0", "message": "positive"}])),
        "other": {"type": "string"},
    }});
    let old = json!({"inner": {"min": 0}});
    check(
        schema.clone(),
        old.clone(),
        json!({"inner": {"min": 0}, "other": "x"}),
        &[],
    );
    let expected = ("spec.inner", "FieldValueInvalid", "Invalid value: positive");
    check(schema, old, json!({"inner": {"min": -1}}), &[expected]);
}

#[test]
fn rules_wait_until_the_object_is_well_typed() {
    let blocked = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                   correct the existing errors to complete validation";
    check(
        ruled(json!([{"rule": "self.min > 0"}])),
        Value::Null,
        json!({"min": "x"}),
        &[
            (
                "spec.min",
                "FieldValueTypeInvalid",
                "Invalid value: \"string\": spec.min in body must be of type integer: \"string\"",
            ),
            ("<nil>", "FieldValueInvalid", blocked),
        ],
    );
}

#[test]
fn map_keys_stand_in_brackets() {
    let schema = json!({"type": "object", "additionalProperties": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}],
    }});
    let expected = (
        "spec[a.b]",
        "FieldValueInvalid",
        "Invalid value: 0: positive",
    );
    check(schema, Value::Null, json!({"a.b": 0, "c": 1}), &[expected]);
}

#[test]
fn a_schema_with_rules_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<Schema>();
}
