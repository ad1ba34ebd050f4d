//! Makes derived JSON schemas acceptable to Kubernetes, and small.
//!
//! Every spec and status carries `#[schemars(transform = structural)]`. The transform walks the whole (inlined) schema
//! once and leaves nothing that the structural-schema rules forbid or that only repeats itself:
//!
//! - an absent field is absent, so `Option` adds neither `null` to a type nor an `anyOf`;
//! - a plain enum is one `enum` of strings, its variants' documentation moved into the description;
//! - every list states how server-side apply merges it, `atomic` unless the field said otherwise;
//! - number formats that only Rust knows (`uint32`, …) are dropped, since API servers warn about them.
//!
//! Because it runs inside the derive, `Kind::crd()` and [`crate::crds`] give the same bytes.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// How an ISO 8601 duration looks on the wire, as Knative's delivery settings use it (`PT0.2S`, `PT5M`, `P1DT12H`).
pub(crate) const DURATION_PATTERN: &str =
    "^P([0-9]+([.,][0-9]+)?[YMWD])*(T([0-9]+([.,][0-9]+)?[HMS])+)?$";

/// Names of objects: lower-case letters, digits, `-` and `.`, as Kubernetes demands of them.
pub(crate) const OBJECT_NAME_PATTERN: &str =
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

const KNOWN_FORMATS: [&str; 5] = ["int32", "int64", "double", "date-time", "byte"];

/// An object whose members are nobody's business but the user's: kept as sent, never pruned.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of such objects.
pub(crate) fn free_form_list(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": free_form(generator)})
}

/// A point in time as Kubernetes writes it.
pub(crate) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Rewrites a schema in place; see the module's header for what it promises.
pub(crate) fn structural(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut() {
        rewrite(object);
    }
}

fn rewrite(schema: &mut Map<String, Value>) {
    hoist_optional(schema);
    collect_enum(schema);
    drop_null_type(schema);
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !KNOWN_FORMATS.contains(&format))
    {
        schema.remove("format");
    }
    if schema.get("type") == Some(&json!("array")) && !schema.contains_key("x-kubernetes-list-type")
    {
        schema.insert("x-kubernetes-list-type".to_owned(), json!("atomic"));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            rewrite(inner);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties
            .values_mut()
            .filter_map(Value::as_object_mut)
            .for_each(rewrite);
    }
}

/// `anyOf: [X, null]` becomes `X`; what the field says about itself wins over what its type says.
fn hoist_optional(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("anyOf") else {
        return;
    };
    let [Value::Object(inner), null] = variants.as_slice() else {
        return;
    };
    if null != &json!({"type": "null"}) {
        return;
    }
    let inner = inner.clone();
    schema.remove("anyOf");
    for (key, value) in inner {
        schema.entry(key).or_insert(value);
    }
}

/// `oneOf` of documented constants becomes one `enum`, with the documentation as a list in the description.
fn collect_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for variant in variants {
        let plain = variant.get("const").into_iter().chain(
            variant
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten(),
        );
        let before = values.len();
        values.extend(plain.cloned());
        if values.len() == before {
            return;
        }
        if let (Some(name), Some(text)) =
            (variant["const"].as_str(), variant["description"].as_str())
        {
            lines.push(format!("- `{name}`: {text}"));
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(values));
    if !lines.is_empty() {
        let lead = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = format!("{lead}\n\n{}", lines.join("\n"));
        schema.insert("description".to_owned(), json!(text.trim()));
    }
}

fn drop_null_type(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}
