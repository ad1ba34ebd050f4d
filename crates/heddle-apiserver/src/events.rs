//! Kubernetes Events have two served forms over one stored one.
//!
//! kube's recorder writes `events.k8s.io/v1`, kubectl reads core `v1`; the stored form is core. The two differ
//! only in the names of fields, listed once here, and in what they ask of a new event.

use std::borrow::Cow;

use serde_json::Value;

use crate::names;
use crate::object;
use crate::registry::{BuiltIn, Resource};
use crate::schema::Cause;
use crate::status::{Result, StatusError};

/// (core/v1 name, events.k8s.io/v1 name)
const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// What only the older form fills in; the newer one has better fields for it.
const DEPRECATED: [&str; 4] = ["firstTimestamp", "lastTimestamp", "count", "source"];

/// Refuses a new event that lacks what a reader of it may rely on. `stored` was sent in the form of `resource`.
pub(crate) fn guard(resource: &Resource, stored: &Value) -> Result<()> {
    let newer = resource.is(BuiltIn::EventV1);
    if !newer && !resource.is(BuiltIn::Event) {
        return Ok(());
    }
    let mut causes = Vec::new();
    if !is_beside_its_object(stored) {
        let about = text(&stored["involvedObject"], "namespace");
        let why = "does not match event.namespace";
        causes.push(names::invalid("involvedObject.namespace", about, why));
    }
    if !text(stored, "eventTime").is_empty() {
        causes.extend(reporter_causes(stored, newer));
    } else if newer {
        causes.push(required("eventTime"));
    }
    if newer {
        causes.extend(newer_causes(stored));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(
        resource,
        object::name(stored),
        &causes,
    ))
}

/// An event lives in the namespace of its object; one about an object without a namespace, in `default`.
fn is_beside_its_object(stored: &Value) -> bool {
    let namespace = object::meta_str(stored, "namespace");
    match text(&stored["involvedObject"], "namespace") {
        "" => matches!(namespace, "" | "default"),
        about => about == namespace,
    }
}

/// An event with an exact time says who reported it and what was done, in either form.
fn reporter_causes(stored: &Value, newer: bool) -> Vec<Cause> {
    let reporter = if newer {
        "reportingController"
    } else {
        "reportingComponent"
    };
    let fields = [
        ("reportingComponent", reporter),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ];
    fields
        .into_iter()
        .filter(|(field, _)| text(stored, field).is_empty())
        .map(|(_, shown)| required(shown))
        .collect()
}

fn newer_causes(stored: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = text(stored, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        causes.push(names::invalid("type", "", &why));
    }
    let is_set = |field: &&str| match &stored[*field] {
        Value::Null => false,
        Value::Number(count) => count.as_i64() != Some(0),
        Value::Object(source) => source.values().any(|part| part != ""),
        _ => true,
    };
    let needless = DEPRECATED.into_iter().filter(is_set);
    causes.extend(needless.map(|field| names::invalid(field, "", "needs to be unset")));
    causes
}

fn required(field: &str) -> Cause {
    names::cause(field, "FieldValueRequired", "Required value")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The form a client of `resource` sees.
pub(crate) fn served<'a>(resource: &Resource, stored: &'a Value) -> Cow<'a, Value> {
    if resource.is(BuiltIn::EventV1) {
        Cow::Owned(to_served(resource, stored.clone()))
    } else {
        Cow::Borrowed(stored)
    }
}

/// The same, for a value that is not needed any more.
pub(crate) fn to_served(resource: &Resource, stored: Value) -> Value {
    if !resource.is(BuiltIn::EventV1) {
        return stored;
    }
    rename(stored, "events.k8s.io/v1", RENAMED.iter().copied())
}

/// The form that is kept, from what a client of `resource` sent.
pub(crate) fn to_stored(resource: &Resource, served: Value) -> Value {
    if !resource.is(BuiltIn::EventV1) {
        return served;
    }
    rename(served, "v1", RENAMED.iter().map(|(core, v1)| (*v1, *core)))
}

fn rename<'a>(
    mut object: Value,
    api_version: &str,
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
    if let Some(fields) = object.as_object_mut() {
        for (from, to) in pairs {
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
        fields.insert(
            "apiVersion".to_owned(),
            Value::String(api_version.to_owned()),
        );
    }
    object
}

#[cfg(test)]
mod tests;
