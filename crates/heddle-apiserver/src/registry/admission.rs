//! What a schema cannot say about a kind: rules that need code to be checked.
//!
//! They hold for whatever changes a spec. A status is written whether or not the spec beside it would still be admitted, so
//! that an object from before a rule does not lose its controller.

use heddle_api::event_policy::EventPolicySpec;
use heddle_api::filter::{Fault, FilterSource};
use heddle_api::trigger::TriggerSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::schema::Cause;

/// Everything wrong with an object that its schema let pass.
pub(crate) type Check = fn(&Value) -> Vec<Cause>;

/// The rules of a kind, if it has any.
pub(super) fn check_of(group: &str, kind: &str) -> Option<Check> {
    match (group, kind) {
        ("eventing.knative.dev", "Trigger") => Some(trigger),
        ("eventing.knative.dev", "EventPolicy") => Some(event_policy),
        _ => None,
    }
}

/// A filter that cannot be understood must never be stored: whoever wrote it is there to be told now.
fn trigger(object: &Value) -> Vec<Cause> {
    // A spec that is not one was refused by the schema.
    let spec = TriggerSpec::deserialize(&object["spec"]);
    let source = spec.map_or(FilterSource::Everything, |spec| FilterSource::from(&spec));
    causes(source.check())
}

fn event_policy(object: &Value) -> Vec<Cause> {
    let spec = EventPolicySpec::deserialize(&object["spec"]);
    let source = spec.map_or(FilterSource::Everything, |spec| {
        FilterSource::Filters(spec.filters)
    });
    causes(source.check())
}

fn causes(faults: Vec<Fault>) -> Vec<Cause> {
    faults
        .into_iter()
        .map(|fault| Cause {
            field: format!("spec.{}", fault.path),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}", fault.message),
        })
        .collect()
}
