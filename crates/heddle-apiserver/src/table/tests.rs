use jiff::SignedDuration;
use serde_json::{Value, json};

use super::age::human_duration;
use super::*;

fn now() -> Timestamp {
    "2026-01-10T00:00:00Z".parse().unwrap()
}

fn cells(columns: &Columns, object: Value) -> Value {
    let table = columns.table([&object], json!({}), IncludeObject::None, true, now());
    table["rows"][0]["cells"].clone()
}

fn names(columns: &Columns) -> Vec<(String, i64)> {
    let name = |definition: &Value| {
        (
            definition["name"].as_str().unwrap().to_owned(),
            definition["priority"].as_i64().unwrap(),
        )
    };
    columns.definitions.iter().map(name).collect()
}

#[test]
fn durations_read_like_kubectls() {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    for (seconds, expected) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (5 * MINUTE + 30, "5m30s"),
        (10 * MINUTE + 30, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (8 * HOUR + 20 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 2 * HOUR, "3d2h"),
        (8 * DAY + 2 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (830 * DAY, "2y100d"),
        (8 * 365 * DAY + 5 * DAY, "8y"),
    ] {
        assert_eq!(
            human_duration(SignedDuration::from_secs(seconds)),
            expected,
            "{seconds} s"
        );
    }
}

#[test]
fn columns_of_a_definition_print_by_type() {
    let columns = Columns::compile(Some(&json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Share", "type": "number", "jsonPath": ".spec.share", "priority": 1},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "description": "Whether."},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ])))
    .unwrap();
    assert_eq!(
        names(&columns)[..3],
        [
            ("Name".to_owned(), 0),
            ("Size".to_owned(), 0),
            ("Share".to_owned(), 1)
        ]
    );
    assert_eq!(columns.definitions[4]["description"], "Whether.");
    assert_eq!(
        columns.definitions[1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
    let object = json!({
        "metadata": {"name": "w", "creationTimestamp": "2026-01-06T22:00:00Z"},
        "spec": {"size": 3.9, "share": 0.5, "on": true, "map": {"a": [1]}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(
        cells(&columns, object),
        json!(["w", 3, 0.5, true, "True", "{\"a\":[1]}", "3d2h"])
    );
    let odd = json!({"metadata": {"name": "w", "creationTimestamp": "?"}, "spec": {"size": "x", "share": "x", "on": 1, "map": null}});
    assert_eq!(
        cells(&columns, odd),
        json!(["w", null, null, null, null, null, "<invalid>"])
    );
    assert!(
        Columns::compile(Some(
            &json!([{"name": "X", "type": "string", "jsonPath": ".a["}])
        ))
        .is_err()
    );
}

#[test]
fn without_columns_a_resource_shows_its_age() {
    for none in [None, Some(json!([]))] {
        let columns = Columns::compile(none.as_ref()).unwrap();
        let object =
            json!({"metadata": {"name": "w", "creationTimestamp": "2026-01-09T23:55:00Z"}});
        assert_eq!(cells(&columns, object), json!(["w", "5m"]));
        assert_eq!(
            names(&columns),
            [("Name".to_owned(), 0), ("Age".to_owned(), 0)]
        );
    }
}

#[test]
fn built_in_kinds_have_their_columns() {
    let metadata = json!({"name": "n", "creationTimestamp": "2026-01-09T23:59:00Z"});
    for (kind, fields, expected) in [
        (
            "Namespace",
            json!({"status": {"phase": "Active"}}),
            json!(["n", "Active", "60s"]),
        ),
        (
            "ConfigMap",
            json!({"data": {"a": "b"}, "binaryData": {"c": "d"}}),
            json!(["n", 2, "60s"]),
        ),
        (
            "Secret",
            json!({"type": "Opaque", "data": {"a": "b"}}),
            json!(["n", "Opaque", 1, "60s"]),
        ),
        (
            "Lease",
            json!({"spec": {"holderIdentity": "me"}}),
            json!(["n", "me", "60s"]),
        ),
        (
            "CustomResourceDefinition",
            json!({}),
            json!(["n", "2026-01-09T23:59:00Z"]),
        ),
        ("Other", json!({}), json!(["n", "60s"])),
    ] {
        let mut object = fields;
        object["metadata"] = metadata.clone();
        assert_eq!(cells(&Columns::built_in(kind), object), expected, "{kind}");
    }
    assert_eq!(
        cells(&Columns::built_in("Lease"), json!({})),
        json!(["", "", "<unknown>"])
    );
}

#[test]
fn events_read_the_same_in_both_forms() {
    let expected = json!([
        "10s",
        "Warning",
        "Failed",
        "widget/w",
        "spec.a",
        "ctl, ctl-1",
        "it broke",
        "60s",
        3,
        "e"
    ]);
    let core = json!({
        "metadata": {"name": "e"}, "type": "Warning", "reason": "Failed", "message": " it broke\n", "count": 3,
        "involvedObject": {"kind": "Widget", "name": "w", "fieldPath": "spec.a"}, "source": {"component": "ctl", "host": "ctl-1"},
        "firstTimestamp": "2026-01-09T23:59:00Z", "lastTimestamp": "2026-01-09T23:59:50Z",
    });
    let events = json!({
        "metadata": {"name": "e"}, "type": "Warning", "reason": "Failed", "note": "it broke",
        "regarding": {"kind": "Widget", "name": "w", "fieldPath": "spec.a"}, "reportingController": "ctl", "reportingInstance": "ctl-1",
        "eventTime": "2026-01-09T23:59:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-01-09T23:59:50.000000Z"},
    });
    let columns = Columns::built_in("Event");
    assert_eq!(cells(&columns, core), expected);
    assert_eq!(cells(&columns, events), expected);
    let wide: Vec<String> = names(&columns)
        .into_iter()
        .filter(|(_, priority)| *priority == 1)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(wide, ["Subobject", "Source", "First Seen", "Count", "Name"]);
    let once = json!({"eventTime": "2026-01-09T23:59:00.000000Z", "regarding": {"kind": "Widget"}});
    assert_eq!(
        cells(&columns, once),
        json!(["60s", "", "", "widget", "", "", "", "60s", 1, ""])
    );
}

#[test]
fn a_table_carries_what_was_asked_for() {
    let columns = Columns::built_in("Namespace");
    let object =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "status": {}});
    let list = json!({"resourceVersion": "7"});
    let table = |include, first| columns.table([&object], list.clone(), include, first, now());
    let whole = table(IncludeObject::Object, true);
    assert_eq!(
        (&whole["kind"], &whole["apiVersion"], &whole["metadata"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"), &list)
    );
    assert_eq!(whole["rows"][0]["object"], object);
    assert_eq!(whole["columnDefinitions"][0]["format"], "name");
    let partial = table(IncludeObject::Metadata, false);
    assert_eq!(
        partial["rows"][0]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "n"}})
    );
    assert_eq!(partial["columnDefinitions"], Value::Null);
    assert_eq!(
        table(IncludeObject::None, true)["rows"][0].get("object"),
        None
    );
    assert_eq!(IncludeObject::parse(""), Some(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("Everything"), None);
}
