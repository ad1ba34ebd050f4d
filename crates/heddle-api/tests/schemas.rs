//! The definitions obey Kubernetes' rules for structural schemas and our own rules for kinds.
//!
//! Every failure names the kind and the path, so that whoever adds a field learns what it lacks.

use std::collections::BTreeSet;

use heddle_api::{crds, kinds, read_only_kinds};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

fn schema(crd: &CustomResourceDefinition) -> Value {
    let validation = crd.spec.versions[0].schema.as_ref();
    let schema = validation.and_then(|validation| validation.open_api_v3_schema.as_ref());
    serde_json::to_value(schema.expect("every definition has a schema")).expect("a schema is JSON")
}

/// Calls `visit` for every node of a schema, with its path.
fn walk(path: &str, node: &Value, visit: &mut impl FnMut(&str, &Map<String, Value>)) {
    let object = node
        .as_object()
        .unwrap_or_else(|| panic!("{path} is not a schema"));
    visit(path, object);
    for (name, field) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        walk(&format!("{path}.{name}"), field, visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = object.get(key).filter(|inner| inner.is_object()) {
            walk(&format!("{path}{mark}"), inner, visit);
        }
    }
}

fn each_node(mut visit: impl FnMut(&str, &Map<String, Value>)) {
    for crd in crds() {
        walk(&crd.spec.names.kind, &schema(&crd), &mut visit);
    }
}

#[test]
fn every_schema_is_structural() {
    const KNOWN: [&str; 24] = [
        "additionalProperties",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "required",
        "type",
        "title",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    each_node(|path, node| {
        for key in node.keys() {
            assert!(
                KNOWN.contains(&key.as_str()),
                "{path}: {key} does not belong into a structural schema"
            );
        }
        assert!(
            node.get("type").is_some_and(Value::is_string),
            "{path} has no type"
        );
        let both = node.contains_key("properties") && node.contains_key("additionalProperties");
        assert!(
            !both,
            "{path}: properties and additionalProperties exclude each other"
        );
        assert!(
            node["type"] != "array" || node.contains_key("items"),
            "{path} has no items"
        );
        let free = node.contains_key("x-kubernetes-preserve-unknown-fields");
        let shaped = node.contains_key("properties") || node.contains_key("additionalProperties");
        assert!(
            node["type"] != "object" || free || shaped,
            "{path}: everything in it would be pruned"
        );
    });
}

#[test]
fn only_what_must_be_free_is_free() {
    let mut free = BTreeSet::new();
    each_node(|path, node| {
        if node.contains_key("x-kubernetes-preserve-unknown-fields") {
            free.insert(path.to_owned());
        }
    });
    let free: Vec<_> = free.into_iter().collect();
    insta::assert_snapshot!(free.join("\n"));
}

#[test]
fn null_is_a_value_only_where_it_means_something() {
    each_node(|path, node| {
        let meant = path == "ApplicationMapping.spec.services"
            || path.ends_with(".status") && !path.contains(".spec");
        assert!(
            !node.contains_key("nullable") || meant,
            "{path} is nullable"
        );
    });
}

#[test]
fn every_list_says_how_it_is_merged_and_conditions_are_keyed_by_type() {
    let mut conditions = 0;
    each_node(|path, node| {
        if node["type"] != "array" {
            return;
        }
        let list_type = node.get("x-kubernetes-list-type").and_then(Value::as_str);
        assert!(
            matches!(list_type, Some("atomic" | "set" | "map")),
            "{path} has no list type"
        );
        let keys = node
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array);
        assert_eq!(
            keys.is_some(),
            list_type == Some("map"),
            "{path}: keys belong to maps"
        );
        let required = node["items"]["required"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for key in keys.into_iter().flatten() {
            assert!(required.contains(key), "{path}: key {key} is not required");
        }
        if path.ends_with(".status.conditions") {
            conditions += 1;
            assert_eq!(keys, Some(&vec![Value::from("type")]), "{path}");
        }
    });
    assert_eq!(conditions, crds().len(), "every kind has conditions");
}

#[test]
fn every_field_is_documented() {
    each_node(|path, node| {
        let inner = path.ends_with("[]") || path.ends_with("{}");
        assert!(
            inner || node.contains_key("description"),
            "{path} has no description"
        );
    });
}

#[test]
fn every_rule_has_a_message_for_people() {
    each_node(|path, node| {
        for rule in node
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            assert!(
                rule["message"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{path}: {rule}"
            );
        }
    });
}

#[test]
fn every_kind_has_status_columns_short_name_and_category() {
    for crd in crds() {
        let kind = &crd.spec.names.kind;
        let version = &crd.spec.versions[0];
        assert_eq!(crd.spec.versions.len(), 1, "{kind}");
        assert!(
            version
                .subresources
                .as_ref()
                .is_some_and(|subresources| subresources.status.is_some()),
            "{kind}"
        );
        let columns: BTreeSet<_> = version
            .additional_printer_columns
            .iter()
            .flatten()
            .map(|column| column.name.as_str())
            .collect();
        for column in ["Ready", "Reason", "Age"] {
            assert!(columns.contains(column), "{kind} has no column {column}");
        }
        assert!(
            crd.spec
                .names
                .short_names
                .as_ref()
                .is_some_and(|names| !names.is_empty()),
            "{kind}"
        );
        assert!(
            crd.spec
                .names
                .categories
                .iter()
                .flatten()
                .any(|category| category == "heddle"),
            "{kind}"
        );
        assert!(
            schema(&crd)["properties"]["status"]["properties"]["observedGeneration"].is_object(),
            "{kind}"
        );
    }
}

/// The schema node that a column's path leads to; filters on the entries of a list are skipped over.
fn resolve<'a>(schema: &'a Value, path: &str) -> &'a Value {
    let plain = path.replace("[?(@.type==\"Ready\")]", ".[]");
    plain
        .trim_start_matches('.')
        .split('.')
        .fold(schema, |node, step| match step {
            "[]" => &node["items"],
            name => &node["properties"][name],
        })
}

