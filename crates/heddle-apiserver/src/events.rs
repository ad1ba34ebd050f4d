//! Kubernetes Events have two served forms over one stored one.
//!
//! kube's recorder writes `events.k8s.io/v1`, kubectl reads core `v1`; the stored form is core. The two differ
//! only in the names of fields, listed once here.

use serde_json::Value;

use crate::names;
use crate::object;
use crate::registry::{BuiltIn, Resource};
use crate::schema::Cause;
use crate::status::{Refusal, Result};

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

/// What the newer form asks of a new event; the older one asked nothing.
const REQUIRED: [&str; 4] = [
    "reportingController",
    "reportingInstance",
    "action",
    "reason",
];

/// Refuses a new event in the newer form that lacks what a reader of it may rely on.
pub(crate) fn guard(resource: &Resource, served: &Value) -> Result<()> {
    if !resource.is(BuiltIn::EventV1) {
        return Ok(());
    }
    let missing: Vec<Cause> = REQUIRED
        .into_iter()
        .filter(|field| served[*field].as_str().is_none_or(str::is_empty))
        .map(|field| names::cause(field, "FieldValueRequired", "Required value"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(resource, object::name(served), &missing))
}

/// The form a client of `resource` sees.
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
