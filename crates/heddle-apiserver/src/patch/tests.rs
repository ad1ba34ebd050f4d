use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

type Apply = fn(&mut Value, &Value) -> Result<(), PatchError>;

#[track_caller]
fn check(apply: Apply, object: Value, patch: Value, expected: Value) {
    let mut patched = object;
    apply(&mut patched, &patch).unwrap_or_else(|error| panic!("{patch}: {error}"));
    assert_eq!(patched, expected, "{patch}");
}

#[track_caller]
fn check_refused(apply: Apply, object: Value, patch: Value, expected: PatchError) {
    let mut patched = object.clone();
    assert_eq!(apply(&mut patched, &patch), Err(expected), "{patch}");
    assert_eq!(
        patched, object,
        "a refused patch leaves the object as it was"
    );
}

#[test]
fn a_merge_patch_merges_objects_and_replaces_the_rest() {
    for (object, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        check(merge, object, patch, expected);
    }
    let text = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
    check_refused(
        merge,
        json!({"a": 1}),
        json!([]),
        PatchError::Malformed(text.to_owned()),
    );
}

#[test]
fn a_json_patch_does_its_operations_in_order() {
    let object = json!({"a": {"b": [1, 2, 3]}, "x/y": 1, "m~n": 2});
    for (patch, expected) in [
        (json!([]), object.clone()),
        (
            json!([{"op": "add", "path": "/c", "value": 1}]),
            json!({"a": {"b": [1, 2, 3]}, "x/y": 1, "m~n": 2, "c": 1}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/1", "value": 9}]),
            json!({"a": {"b": [1, 9, 2, 3]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-", "value": 9}]),
            json!({"a": {"b": [1, 2, 3, 9]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "remove", "path": "/a/b/-1"}]),
            json!({"a": {"b": [1, 2]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "remove", "path": "/x~1y"}, {"op": "remove", "path": "/m~0n"}]),
            json!({"a": {"b": [1, 2, 3]}}),
        ),
        (
            json!([{"op": "replace", "path": "/a/b/0", "value": null}]),
            json!({"a": {"b": [null, 2, 3]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "replace", "path": "/new", "value": 1}]),
            json!({"a": {"b": [1, 2, 3]}, "x/y": 1, "m~n": 2, "new": 1}),
        ),
        (
            json!([{"op": "replace", "path": "", "value": {"z": 1}}]),
            json!({"z": 1}),
        ),
        (
            json!([{"op": "move", "from": "/a/b", "path": "/l"}]),
            json!({"a": {}, "l": [1, 2, 3], "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "copy", "from": "/a/b/2", "path": "/a/c"}]),
            json!({"a": {"b": [1, 2, 3], "c": 3}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "test", "path": "/a/b", "value": [1.0, 2, 3]}, {"op": "add", "path": "/x~1y", "value": 2}]),
            json!({"a": {"b": [1, 2, 3]}, "x/y": 2, "m~n": 2}),
        ),
    ] {
        check(json, object.clone(), patch, expected);
    }
}

#[test]
fn testing_an_absent_member_for_null_passes() {
    let first = json!([{"op": "test", "path": "/metadata/finalizers", "value": null},
                       {"op": "add", "path": "/metadata/finalizers", "value": ["x"]}]);
    check(
        json,
        json!({"metadata": {}}),
        first.clone(),
        json!({"metadata": {"finalizers": ["x"]}}),
    );
    let failed = PatchError::Inapplicable(
        "testing value /metadata/finalizers failed: test failed".to_owned(),
    );
    check_refused(
        json,
        json!({"metadata": {"finalizers": ["y"]}}),
        first,
        failed,
    );
}

#[test]
fn a_json_patch_that_does_not_fit_is_refused_in_the_servers_words() {
    let object = json!({"a": [1], "b": {"c": 1}});
    for (operation, text) in [
        (
            json!({"op": "test", "path": "/b/c", "value": 2}),
            "testing value /b/c failed: test failed",
        ),
        (
            json!({"op": "test", "path": "/x/y", "value": 2}),
            "test operation does not apply: is missing path: /x/y: missing value",
        ),
        (
            json!({"op": "add", "path": "/x/y", "value": 2}),
            "add operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/a/7", "value": 2}),
            "error in add for path: '/a/7': Unable to access invalid index: 7: invalid index referenced",
        ),
        (
            json!({"op": "add", "path": "/a/x", "value": 2}),
            "error in add for path: '/a/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!({"op": "remove", "path": "/x"}),
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "remove", "path": "/a/1"}),
            "error in remove for path: '/a/1': Unable to access invalid index: 1: invalid index referenced",
        ),
        (
            json!({"op": "replace", "path": "/a/1", "value": 1}),
            "replace operation does not apply: doc is missing key: /a/1: missing value",
        ),
        (
            json!({"op": "replace", "path": "/x/1", "value": 1}),
            "replace operation does not apply: doc is missing path: /x/1: missing value",
        ),
        (
            json!({"op": "move", "from": "/x/1", "path": "/b"}),
            "move operation does not apply: doc is missing from path: /x/1: missing value",
        ),
        (
            json!({"op": "copy", "from": "/b", "path": "/x/y"}),
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            json!({"op": "add", "value": 1}),
            "add operation failed to decode path: missing value",
        ),
        (json!({"op": "turn", "path": "/a"}), "Unexpected kind: turn"),
    ] {
        let patch = json!([{"op": "add", "path": "/new", "value": 1}, operation]);
        check_refused(
            json,
            object.clone(),
            patch,
            PatchError::Inapplicable(text.to_owned()),
        );
    }
    for patch in [json!({}), json!(["x"]), json!([{"op": 1}])] {
        assert!(
            matches!(
                json(&mut object.clone(), &patch),
                Err(PatchError::Malformed(_))
            ),
            "{patch}"
        );
    }
}

#[test]
fn a_json_patch_cannot_be_made_expensive() {
    let many: Vec<Value> = (0..10_001)
        .map(|_| json!({"op": "add", "path": "/a", "value": 1}))
        .collect();
    let text = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    check_refused(
        json,
        json!({}),
        Value::Array(many),
        PatchError::TooLarge(text.to_owned()),
    );

    let doubling: Vec<Value> = (0..40)
        .map(|step| json!({"op": "copy", "from": "/a", "path": format!("/a/{step}")}))
        .collect();
    let error = json(&mut json!({"a": {"x": "y"}}), &Value::Array(doubling)).unwrap_err();
    assert!(
        matches!(error, PatchError::Inapplicable(text) if text.starts_with("Unable to complete the copy"))
    );

    let burrow: Vec<Value> = (0..3_000)
        .flat_map(|_| {
            [
                json!({"op": "add", "path": "/w", "value": {}}),
                json!({"op": "move", "from": "/a", "path": "/w/a"}),
                json!({"op": "move", "from": "/w", "path": "/a"}),
            ]
        })
        .collect();
    let text = "error decoding patch: must not be nested deeper than 128 levels";
    check_refused(
        json,
        json!({"a": 1}),
        Value::Array(burrow),
        PatchError::Malformed(text.to_owned()),
    );
}

#[test]
fn a_strategic_patch_merges_the_lists_that_merge() {
    let owner = |uid: &str, name: &str| json!({"uid": uid, "name": name});
    for (object, patch, expected) in [
        (
            json!({"data": {"a": "1"}}),
            json!({"data": {"b": "2", "a": null}}),
            json!({"data": {"b": "2"}}),
        ),
        (
            json!({"data": {"a": "1"}}),
            json!({"data": {"$patch": "replace", "b": "2"}}),
            json!({"data": {"b": "2"}}),
        ),
        (
            json!({"data": {"a": "1"}}),
            json!({"data": {"$patch": "delete"}}),
            json!({"data": {}}),
        ),
        (
            json!({"data": {"a": "1"}}),
            json!({"data": {"$patch": "merge", "b": "2"}}),
            json!({"data": {"a": "1", "b": "2"}}),
        ),
        (
            json!({"data": {"a": "1", "b": "2"}}),
            json!({"data": {"$retainKeys": ["b"], "b": "3"}}),
            json!({"data": {"b": "3"}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["c", "a"]}}),
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
        ),
        (
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"],
                                "finalizers": ["c"]}}),
            json!({"metadata": {"finalizers": ["c", "b"]}}),
        ),
        (
            json!({"metadata": {"ownerReferences": [owner("1", "a"), owner("2", "b")]}}),
            json!({"metadata": {"ownerReferences": [{"uid": "2", "name": "z"}, {"uid": "3", "name": "c"},
                                                    {"uid": "1", "$patch": "delete"}]}}),
            json!({"metadata": {"ownerReferences": [owner("2", "z"), owner("3", "c")]}}),
        ),
        (
            json!({"metadata": {"ownerReferences": [owner("1", "a")]}}),
            json!({"metadata": {"ownerReferences": [{"uid": "2"}, {"$patch": "replace"}]}}),
            json!({"metadata": {"ownerReferences": [{"uid": "2"}]}}),
        ),
        (
            json!({"list": [1, 2]}),
            json!({"list": [3], "$setElementOrder/list": [3]}),
            json!({"list": [3]}),
        ),
        (
            json!({}),
            json!({"a": {"b": null, "$retainKeys": ["c"], "c": 1}}),
            json!({"a": {"c": 1}}),
        ),
    ] {
        check(strategic, object, patch, expected);
    }
}

