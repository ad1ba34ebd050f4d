//! The tag of a body: it follows everything in it that can be news.
//!
//! Ages, the moment of looking and what was seen as evidence move on while nothing happens, so they are left out; two bodies
//! with the same tag say the same. It is worked out from the body alone and is good across restarts.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// What moves on by itself, by its name on the wire.
const MOVING: [&str; 6] = [
    "at",
    "offset",
    "evidence",
    "ageSeconds",
    "endToEndSeconds",
    "lastProbe",
];

/// Weak, because of what is left out.
pub(super) fn of(body: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    add(&mut hasher, body);
    format!("W/\"{:016x}\"", hasher.finish())
}

fn add(hasher: &mut DefaultHasher, value: &Value) {
    match value {
        Value::Object(fields) => {
            let still = fields
                .iter()
                .filter(|(name, _)| !MOVING.contains(&&***name));
            for (name, value) in still {
                name.hash(hasher);
                add(hasher, value);
            }
            '}'.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                add(hasher, item);
            }
        }
        Value::String(text) => text.hash(hasher),
        other => other.to_string().hash(hasher),
    }
}
