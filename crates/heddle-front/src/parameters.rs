//! Parameters against the JSON schemas of plans.
//!
//! Schemas are compiled once per catalog. A refusal names the place by JSON pointer and what is wrong there, but not the
//! value: it may be a password.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::catalog::{Catalog, Plan};

/// How many complaints are told at once.
const COMPLAINTS_MAX: usize = 3;

/// What parameters are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ParameterAction {
    Create,
    Update,
    Bind,
}

/// Compiled schemas of the catalog that was seen last.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    compiled: Mutex<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    catalog: Option<Arc<Catalog>>,
    /// By plan and action; `None` for a schema that is none.
    by_plan: HashMap<Key, Option<Arc<Validator>>>,
}

/// Plan, the revision that describes it, if one does, and action.
type Key = (String, Option<String>, ParameterAction);

impl Validators {
    /// What is wrong with `parameters`, for people.
    pub(crate) fn check(
        &self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        action: ParameterAction,
        parameters: &Map<String, Value>,
    ) -> Result<(), String> {
        let Some(schema) = schema(plan, action) else {
            return Ok(());
        };
        let Some(validator) = self.validator(catalog, plan, action, schema) else {
            return Ok(());
        };
        let instance = Value::Object(parameters.clone());
        let complaints: Vec<String> = validator
            .iter_errors(&instance)
            .take(COMPLAINTS_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() {
                    "/".to_owned()
                } else {
                    place
                };
                format!("{place}: {}", error.masked())
            })
            .collect();
        if complaints.is_empty() {
            return Ok(());
        }
        Err(format!(
            "parameters do not fit the schema of plan {}: {}",
            plan.id,
            complaints.join("; ")
        ))
    }

    fn validator(
        &self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        action: ParameterAction,
        schema: &Value,
    ) -> Option<Arc<Validator>> {
        let mut compiled = self.compiled.lock();
        if !compiled
            .catalog
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, catalog))
        {
            compiled.catalog = Some(catalog.clone());
            compiled.by_plan.clear();
        }
        let compile = || match jsonschema::options().build(schema) {
            Ok(validator) => Some(Arc::new(validator)),
            Err(error) => {
                tracing::warn!(plan = %plan.id, ?action, error = %error.masked(), "a plan's schema is none; nothing is checked");
                None
            }
        };
        let revision = plan.backing.revision();
        let revision = revision.map(|revision| revision.name.clone());
        let key = (plan.id.clone(), revision, action);
        compiled.by_plan.entry(key).or_insert_with(compile).clone()
    }
}

fn schema(plan: &Plan, action: ParameterAction) -> Option<&Value> {
    match action {
        ParameterAction::Create => plan.schemas.create.as_ref(),
        ParameterAction::Update => plan.schemas.update.as_ref(),
        ParameterAction::Bind => plan.schemas.bind.as_ref(),
    }
}

/// Laid over what is in force: members replace members of the same name, and `null` takes one away.
pub(crate) fn merged(base: &Map<String, Value>, over: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = base.clone();
    for (key, value) in over {
        if value.is_null() {
            merged.remove(key);
        } else {
            merged.insert(key.clone(), value.clone());
        }
    }
    merged
}

/// What of `parameters` may be shown again: not what a schema marks as write-only, at whatever depth.
pub(crate) fn showable(
    plan: &Plan,
    action: ParameterAction,
    parameters: &Map<String, Value>,
) -> Map<String, Value> {
    let properties = schema(plan, action).and_then(|schema| schema.get("properties"));
    let secret = |key: &str| {
        let property = properties.and_then(|properties| properties.get(key));
        property.is_some_and(is_secret)
    };
    let shown = parameters.iter().filter(|(key, _)| !secret(key));
    shown
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn is_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("writeOnly") == Some(&Value::Bool(true))
                || members.get("format").and_then(Value::as_str) == Some("password")
                || members.values().any(is_secret)
        }
        Value::Array(items) => items.iter().any(is_secret),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::testing::{catalog, members};
    use serde_json::json;

    #[test]
    fn a_complaint_names_the_place_and_never_the_value() {
        let catalog = Arc::new(catalog());
        let plan = &catalog.offerings[0].plans[1];
        let validators = Validators::default();
        let check = |parameters: Value| {
            validators.check(
                &catalog,
                plan,
                ParameterAction::Create,
                &members(parameters),
            )
        };
        assert_eq!(check(json!({"size": 3})), Ok(()));
        let complaint = check(json!({"size": "hunter2"})).unwrap_err();
        assert!(complaint.contains("/size"), "{complaint}");
        assert!(!complaint.contains("hunter2"), "{complaint}");
        assert!(check(json!({})).unwrap_err().contains("size"));
    }

    #[test]
    fn schemas_follow_the_catalog() {
        let old = Arc::new(catalog());
        let mut changed = catalog();
        Arc::make_mut(&mut changed.offerings[0]).plans[1]
            .schemas
            .create = None;
        let new = Arc::new(changed);
        let validators = Validators::default();
        let parameters = members(json!({"size": "x"}));
        assert!(
            validators
                .check(
                    &old,
                    &old.offerings[0].plans[1],
                    ParameterAction::Create,
                    &parameters
                )
                .is_err()
        );
        assert!(
            validators
                .check(
                    &new,
                    &new.offerings[0].plans[1],
                    ParameterAction::Create,
                    &parameters
                )
                .is_ok()
        );
    }

    #[test]
    fn laying_over_replaces_members_and_null_takes_them_away() {
        let base = members(json!({"a": {"x": 1}, "b": 2, "c": 3}));
        let over = members(json!({"a": {"y": 1}, "b": null, "d": null}));
        assert_eq!(
            Value::from(merged(&base, &over)),
            json!({"a": {"y": 1}, "c": 3})
        );
    }

    #[test]
    fn what_is_write_only_is_not_shown() {
        let catalog = catalog();
        let plan = &catalog.offerings[0].plans[1];
        let parameters =
            members(json!({"size": 3, "token": "t", "nested": {"key": "k", "free": 1}}));
        assert_eq!(
            Value::from(showable(plan, ParameterAction::Create, &parameters)),
            json!({"size": 3})
        );
    }
}
