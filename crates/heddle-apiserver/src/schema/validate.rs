//! Everything that can be wrong with an object, in the order and the words of a real server.
//!
//! First types and constraints, then embedded resources, then duplicates in sets and keyed lists, last the rules. Rules are
//! written against well-typed values, so they wait until the object is one.

use serde_json::{Map, Number, Value};

use super::lists::{lists, old_item, repeated};
use super::path::Path;
use super::text::{
    float_shown, invalid, not_supported, required, shown, too_long, too_many, type_invalid,
};
use super::{Additional, Bound, Cause, Limits, Logic, Node, Type, format};

pub(super) fn object(root: &Node, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    value(root, object, old, &Path::ROOT, &mut causes);
    embedded(root, object, &Path::ROOT, true, &mut causes);
    let mut duplicates = Vec::new();
    if let Some(old) = old {
        lists(root, old, &Path::ROOT, &mut duplicates);
    }
    // Duplicates that were stored already may stay.
    if duplicates.is_empty() {
        lists(root, object, &Path::ROOT, &mut causes);
    }
    if root.rules_within {
        match causes.iter().any(blocks_rules) {
            true => causes.push(invalid(
                "<nil>".to_owned(),
                "null",
                "some validation rules were not checked because the object was invalid; correct the existing errors to \
                 complete validation",
            )),
            false => rules(root, object, old, &Path::ROOT, &mut causes),
        }
    }
    causes
}

fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

/// Types and constraints of a value and everything in it.
fn value(
    node: &Node,
    value_: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    if old == Some(value_) {
        return;
    }
    if let Some(found) = wrong_type(node, value_) {
        let expected: Vec<&str> = node.types.iter().map(|expected| expected.name()).collect();
        let at = path.dotted();
        let detail = format!(
            "{at} in body must be of type {}: {found:?}",
            expected.join(",")
        );
        causes.push(type_invalid(field(at), &format!("{found:?}"), &detail));
    }
    if value_.is_null() {
        if let Some(limits) = &node.limits {
            allowed(limits, value_, path, causes);
        }
        return;
    }
    if let Some(branches) = &node.logic {
        logic(branches, value_, old, path, causes);
    }
    if let Some(limits) = &node.limits {
        match value_ {
            Value::String(text_) => text(limits, text_, path, causes),
            Value::Number(number_) => number(node, limits, number_, path, causes),
            _ => {}
        }
    }
    if let Value::Array(items) = value_ {
        if let Some(item_node) = node.items.as_deref() {
            for (index, item) in items.iter().enumerate() {
                value(
                    item_node,
                    item,
                    old_item(&node.list, old, item),
                    &path.index(index),
                    causes,
                );
            }
        }
        if let Some(limits) = &node.limits {
            item_count(limits, items, path, causes);
        }
    }
    if let Some(limits) = &node.limits {
        allowed(limits, value_, path, causes);
    }
    if let Value::Object(fields) = value_ {
        object_fields(node, fields, old, path, causes);
    }
}

/// The field of a cause; the root has none.
fn field(path: String) -> String {
    if path.is_empty() {
        "<nil>".to_owned()
    } else {
        path
    }
}

fn wrong_type(node: &Node, value: &Value) -> Option<&'static str> {
    let (found, fits): (_, fn(Type) -> bool) = match value {
        Value::Null => return (!node.types.is_empty() && !node.nullable).then_some("null"),
        Value::Bool(_) => ("boolean", |expected| expected == Type::Boolean),
        Value::String(_) => ("string", |expected| expected == Type::String),
        Value::Array(_) => ("array", |expected| expected == Type::Array),
        Value::Object(_) => ("object", |expected| expected == Type::Object),
        Value::Number(number) if is_integral(number) => {
            let found = if number.is_f64() { "number" } else { "integer" };
            (found, |expected| {
                matches!(expected, Type::Integer | Type::Number)
            })
        }
        Value::Number(_) => ("number", |expected| expected == Type::Number),
    };
    (!node.types.is_empty() && !node.types.iter().any(|expected| fits(*expected))).then_some(found)
}

fn is_integral(number: &Number) -> bool {
    !number.is_f64()
        || number
            .as_f64()
            .is_some_and(|float| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0)
}

fn allowed(limits: &Limits, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let equal = |allowed: &Value| match (allowed, value) {
        (Value::Number(allowed), Value::Number(value)) => {
            allowed == value || allowed.as_f64() == value.as_f64()
        }
        (allowed, value) => allowed == value,
    };
    if !limits.allowed.is_empty() && !limits.allowed.iter().any(equal) {
        causes.push(not_supported(field(path.dotted()), value, &limits.allowed));
    }
}