#[test]
fn a_strategic_patch_with_broken_directives_is_refused() {
    let object = json!({"metadata": {"ownerReferences": [], "finalizers": ["a"]}});
    for (patch, expected) in [
        (
            json!({"$patch": 1}),
            PatchError::Malformed("invalid value for special key: $patch".to_owned()),
        ),
        (
            json!({"$patch": "turn"}),
            PatchError::Malformed("unknown patch type \"turn\"".to_owned()),
        ),
        (
            json!({"$retainKeys": 1}),
            PatchError::Malformed("invalid patch format of retainKeys".to_owned()),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}),
            PatchError::Malformed("invalid patch format of primitive list".to_owned()),
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": 1}}),
            PatchError::Malformed("invalid patch format of setElementOrder list".to_owned()),
        ),
        (
            json!({"metadata": {"ownerReferences": [{"name": "x"}]}}),
            PatchError::Inapplicable(
                "map: {\"name\":\"x\"} does not contain declared merge key: uid".to_owned(),
            ),
        ),
    ] {
        check_refused(strategic, object.clone(), patch, expected);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9i64).prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![
            "[a-c]",
            Just("$patch".to_owned()),
            Just("metadata".to_owned()),
            Just("finalizers".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    any_json().prop_map(|value| match value {
        Value::Object(_) => value,
        other => json!({ "a": other }),
    })
}

fn any_operations() -> impl Strategy<Value = Value> {
    let pointer = || "(/([a-c]|[0-3]|-)){0,3}";
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    let operation = (op, pointer(), pointer(), any_json()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    );
    prop::collection::vec(operation, 0..4).prop_map(Value::from)
}

/// Fields by their full path, the simplest model of an object there is.
fn leaves(value: &Value, path: &str, found: &mut std::collections::BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields
                .iter()
                .for_each(|(name, field)| leaves(field, &format!("{path}/{name}"), found));
        }
        other => drop(found.insert(path.to_owned(), other.clone())),
    }
}

