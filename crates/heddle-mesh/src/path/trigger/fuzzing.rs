//! For the fuzzer: any bytes, taken for the filters of a Trigger.

use heddle_api::attributes::Value;
use heddle_api::filter::{Filter, FilterSource};

use super::Predicate;
use crate::event::{Builder, Event, Form};

fn sample() -> Event {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [
        ("type", "order.created"),
        ("source", "/shop"),
        ("id", "1"),
        ("subject", "%a_b\\"),
    ] {
        builder.push(name, Value::Text(value));
    }
    builder.build(None)
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
            let sample = sample();
            let explained = predicate.explain(&sample);
            assert_eq!(predicate.matches(&sample), explained.is_ok());
            let _demand = predicate.demand();
        }
    }
}
