//! From client-side to server-side apply, for kubectl.
//!
//! Client-side apply leaves what it applied in an annotation. When the same user turns to server-side apply, the fields named there, if
//! the live object still has them as they were applied, are theirs and no conflict. The annotation is kept in step as long as it exists,
//! so that the way back is open too. Only the manager `kubectl` is treated like this; others chose their own name to opt out.

use serde_json::Value;

use super::Conflict;
use crate::fields::{Comparison, FieldSet};
use crate::schema::{TypeRef, within_depth};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together; beyond it the object could not be stored.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The conflicts that remain when the fields applied on the client side are conceded.
pub(super) fn disputed(
    conflicts: Vec<Conflict>,
    root: TypeRef<'_>,
    live: &Value,
    api_version: &str,
) -> Vec<Conflict> {
    match conceded(root, live, api_version) {
        Some(conceded) => conflicts
            .into_iter()
            .filter(|conflict| !conceded.contains(&conflict.path))
            .collect(),
        None => conflicts,
    }
}

fn conceded(root: TypeRef<'_>, live: &Value, api_version: &str) -> Option<FieldSet> {
    let text = annotation(live)?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) || !within_depth(&last) {
        return None;
    }
    // What differs by now was changed by someone else and is theirs.
    let changes = Comparison::of(root, &last, live);
    let fields = FieldSet::of_value(root, &last);
    Some(
        fields
            .difference(&changes.changed())
            .difference(&changes.removed),
    )
}

/// Replaces the annotation with what was applied just now, if the object has one.
pub(super) fn keep_in_step(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = annotations_mut(&mut applied) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{applied}\n");
    let Some(annotations) = annotations_mut(object) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let bytes: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
