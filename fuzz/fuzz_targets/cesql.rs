//! No text makes the parser panic, and what it reads can be evaluated in bounded time.

#![no_main]

use heddle_api::attributes::{Attributes, Value};
use heddle_api::cesql::Expression;
use libfuzzer_sys::fuzz_target;

struct Sample;

impl Attributes for Sample {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        match name {
            "count" => Some(Value::Integer(7)),
            "flag" => Some(Value::Boolean(true)),
            _ => self.text(name).map(Value::Text),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match name {
            "type" => Some("order.created"),
            "source" => Some("/shop"),
            "id" => Some("1"),
            "specversion" => Some("1.0"),
            _ => None,
        }
    }
}

fuzz_target!(|text: &str| {
    if let Ok(expression) = Expression::parse(text) {
        let evaluation = expression.evaluate(&Sample);
        assert!(expression.passes(&Sample) == expression.matches(&Sample).unwrap_or(false));
        drop(evaluation);
    }
});
