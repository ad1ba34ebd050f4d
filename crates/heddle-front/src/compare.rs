//! When two JSON values ask for the same thing.
//!
//! A platform that repeats a request may have parsed and printed it in between: keys in another order, `1` as `1.0`. Neither
//! makes another request of it.

use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};

/// Whether both mean the same.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => canonical(one) == canonical(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_object(one, other),
        _ => one == other,
    }
}

/// The same for objects.
pub(crate) fn same_object(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let equal =
        |(key, value): (&String, &Value)| other.get(key).is_some_and(|found| same(value, found));
    one.len() == other.len() && one.iter().all(equal)
}

/// A hash that is equal for values that mean the same.
pub(crate) fn hash(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&canonical(number)),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                write(&Value::String(key.clone()), out);
                out.push(':');
                write(&members[key], out);
                out.push(',');
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// A number without regard to how it was written.
fn canonical(number: &Number) -> String {
    /// Above it a float does not tell whole numbers apart any more.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT_MAX => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and within the exact range"
            )]
            let whole = float as i64;
            whole.to_string()
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn how_a_value_was_printed_makes_no_difference_and_everything_else_does() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0", "-0.0"),
            (
                r#"{"a":1,"b":[1,{"c":2}]}"#,
                r#"{"b":[1.0,{"c":2.0}],"a":1}"#,
            ),
            ("9007199254740993", "9007199254740993"),
            (r#""ü""#, r#""\u00fc""#),
        ] {
            let (one, other) = (parse(one), parse(other));
            assert!(same(&one, &other), "{one} and {other}");
            assert_eq!(hash(&one), hash(&other));
        }
        for (one, other) in [
            (json!(1), json!("1")),
            (json!(1), json!(1.5)),
            (json!([1, 2]), json!([2, 1])),
            (json!({"a": null}), json!({})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!(["a,", "b"]), json!(["a", ",b"])),
            (
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
        ] {
            assert!(!same(&one, &other), "{one} and {other}");
            assert_ne!(hash(&one), hash(&other));
        }
    }
}
