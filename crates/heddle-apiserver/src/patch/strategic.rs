//! Strategic merge patch, for the built-in kinds that are served.
//!
//! A JSON merge patch whose lists may merge too and which can carry directives: `$patch` (merge, replace, delete), `$retainKeys`,
//! `$deleteFromPrimitiveList/<list>` and `$setElementOrder/<list>`. Few lists of the kinds served here merge; [`list_strategy`]
//! names them. Kinds defined by a CustomResourceDefinition do not take such patches at all.

use serde_json::{Map, Value};

use super::{PatchError, check_depth, check_is_object};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

enum ListStrategy {
    Replace,
    Set,
    ByKey(&'static str),
}

fn list_strategy(path: &[&str]) -> ListStrategy {
    match path {
        ["metadata", "finalizers"] => ListStrategy::Set,
        ["metadata", "ownerReferences"] => ListStrategy::ByKey("uid"),
        ["status", "conditions"] => ListStrategy::ByKey("type"),
        _ => ListStrategy::Replace,
    }
}

/// Applies a strategic merge patch to an object of a built-in kind.
pub(crate) fn strategic(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    check_is_object(patch)?;
    check_depth(patch)?;
    *object = merge(&mut object.clone(), patch, &mut Vec::new())?;
    Ok(())
}

fn malformed(text: &str) -> PatchError {
    PatchError::Malformed(text.to_owned())
}

/// The merge of `target` with `patch`; `target` is consumed.
fn merge<'p>(
    target: &mut Value,
    patch: &'p Value,
    path: &mut Vec<&'p str>,
) -> Result<Value, PatchError> {
    let Value::Object(changes) = patch else {
        return Ok(without_directives(patch));
    };
    let mut fields = match target.take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    match changes.get(PATCH) {
        None => {}
        Some(Value::String(directive)) => match directive.as_str() {
            "merge" => {}
            "replace" => return Ok(replacement(changes)),
            "delete" => return Ok(Value::Object(Map::new())),
            other => {
                return Err(PatchError::Malformed(format!(
                    "unknown patch type {other:?}"
                )));
            }
        },
        Some(_) => return Err(malformed("invalid value for special key: $patch")),
    }
    if let Some(retained) = changes.get(RETAIN_KEYS) {
        let retained = retained
            .as_array()
            .ok_or_else(|| malformed("invalid patch format of retainKeys"))?;
        fields.retain(|name, _| retained.iter().any(|key| key.as_str() == Some(name)));
    }
    for (name, change) in changes {
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            let gone = change
                .as_array()
                .ok_or_else(|| malformed("invalid patch format of primitive list"))?;
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        }
    }
    for (name, change) in changes.iter().filter(|(name, _)| !name.starts_with('$')) {
        path.push(name);
        match change {
            Value::Null => {
                fields.remove(name);
            }
            Value::Array(changes) => {
                let list = merge_list(fields.remove(name), changes, path)?;
                fields.insert(name.clone(), list);
            }
            change => {
                let merged = merge(
                    &mut fields.remove(name).unwrap_or(Value::Null),
                    change,
                    path,
                )?;
                fields.insert(name.clone(), merged);
            }
        }
        path.pop();
    }
    for (name, order) in changes {
        if let Some(list) = name.strip_prefix(ELEMENT_ORDER) {
            let order = order
                .as_array()
                .ok_or_else(|| malformed("invalid patch format of setElementOrder list"))?;
            path.push(list);
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                reorder(items, order, path);
            }
            path.pop();
        }
    }
    Ok(Value::Object(fields))
}

fn merge_list<'p>(
    current: Option<Value>,
    changes: &'p [Value],
    path: &mut Vec<&'p str>,
) -> Result<Value, PatchError> {
    let strategy = list_strategy(path);
    let mut items = match (current, &strategy) {
        (Some(Value::Array(items)), ListStrategy::Set | ListStrategy::ByKey(_)) => items,
        _ => Vec::new(),
    };
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    match strategy {
        ListStrategy::Replace => items.extend(changes.iter().map(without_directives)),
        ListStrategy::Set => {
            for change in changes {
                if !items.contains(change) {
                    items.push(change.clone());
                }
            }
        }
        ListStrategy::ByKey(key) => {
            if changes
                .iter()
                .any(|change| directive(change).as_deref() == Some("replace"))
            {
                items.clear();
            }
            for change in changes {
                let identity = match (change.get(key), directive(change).as_deref()) {
                    (None, Some("replace")) => continue,
                    (None, _) => {
                        return Err(PatchError::Inapplicable(format!(
                            "map: {change} does not contain declared merge key: {key}"
                        )));
                    }
                    (Some(identity), _) => identity,
                };
                let position = items
                    .iter()
                    .position(|item| item.get(key) == Some(identity));
                match (directive(change).as_deref(), position) {
                    (Some("delete"), Some(position)) => {
                        items.remove(position);
                    }
                    (Some("delete"), None) => {}
                    (_, Some(position)) => {
                        items[position] = merge(&mut items[position], change, path)?
                    }
                    (_, None) => items.push(without_directives(change)),
                }
            }
        }
    }
    Ok(Value::Array(items))
}

/// Puts the items named in `order` into that order, before those it does not name.
fn reorder(items: &mut [Value], order: &[Value], path: &[&str]) {
    let rank = |item: &Value| match list_strategy(path) {
        ListStrategy::ByKey(key) => order
            .iter()
            .position(|named| named.get(key) == item.get(key)),
        ListStrategy::Set | ListStrategy::Replace => order.iter().position(|named| named == item),
    };
    if !matches!(list_strategy(path), ListStrategy::Replace) {
        items.sort_by_key(|item| rank(item).unwrap_or(usize::MAX));
    }
}

fn replacement(changes: &Map<String, Value>) -> Value {
    let fields = changes.iter().filter(|(name, _)| name.as_str() != PATCH);
    Value::Object(
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// A value that is new as a whole: directives and nulls in it have nothing to act on.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name.clone(), without_directives(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(without_directives).collect()),
        scalar => scalar.clone(),
    }
}