#[test]
fn every_column_points_at_a_field_that_exists() {
    for crd in crds() {
        let schema = schema(&crd);
        for column in crd.spec.versions[0]
            .additional_printer_columns
            .iter()
            .flatten()
        {
            let found = column.json_path.starts_with(".metadata.")
                || resolve(&schema, &column.json_path)["type"].is_string();
            assert!(
                found,
                "{}: column {} points nowhere",
                crd.spec.names.kind, column.name
            );
        }
    }
}

#[test]
fn names_do_not_clash() {
    let mut seen = BTreeSet::new();
    for crd in crds() {
        let names = crd.spec.names;
        let words = names
            .short_names
            .into_iter()
            .flatten()
            .chain([names.plural])
            .chain(names.singular);
        for word in words {
            assert!(seen.insert(word.clone()), "{word} means two kinds");
        }
    }
}

#[test]
fn condition_names_and_reasons_are_unique_words() {
    let word = |text: &str| {
        text.chars().next().is_some_and(char::is_uppercase)
            && text.chars().all(char::is_alphanumeric)
    };
    for kind in kinds() {
        let name = &kind.crd.spec.names.kind;
        let mut seen = BTreeSet::from([heddle_api::conditions::READY]);
        for condition in kind.conditions.iter() {
            assert!(
                word(condition.name) && seen.insert(condition.name),
                "{name}: {}",
                condition.name
            );
            assert!(
                !condition.reasons.is_empty(),
                "{name}: {} can only be True",
                condition.name
            );
            for reason in condition.reasons {
                assert!(
                    word(reason.name) && reason.meaning.ends_with('.'),
                    "{name}: {reason:?}"
                );
            }
        }
        assert!(
            !kind.conditions.dependents.is_empty(),
            "{name} would be ready before anybody looked at it"
        );
    }
}

#[test]
fn event_activations_are_the_only_read_only_kind() {
    let kinds: Vec<_> = read_only_kinds()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    assert_eq!(kinds, ["EventActivation"]);
}

#[test]
fn the_definition_of_a_broker_reads_like_this() {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == "Broker")
        .unwrap();
    insta::assert_snapshot!(serde_saphyr::to_string(&crd).unwrap());
}
