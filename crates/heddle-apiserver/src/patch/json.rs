//! JSON patch (RFC 6902), with the habits of the library that Kubernetes uses.
//!
//! Three of them matter to clients and are the reason this is written out: `test` with null passes when the member is absent
//! (finalizer helpers rely on it), `replace` of an absent member adds it, and a negative index counts from the end. Errors carry
//! that library's texts. (The json-patch crate is close, but lacks all three, and panics on some patches it has to undo.)
//!
//! A patch is applied whole or not at all. Its cost is bounded: the number of operations, what copies may add, and the depth of
//! the result.

use serde_json::Value;

use super::{PatchError, check_depth};
use crate::schema::{DEPTH_MAX, depth};

const OPERATIONS_MAX: usize = 10_000;

/// What all `copy` operations of a patch may add together: an object copied into itself doubles each time.
const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies a JSON patch to an object.
pub(crate) fn json(object: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let operations = decode(operations)?;
    let mut patched = object.clone();
    let mut copied_bytes = 0;
    let mut depth_bound = depth(&patched);
    for operation in &operations {
        operation.apply(&mut patched, &mut copied_bytes)?;
        // Measured as it grows: what is nested by thousands of moves could not even be dropped.
        depth_bound = operation.depth_bound(depth_bound);
        if depth_bound > DEPTH_MAX {
            check_depth(&patched)?;
            depth_bound = depth(&patched);
        }
    }
    *object = patched;
    Ok(())
}

struct Operation<'a> {
    op: &'a str,
    path: Option<&'a str>,
    from: Option<&'a str>,
    /// An absent value counts as null, as it does for the library.
    value: &'a Value,
}

fn decode(operations: &Value) -> Result<Vec<Operation<'_>>, PatchError> {
    let malformed =
        |problem: &str| PatchError::Malformed(format!("error decoding patch: json: {problem}"));
    let Some(operations) = operations.as_array() else {
        return Err(malformed(
            "cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ));
    };
    if operations.len() > OPERATIONS_MAX {
        let count = operations.len();
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
        )));
    }
    let decoded = operations.iter().map(|operation| {
        if !operation.is_object() {
            return Err(malformed(
                "cannot unmarshal value into Go value of type handlers.jsonPatchOp",
            ));
        }
        check_depth(operation)?;
        let text = |name: &str| match operation.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(malformed(&format!(
                "cannot unmarshal value into Go struct field jsonPatchOp.{name} of type string"
            ))),
        };
        let value = operation.get("value").unwrap_or(&Value::Null);
        Ok(Operation {
            op: text("op")?.unwrap_or_default(),
            path: text("path")?,
            from: text("from")?,
            value,
        })
    });
    decoded.collect()
}

