//! The conditions of an object, in the order in which they are usually met, the first that does not hold opened.

use heddle_api::conditions::{READY, Status};
use heddle_api::{Condition, ConditionSet};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;

use crate::parts::verdict;
use crate::words;

/// The conditions in an object's status, `Ready` last.
pub(crate) fn of(object: &Value) -> Vec<Condition> {
    let conditions = object["status"]["conditions"].as_array();
    let conditions = conditions.into_iter().flatten();
    let read = |condition: &Value| Condition::deserialize(condition).ok();
    conditions.filter_map(read).collect()
}

/// Whether an object is ready, as a verdict; an object without conditions says nothing.
pub(crate) fn readiness(object: &Value) -> Option<(&'static str, Condition)> {
    let ready = of(object)
        .into_iter()
        .find(|condition| condition.type_ == READY)?;
    let verdict = verdict::of_status(status(&ready));
    Some((verdict, ready))
}

fn status(condition: &Condition) -> &'static str {
    match condition.status {
        Status::True => "True",
        Status::False => "False",
        Status::Unknown => "Unknown",
    }
}

/// All of them as a list.
pub(crate) fn list(conditions: &[Condition], known: ConditionSet, now: Timestamp) -> Markup {
    let first = conditions
        .iter()
        .position(|condition| condition.status != Status::True && condition.severity.is_none());
    html! {
        @if conditions.is_empty() { p.quiet { "No controller has looked at it yet." } }
        ul.conditions {
            @for (index, condition) in conditions.iter().enumerate() {
                (one(condition, known, Some(index) == first, now))
            }
        }
    }
}

fn one(condition: &Condition, known: ConditionSet, open: bool, now: Timestamp) -> Markup {
    let word = verdict::of_status(status(condition));
    let declared = known
        .iter()
        .find(|declared| declared.name == condition.type_);
    let reason = condition.reason.as_deref().unwrap_or_default();
    let mut reasons = known.iter().flat_map(|declared| declared.reasons);
    let meaning = reasons.find(|known| known.name == reason);
    html! {
        li data-verdict=(word) {
            details open[open] {
                summary {
                    (verdict::mark(word)) " " strong { (condition.type_) } " " span.quiet { (status(condition)) }
                    @if !reason.is_empty() { " · " (reason) }
                }
                @if let Some(message) = &condition.message { p { (message) } }
                @if let Some(meaning) = meaning { p.quiet { (meaning.meaning) } }
                @if let Some(declared) = declared { p.quiet { "When it holds: " (declared.meaning) } }
                @if let Some(since) = &condition.last_transition_time { p.quiet { "Since " (words::since(since.0, now)) } }
            }
        }
    }
}
