//! Promises that hold for any text whatsoever, for tests and for fuzzing alike.
//!
//! Whatever comes is an expression or is refused. What is an expression can be evaluated, and passes an event only if it
//! is true of it without a fault.

use heddle_api::attributes::{Attributes, Value};
use heddle_api::cesql::Expression;

/// An event with attributes of every type.
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

/// Taken for an expression of CloudEvents SQL. Gives whether it is one.
pub(crate) fn cesql(text: &str) -> bool {
    let Ok(expression) = Expression::parse(text) else {
        return false;
    };
    drop(expression.evaluate(&Sample));
    let matches = expression.matches(&Sample);
    assert_eq!(expression.passes(&Sample), matches.unwrap_or(false));
    true
}
