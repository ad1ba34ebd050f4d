//! The few core kinds that controllers and kubectl need, as a table.
//!
//! Their schemas are small on purpose: they carry what server-side apply and `kubectl explain` need, while
//! acceptance itself is decided by decoding into the k8s-openapi type (see `strategy/builtin.rs`).

use serde_json::{Value, json};

use super::{BuiltIn, Error, Nature, Resource};
use crate::jsonpath::JsonPath;
use crate::schema::Schema;
use crate::table::Columns;

struct Row {
    builtin: BuiltIn,
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    has_status: bool,
    storage: &'static str,
    selectable: &'static [&'static str],
}

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const EVENT_V1_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

const EVENT: Row = Row {
    builtin: BuiltIn::Event,
    group: "",
    kind: "Event",
    plural: "events",
    short_names: &["ev"],
    namespaced: true,
    has_status: false,
    storage: "events",
    selectable: EVENT_FIELDS,
};

const ROWS: &[Row] = &[
    Row {
        builtin: BuiltIn::Namespace,
        group: "",
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        namespaced: false,
        has_status: true,
        storage: "namespaces",
        selectable: &["status.phase"],
    },
    Row {
        builtin: BuiltIn::Secret,
        group: "",
        kind: "Secret",
        plural: "secrets",
        short_names: &[],
        namespaced: true,
        has_status: false,
        storage: "secrets",
        selectable: &["type"],
    },
    Row {
        builtin: BuiltIn::ConfigMap,
        group: "",
        kind: "ConfigMap",
        plural: "configmaps",
        short_names: &["cm"],
        namespaced: true,
        has_status: false,
        storage: "configmaps",
        selectable: &[],
    },
    EVENT,
    // The same objects under their newer name.
    Row {
        builtin: BuiltIn::EventV1,
        group: "events.k8s.io",
        selectable: EVENT_V1_FIELDS,
        ..EVENT
    },
    Row {
        builtin: BuiltIn::Lease,
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        short_names: &[],
        namespaced: true,
        has_status: false,
        storage: "leases.coordination.k8s.io",
        selectable: &[],
    },
    Row {
        builtin: BuiltIn::CustomResourceDefinition,
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        namespaced: false,
        has_status: true,
        storage: "customresourcedefinitions.apiextensions.k8s.io",
        selectable: &[],
    },
];

pub(super) fn resources() -> Result<Vec<Resource>, Error> {
    ROWS.iter().map(resource).collect()
}

fn resource(row: &Row) -> Result<Resource, Error> {
    let unusable = |why: String| Error::Unusable {
        crd: row.plural.to_owned(),
        why,
    };
    let openapi = openapi(row.builtin);
    let mut selectable = Vec::new();
    for field in row.selectable {
        let path = JsonPath::parse(&format!(".{field}")).map_err(|e| unusable(e.to_string()))?;
        selectable.push(((*field).to_owned(), path));
    }
    Ok(Resource {
        group: row.group.to_owned(),
        version: "v1".to_owned(),
        kind: row.kind.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: row.short_names.iter().map(|s| (*s).to_owned()).collect(),
        categories: if row.builtin == BuiltIn::CustomResourceDefinition {
            vec!["api-extensions".to_owned()]
        } else {
            Vec::new()
        },
        namespaced: row.namespaced,
        has_status: row.has_status,
        schema: Schema::compile(&openapi).map_err(|e| unusable(e.to_string()))?,
        openapi,
        columns: Columns::built_in(row.kind),
        selectable,
        storage: row.storage.into(),
        nature: Nature::BuiltIn(row.builtin),
        check: None,
        defaults: None,
    })
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = json!(description);
    schema
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn open(description: &str) -> Value {
    json!({"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true})
}

fn string_map(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}})
}

fn object_reference(description: &str) -> Value {
    let mut reference = json!({"type": "object", "description": description, "x-kubernetes-map-type": "atomic", "properties": {}});
    for field in [
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ] {
        reference["properties"][field] = json!({"type": "string"});
    }
    reference
}

