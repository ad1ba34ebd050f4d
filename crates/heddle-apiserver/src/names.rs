//! Names, labels and annotations: the rules every object's metadata obeys, with kube-apiserver's own words.

use serde_json::Value;

use crate::object;
use crate::registry::{BuiltIn, Resource};
use crate::schema::Cause;
use crate::select::{label_key_problems, label_value_problems};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// All annotations together; the figure is Kubernetes' own.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// Everything wrong with an object's metadata, given the rules of its kind.
pub(crate) fn metadata_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::name(object);
    if name.is_empty() {
        causes.push(cause(
            "metadata.name",
            "FieldValueRequired",
            "Required value: name or generateName is required",
        ));
    } else if let Some(why) = name_fault(resource, name) {
        causes.push(invalid("metadata.name", name, why));
    }
    let Some(meta) = object::meta(object) else {
        return causes;
    };
    for (key, value) in meta
        .get("labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        causes.extend(invalids("metadata.labels", key, label_key_problems(key)));
        let value = value.as_str().unwrap_or_default();
        causes.extend(invalids(
            "metadata.labels",
            value,
            label_value_problems(value),
        ));
    }
    let mut annotation_bytes = 0;
    for (key, value) in meta
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        annotation_bytes += key.len() + value.as_str().map_or(0, str::len);
        let problems = label_key_problems(&key.to_lowercase());
        causes.extend(invalids("metadata.annotations", key, problems));
    }
    if annotation_bytes > ANNOTATIONS_BYTES_MAX {
        let why = format!("Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes");
        causes.push(cause("metadata.annotations", "FieldValueTooLong", &why));
    }
    for finalizer in object::finalizers(object) {
        let problems = label_key_problems(finalizer);
        causes.extend(invalids("metadata.finalizers", finalizer, problems));
    }
    for owner in object::owner_references(object) {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner
                .get(field)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                let path = format!("metadata.ownerReferences.{field}");
                causes.push(cause(
                    &path,
                    "FieldValueInvalid",
                    "Invalid value: \"\": must not be empty",
                ));
            }
        }
    }
    causes
}

/// The first field of `metadata` that is not of its type. Nothing is decoded: this runs on every write.
pub(crate) fn metadata_type_fault(metadata: &Value) -> Option<String> {
    const TEXTS: [&str; 8] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let Some(fields) = metadata.as_object() else {
        return Some("metadata must be an object".to_owned());
    };
    let fits = |name: &str, value: &Value| match (name, value) {
        (_, Value::Null) => true,
        ("labels" | "annotations", Value::Object(map)) => map.values().all(Value::is_string),
        ("finalizers", Value::Array(list)) => list.iter().all(Value::is_string),
        ("ownerReferences" | "managedFields", Value::Array(list)) => {
            list.iter().all(Value::is_object)
        }
        ("labels" | "annotations" | "finalizers" | "ownerReferences" | "managedFields", _) => false,
        ("generation" | "deletionGracePeriodSeconds", value) => value.is_i64(),
        (name, value) => !TEXTS.contains(&name) || value.is_string(),
    };
    let odd = fields.iter().find(|(name, value)| !fits(name, value));
    odd.map(|(name, value)| format!("metadata.{name} has the wrong type: {value}"))
}

pub(crate) fn cause(field: &str, reason: &'static str, message: &str) -> Cause {
    Cause {
        field: field.to_owned(),
        reason,
        message: message.to_owned(),
    }
}

pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Cause {
    cause(
        field,
        "FieldValueInvalid",
        &format!("Invalid value: {value:?}: {why}"),
    )
}

fn invalids(field: &str, value: &str, problems: Vec<String>) -> impl Iterator<Item = Cause> {
    problems
        .into_iter()
        .map(move |why| invalid(field, value, &why))
}

/// A value outside a closed set.
pub(crate) fn unsupported(field: &str, value: &Value, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
    let text = format!(
        "Unsupported value: {value}: supported values: {}",
        supported.join(", ")
    );
    cause(field, "FieldValueNotSupported", &text)
}

fn name_fault(resource: &Resource, name: &str) -> Option<&'static str> {
    if resource.is(BuiltIn::Namespace) {
        return if name.len() > 63 {
            Some("must be no more than 63 characters")
        } else if !is_label(name) {
            Some(LABEL)
        } else {
            None
        };
    }
    if name.len() > 253 {
        Some("must be no more than 253 characters")
    } else if !is_subdomain(name) {
        Some(SUBDOMAIN)
    } else {
        None
    }
}

fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edge = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.iter().all(|c| inner(*c)) && edge(bytes.first()) && edge(bytes.last())
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}
