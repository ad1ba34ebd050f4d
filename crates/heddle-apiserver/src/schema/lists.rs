//! What tells the items of a list apart: the value itself in sets, some of its fields in keyed lists.

use std::collections::HashMap;

use serde_json::Value;

use super::path::Path;
use super::text::{duplicate, invalid, shown};
use super::validate::each_field;
use super::{Cause, ListKind, Node};

/// Sets hold each value once, keyed lists each key.
pub(super) fn lists(node: &Node, value: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Array(items) => {
            match &node.list {
                ListKind::Atomic => {}
                ListKind::Set => {
                    for index in repeated(items.iter().map(Value::to_string)) {
                        causes.push(duplicate(path.index(index).bracketed(), &items[index]));
                    }
                }
                ListKind::Map(keys) => keyed_list(keys, items, path, causes),
            }
            if let Some(item_node) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    lists(item_node, item, &path.index(index), causes);
                }
            }
        }
        Value::Object(fields) => {
            each_field(node, fields, path, &mut |child, _, field, path| {
                lists(child, field, path, causes)
            });
        }
        _ => {}
    }
}

fn keyed_list(keys: &[String], items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    if let Some(index) = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null())
    {
        let at = path.index(index).bracketed();
        causes.push(invalid(
            at,
            &shown(&items[index]),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let identity = |item: &Value| -> Value {
        let present = keys
            .iter()
            .filter_map(|key| item.get(key).map(|value| (key.clone(), value.clone())));
        Value::Object(present.collect())
    };
    for index in repeated(items.iter().map(|item| identity(item).to_string())) {
        causes.push(duplicate(
            path.index(index).bracketed(),
            &identity(&items[index]),
        ));
    }
}

/// Positions at which a value appears for the second time; later ones are not reported again.
pub(super) fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut positions = Vec::new();
    for (index, text) in texts.enumerate() {
        let count = seen.entry(text).or_default();
        *count += 1;
        if *count == 2 {
            positions.push(index);
        }
    }
    positions
}

/// The old value of a list's item: only keyed lists say which it was.
pub(super) fn old_item<'a>(
    kind: &ListKind,
    old: Option<&'a Value>,
    item: &Value,
) -> Option<&'a Value> {
    let (ListKind::Map(keys), Some(Value::Array(old))) = (kind, old) else {
        return None;
    };
    old.iter()
        .find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}
