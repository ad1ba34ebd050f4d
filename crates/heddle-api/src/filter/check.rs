//! What is wrong with a filter, as far as can be said before there is an event.
//!
//! The schema holds what a schema can: types, and one dialect per filter at the top. Everything else is here, for admission
//! to refuse and for the routing table to reject: a filter that cannot be understood must never widen what is let through.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::cost::{FILTER_COST_MAX, too_much};
use super::{Filter, Nested};
use crate::cesql::Expression;

/// How deep `all`, `any` and `not` may nest. Compiling and deciding recurse.
pub const NESTING_MAX: usize = 16;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place below the list of filters, such as `[0].all[2].exact`.
    pub path: String,
    pub message: String,
}

/// Everything that is wrong with these filters, in the order in which they are written.
#[must_use]
pub fn check(filters: &[Filter]) -> Vec<Fault> {
    let mut checker = Checker::default();
    for (index, filter) in filters.iter().enumerate() {
        let Nested(filter) = Nested::from(filter);
        checker.filter(&format!("[{index}]"), &filter, 1);
    }
    if checker.cost > FILTER_COST_MAX {
        checker.fault("", &too_much(checker.cost));
    }
    checker.faults
}

/// Everything that is wrong with the names of a Trigger's `filter.attributes`. An empty value means something there.
pub(super) fn attributes(attributes: &BTreeMap<String, String>) -> Vec<Fault> {
    let fault = |name: &String| {
        Some(Fault {
            path: format!(".attributes.{name}"),
            message: attribute_fault(name)?,
        })
    };
    let mut faults: Vec<Fault> = attributes.keys().filter_map(fault).collect();
    let cost = u32::try_from(attributes.len()).unwrap_or(u32::MAX);
    if cost > FILTER_COST_MAX {
        faults.push(Fault {
            path: ".attributes".to_owned(),
            message: too_much(cost),
        });
    }
    faults
}

/// Why `name` cannot be the name of an attribute, if so.
fn attribute_fault(name: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() {
        Some("the name of an attribute is empty".to_owned())
    } else if name == "data" {
        Some("filters see the attributes of an event, not its data".to_owned())
    } else if !name.chars().all(is_allowed) {
        Some(format!(
            "{name:?} is not the name of an attribute: those are lowercase letters and digits"
        ))
    } else {
        None
    }
}

/// Filters are looked at as JSON, because only there an unknown dialect is still to be seen.
#[derive(Default)]
struct Checker {
    faults: Vec<Fault>,
    cost: u32,
}

impl Checker {
    fn filter(&mut self, path: &str, filter: &Value, depth: usize) {
        let Value::Object(dialects) = filter else {
            return self.fault(path, "a filter is an object");
        };
        if depth > NESTING_MAX {
            return self.fault(path, &format!("filters nest deeper than {NESTING_MAX}"));
        }
        if dialects.len() > 1 {
            self.fault(
                path,
                "a filter is written in one dialect; combine several with all or any",
            );
        }
        if dialects.is_empty() {
            self.fault(path, "a filter needs a dialect with something in it");
        }
        for (dialect, content) in dialects {
            self.dialect(&format!("{path}.{dialect}"), dialect, content, depth);
        }
    }

    fn dialect(&mut self, path: &str, dialect: &str, content: &Value, depth: usize) {
        match (dialect, content) {
            ("exact" | "prefix" | "suffix", Value::Object(attributes)) => {
                self.attributes(path, attributes);
            }
            ("exact" | "prefix" | "suffix", _) => self.fault(path, "must be an object"),
            ("all" | "any", Value::Array(filters)) if filters.is_empty() => {
                self.fault(path, "needs at least one filter");
            }
            ("all" | "any", Value::Array(filters)) => {
                for (index, filter) in filters.iter().enumerate() {
                    self.filter(&format!("{path}[{index}]"), filter, depth + 1);
                }
            }
            ("all" | "any", _) => self.fault(path, "must be a list of filters"),
            ("not", filter) => self.filter(path, filter, depth + 1),
            ("cesql", Value::String(expression)) => self.expression(path, expression),
            ("cesql", _) => self.fault(path, "must be a string"),
            ("sql", _) => self.fault(path, "this dialect is called cesql here"),
            _ => self.fault(
                path,
                "there is no such dialect; choose from exact, prefix, suffix, all, any, not and cesql",
            ),
        }
    }

    fn attributes(&mut self, path: &str, attributes: &Map<String, Value>) {
        if attributes.is_empty() {
            self.fault(path, "needs at least one attribute");
        }
        for (name, value) in attributes {
            self.cost = self.cost.saturating_add(1);
            if let Some(message) = attribute_fault(name) {
                self.fault(path, &message);
            }
            let path = format!("{path}.{name}");
            match value {
                Value::String(text) if text.is_empty() => self.fault(&path, "must not be empty"),
                Value::String(_) => {}
                _ => self.fault(&path, "must be a string"),
            }
        }
    }

    fn expression(&mut self, path: &str, expression: &str) {
        let verdict = match Expression::parse(expression) {
            Ok(expression) => {
                self.cost = self.cost.saturating_add(expression.cost());
                expression.check_filter().map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(message) = verdict {
            self.fault(path, &message);
        }
    }

    fn fault(&mut self, path: &str, message: &str) {
        self.faults.push(Fault {
            path: path.to_owned(),
            message: message.to_owned(),
        });
    }
}
