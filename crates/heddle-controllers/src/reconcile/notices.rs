//! Which Kubernetes Events a change of status is worth (a notice, to tell them from the events of the mesh): readiness that turns, operations that begin and end, and what a
//! kind names beyond that.

use heddle_api::conditions::{Condition, ConditionType, Conditions, READY, Reason, Status};
use heddle_api::operation::{OperationProgress, OperationState};
use kube::runtime::events::{Event, EventType};
use serde_json::Value;

/// What a kind's readers want to hear beyond readiness and operations, and what they do not.
#[derive(Debug, Clone, Copy)]
pub struct Notices {
    /// Further conditions whose turn to `False` is told.
    pub also: &'static [ConditionType],
    /// Reasons for not being ready that are as it should be.
    pub usual: &'static [Reason],
    /// Phases (`status.phase`) whose beginning is told, and what they mean.
    pub phases: &'static [(&'static str, &'static str)],
    /// Whether it is not ready at first, as everybody expects, because what it consists of is made for it. Its status says
    /// what it waits for, and an operation what it has come to; news is what turns after that.
    pub is_assembled: bool,
}

impl Notices {
    /// Readiness and operations, and no more.
    pub const PLAIN: Self = Self {
        also: &[],
        usual: &[],
        phases: &[],
        is_assembled: false,
    };

    /// The same of what is assembled.
    pub const ASSEMBLED: Self = Self {
        is_assembled: true,
        ..Self::PLAIN
    };
}

/// The Events that a change of status amounts to. Pure.
pub(super) fn notices(wanted: &Notices, before: &Value, after: &Value) -> Vec<Event> {
    let operation = operation(before, after);
    let stands = progress(after).map(|is| is.state);
    let is_under_way = stands == Some(OperationState::InProgress);
    let has_succeeded = operation.is_some() && stands == Some(OperationState::Succeeded);
    let readiness = turn(READY, before, after).filter(|event| {
        let is_expected = match event.type_ {
            EventType::Warning => {
                is_under_way || (wanted.is_assembled && before.get("conditions").is_none())
            }
            // That is what the operation was for.
            EventType::Normal => has_succeeded,
        };
        let mut usual = wanted.usual.iter();
        !is_expected && !usual.any(|reason| reason.name == event.reason)
    });
    let also = wanted.also.iter();
    let also = also.filter_map(|declared| turn(declared.name, before, after));
    // That something is well again is told of readiness only.
    let also = also.filter(|event| event.type_ == EventType::Warning);
    operation
        .into_iter()
        .chain(readiness)
        .chain(also)
        .chain(phase(wanted, before, after))
        .collect()
}