proptest! {
    #[test]
    fn nothing_makes_a_patch_panic(object in any_json(), patch in any_json(), operations in any_operations()) {
        for apply in [merge as Apply, json, strategic] {
            for patch in [&patch, &operations] {
                drop(apply(&mut object.clone(), patch));
            }
        }
    }

    #[test]
    fn a_merged_object_has_the_patch_in_it_and_merging_again_changes_nothing(object in any_json(), patch in any_object()) {
        let mut once = object;
        merge(&mut once, &patch).unwrap();
        let mut twice = once.clone();
        merge(&mut twice, &patch).unwrap();
        prop_assert_eq!(&once, &twice);
        let (mut asked, mut got) = Default::default();
        leaves(&patch, "", &mut asked);
        leaves(&once, "", &mut got);
        for (path, value) in asked.iter().filter(|(_, value)| !value.is_object()) {
            match value {
                Value::Null => prop_assert!(!got.contains_key(path)),
                value => prop_assert_eq!(got.get(path), Some(value)),
            }
        }
    }

    /// The json-patch crate is an independent reading of the same RFC, stricter in the three ways the header names. It must
    /// not undo: its `patch` panics when an undone move would put a value into itself.
    #[test]
    fn what_the_rfc_allows_has_the_result_the_rfc_says(object in any_object(), operations in any_operations()) {
        let patch: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
        let mut expected = object.clone();
        if json_patch::patch_unsafe(&mut expected, &patch).is_ok() && !touches_the_root(&operations) {
            let mut found = object;
            prop_assert_eq!(json(&mut found, &operations), Ok(()));
            prop_assert_eq!(found, expected);
        }
    }
}

/// Adding, moving or copying the whole document is allowed by the RFC and by nobody's server.
fn touches_the_root(operations: &Value) -> bool {
    operations
        .as_array()
        .into_iter()
        .flatten()
        .any(|operation| {
            let empty = |name: &str| operation[name] == "";
            match operation["op"].as_str() {
                Some("move" | "copy") => empty("path") || empty("from"),
                Some("test") => false,
                _ => empty("path"),
            }
        })
}

/// Without a bound while it is applied, the result overflows the stack when it is compared, shown or merely dropped.
#[test]
fn nesting_by_operations_is_noticed_before_it_is_too_deep_to_handle() {
    let nest = |op: &str| -> Vec<Value> {
        let level = [
            json!({"op": "add", "path": "/n", "value": {}}),
            json!({"op": op, "from": "/a", "path": "/n/x"}),
            json!({"op": "move", "from": "/n", "path": "/a"}),
        ];
        level.iter().cloned().cycle().take(9_999).collect()
    };
    let deeper_each_time: Vec<Value> = (0..2_000)
        .map(|level| json!({"op": "add", "path": format!("/a{}", "/x".repeat(level)), "value": {"x": {}}}))
        .collect();
    let with_test = {
        let mut operations = nest("move");
        operations.insert(9_000, json!({"op": "test", "path": "/a", "value": {}}));
        operations
    };
    for operations in [nest("move"), nest("copy"), deeper_each_time, with_test] {
        let mut object = json!({"a": {}});
        let error = json(&mut object, &Value::Array(operations)).unwrap_err();
        assert!(
            matches!(&error, PatchError::Malformed(text) if text.contains("nested")),
            "{error:?}"
        );
        assert_eq!(
            object,
            json!({"a": {}}),
            "it is applied whole or not at all"
        );
    }
    // As deep as is allowed, and moved about there, is fine.
    let mut object = json!({"a": {}});
    let deep: Vec<Value> = nest("move").into_iter().take(3 * 100).collect();
    json(&mut object, &Value::Array(deep)).unwrap();
}
