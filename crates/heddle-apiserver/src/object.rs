//! An object between the wire and the store: reading its metadata, and turning it into stored bytes.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use heddle_store::{Draft, Facts, Key, Object, ResourceVersion};
use serde_json::{Map, Value};

use crate::registry::Resource;

pub(crate) fn key(resource: &Resource, namespace: Option<&str>, name: &str) -> Key {
    Key {
        resource: Arc::clone(&resource.storage),
        namespace: namespace.unwrap_or_default().into(),
        name: name.into(),
    }
}

pub(crate) fn parse(object: &Object) -> Value {
    parse_json(&object.json())
}

/// The same of the JSON of a stored object.
pub(crate) fn parse_json(json: &[u8]) -> Value {
    // Invariant: the store only holds what `draft` serialised, and its records are checksummed.
    serde_json::from_slice(json).expect("a stored object is valid JSON")
}

/// An earlier state of an object, told at a later version.
pub(crate) fn at_version(object: &Object, version: ResourceVersion) -> Object {
    let mut value = parse(object);
    value["metadata"]["resourceVersion"] = Value::from(version.to_string());
    object.retold(version, value.to_string().as_bytes())
}

pub(crate) fn meta(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// The metadata of an object that is about to be changed; created when absent.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"]
        .as_object_mut()
        .expect("it was made an object above")
}

pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    meta(object)
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    meta(object).is_some_and(|m| m.get("deletionTimestamp").is_some_and(|t| !t.is_null()))
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = meta(object)
        .and_then(|m| m.get("finalizers"))
        .and_then(Value::as_array);
    list.map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    let list = meta(object)
        .and_then(|m| m.get("ownerReferences"))
        .and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn facts(object: &Value) -> Facts {
    let labels = meta(object)
        .and_then(|m| m.get("labels"))
        .and_then(Value::as_object);
    Facts {
        uid: meta_str(object, "uid").into(),
        labels: labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        owners: owner_references(object)
            .iter()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str).map(Arc::from))
            .collect(),
        deleting: is_deleting(object),
    }
}

/// Serialises an object with an empty resourceVersion and remembers where the version belongs, so that the
/// writer can splice it in without parsing anything again.
pub(crate) fn draft(object: &Value) -> Draft {
    let mut json = Vec::with_capacity(1024);
    let mut version_at = 0;
    let members = object.as_object().expect("only objects are stored");
    json.push(b'{');
    for (index, (field, value)) in members.iter().enumerate() {
        comma(&mut json, index);
        write(&mut json, field);
        json.push(b':');
        match value {
            Value::Object(metadata) if field == "metadata" => {
                version_at = write_metadata(&mut json, metadata)
            }
            other => write(&mut json, other),
        }
    }
    json.push(b'}');
    assert!(version_at > 0, "only objects with metadata are stored");
    Draft {
        facts: facts(object),
        json,
        version_at,
    }
}

fn write_metadata(json: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    json.extend_from_slice(b"{\"resourceVersion\":\"");
    let version_at = json.len();
    json.push(b'"');
    for (field, value) in metadata
        .iter()
        .filter(|(field, _)| *field != "resourceVersion")
    {
        json.push(b',');
        write(json, field);
        json.push(b':');
        write(json, value);
    }
    json.push(b'}');
    version_at
}

/// The text of `metadata` in a stored object.
pub(crate) fn lift_metadata(json: &[u8]) -> &[u8] {
    lift(json, METADATA).map_or(b"{}", |found| &json[found])
}

