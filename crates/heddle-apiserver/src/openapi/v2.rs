//! OpenAPI v2, for clients that do not ask for v3: kubectl until 1.24 or so, and Terraform.
//!
//! Such a kubectl looks there whether a kind takes `dryRun` (which `diff` needs as well) and `fieldValidation`, explains fields
//! from the definitions, and checks manifests by them. It reads protobuf, in the messages of gnostic's `openapi.v2`;
//! Terraform reads JSON. Both are made from one document.
//!
//! The second version knows less than the third: no `nullable`, no alternatives. What it cannot say is left out, so that a
//! client refuses nothing that the server would take.

use serde_json::{Map, Value, json};

use super::{OBJECT_META, collection_path, component, gvk, list_schema, object_meta, schema};
use crate::registry::{Registry, Resource};

mod message;

/// The parameters of a patch that kubectl looks for.
const PARAMETERS: [&str; 2] = ["dryRun", "fieldValidation"];

pub(crate) fn as_json(registry: &Registry) -> Value {
    let paths: Map<String, Value> = patched(registry)
        .map(|resource| {
            let parameters =
                PARAMETERS.map(|name| json!({"name": name, "in": "query", "type": "string"}));
            let operation = json!({
                "x-kubernetes-group-version-kind": gvk(resource, &resource.kind),
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
            });
            (object_path(resource), json!({"patch": operation}))
        })
        .collect();
    let info = json!({"title": "heddle", "version": env!("CARGO_PKG_VERSION")});
    json!({"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions(registry)})
}

pub(crate) fn as_protobuf(registry: &Registry) -> Vec<u8> {
    message::document(&as_json(registry))
}

fn patched(registry: &Registry) -> impl Iterator<Item = &Resource> {
    let resources = registry.resources().iter().map(|resource| &**resource);
    resources.filter(|resource| resource.verbs().contains(&"patch"))
}

fn object_path(resource: &Resource) -> String {
    format!("{}/{{name}}", collection_path(resource))
}

/// Every kind and its list, by the names that the third version has for them too.
fn definitions(registry: &Registry) -> Map<String, Value> {
    let mut definitions = Map::new();
    definitions.insert(OBJECT_META.to_owned(), lowered(&object_meta()));
    for resource in registry.resources() {
        let name = component(resource);
        let list = list_schema(resource, &name);
        definitions.insert(format!("{name}List"), lowered(&list));
        definitions.insert(name, lowered(&schema(resource)));
    }
    definitions
}

/// What both versions mean alike.
const KEPT: [&str; 7] = [
    "description",
    "enum",
    "format",
    "maximum",
    "minimum",
    "required",
    "type",
];

/// A schema of the third version in the second. Extensions are kept, for they say how to merge.
fn lowered(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        return json!({});
    };
    let mut lower = Map::new();
    // A reference stands alone. In the third version it is wrapped to have a description beside it.
    let wrapped = fields.get("allOf").and_then(|all| all.get(0));
    let reference = fields.get("$ref").or_else(|| wrapped?.get("$ref"));
    if let Some(Value::String(reference)) = reference {
        let reference = reference.replace("#/components/schemas/", "#/definitions/");
        lower.insert("$ref".to_owned(), json!(reference));
        lower.extend(kept(fields, "description"));
        return Value::Object(lower);
    }
    // Whatever may be there must not be checked.
    let is_open = [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
    ]
    .iter()
    .any(|extension| fields.get(*extension) == Some(&json!(true)));
    let has_null = fields.get("nullable") == Some(&json!(true));
    for (name, value) in fields {
        let keep = KEPT.contains(&name.as_str()) || name.starts_with("x-kubernetes-");
        let checks = matches!(name.as_str(), "type" | "required" | "enum" | "format");
        if keep && !(checks && (is_open || has_null)) {
            lower.insert(name.clone(), value.clone());
        }
    }
    if is_open || has_null {
        return Value::Object(lower);
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get(nested).filter(|inner| inner.is_object()) {
            lower.insert(nested.to_owned(), lowered(inner));
        }
    }
    if let Some(Value::Object(properties)) = fields.get("properties") {
        let properties = properties
            .iter()
            .map(|(name, inner)| (name.clone(), lowered(inner)));
        lower.insert("properties".to_owned(), Value::Object(properties.collect()));
    }
    Value::Object(lower)
}

fn kept(fields: &Map<String, Value>, name: &str) -> Option<(String, Value)> {
    Some((name.to_owned(), fields.get(name)?.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        as_json(&Registry::heddle().unwrap())
    }

    #[test]
    fn every_served_kind_has_a_definition_and_every_reference_leads_to_one() {
        let (registry, document) = (Registry::heddle().unwrap(), document());
        let definitions = document["definitions"].as_object().unwrap();
        for resource in registry.resources() {
            let kind = json!([gvk(resource, &resource.kind)]);
            let named = |schema: &&Value| schema["x-kubernetes-group-version-kind"] == kind;
            let found = definitions.values().filter(named).count();
            assert_eq!(found, 1, "{}", resource.kind_qualified());
        }
        let text = document.to_string();
        let references: Vec<&str> = text.split("\"#/definitions/").skip(1).collect();
        assert!(references.len() > 20, "{} references", references.len());
        for reference in references {
            let name = reference.split('"').next().unwrap();
            assert!(definitions.contains_key(name), "{name}");
        }
        assert!(
            !text.contains("#/components/"),
            "a reference of the third version"
        );
    }

    #[test]
    fn nothing_is_said_that_the_second_version_does_not_know() {
        fn check(schema: &Value, path: &str) {
            let known = |name: &str| {
                let structure = ["$ref", "items", "additionalProperties", "properties"];
                structure.contains(&name)
                    || KEPT.contains(&name)
                    || name.starts_with("x-kubernetes-")
            };
            for (name, inner) in schema.as_object().unwrap() {
                assert!(known(name), "{path}.{name}");
                match name.as_str() {
                    "items" | "additionalProperties" => check(inner, &format!("{path}.{name}")),
                    "properties" => {
                        for (name, inner) in inner.as_object().unwrap() {
                            check(inner, &format!("{path}.{name}"));
                        }
                    }
                    _ => {}
                }
            }
        }
        for (name, schema) in document()["definitions"].as_object().unwrap() {
            check(schema, name);
        }
    }

    #[test]
    fn what_may_hold_anything_or_nothing_is_not_checked() {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}});
        assert_eq!(
            lowered(&open),
            json!({"x-kubernetes-preserve-unknown-fields": true})
        );
        let number_or_text = json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true});
        assert_eq!(
            lowered(&number_or_text),
            json!({"x-kubernetes-int-or-string": true})
        );
        let nullable = json!({"type": "array", "nullable": true, "description": "d", "items": {"type": "string"}});
        assert_eq!(lowered(&nullable), json!({"description": "d"}));
    }
}
