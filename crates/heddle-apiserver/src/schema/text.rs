//! How values appear in messages, the way Go prints them.

use serde_json::{Number, Value};

use super::Cause;

/// A value inside `Invalid value: …`: text quoted, other scalars plain, the rest as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => number_shown(number),
        other => other.to_string(),
    }
}

fn number_shown(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_shown(float),
        _ => number.to_string(),
    }
}

/// Go's `%v` of a float: shortest form, exponents from 1e21 upwards and below 1e-4.
pub(super) fn float_shown(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{float}")
}

pub(super) fn invalid(field: String, value: &str, detail: &str) -> Cause {
    Cause {
        field,
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {value}: {detail}"),
    }
}

pub(super) fn type_invalid(field: String, value: &str, detail: &str) -> Cause {
    Cause {
        field,
        reason: "FieldValueTypeInvalid",
        message: format!("Invalid value: {value}: {detail}"),
    }
}

pub(super) fn required(field: String) -> Cause {
    Cause {
        field,
        reason: "FieldValueRequired",
        message: "Required value".to_owned(),
    }
}

pub(super) fn not_supported(field: String, value: &Value, allowed: &[Value]) -> Cause {
    let allowed: Vec<String> = allowed
        .iter()
        .map(|value| match value {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", other.to_string()),
        })
        .collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        shown(value),
        allowed.join(", ")
    );
    Cause {
        field,
        reason: "FieldValueNotSupported",
        message,
    }
}

pub(super) fn too_long(field: String, max: u64) -> Cause {
    let unit = if max == 1 { "byte" } else { "bytes" };
    Cause {
        field,
        reason: "FieldValueTooLong",
        message: format!("Too long: may not be more than {max} {unit}"),
    }
}

pub(super) fn too_many(field: String, actual: usize, max: u64) -> Cause {
    let unit = if max == 1 { "item" } else { "items" };
    Cause {
        field,
        reason: "FieldValueTooMany",
        message: format!("Too many: {actual}: must have at most {max} {unit}"),
    }
}

pub(super) fn duplicate(field: String, value: &Value) -> Cause {
    Cause {
        field,
        reason: "FieldValueDuplicate",
        message: format!("Duplicate value: {}", shown(value)),
    }
}