fn text(limits: &Limits, text: &str, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = || path.dotted();
    let length = text.chars().count() as u64;
    if let Some(max) = limits.length.max.filter(|max| length > *max) {
        causes.push(too_long(field(at()), max));
    } else if let Some(min) = limits.length.min.filter(|min| length < *min) {
        let detail = format!("{} in body should be at least {min} chars long", at());
        causes.push(invalid(field(at()), &format!("{text:?}"), &detail));
    } else if let Some(pattern) = limits
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.is_match(text))
    {
        let detail = format!("{} in body should match '{}'", at(), pattern.as_str());
        causes.push(invalid(field(at()), &format!("{text:?}"), &detail));
    }
    if let Some(format) = limits
        .format
        .as_deref()
        .filter(|format| !format::accepts(format, text))
    {
        let detail = format!("{} in body must be of type {format}: {text:?}", at());
        causes.push(type_invalid(field(at()), &format!("{text:?}"), &detail));
    }
}

fn number(node: &Node, limits: &Limits, number: &Number, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let whole = if number.is_f64() {
        None
    } else {
        number.as_i64()
    };
    let float = number.as_f64().unwrap_or(f64::NAN);
    let at = || path.dotted();
    let value = || shown(&Value::Number(number.clone()));
    if node.types == [Type::Integer] {
        let (fits, format) = match limits.format.as_deref() {
            Some("int32") => (
                whole.is_some_and(|whole| i32::try_from(whole).is_ok()) || number.is_f64(),
                " with format int32",
            ),
            Some("int64") => (whole.is_some() || number.is_f64(), " with format int64"),
            _ => (whole.is_some() || number.is_f64(), " (default format)"),
        };
        if !fits {
            let detail = format!("Checked value must be of type integer{format} in {}", at());
            causes.push(invalid("<nil>".to_owned(), "\"\"", &detail));
        }
    }
    let factor_shown =
        |factor: f64| whole.map_or_else(|| float_shown(factor), |_| (factor as i64).to_string());
    if let Some(factor) = limits.multiple_of {
        let fits = match whole {
            Some(whole) if factor as i64 > 0 => whole % (factor as i64) == 0,
            _ => (float / factor).fract() == 0.0,
        };
        if !fits {
            let detail = format!(
                "{} in body should be a multiple of {}",
                at(),
                factor_shown(factor)
            );
            causes.push(invalid(field(at()), &value(), &detail));
        }
    }
    let outside = |bound: &Bound, beyond: fn(f64, f64) -> bool| {
        beyond(float, bound.value) || (bound.exclusive && float == bound.value)
    };
    if let Some(bound) = limits
        .minimum
        .filter(|bound| outside(bound, |value, bound| value < bound))
    {
        let relation = if bound.exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        let detail = format!(
            "{} in body should be {relation} {}",
            at(),
            factor_shown(bound.value)
        );
        causes.push(invalid(field(at()), &value(), &detail));
    }
    if let Some(bound) = limits
        .maximum
        .filter(|bound| outside(bound, |value, bound| value > bound))
    {
        let relation = if bound.exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        let detail = format!(
            "{} in body should be {relation} {}",
            at(),
            factor_shown(bound.value)
        );
        causes.push(invalid(field(at()), &value(), &detail));
    }
}

fn item_count(limits: &Limits, items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = || path.dotted();
    let count = items.len() as u64;
    if let Some(min) = limits.items.min.filter(|min| count < *min) {
        let detail = format!("{} in body should have at least {min} items", at());
        causes.push(invalid(field(at()), &count.to_string(), &detail));
    }
    if let Some(max) = limits.items.max.filter(|max| count > *max) {
        causes.push(too_many(field(at()), items.len(), max));
    }
    if limits.unique_items && !repeated(items.iter().map(Value::to_string)).is_empty() {
        causes.push(invalid(
            field(at()),
            "\"\"",
            &format!("{} in body shouldn't contain duplicates", at()),
        ));
    }
}

fn object_fields(
    node: &Node,
    fields: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let count = fields.len() as u64;
    if let Some(limits) = &node.limits {
        let at = || path.dotted();
        if let Some(min) = limits.properties.min.filter(|min| count < *min) {
            let detail = format!("{} in body should have at least {min} properties", at());
            causes.push(invalid(field(at()), &count.to_string(), &detail));
        }
        if let Some(max) = limits.properties.max.filter(|max| count > *max) {
            causes.push(too_many(field(at()), fields.len(), max));
        }
    }
    for (name, field) in fields {
        let child = match (node.properties.get(name), &node.additional) {
            (Some(property), _) => property,
            (None, Additional::Of(values)) => values,
            (None, Additional::None | Additional::Any) => continue,
        };
        value(
            child,
            field,
            old.and_then(|old| old.get(name)),
            &path.field(name),
            causes,
        );
    }
    for name in node.limits.iter().flat_map(|limits| &limits.required) {
        if !fields.contains_key(name) {
            causes.push(required(path.field(name).dotted()));
        }
    }
}

