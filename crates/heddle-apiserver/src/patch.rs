//! Patches: JSON merge patch, JSON patch and, for built-in kinds, strategic merge patch.
//!
//! Each takes the current object and turns it into the patched one, or leaves it untouched and says why not. Whether the result
//! is acceptable (schema, immutable metadata, preconditions) is for the write path to decide.

mod json;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::schema::{DEPTH_MAX, within_depth};

pub(crate) use json::json;
pub(crate) use strategic::strategic;

/// Why a patch was not applied, by the answer it deserves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// 400: this is no patch.
    #[error("{0}")]
    Malformed(String),
    /// 413: more than is accepted at once.
    #[error("{0}")]
    TooLarge(String),
    /// 422: a patch, but not for this object.
    #[error("{0}")]
    Inapplicable(String),
}

/// Applies a JSON merge patch (RFC 7386): objects merge, null removes, everything else replaces.
pub(crate) fn merge(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    check_is_object(patch)?;
    check_depth(patch)?;
    merge_into(object, patch);
    Ok(())
}

fn merge_into(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (name, change) in changes {
        match change {
            Value::Null => {
                fields.remove(name);
            }
            change => merge_into(fields.entry(name.clone()).or_insert(Value::Null), change),
        }
    }
}

fn check_is_object(patch: &Value) -> Result<(), PatchError> {
    let found = match patch {
        Value::Object(_) => return Ok(()),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    let problem =
        format!("cannot unmarshal {found} into Go value of type map[string]interface {{}}");
    Err(PatchError::Malformed(format!(
        "error decoding patch: json: {problem}"
    )))
}

fn check_depth(value: &Value) -> Result<(), PatchError> {
    match within_depth(value) {
        true => Ok(()),
        false => Err(PatchError::Malformed(format!(
            "error decoding patch: must not be nested deeper than {DEPTH_MAX} levels"
        ))),
    }
}