fn phase(wanted: &Notices, before: &Value, after: &Value) -> Option<Event> {
    let is = after.get("phase")?.as_str()?;
    let mut told = wanted.phases.iter();
    let (name, meaning) = told.find(|(name, _)| *name == is)?;
    if before.get("phase").and_then(Value::as_str) == Some(is) {
        return None;
    }
    let (name, meaning) = ((*name).to_owned(), (*meaning).to_owned());
    Some(event(EventType::Normal, name, meaning))
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

fn condition(status: &Value, name: &str) -> Option<Condition> {
    let conditions: Conditions = serde_json::from_value(status.get("conditions")?.clone()).ok()?;
    conditions.find(name).cloned()
}

/// A condition that is not what it was.
fn turn(name: &str, before: &Value, after: &Value) -> Option<Event> {
    let was = condition(before, name).map(|was| was.status);
    let is = condition(after, name)?;
    let (reason, message) = (
        is.reason.unwrap_or_default(),
        is.message.unwrap_or_default(),
    );
    let is = is.status;
    // Becoming ready for the first time is what everybody expects; it is not news.
    if was == Some(is) || (was.is_none() && is == Status::True) {
        return None;
    }
    // Nor is it that nothing is known yet: it goes on by itself, and news is what comes of it.
    if is == Status::Unknown && was != Some(Status::True) {
        return None;
    }
    Some(match is {
        Status::True => {
            let note = "everything it needs is there".to_owned();
            event(EventType::Normal, name.to_owned(), note)
        }
        _ => {
            // It is being found out again, as after every change. If it is bad, that is told then.
            let type_ = match is {
                Status::Unknown => EventType::Normal,
                _ => EventType::Warning,
            };
            let reason = Some(reason).filter(|reason| !reason.is_empty());
            event(
                type_,
                reason.unwrap_or_else(|| format!("Not{name}")),
                message,
            )
        }
    })
}

fn progress(status: &Value) -> Option<OperationProgress> {
    serde_json::from_value(status.get("operation")?.clone()).ok()
}

/// Each operation is told when it is first seen to be under way, and when it ends.
fn operation(before: &Value, after: &Value) -> Option<Event> {
    let is = progress(after)?;
    let was = progress(before).filter(|was| was.id == is.id);
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
        told_of(&Notices::PLAIN, before, after)
    }

    fn told_of(wanted: &Notices, before: Value, after: Value) -> Vec<String> {
        let news = notices(wanted, &before, &after);
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
        let of_parts = |before: Value| told_of(&Notices::ASSEMBLED, before, ready("False"));
        assert_eq!(of_parts(json!(null)), nothing);
        for before in ["Unknown", "True"] {
            assert_eq!(of_parts(ready(before)), ["Warning Because"]);
        }
        assert_eq!(told(ready("True"), ready("Unknown")), ["Normal Because"]);
        assert_eq!(told(ready("Unknown"), ready("False")), ["Warning Because"]);
        for before in [json!(null), ready("False")] {
            assert_eq!(told(before, ready("Unknown")), nothing, "it goes on");
        }
        assert_eq!(told(ready("False"), ready("True")), ["Normal Ready"]);
        let with = |state: &str, status: &str| {
            let mut both = at("1", state);
            both["conditions"] = ready(status)["conditions"].take();
            both
        };
        let made = with("inProgress", "False");
        for kind in [Notices::ASSEMBLED, Notices::PLAIN] {
            for before in [with("inProgress", "Unknown"), with("inProgress", "True")] {
                let while_made = told_of(&kind, before, made.clone());
                assert_eq!(while_made, nothing, "the operation says so");
            }
        }
        let failed = told(with("inProgress", "False"), with("failed", "False"));
        assert_eq!(failed, ["Warning ProvisionFailed"]);
        assert_eq!(
            told(with("inProgress", "False"), with("succeeded", "True")),
            ["Normal ProvisionSucceeded"],
            "one tells the other"
        );
        assert_eq!(
            told(with("succeeded", "False"), with("succeeded", "True")),
            ["Normal Ready"]
        );
    }

    #[test]
    fn a_kind_says_what_else_is_news_and_what_is_not() {
        const ACCEPTED: ConditionType = ConditionType {
            name: "Accepted",
            meaning: "",
            reasons: &[],
        };
        const IDLE: Reason = Reason {
            name: "Idle",
            meaning: "",
        };
        let wanted = Notices {
            also: &[ACCEPTED],
            usual: &[IDLE],
            phases: &[("Over", "it is over")],
            ..Notices::PLAIN
        };
        let state = |type_: &str, status: &str, reason: &str| json!({"conditions": [{"type": type_, "status": status, "reason": reason}]});
        let nothing = Vec::<String>::new();
        let ready = |reason: &str| {
            let before = state("Ready", "True", "");
            told_of(&wanted, before, state("Ready", "False", reason))
        };
        assert_eq!(ready("Idle"), nothing);
        assert_eq!(ready("Broken"), ["Warning Broken"]);
        let (good, bad) = (
            state("Accepted", "True", ""),
            state("Accepted", "False", "Rejected"),
        );
        assert_eq!(
            told_of(&wanted, good.clone(), bad.clone()),
            ["Warning Rejected"]
        );
        assert_eq!(
            told_of(&wanted, json!(null), bad.clone()),
            ["Warning Rejected"]
        );
        assert_eq!(told_of(&wanted, bad.clone(), bad.clone()), nothing);
        assert_eq!(told_of(&wanted, bad, good), nothing);
        let (on, over) = (json!({"phase": "On"}), json!({"phase": "Over"}));
        assert_eq!(told_of(&wanted, on, over.clone()), ["Normal Over"]);
        assert_eq!(told_of(&wanted, over.clone(), over), nothing);
    }
}