impl Operation<'_> {
    fn apply(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), PatchError> {
        match self.op {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.move_(document),
            "copy" => self.copy(document, copied_bytes),
            "test" => self.test(document),
            other => Err(inapplicable(format!("Unexpected kind: {other}"))),
        }
    }

    /// How deep a document can be at most after this, that was not deeper than `before`: what is put somewhere is as deep as
    /// it and the way to it together.
    fn depth_bound(&self, before: usize) -> usize {
        let added = match self.op {
            "add" | "replace" => depth(self.value),
            "move" | "copy" => before,
            _ => return before,
        };
        let steps = self.path.unwrap_or_default().matches('/').count();
        before.max(steps + added)
    }

    fn path(&self) -> Result<&str, PatchError> {
        self.path.ok_or_else(|| {
            inapplicable(format!(
                "{} operation failed to decode path: missing value",
                self.op
            ))
        })
    }

    fn from(&self) -> Result<&str, PatchError> {
        self.from.ok_or_else(|| {
            inapplicable(format!(
                "{} operation failed to decode from: missing value",
                self.op
            ))
        })
    }

    fn add(&self, document: &mut Value) -> Result<(), PatchError> {
        let path = self.path()?;
        let Some((parent, key)) = parent(document, path) else {
            return Err(inapplicable(format!(
                "add operation does not apply: doc is missing path: \"{path}\": missing value"
            )));
        };
        insert(parent, &key, self.value.clone())
            .map_err(|problem| inapplicable(format!("error in add for path: '{path}': {problem}")))
    }

    fn remove(&self, document: &mut Value) -> Result<(), PatchError> {
        let path = self.path()?;
        let Some((parent, key)) = parent(document, path) else {
            return Err(inapplicable(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )));
        };
        take(parent, &key).map(drop).map_err(|problem| {
            inapplicable(format!("error in remove for path: '{path}': {problem}"))
        })
    }

    fn replace(&self, document: &mut Value) -> Result<(), PatchError> {
        let path = self.path()?;
        if path.is_empty() {
            if !self.value.is_object() && !self.value.is_array() {
                return Err(inapplicable(
                    "replace operation value must be object or array".to_owned(),
                ));
            }
            *document = self.value.clone();
            return Ok(());
        }
        let missing = |what: &str| {
            inapplicable(format!(
                "replace operation does not apply: doc is missing {what}: {path}: missing value"
            ))
        };
        let Some((parent, key)) = parent(document, path) else {
            return Err(missing("path"));
        };
        match parent {
            Value::Object(members) => {
                members.insert(key, self.value.clone());
            }
            Value::Array(items) => {
                let index = index(&key, items.len()).map_err(|_| missing("key"))?;
                items[index] = self.value.clone();
            }
            _ => return Err(missing("path")),
        }
        Ok(())
    }

    fn move_(&self, document: &mut Value) -> Result<(), PatchError> {
        let from = self.from()?;
        let Some((source, key)) = parent(document, from) else {
            return Err(inapplicable(format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )));
        };
        let value = take(source, &key).map_err(|problem| {
            inapplicable(format!("error in move for path: '{key}': {problem}"))
        })?;
        let path = self.path()?;
        let Some((target, key)) = parent(document, path) else {
            return Err(inapplicable(format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )));
        };
        insert(target, &key, value)
            .map_err(|problem| inapplicable(format!("error in move for path: '{path}': {problem}")))
    }

    fn copy(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), PatchError> {
        let from = self.from()?;
        let Some((source, key)) = parent(document, from) else {
            return Err(inapplicable(format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )));
        };
        let value = member(source, &key)
            .map_err(|problem| {
                inapplicable(format!("error in copy for from: '{from}': {problem}"))
            })?
            .cloned()
            .unwrap_or(Value::Null);
        let path = self.path()?;
        // Depth first: measuring a value recurses over it.
        check_depth(&value)?;
        *copied_bytes += value.to_string().len();
        if *copied_bytes > COPY_BYTES_MAX {
            return Err(inapplicable(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding the limit \
                 {COPY_BYTES_MAX}"
            )));
        }
        let Some((target, key)) = parent(document, path) else {
            return Err(inapplicable(format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )));
        };
        insert(target, &key, value).map_err(|problem| {
            inapplicable(format!("error while adding value during copy: {problem}"))
        })
    }

    fn test(&self, document: &mut Value) -> Result<(), PatchError> {
        let path = self.path()?;
        let failed = || {
            Err(inapplicable(format!(
                "testing value {path} failed: test failed"
            )))
        };
        if path.is_empty() {
            return if same(document, self.value) {
                Ok(())
            } else {
                failed()
            };
        }
        let Some((parent, key)) = parent(document, path) else {
            return Err(inapplicable(format!(
                "test operation does not apply: is missing path: {path}: missing value"
            )));
        };
        let found = member(parent, &key).map_err(|problem| {
            inapplicable(format!("error in test for path: '{path}': {problem}"))
        })?;
        match same(found.unwrap_or(&Value::Null), self.value) {
            true => Ok(()),
            false => failed(),
        }
    }
}

fn inapplicable(text: String) -> PatchError {
    PatchError::Inapplicable(text)
}

/// Equality of JSON, where 1 and 1.0 are the same number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        (left, right) => left == right,
    }
}

/// The container that holds the last step of a pointer, and that step. The root has no container.
fn parent<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (containers, last) = path.rsplit_once('/')?;
    let mut steps = containers.split('/');
    // Whatever stands before the first slash is ignored, as the library does.
    steps.next();
    let mut current = document;
    for step in steps {
        let key = unescape(step);
        current = match current {
            Value::Object(members) => members.get_mut(&key)?,
            Value::Array(items) => {
                let index = index(&key, items.len()).ok()?;
                &mut items[index]
            }
            _ => return None,
        };
    }
    (current.is_object() || current.is_array()).then(|| (current, unescape(last)))
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A position in a list of `length` items; negative ones count from the end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let position: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = if position < 0 {
        position + length
    } else {
        position
    };
    match usize::try_from(from_start) {
        Ok(index) if from_start < length => Ok(index),
        _ => Err(format!(
            "Unable to access invalid index: {position}: invalid index referenced"
        )),
    }
}

fn member<'a>(container: &'a Value, key: &str) -> Result<Option<&'a Value>, String> {
    match container {
        Value::Object(members) => Ok(members.get(key)),
        Value::Array(items) => index(key, items.len()).map(|index| items.get(index)),
        _ => Ok(None),
    }
}

fn insert(container: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match container {
        Value::Object(members) => {
            members.insert(key.to_owned(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = match key.parse::<i64>() {
                Ok(_) => index(key, items.len() + 1)?,
                Err(_) => {
                    let problem = format!("strconv.Atoi: parsing {key:?}: invalid syntax");
                    return Err(format!(
                        "value was not a proper array index: '{key}': {problem}"
                    ));
                }
            };
            items.insert(index, value);
        }
        _ => {}
    }
    Ok(())
}

fn take(container: &mut Value, key: &str) -> Result<Value, String> {
    match container {
        Value::Object(members) => members
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => index(key, items.len()).map(|index| items.remove(index)),
        _ => Err(format!(
            "Unable to remove nonexistent key: {key}: missing value"
        )),
    }
}