/// A stored object without the notes of who wrote which field.
pub(crate) fn without_managed_fields(json: &Bytes) -> Bytes {
    let found = lift(json, METADATA).and_then(|metadata| {
        let fields = lift(&json[metadata.clone()], MANAGED_FIELDS)?;
        let start = metadata.start + fields.start - MANAGED_FIELDS.len();
        Some(start..metadata.start + fields.end)
    });
    let Some(Range { mut start, mut end }) = found else {
        return json.clone();
    };
    // One comma goes with it: the one before, or the one behind where it comes first.
    match json[start - 1] {
        b',' => start -= 1,
        _ if json[end] == b',' => end += 1,
        _ => {}
    }
    let mut lean = Vec::with_capacity(json.len() - (end - start));
    lean.extend_from_slice(&json[..start]);
    lean.extend_from_slice(&json[end..]);
    Bytes::from(lean)
}

const METADATA: &[u8] = b"\"metadata\":";
const MANAGED_FIELDS: &[u8] = b"\"managedFields\":";

/// Where the object or list is that stands in a JSON object under `key` (with its quotes and colon): one pass over the
/// bytes, no parsing, no allocation.
fn lift(json: &[u8], key: &[u8]) -> Option<Range<usize>> {
    let (mut depth, mut in_string, mut escaped, mut start) = (0_usize, false, false, None);
    for (at, byte) in json.iter().enumerate() {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => {
                // At depth one a string is a key or a plain value; only a key is followed by a colon.
                if depth == 1 && json[at..].starts_with(key) {
                    start = Some(at + key.len());
                }
                in_string = true;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if let Some(start) = start.filter(|_| depth == 1) {
                    return Some(start..at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn comma(json: &mut Vec<u8>, index: usize) {
    if index > 0 {
        json.push(b',');
    }
}

fn write<T: serde::Serialize + ?Sized>(json: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(json, value).expect("a JSON value always serialises");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_draft_is_the_object_with_a_hole_for_its_version() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\"quoted\""},
            "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "3",
                "labels": {"l": "v"}, "ownerReferences": [{"uid": "o", "name": "p"}]},
        });
        let mut draft = draft(&object);
        draft
            .json
            .splice(draft.version_at..draft.version_at, *b"42");
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(
            serde_json::from_slice::<Value>(&draft.json).unwrap(),
            expected
        );
        assert_eq!(&*draft.facts.uid, "u");
        assert_eq!(draft.facts.labels, [("l".to_owned(), "v".to_owned())]);
        assert_eq!(draft.facts.owners, [Arc::from("o")]);
        assert!(!draft.facts.deleting);
    }

    #[test]
    fn metadata_is_lifted_whatever_surrounds_it() {
        let check = |object: Value| {
            let text = object.to_string();
            let lifted: Value = serde_json::from_slice(lift_metadata(text.as_bytes())).unwrap();
            assert_eq!(lifted, object["metadata"], "{text}");
        };
        check(json!({"metadata": {"name": "a"}}));
        check(
            json!({"a": "\"metadata\":{", "data": {"metadata": {"x": "}"}}, "metadata": {"name": "b\\\"}", "l": [{}]}}),
        );
        check(
            json!({"a": [{"metadata": 1}], "kind": "metadata", "metadata": {}, "z": {"metadata": 2}}),
        );
    }

    #[test]
    fn only_the_notes_of_who_wrote_what_are_left_out() {
        let check = |object: Value| {
            let text = Bytes::from(object.to_string());
            let lean: Value = serde_json::from_slice(&without_managed_fields(&text)).unwrap();
            let mut expected = object;
            if let Some(metadata) = expected["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            assert_eq!(lean, expected, "{text:?}");
        };
        let notes = json!([{"manager": "\"m\"]", "fieldsV1": {"f:spec": {}}}]);
        check(json!({"metadata": {"managedFields": notes}}));
        check(
            json!({"metadata": {"managedFields": notes, "name": "a"}, "spec": {"managedFields": [1]}}),
        );
        check(
            json!({"metadata": {"labels": {"managedFields": "x"}, "managedFields": notes}, "kind": "K"}),
        );
        check(json!({"metadata": {"a": [{"managedFields": [1]}], "managedFields": [], "z": 1}}));
        check(json!({"metadata": {"name": "a"}, "managedFields": [1]}));
        check(json!({"metadata": null}));
    }
}
