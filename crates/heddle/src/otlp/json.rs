//! Spans as OTLP has them in JSON: ids in hexadecimal, numbers of 64 bits as texts, enumerations as numbers.

use serde_json::{Value, json};

use super::record::{Attribute, Record};

/// OpenTelemetry's number for a span that failed. All others leave their status unset.
const STATUS_ERROR: u8 = 2;

/// The body of a request.
pub(super) fn request(records: &[Record]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "resourceSpans": [{
            "resource": {"attributes": [
                text("service.name", "heddle"),
                text("service.version", version),
            ]},
            "scopeSpans": [{
                "scope": {"name": "heddle-mesh", "version": version},
                "spans": records.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

fn span(record: &Record) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", record.span.trace()),
        "spanId": format!("{:016x}", record.span.id()),
        "flags": record.span.flags(),
        "name": record.name,
        "kind": record.kind as u8,
        "startTimeUnixNano": record.began_ns.to_string(),
        "endTimeUnixNano": record.ended_ns.to_string(),
        "attributes": record.attributes.iter().map(attribute).collect::<Vec<_>>(),
    });
    if let Some(parent) = record.parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if !record.state.is_empty() {
        span["traceState"] = (&*record.state).into();
    }
    if let Some(error) = &record.error {
        span["status"] = json!({"code": STATUS_ERROR, "message": error});
    }
    span
}

fn attribute((name, value): &(&'static str, Attribute)) -> Value {
    match value {
        Attribute::Text(value) => text(name, value),
        Attribute::Number(number) => {
            json!({"key": name, "value": {"intValue": number.to_string()}})
        }
        Attribute::Flag(flag) => json!({"key": name, "value": {"boolValue": flag}}),
    }
}

fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}
