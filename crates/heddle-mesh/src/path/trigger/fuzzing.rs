//! For the fuzzer: any bytes, taken for the filters of a Trigger.

use heddle_api::attributes::{Attributes, Value};
use heddle_api::filter::{Filter, FilterSource};

use super::Predicate;

struct Sample;

impl Attributes for Sample {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        self.text(name).map(Value::Text)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match name {
            "type" => Some("order.created"),
            "source" => Some("/shop"),
            "id" => Some("1"),
            "specversion" => Some("1.0"),
            "subject" => Some("%a_b\\"),
            _ => None,
        }
    }
}

/// Filters are compiled or refused with everything that is wrong; what they do not want, they can explain.
///
/// # Panics
/// When the promise does not hold.
pub fn filters(soup: &[u8]) {
    let Ok(filters) = serde_json::from_slice::<Vec<Filter>>(soup) else {
        return;
    };
    match Predicate::compile(&FilterSource::Filters(filters)) {
        Err(invalid) => assert!(!invalid.faults.is_empty()),
        Ok(predicate) => {
            let explained = predicate.explain(&Sample);
            assert_eq!(predicate.matches(&Sample), explained.is_ok());
            let _demand = predicate.demand();
        }
    }
}
