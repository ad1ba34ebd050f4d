//! Dropping what a schema does not know, and adding what it says by default.

use serde_json::Value;

use super::path::Path;
use super::{Additional, Node};

/// Removes unknown fields below `root`, which is a resource: its `apiVersion` and `kind` are always known.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    known(Some(root), false, object, &Path::ROOT, &mut dropped);
    dropped.sort();
    dropped
}

fn is_type_meta(node: &Node, name: &str) -> bool {
    node.embedded && (name == "apiVersion" || name == "kind")
}

/// Removes unknown fields of a value. Without a node nothing is known about the value, so all its fields go, unless `preserve`
/// comes from the list the value is an item of.
fn known(
    node: Option<&Node>,
    preserve: bool,
    value: &mut Value,
    path: &Path<'_>,
    dropped: &mut Vec<String>,
) {
    let preserve = preserve || node.is_some_and(|node| node.preserve_unknown);
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(node) = node else {
                if preserve {
                    return true;
                }
                dropped.push(path.field(name).dotted());
                return false;
            };
            if is_type_meta(node, name) {
                return true;
            }
            match (node.child(name), &node.additional) {
                (Some(child), _) => known(Some(child), false, field, &path.field(name), dropped),
                // `additionalProperties: true` lets any value in, but says nothing about the fields of objects in it.
                (None, Additional::Any) => known(None, false, field, &path.field(name), dropped),
                (None, _) if preserve => {}
                (None, _) => {
                    dropped.push(path.field(name).dotted());
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            let item_node = node.and_then(|node| node.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                known(item_node, preserve, item, &path.index(index), dropped);
            }
        }
        _ => {}
    }
}

/// Removes nulls where null is not allowed and no default would take their place: writing null means "not set".
pub(super) fn drop_nulls(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let child = node.and_then(|node| node.child(name));
            if field.is_null()
                && child.is_some_and(|child| !child.nullable && child.default.is_none())
            {
                return false;
            }
            drop_nulls(child, field);
            true
        }),
        Value::Array(items) => {
            let item_node = node.and_then(|node| node.items.as_deref());
            items
                .iter_mut()
                .for_each(|item| drop_nulls(item_node, item));
        }
        _ => {}
    }
}

/// Adds defaults of absent properties, top down, so that a default object gets the defaults of its own fields too.
pub(super) fn default(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                if let Some(default) = &property.default
                    && fields
                        .get(name)
                        .is_none_or(|current| current.is_null() && !property.nullable)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(child) = node.child(name) {
                    default_in_place(child, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                items
                    .iter_mut()
                    .for_each(|item| default_in_place(item_node, item));
            }
        }
        _ => {}
    }
}

fn default_in_place(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
    default(node, value);
}
