//! Validation rules (`x-kubernetes-validations`) of one schema node, compiled once.
//!
//! `self` is the node's value, `oldSelf` the value it replaces. A rule that mentions `oldSelf` is a transition rule and only
//! runs when there is an old value (or the rule says `optionalOldSelf`). A rule that cannot be evaluated refuses the object.
//! Which value is the old one of a list's item is decided by the caller, who knows the list's keys.

#[cfg(test)]
mod tests;

use kube_cel::{CompilationResult, CompiledSchema, ErrorKind, ValidationError};
use serde_json::{Map, Value};

const RULES: &str = "x-kubernetes-validations";

/// The longest message a messageExpression may produce; longer ones give way to the fixed message.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The compiled rules of one schema node.
#[derive(Debug)]
pub(crate) struct Rules {
    compiled: CompiledSchema,
    type_name: String,
}

/// A rule that an object breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Relative to the node, with its leading dot; empty for the node itself.
    pub field_path: String,
    pub reason: &'static str,
    pub message: String,
}

impl Rules {
    /// Compiles the rules of a node, if it has any. Rules of nodes below are not looked at.
    pub(crate) fn compile(schema: &Map<String, Value>) -> Result<Option<Self>, String> {
        if schema
            .get(RULES)
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
        {
            return Ok(None);
        }
        let mut alone = typed_only(schema);
        alone.insert(RULES.to_owned(), schema[RULES].clone());
        let compiled = kube_cel::compile_schema(&Value::Object(alone));
        if let Some(error) = compiled.compilation_errors().first() {
            return Err(error.to_string());
        }
        let type_name = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        Ok(Some(Self {
            compiled,
            type_name,
        }))
    }

    /// Evaluates every rule against a value.
    pub(crate) fn evaluate(&self, value: &Value, old: Option<&Value>) -> Vec<Violation> {
        let Err(errors) = kube_cel::validate_compiled(&self.compiled, value, old) else {
            return Vec::new();
        };
        let unchanged = old == Some(value);
        let violations = errors.into_iter().filter_map(|error| {
            let rule = self.rule(&error.rule);
            // What was accepted before and is not touched now is not held against this writer.
            if unchanged && !rule.is_some_and(|rule| rule.is_transition_rule) {
                return None;
            }
            Some(self.violation(&error, rule, value))
        });
        violations.collect()
    }

    fn rule(&self, text: &str) -> Option<&CompilationResult> {
        self.compiled
            .validations
            .iter()
            .flatten()
            .find(|rule| rule.rule.rule == text)
    }

    fn violation(
        &self,
        error: &ValidationError,
        rule: Option<&CompilationResult>,
        value: &Value,
    ) -> Violation {
        let fixed = rule
            .and_then(|rule| rule.rule.message.as_deref())
            .map(str::trim)
            .filter(|message| !message.is_empty());
        if error.kind != ErrorKind::ValidationFailure {
            let cause = std::error::Error::source(error)
                .map_or_else(|| error.message.clone(), ToString::to_string);
            let message = format!(
                "Invalid value: {:?}: {cause} evaluating rule: {}",
                self.type_name,
                fixed.unwrap_or_else(|| error.rule.trim())
            );
            return Violation {
                field_path: String::new(),
                reason: "FieldValueInvalid",
                message,
            };
        }
        let given = error.message.trim();
        let usable = !given.is_empty() && given.len() <= MESSAGE_BYTES_MAX && !given.contains('\n');
        let detail = match (usable, fixed) {
            (true, _) => given.to_owned(),
            (false, Some(fixed)) => fixed.to_owned(),
            (false, None) => format!("failed rule: {}", error.rule.trim()),
        };
        let shown = match value {
            Value::Object(_) | Value::Array(_) => String::new(),
            Value::String(text) => format!(": {text:?}"),
            other => format!(": {other}"),
        };
        let (reason, message) = match error.reason.as_deref() {
            Some("FieldValueForbidden") => ("FieldValueForbidden", format!("Forbidden: {detail}")),
            Some("FieldValueRequired") => {
                ("FieldValueRequired", format!("Required value: {detail}"))
            }
            Some("FieldValueDuplicate") => {
                ("FieldValueDuplicate", format!("Duplicate value{shown}"))
            }
            _ => (
                "FieldValueInvalid",
                format!("Invalid value{shown}: {detail}"),
            ),
        };
        Violation {
            field_path: error.field_path.clone(),
            reason,
            message,
        }
    }
}

/// A copy of a schema that keeps only what gives values their types in rules: no nested rules (they are evaluated at their own
/// node), no defaults (the object has them already), no alternatives.
fn typed_only(schema: &Map<String, Value>) -> Map<String, Value> {
    const KEPT: [&str; 5] = [
        "type",
        "format",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ];
    let mut typed: Map<String, Value> = schema
        .iter()
        .filter(|(keyword, _)| KEPT.contains(&keyword.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let nested = |schema: &Value| match schema {
        Value::Object(schema) => Value::Object(typed_only(schema)),
        other => other.clone(),
    };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let properties = properties
            .iter()
            .map(|(name, property)| (name.clone(), nested(property)))
            .collect();
        typed.insert("properties".to_owned(), Value::Object(properties));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(keyword) {
            typed.insert(keyword.to_owned(), nested(schema));
        }
    }
    typed
}
