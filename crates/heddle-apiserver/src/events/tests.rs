//! What is asked of a new event, in either form.

use serde_json::json;

use super::*;
use crate::registry::Registry;

/// The complaints about a core event of namespace `shop` that differs from a good one by `change`.
fn complaints(form: BuiltIn, change: Value) -> Vec<String> {
    let registry = Registry::heddle().unwrap();
    let mut event = json!({
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Trigger", "name": "t", "namespace": "shop"},
        "eventTime": "2026-01-02T03:04:05.678901Z", "type": "Normal", "reason": "Checked", "action": "Checking",
        "reportingComponent": "c", "reportingInstance": "c-0",
    });
    for (field, value) in change.as_object().unwrap() {
        event[field] = value.clone();
    }
    let Err(refusal) = guard(registry.builtin(form), &event) else {
        return Vec::new();
    };
    let causes = refusal.to_json()["details"]["causes"].clone();
    let line = |cause: &Value| format!("{}: {}", text(cause, "field"), text(cause, "message"));
    causes.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn an_event_lives_beside_the_object_it_is_about() {
    let apart = r#"involvedObject.namespace: Invalid value: "": does not match event.namespace"#;
    for form in [BuiltIn::Event, BuiltIn::EventV1] {
        assert_eq!(complaints(form, json!({})), [""; 0]);
        assert_eq!(complaints(form, json!({"involvedObject": {}})), [apart]);
        let elsewhere = json!({"involvedObject": {"namespace": "other"}});
        assert_eq!(complaints(form, elsewhere).len(), 1);
        let of_nowhere =
            json!({"involvedObject": {}, "metadata": {"name": "e", "namespace": "default"}});
        assert_eq!(complaints(form, of_nowhere), [""; 0]);
    }
}

#[test]
fn an_exact_time_asks_for_a_reporter_by_the_name_of_the_form() {
    let silent = json!({"reportingComponent": "", "action": null});
    assert_eq!(
        complaints(BuiltIn::Event, silent.clone()),
        [
            "reportingComponent: Required value",
            "action: Required value"
        ]
    );
    assert_eq!(
        complaints(BuiltIn::EventV1, silent),
        [
            "reportingController: Required value",
            "action: Required value"
        ]
    );
    let old = json!({"eventTime": null, "reportingComponent": "", "action": null, "type": ""});
    assert_eq!(complaints(BuiltIn::Event, old), [""; 0]);
}

#[test]
fn the_newer_form_wants_a_time_a_known_type_and_nothing_deprecated() {
    let old = json!({
        "eventTime": null, "type": "Odd", "count": 2, "firstTimestamp": "2026-01-02T03:04:05Z", "source": {"component": "c"},
    });
    assert_eq!(
        complaints(BuiltIn::EventV1, old),
        [
            "eventTime: Required value",
            r#"type: Invalid value: "": has invalid value: Odd"#,
            r#"firstTimestamp: Invalid value: "": needs to be unset"#,
            r#"count: Invalid value: "": needs to be unset"#,
            r#"source: Invalid value: "": needs to be unset"#,
        ]
    );
    let empty = json!({"count": 0, "source": {}, "lastTimestamp": null});
    assert_eq!(complaints(BuiltIn::EventV1, empty), [""; 0]);
}
