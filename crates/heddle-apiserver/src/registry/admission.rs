//! What a schema cannot say about a kind: rules that need code to be checked, and defaults that follow from other fields.
//!
//! Rules hold for whatever changes a spec. A status is written whether or not the spec beside it would still be admitted, so
//! that an object from before a rule does not lose its controller.

use heddle_api::event_policy::EventPolicySpec;
use heddle_api::filter::{Fault, FilterSource};
use heddle_api::trigger::{BROKER_LABEL, TriggerSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::object::meta_mut;
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

/// Fills in what an object leaves open.
pub(crate) type Defaults = fn(&mut Value);

/// The defaults of a kind that its schema cannot express.
pub(super) fn defaults_of(group: &str, kind: &str) -> Option<Defaults> {
    match (group, kind) {
        ("eventing.knative.dev", "Trigger") => Some(label_with_broker),
        _ => None,
    }
}

/// Kubernetes' own bound.
const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Knative labels each Trigger with its Broker, and its clients list the Triggers of a Broker by that label.
fn label_with_broker(trigger: &mut Value) {
    let broker = trigger["spec"]["broker"].as_str().map(str::to_owned);
    // A longer name is no value of a label, and a Trigger without one is better than none.
    let Some(broker) = broker.filter(|broker| broker.len() <= LABEL_VALUE_BYTES_MAX) else {
        return;
    };
    let labels = meta_mut(trigger)
        .entry("labels")
        .or_insert_with(|| Value::Object(Map::new()));
    if labels.is_null() {
        *labels = Value::Object(Map::new());
    }
    // What is no map is refused further on.
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(BROKER_LABEL.to_owned(), Value::String(broker));
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
