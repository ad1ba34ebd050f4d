//! The schema of the parameters that a service takes, as platforms accept it.
//!
//! Platforms refuse a whole catalog for one schema that they cannot read, so a schema is published only if it says which
//! draft it is written in, needs no other document, and is not too long. Whether it is a sound schema of its draft is left to
//! whoever compiles it.

use serde_json::Value;

use crate::application::Service;

/// The longest schema that platforms must accept.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// The drafts that are understood. The first is the one that every platform knows, and what a schema without `$schema` is
/// taken for.
const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Keywords that lead to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The service's schema for parameters of a provision request, or what is wrong with it.
pub fn parameter_schema(service: &Service) -> Result<Option<Value>, String> {
    let Some(text) = &service.auth_create_parameter_schema else {
        return Ok(None);
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut schema: Value = serde_json::from_str(text)
        .map_err(|error| format!("its authCreateParameterSchema is not JSON: {error}"))?;
    let Some(fields) = schema.as_object_mut() else {
        return Err("its authCreateParameterSchema is not a JSON object".to_owned());
    };
    let draft = fields
        .entry("$schema")
        .or_insert_with(|| format!("{}#", DRAFTS[0]).into());
    let known = |draft: &str| DRAFTS.contains(&draft.trim_end_matches('#'));
    if !draft.as_str().is_some_and(known) {
        return Err(format!(
            "its authCreateParameterSchema has the $schema {draft}: use {}, or none",
            DRAFTS.join(", ")
        ));
    }
    if let Some(reference) = outside(&schema) {
        return Err(format!(
            "its authCreateParameterSchema refers to {reference:?}: only references within it, which begin with #, can be followed"
        ));
    }
    let length = schema.to_string().len();
    if length > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its authCreateParameterSchema has {length} bytes, and platforms take {SCHEMA_BYTES_MAX}: shorten it"
        ));
    }
    Ok(Some(schema))
}

/// The first reference that leads out of the document. The parser bounds how deep this goes.
fn outside(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(outside),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
            Value::String(target) if REFERENCES.contains(&key.as_str()) => {
                (!target.starts_with('#')).then_some(target.as_str())
            }
            value => outside(value),
        }),
        _ => None,
    }
}
