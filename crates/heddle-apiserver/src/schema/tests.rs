use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A schema with most of what people write, as its own documentation of the cases below.
fn widget() -> Schema {
    Schema::compile(&json!({"type": "object", "required": ["spec"], "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "weight": {"type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5},
            "count": {"type": "integer", "format": "int32"},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
            "at": {"type": "string", "format": "date-time"},
            "port": {"x-kubernetes-int-or-string": true},
            "note": {"type": "string", "nullable": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"known": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "minItems": 1, "maxItems": 3},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "required": ["name"], "properties": {
                          "name": {"type": "string"}, "n": {"type": "integer", "default": 1, "maximum": 9}}}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "either": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                       "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "some": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "never": {"type": "integer", "not": {"enum": [13]}},
            "all": {"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]},
            "nested": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": true}}},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
    .unwrap()
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

#[track_caller]
fn check(spec: Value, expected: &[(&str, &str, &str)]) {
    let found = widget().validate(&object(spec), None);
    let found: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|cause| (cause.field.as_str(), cause.reason, cause.message.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_fits_is_accepted() {
    check(
        json!({"size": 10, "weight": 1.5, "colour": "green", "code": "ab", "port": 80, "note": null}),
        &[],
    );
    check(
        json!({"size": 1.0, "weight": 2, "port": "http", "labels": {"a": "b"}, "at": "2026-01-02T03:04:05Z"}),
        &[],
    );
    check(
        json!({"size": 1, "tags": ["a", "b"], "parts": [{"name": "a"}, {"name": "b"}], "free": {"x": [1]}}),
        &[],
    );
    check(
        json!({"size": 1, "template": {"apiVersion": "v1", "kind": "X", "z": 1}, "either": {"a": 1}, "some": "x"}),
        &[],
    );
    check(
        json!({"size": 1, "never": 12, "all": 3, "count": 2_147_483_647}),
        &[],
    );
}

#[test]
fn what_does_not_fit_is_refused_in_the_servers_words() {
    let typed = "FieldValueTypeInvalid";
    let bad = "FieldValueInvalid";
    check(
        json!({}),
        &[("spec.size", "FieldValueRequired", "Required value")],
    );
    check(
        json!({"size": "x"}),
        &[(
            "spec.size",
            typed,
            "Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        )],
    );
    check(
        json!({"size": 1.5}),
        &[(
            "spec.size",
            typed,
            "Invalid value: \"number\": spec.size in body must be of type integer: \"number\"",
        )],
    );
    check(
        json!({"size": null}),
        &[(
            "spec.size",
            typed,
            "Invalid value: \"null\": spec.size in body must be of type integer: \"null\"",
        )],
    );
    check(
        json!({"size": 11}),
        &[(
            "spec.size",
            bad,
            "Invalid value: 11: spec.size in body should be less than or equal to 10",
        )],
    );
    check(
        json!({"size": 0}),
        &[(
            "spec.size",
            bad,
            "Invalid value: 0: spec.size in body should be greater than or equal to 1",
        )],
    );
    check(
        json!({"size": 1, "weight": 0}),
        &[(
            "spec.weight",
            bad,
            "Invalid value: 0: spec.weight in body should be greater than 0",
        )],
    );
    check(
        json!({"size": 1, "weight": 0.7}),
        &[(
            "spec.weight",
            bad,
            "Invalid value: 0.7: spec.weight in body should be a multiple of 0.5",
        )],
    );
    check(
        json!({"size": 1, "count": 2_147_483_648_u64}),
        &[(
            "<nil>",
            bad,
            "Invalid value: \"\": Checked value must be of type integer with format int32 in spec.count",
        )],
    );
    check(
        json!({"size": 1, "colour": "blue"}),
        &[(
            "spec.colour",
            "FieldValueNotSupported",
            "Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        )],
    );
    check(
        json!({"size": 1, "code": "abcde"}),
        &[(
            "spec.code",
            "FieldValueTooLong",
            "Too long: may not be more than 4 bytes",
        )],
    );
    check(
        json!({"size": 1, "code": "a"}),
        &[(
            "spec.code",
            bad,
            "Invalid value: \"a\": spec.code in body should be at least 2 chars long",
        )],
    );
    check(
        json!({"size": 1, "code": "A1"}),
        &[(
            "spec.code",
            bad,
            "Invalid value: \"A1\": spec.code in body should match '^[a-z]+$'",
        )],
    );
    check(
        json!({"size": 1, "at": "yesterday"}),
        &[(
            "spec.at",
            typed,
            "Invalid value: \"yesterday\": spec.at in body must be of type date-time: \"yesterday\"",
        )],
    );
    check(
        json!({"size": 1, "port": true}),
        &[(
            "spec.port",
            typed,
            "Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        )],
    );
    check(
        json!({"size": 1, "labels": {"a": 1}}),
        &[(
            "spec.labels.a",
            typed,
            "Invalid value: \"integer\": spec.labels.a in body must be of type string: \"integer\"",
        )],
    );
    check(
        json!({"size": 1, "labels": {"a": "", "b": "", "c": ""}}),
        &[(
            "spec.labels",
            "FieldValueTooMany",
            "Too many: 3: must have at most 2 items",
        )],
    );
    check(
        json!({"size": 1, "tags": []}),
        &[(
            "spec.tags",
            bad,
            "Invalid value: 0: spec.tags in body should have at least 1 items",
        )],
    );
    check(
        json!({"size": 1, "tags": ["a", "b", "c", "d"]}),
        &[(
            "spec.tags",
            "FieldValueTooMany",
            "Too many: 4: must have at most 3 items",
        )],
    );
    check(
        json!({"size": 1, "tags": ["a", "b", "a"]}),
        &[(
            "spec.tags[2]",
            "FieldValueDuplicate",
            "Duplicate value: \"a\"",
        )],
    );
    check(
        json!({"size": 1, "parts": [{"name": "a"}, {"name": "a", "n": 2}]}),
        &[(
            "spec.parts[1]",
            "FieldValueDuplicate",
            "Duplicate value: {\"name\":\"a\"}",
        )],
    );
    check(
        json!({"size": 1, "parts": [{"n": 10}]}),
        &[
            (
                "spec.parts[0].n",
                bad,
                "Invalid value: 10: spec.parts[0].n in body should be less than or equal to 9",
            ),
            ("spec.parts[0].name", "FieldValueRequired", "Required value"),
        ],
    );
    check(
        json!({"size": 1, "template": {"kind": ""}}),
        &[
            (
                "spec.template.apiVersion",
                "FieldValueRequired",
                "Required value",
            ),
            (
                "spec.template.kind",
                bad,
                "Invalid value: \"\": must not be empty",
            ),
        ],
    );
    check(
        json!({"size": 1, "either": {}}),
        &[
            (
                "<nil>",
                bad,
                "Invalid value: \"\": \"spec.either\" must validate one and only one schema (oneOf). Found none valid",
            ),
            ("spec.either.a", "FieldValueRequired", "Required value"),
        ],
    );
    check(
        json!({"size": 1, "either": {"a": 1, "b": 2}}),
        &[(
            "<nil>",
            bad,
            "Invalid value: \"\": \"spec.either\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        )],
    );
    check(
        json!({"size": 1, "some": true}),
        &[
            (
                "<nil>",
                bad,
                "Invalid value: \"\": \"spec.some\" must validate at least one schema (anyOf)",
            ),
            (
                "spec.some",
                typed,
                "Invalid value: \"boolean\": spec.some in body must be of type integer: \"boolean\"",
            ),
        ],
    );
    check(
        json!({"size": 1, "never": 13}),
        &[(
            "<nil>",
            bad,
            "Invalid value: \"\": \"spec.never\" must not validate the schema (not)",
        )],
    );
    check(
        json!({"size": 1, "all": 5}),
        &[
            (
                "spec.all",
                bad,
                "Invalid value: 5: spec.all in body should be less than or equal to 4",
            ),
            (
                "<nil>",
                bad,
                "Invalid value: \"\": \"spec.all\" must validate all the schemas (allOf)",
            ),
        ],
    );
}

#[test]
fn the_root_is_held_to_its_schema_too() {
    let found = widget().validate(&json!({"metadata": {"name": "toolong"}}), None);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].field.as_str(), found[0].reason),
        ("metadata.name", "FieldValueTooLong")
    );
    assert_eq!(
        (found[1].field.as_str(), found[1].reason),
        ("spec", "FieldValueRequired")
    );
    let found = widget().validate(&json!([]), None);
    assert_eq!(
        found[0].message,
        "Invalid value: \"array\":  in body must be of type object: \"array\""
    );
}

#[test]
fn what_was_stored_before_the_schema_became_stricter_may_stay() {
    let stored = object(
        json!({"size": 11, "tags": ["a", "a"], "parts": [{"name": "x", "n": 99}, {"name": "y"}]}),
    );
    let mut edited = stored.clone();
    edited["spec"]["note"] = json!("touched");
    edited["spec"]["parts"] = json!([{"name": "y"}, {"name": "x", "n": 99}]);
    assert_eq!(widget().validate(&edited, Some(&stored)), []);
    edited["spec"]["size"] = json!(12);
    edited["spec"]["parts"][1]["n"] = json!(98);
    let fields: Vec<String> = widget()
        .validate(&edited, Some(&stored))
        .into_iter()
        .map(|cause| cause.field)
        .collect();
    assert_eq!(fields, ["spec.parts[1].n", "spec.size"]);
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let mut given = object(json!({
        "size": 1, "foo": {"bar": 1},
        "parts": [{"name": "a", "extra": 1}, {"name": "b"}],
        "free": {"anything": {"goes": true}, "known": {"a": 1, "b": 2}},
        "labels": {"a": "b"},
        "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "weird": 1}, "spec": {"x": 1}},
    }));
    given["extra"] = json!(1);
    given["metadata"] = json!({"name": "w", "labels": {"a": "b"}, "lables": {}, "ownerReferences": [{"uid": "u", "x": 1}]});
    given["status"] = json!({"whatever": [1, {"a": 2}]});
    let dropped = widget().prune(&mut given);
    assert_eq!(
        dropped,
        [
            "extra",
            "metadata.lables",
            "metadata.ownerReferences[0].x",
            "spec.foo",
            "spec.free.known.b",
            "spec.parts[0].extra",
            "spec.template.metadata.weird",
        ]
    );
    assert_eq!(
        given,
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
            "spec": {
                "size": 1, "parts": [{"name": "a"}, {"name": "b"}],
                "free": {"anything": {"goes": true}, "known": {"a": 1}},
                "labels": {"a": "b"},
                "template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": {"x": 1}},
            },
            "status": {"whatever": [1, {"a": 2}]},
        })
    );
    assert_eq!(widget().prune(&mut given), Vec::<String>::new());
}

#[test]
fn defaults_fill_what_is_absent_and_nulls_mean_absent() {
    let mut given = object(
        json!({"size": null, "colour": null, "note": null, "parts": [{"name": "a"}, {"name": "b", "n": 3}]}),
    );
    given["metadata"]["creationTimestamp"] = Value::Null;
    widget().default(&mut given);
    assert_eq!(
        given,
        object(json!({
            "colour": "red", "note": null, "nested": {"on": true}, "parts": [{"name": "a", "n": 1}, {"name": "b", "n": 3}],
        }))
    );
}

#[test]
fn formats_accept_what_a_server_accepts() {
    for (format, good, bad) in [
        ("date", "2026-02-28", "2026-02-30"),
        (
            "date-time",
            "2026-01-02T03:04:05.123+01:00",
            "2026-01-02 03:04:05Z",
        ),
        ("date-time", "2026-01-02t03:04:05z", "2026-01-02T25:04:05Z"),
        ("duration", "1h30m", "1x"),
        ("duration", "5 minutes", "soon"),
        ("duration", "-1.5s", ""),
        ("byte", "aGk=", "a"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        (
            "uuid4",
            "123e4567-e89b-42d3-a456-426614174000",
            "123e4567-e89b-12d3-a456-426614174000",
        ),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("mac", "01:23:45:67:89:ab", "01:23"),
        ("uri", "https://example.com/x", "example"),
        ("email", "Ann <ann@example.com>", "ann"),
        ("hostname", "www.example.com", "-a.example.com"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "A.b"),
    ] {
        assert!(format::accepts(format, good), "{format}: {good}");
        assert!(!format::accepts(format, bad), "{format}: {bad}");
    }
    assert!(format::accepts("anything-else", "x"));
}

#[test]
fn a_schema_that_cannot_be_honoured_does_not_compile() {
    for (schema, text) in [
        (
            json!([]),
            "schema at . is not usable: a schema must be an object",
        ),
        (
            json!({"type": "thing"}),
            "schema at . is not usable: unknown type \"thing\"",
        ),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "schema at .a is not usable: regex parse error",
        ),
        (
            json!({"properties": {"a": {"items": 3}}}),
            "schema at .a.[] is not usable: a schema must be an object",
        ),
        (
            json!({"x-kubernetes-list-type": "bag"}),
            "schema at . is not usable: unknown list type \"bag\"",
        ),
        (
            json!({"x-kubernetes-list-type": "map"}),
            "schema at . is not usable: a list of type map needs",
        ),
        (
            json!({"x-kubernetes-validations": [{"rule": "self."}]}),
            "schema at . is not usable: failed to compile CEL rule",
        ),
    ] {
        let error = Schema::compile(&schema)
            .expect_err("must not compile")
            .to_string();
        assert!(error.starts_with(text), "{error}");
    }
    let deep = (0..70).fold(json!({}), |schema, _| json!({"items": schema}));
    assert_eq!(
        Schema::compile(&deep).expect_err("too deep"),
        Error::TooDeep(60)
    );
}

#[test]
fn the_types_that_apply_needs_can_be_looked_up() {
    let schema = widget();
    let spec = schema.root().field("spec");
    assert_eq!(*spec.field("tags").list(), ListKind::Set);
    assert_eq!(
        *spec.field("parts").list(),
        ListKind::Map(vec!["name".to_owned()])
    );
    assert_eq!(
        spec.field("parts").items().field("n").default(),
        Some(&json!(1))
    );
    assert_eq!(
        *spec.field("free").field("x").field("y").list(),
        ListKind::Atomic
    );
    let metadata = schema.root().field("metadata");
    assert_eq!(*metadata.field("finalizers").list(), ListKind::Set);
    assert_eq!(
        *metadata.field("ownerReferences").list(),
        ListKind::Map(vec!["uid".to_owned()])
    );
    assert!(metadata.field("ownerReferences").items().is_atomic_map());
    assert!(!metadata.field("labels").is_atomic_map());
}

#[test]
fn depth_is_refused_rather_than_followed() {
    let mut deep = (0..10_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    assert!(!within_depth(&deep));
    let schema = widget();
    assert_eq!(schema.prune(&mut deep), Vec::<String>::new());
    schema.default(&mut deep);
    assert_eq!(
        schema.validate(&deep, None)[0].message,
        "Invalid value: must not be nested deeper than 128 levels"
    );
    assert!(Schema::compile(&deep).is_err());
}

/// Arbitrary JSON, with field names that the schema knows mixed in.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let name = prop_oneof![
            Just("spec".to_owned()),
            Just("size".to_owned()),
            Just("parts".to_owned()),
            Just("tags".to_owned()),
            Just("name".to_owned()),
            Just("either".to_owned()),
            Just("metadata".to_owned()),
            "[a-c]{1,2}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_makes_a_schema_panic_and_pruning_happens_once(mut value in any_json(), old in any_json()) {
        let schema = widget();
        schema.validate(&value, Some(&old));
        prop_assert_eq!(schema.validate(&value, Some(&value)).iter().filter(|c| !c.field.contains("template")).count(), 0);
        schema.prune(&mut value);
        prop_assert!(schema.prune(&mut value).is_empty());
        schema.default(&mut value);
        let once = value.clone();
        schema.default(&mut value);
        prop_assert_eq!(once, value);
    }

    #[test]
    fn no_json_makes_compilation_panic(value in any_json()) {
        drop(Schema::compile(&value));
    }
}