fn logic(
    logic: &Logic,
    value_: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let attempt = |branch: &Node| {
        let mut causes = Vec::new();
        value(branch, value_, old, path, &mut causes);
        causes
    };
    // These failures belong to no field of their own.
    let composite = |detail: String| {
        invalid(
            "<nil>".to_owned(),
            "\"\"",
            &format!("{:?} {detail}", path.dotted()),
        )
    };
    // Of several failed alternatives, the one that came closest explains best.
    let closest = |attempts: Vec<Vec<Cause>>| {
        attempts
            .into_iter()
            .min_by_key(Vec::len)
            .unwrap_or_default()
    };

    if !logic.any_of.is_empty() {
        let attempts: Vec<_> = logic.any_of.iter().map(attempt).collect();
        if !attempts.iter().any(Vec::is_empty) {
            causes.push(composite(
                "must validate at least one schema (anyOf)".to_owned(),
            ));
            causes.extend(closest(attempts));
        }
    }
    if !logic.one_of.is_empty() {
        let attempts: Vec<_> = logic.one_of.iter().map(attempt).collect();
        match attempts.iter().filter(|attempt| attempt.is_empty()).count() {
            1 => {}
            0 => {
                causes.push(composite(
                    "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                ));
                causes.extend(closest(attempts));
            }
            valid => causes.push(composite(format!(
                "must validate one and only one schema (oneOf). Found {valid} valid alternatives"
            ))),
        }
    }
    if !logic.all_of.is_empty() {
        let attempts: Vec<_> = logic.all_of.iter().map(attempt).collect();
        let failed = attempts
            .iter()
            .filter(|attempt| !attempt.is_empty())
            .count();
        causes.extend(attempts.into_iter().flatten());
        if failed > 0 {
            let none = if failed == logic.all_of.len() {
                ". None validated"
            } else {
                ""
            };
            causes.push(composite(format!(
                "must validate all the schemas (allOf){none}"
            )));
        }
    }
    if logic
        .not
        .as_ref()
        .is_some_and(|branch| attempt(branch).is_empty())
    {
        causes.push(composite("must not validate the schema (not)".to_owned()));
    }
}

/// Objects within objects that claim to be resources need a type. The root's own type is the server's business.
fn embedded(node: &Node, value: &Value, path: &Path<'_>, is_root: bool, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if node.embedded && !is_root {
                for name in ["apiVersion", "kind"] {
                    let at = path.field(name).bracketed();
                    match fields.get(name) {
                        None => causes.push(required(at)),
                        Some(Value::String(text)) if text.is_empty() => {
                            causes.push(invalid(at, "\"\"", "must not be empty"))
                        }
                        Some(Value::String(_)) => {}
                        Some(other) => causes.push(invalid(at, &shown(other), "must be a string")),
                    }
                }
            }
            each_field(node, fields, path, &mut |child, _, field, path| {
                embedded(child, field, path, false, causes);
            });
        }
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    embedded(item_node, item, &path.index(index), false, causes);
                }
            }
        }
        _ => {}
    }
}

/// Visits the fields the node knows, with the path of each.
pub(super) fn each_field(
    node: &Node,
    fields: &Map<String, Value>,
    path: &Path<'_>,
    visit: &mut dyn FnMut(&Node, &str, &Value, &Path<'_>),
) {
    for (name, field) in fields {
        match (node.properties.get(name), &node.additional) {
            (Some(property), _) => visit(property, name, field, &path.field(name)),
            (None, Additional::Of(values)) => visit(values, name, field, &path.key(name)),
            (None, Additional::None | Additional::Any) => {}
        }
    }
}

/// Evaluates the rules of a value and of everything in it.
fn rules(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    // A null is judged by the rules around it, never by its own.
    if !node.rules_within || value.is_null() {
        return;
    }
    if let Some(rules) = &node.rules {
        for violation in rules.evaluate(value, old.filter(|old| !old.is_null())) {
            let at = path.bracketed();
            let field = match (at.as_str(), violation.field_path.as_str()) {
                (_, "") => at,
                ("<nil>", relative) => relative.trim_start_matches('.').to_owned(),
                (_, relative) => format!("{at}{relative}"),
            };
            causes.push(Cause {
                field,
                reason: violation.reason,
                message: violation.message,
            });
        }
    }
    match value {
        Value::Object(fields) => each_field(node, fields, path, &mut |child, name, field, path| {
            rules(
                child,
                field,
                old.and_then(|old| old.get(name)),
                path,
                causes,
            );
        }),
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    rules(
                        item_node,
                        item,
                        old_item(&node.list, old, item),
                        &path.index(index),
                        causes,
                    );
                }
            }
        }
        _ => {}
    }
}
