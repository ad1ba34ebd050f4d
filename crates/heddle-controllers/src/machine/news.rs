//! What in a change of status is worth telling people: readiness that turns, and operations that begin and end.

use heddle_api::conditions::{Conditions, READY, Status};
use heddle_api::operation::{OperationProgress, OperationState};
use kube::runtime::events::{Event, EventType};
use serde_json::Value;

/// The Events that a change of status amounts to. Pure.
pub(super) fn news(before: &Value, after: &Value) -> Vec<Event> {
    let both = [operation(before, after), readiness(before, after)];
    both.into_iter().flatten().collect()
}

fn event(type_: EventType, reason: String, note: String) -> Event {
    Event {
        type_,
        reason,
        note: Some(note),
        action: "Reconcile".to_owned(),
        secondary: None,
    }
}

fn readiness(before: &Value, after: &Value) -> Option<Event> {
    let ready = |status: &Value| -> Option<(Status, String, String)> {
        let conditions: Conditions =
            serde_json::from_value(status.get("conditions")?.clone()).ok()?;
        let ready = conditions.find(READY)?;
        Some((
            ready.status,
            ready.reason.clone().unwrap_or_default(),
            ready.message.clone().unwrap_or_default(),
        ))
    };
    let was = ready(before).map(|(status, ..)| status);
    let (is, reason, message) = ready(after)?;
    // Becoming ready for the first time is what everybody expects; it is not news.
    if was == Some(is) || (was.is_none() && is == Status::True) {
        return None;
    }
    Some(match is {
        Status::True => {
            let note = "everything it needs is there".to_owned();
            event(EventType::Normal, READY.to_owned(), note)
        }
        _ if reason.is_empty() => event(EventType::Warning, "NotReady".to_owned(), message),
        _ => event(EventType::Warning, reason, message),
    })
}

/// Each operation is told when it is first seen to be under way, and when it ends.
fn operation(before: &Value, after: &Value) -> Option<Event> {
    let operation = |status: &Value| -> Option<OperationProgress> {
        serde_json::from_value(status.get("operation")?.clone()).ok()
    };
    let is = operation(after)?;
    let was = operation(before).filter(|was| was.id == is.id);
    if was.is_some_and(|was| was.state == is.state) {
        return None;
    }
    let type_ = match is.state {
        OperationState::Failed => EventType::Warning,
        _ => EventType::Normal,
    };
    // Such as `ProvisionSucceeded`.
    let reason = format!("{:?}{:?}", is.kind, is.state);
    let id = &is.id;
    let note = match &is.description {
        Some(description) => format!("operation {id}: {description}"),
        None => format!("operation {id}"),
    };
    Some(event(type_, reason, note))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(before: Value, after: Value) -> Vec<String> {
        let news = news(&before, &after);
        let line = |event: &Event| format!("{:?} {}", event.type_, event.reason);
        news.iter().map(line).collect()
    }

    fn at(id: &str, state: &str) -> Value {
        json!({"operation": {"id": id, "kind": "provision", "state": state, "description": "why"}})
    }

    #[test]
    fn every_transition_of_an_operation_is_told_once() {
        let nothing = Vec::<String>::new();
        for (before, after, expected) in [
            (
                json!(null),
                at("1", "inProgress"),
                "Normal ProvisionInProgress",
            ),
            (
                at("1", "inProgress"),
                at("1", "succeeded"),
                "Normal ProvisionSucceeded",
            ),
            (
                at("1", "inProgress"),
                at("1", "failed"),
                "Warning ProvisionFailed",
            ),
            (
                at("1", "failed"),
                at("2", "inProgress"),
                "Normal ProvisionInProgress",
            ),
            (
                at("1", "succeeded"),
                at("2", "succeeded"),
                "Normal ProvisionSucceeded",
            ),
        ] {
            assert_eq!(told(before, after), [expected]);
        }
        for state in ["inProgress", "succeeded", "failed"] {
            assert_eq!(told(at("1", state), at("1", state)), nothing);
        }
        assert_eq!(told(at("1", "succeeded"), json!({})), nothing);
    }

    #[test]
    fn readiness_is_told_when_it_turns() {
        let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "Because"}]});
        let nothing = Vec::<String>::new();
        assert_eq!(told(json!(null), ready("True")), nothing);
        assert_eq!(told(ready("True"), ready("True")), nothing);
        assert_eq!(told(json!(null), ready("False")), ["Warning Because"]);
        assert_eq!(told(ready("True"), ready("Unknown")), ["Warning Because"]);
        assert_eq!(told(ready("False"), ready("True")), ["Normal Ready"]);
    }
}
