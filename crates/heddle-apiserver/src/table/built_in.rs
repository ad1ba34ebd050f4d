//! The columns of built-in kinds.

use jiff::Timestamp;
use serde_json::Value;

use super::{AGE, NAME, Render, age};

pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) type_name: &'static str,
    pub(super) description: &'static str,
    /// Above zero: only in wide output.
    pub(super) priority: i64,
    pub(super) render: Render,
}

const fn column(
    name: &'static str,
    type_name: &'static str,
    description: &'static str,
    render: Render,
) -> Column {
    Column {
        name,
        type_name,
        description,
        priority: 0,
        render,
    }
}

/// The same, only in wide output.
const fn wide(column: Column) -> Column {
    Column {
        priority: 1,
        ..column
    }
}

const NAME_COLUMN: Column = column("Name", "string", NAME, name);
const AGE_COLUMN: Column = column("Age", "string", AGE, created);

static NAMESPACE: [Column; 3] = [
    NAME_COLUMN,
    column(
        "Status",
        "string",
        "The status of the namespace.",
        namespace_phase,
    ),
    AGE_COLUMN,
];
static CONFIG_MAP: [Column; 3] = [
    NAME_COLUMN,
    column(
        "Data",
        "string",
        "Number of entries in the config map.",
        entry_count,
    ),
    AGE_COLUMN,
];
static SECRET: [Column; 4] = [
    NAME_COLUMN,
    column("Type", "string", "What the secret is for.", kind_of_secret),
    column(
        "Data",
        "string",
        "Number of entries in the secret.",
        entry_count,
    ),
    AGE_COLUMN,
];
static LEASE: [Column; 3] = [
    NAME_COLUMN,
    column(
        "Holder",
        "string",
        "The identity of the current holder.",
        holder,
    ),
    AGE_COLUMN,
];
static DEFINITION: [Column; 2] = [
    NAME_COLUMN,
    column(
        "Created At",
        "date",
        "When the object was created.",
        created_at,
    ),
];
static OTHER: [Column; 2] = [NAME_COLUMN, AGE_COLUMN];
static EVENT: [Column; 10] = [
    column(
        "Last Seen",
        "string",
        "When the event was last seen.",
        event_last_seen,
    ),
    column("Type", "string", "Normal or Warning.", event_type),
    column(
        "Reason",
        "string",
        "Why the event was emitted, in one word.",
        event_reason,
    ),
    column("Object", "string", "What the event is about.", event_object),
    wide(column(
        "Subobject",
        "string",
        "The part of the object the event is about.",
        event_subobject,
    )),
    wide(column(
        "Source",
        "string",
        "Who emitted the event.",
        event_source,
    )),
    column("Message", "string", "What happened.", event_message),
    wide(column(
        "First Seen",
        "string",
        "When the event was first seen.",
        event_first_seen,
    )),
    wide(column(
        "Count",
        "string",
        "How often the event was seen.",
        event_count,
    )),
    wide(NAME_COLUMN),
];

pub(super) fn columns(kind: &str) -> &'static [Column] {
    match kind {
        "Namespace" => &NAMESPACE,
        "ConfigMap" => &CONFIG_MAP,
        "Secret" => &SECRET,
        "Lease" => &LEASE,
        "CustomResourceDefinition" => &DEFINITION,
        "Event" => &EVENT,
        _ => &OTHER,
    }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The first of several places that holds a text: events have two forms, which name the same things differently.
fn any_text<'v>(object: &'v Value, pointers: &[&str]) -> &'v str {
    pointers
        .iter()
        .map(|pointer| text(object, pointer))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

fn time(object: &Value, pointers: &[&str]) -> Option<Timestamp> {
    any_text(object, pointers).parse().ok()
}

pub(super) fn name(object: &Value, _now: Timestamp) -> Value {
    text(object, "/metadata/name").into()
}

fn created(object: &Value, now: Timestamp) -> Value {
    age::since(time(object, &["/metadata/creationTimestamp"]), now).into()
}

fn created_at(object: &Value, _now: Timestamp) -> Value {
    text(object, "/metadata/creationTimestamp").into()
}

fn namespace_phase(object: &Value, _now: Timestamp) -> Value {
    text(object, "/status/phase").into()
}

fn kind_of_secret(object: &Value, _now: Timestamp) -> Value {
    text(object, "/type").into()
}

fn holder(object: &Value, _now: Timestamp) -> Value {
    text(object, "/spec/holderIdentity").into()
}

fn entry_count(object: &Value, _now: Timestamp) -> Value {
    let entries = |name: &str| {
        object
            .get(name)
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len)
    };
    (entries("data") + entries("binaryData")).into()
}

const FIRST_SEEN: [&str; 3] = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];

fn event_first_seen(event: &Value, now: Timestamp) -> Value {
    age::since(time(event, &FIRST_SEEN), now).into()
}

fn event_last_seen(event: &Value, now: Timestamp) -> Value {
    let last = match event.get("series").is_some_and(Value::is_object) {
        true => time(event, &["/series/lastObservedTime"]),
        false => time(event, &["/lastTimestamp", "/deprecatedLastTimestamp"])
            .or_else(|| time(event, &FIRST_SEEN)),
    };
    age::since(last, now).into()
}

fn event_type(event: &Value, _now: Timestamp) -> Value {
    text(event, "/type").into()
}

fn event_reason(event: &Value, _now: Timestamp) -> Value {
    text(event, "/reason").into()
}

fn event_object(event: &Value, _now: Timestamp) -> Value {
    let kind = any_text(event, &["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    match any_text(event, &["/involvedObject/name", "/regarding/name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn event_subobject(event: &Value, _now: Timestamp) -> Value {
    any_text(
        event,
        &["/involvedObject/fieldPath", "/regarding/fieldPath"],
    )
    .into()
}

fn event_source(event: &Value, _now: Timestamp) -> Value {
    let component = any_text(
        event,
        &[
            "/source/component",
            "/deprecatedSource/component",
            "/reportingComponent",
            "/reportingController",
        ],
    );
    match any_text(
        event,
        &[
            "/source/host",
            "/deprecatedSource/host",
            "/reportingInstance",
        ],
    ) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

fn event_message(event: &Value, _now: Timestamp) -> Value {
    any_text(event, &["/message", "/note"]).trim().into()
}

fn event_count(event: &Value, _now: Timestamp) -> Value {
    let number = |pointer: &str| {
        event
            .pointer(pointer)
            .and_then(Value::as_i64)
            .filter(|count| *count > 0)
    };
    // An event that happened once need not say so.
    number("/series/count")
        .or_else(|| number("/count"))
        .or_else(|| number("/deprecatedCount"))
        .unwrap_or(1)
        .into()
}