fn openapi(builtin: BuiltIn) -> Value {
    let (description, properties) = match builtin {
        BuiltIn::Namespace => (
            "Namespace scopes the names of what it holds.",
            json!({
                "spec": {"type": "object", "description": "Spec defines the behavior of the Namespace.", "properties": {
                    "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic",
                        "description": "Values that must be empty before the namespace is removed."},
                }},
                "status": {"type": "object", "description": "Status describes the current status of a Namespace.", "properties": {
                    "phase": text("Active or Terminating."),
                    "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                        "items": {"type": "object", "required": ["type", "status"], "properties": {
                            "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
                            "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "nullable": true},
                        }}},
                }},
            }),
        ),
        BuiltIn::Secret => (
            "Secret holds data that must not be shown to everybody.",
            json!({
                "data": string_map("Values, base64 encoded."),
                "stringData": string_map("Plain values; merged into data on write and never answered."),
                "type": text("Opaque unless said otherwise; cannot be changed."),
                "immutable": {"type": "boolean", "description": "If true, the data cannot be changed."},
            }),
        ),
        BuiltIn::ConfigMap => (
            "ConfigMap holds configuration data.",
            json!({
                "data": string_map("Text values by key."),
                "binaryData": string_map("Binary values by key, base64 encoded."),
                "immutable": {"type": "boolean", "description": "If true, the data cannot be changed."},
            }),
        ),
        BuiltIn::Event => (
            "Event is a report of something that happened to an object.",
            event_fields(json!({
                "involvedObject": object_reference(EVENT_OBJECT), "message": text(EVENT_MESSAGE),
                "reportingComponent": text(EVENT_REPORTER), "source": open(EVENT_SOURCE), "count": {"type": "integer"},
                "firstTimestamp": {"type": "string", "nullable": true},
                "lastTimestamp": {"type": "string", "nullable": true},
            })),
        ),
        BuiltIn::EventV1 => (
            "Event is a report of something that happened to an object.",
            event_fields(json!({
                "regarding": object_reference(EVENT_OBJECT), "note": text(EVENT_MESSAGE),
                "reportingController": text(EVENT_REPORTER), "deprecatedSource": open(EVENT_SOURCE),
                "deprecatedCount": {"type": "integer"},
                "deprecatedFirstTimestamp": {"type": "string", "nullable": true},
                "deprecatedLastTimestamp": {"type": "string", "nullable": true},
            })),
        ),
        BuiltIn::Lease => (
            "Lease says who leads, and until when.",
            json!({
                "spec": {"type": "object", "description": "Spec contains the specification of the Lease.", "properties": {
                    "holderIdentity": text("Who holds the lease."), "strategy": text("How the holder is chosen."),
                    "preferredHolder": text("Who should hold it next."),
                    "leaseDurationSeconds": {"type": "integer"}, "leaseTransitions": {"type": "integer"},
                    "acquireTime": {"type": "string", "nullable": true}, "renewTime": {"type": "string", "nullable": true},
                }},
            }),
        ),
        BuiltIn::Absent => ("A kind that only a cluster has.", json!({})),
        BuiltIn::CustomResourceDefinition => (
            "CustomResourceDefinition describes a served kind (read-only here).",
            json!({
                "spec": open("Names, scope, versions and schema of the kind."),
                "status": open("Accepted names and conditions."),
            }),
        ),
    };
    object_schema(description, properties)
}

/// What Events of both versions have, though under other names.
const EVENT_OBJECT: &str = "The object this event is about.";
const EVENT_MESSAGE: &str = "What happened, for people.";
const EVENT_REPORTER: &str = "The controller that reported.";
const EVENT_SOURCE: &str = "The component that reported, in the older form.";

/// The fields of one version of Event, and those that both have.
fn event_fields(mut fields: Value) -> Value {
    fields["related"] = object_reference("A second object, if the event concerns two.");
    fields["reason"] = text("A short, machine-readable reason.");
    fields["type"] = text("Normal or Warning.");
    fields["action"] = text("What was done.");
    fields["reportingInstance"] = text("Its instance.");
    fields["series"] = open("How often it was repeated.");
    fields["eventTime"] = json!({"type": "string", "nullable": true});
    fields
}

/// The schema of a whole object with these fields of its own.
pub(super) fn object_schema(description: &str, properties: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    schema["properties"]["apiVersion"] = text("The version of the schema of this object.");
    schema["properties"]["kind"] = text("The kind of this object.");
    schema["properties"]["metadata"] = json!({"type": "object"});
    described(description, schema)
}
