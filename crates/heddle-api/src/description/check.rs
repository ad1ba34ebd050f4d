//! Whether a description can be offered. What is refused here never becomes a revision, so the last good one stays.
//!
//! A message names the place: the plan, the parameter and the member. It is read by the bundle's author, who has the file.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::pattern;
use super::schemas::Type;
use super::{Description, Parameter, PlanDescription};
use crate::offer::SCHEMA_BYTES_MAX;

/// The longest name of a bundle, plan or parameter.
const NAME_CHARS_MAX: usize = 255;
/// The only version of the format, in its spellings.
const FORMATS: [&str; 3] = ["1", "1.0", "1.0.0"];

impl Description {
    /// What these members say, or what is wrong with them.
    pub fn of(members: &Map<String, Value>) -> Result<Self, String> {
        let mut rest = members.clone();
        let plans = list(&mut rest, "plans", "the description")?;
        let mut description: Self = understood(rest, "the description")?;
        for (position, plan) in plans.into_iter().enumerate() {
            let place = placed("plan", &plan, position);
            let mut plan = object(plan, &place)?;
            let parameters = parameters_in(&mut plan, "parameters", "parameter", &place)?;
            let bind_parameters =
                parameters_in(&mut plan, "bind_parameters", "bind parameter", &place)?;
            let plan: PlanDescription = understood(plan, &place)?;
            description.plans.push(PlanDescription {
                parameters,
                bind_parameters,
                ..plan
            });
        }
        description.check()?;
        Ok(description)
    }

    fn check(&self) -> Result<(), String> {
        check_name("the description", &self.name)?;
        self.check_format()?;
        self.check_version()?;
        if let Some(word) = &self.asynchronous
            && !["optional", "required", "unsupported"].contains(&word.as_str())
        {
            return Err(format!(
                "async is {word:?}: use optional, required or unsupported"
            ));
        }
        if self.plans.is_empty() {
            return Err("it has no plans: add at least one".to_owned());
        }
        let mut names = BTreeSet::new();
        for plan in &self.plans {
            let place = format!("plan {}", plan.name);
            check_name("a plan", &plan.name)?;
            if !names.insert(plan.name.as_str()) {
                return Err(format!("two plans have the name {}", plan.name));
            }
            check_parameters(&plan.parameters, "parameter", &place)?;
            check_parameters(&plan.bind_parameters, "bind parameter", &place)?;
            check_lengths(plan, &place)?;
        }
        for plan in &self.plans {
            for to in &plan.updates_to {
                if !names.contains(to.as_str()) {
                    return Err(format!(
                        "plan {} updates to {to}, and there is no such plan",
                        plan.name
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_format(&self) -> Result<(), String> {
        let text = match &self.version {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => String::new(),
            None => {
                return Err("version, which is that of the format, is missing: use 1.0".to_owned());
            }
        };
        if FORMATS.contains(&text.as_str()) {
            return Ok(());
        }
        Err(format!(
            "version {text:?} is that of the format, of which only 1.0 is known; the bundle's own version is bundleVersion"
        ))
    }

    fn check_version(&self) -> Result<(), String> {
        let said = match &self.bundle_version {
            None => return Ok(()),
            Some(Value::String(text)) => !text.trim().is_empty() && text.chars().count() <= 256,
            // 1.10 would have become 1.1 by now.
            Some(Value::Number(number)) => !number.is_f64(),
            Some(_) => false,
        };
        if said {
            return Ok(());
        }
        Err("bundleVersion is not a text of 1 to 256 characters: put it in quotes".to_owned())
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("{what} has an empty name"));
    }
    if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(format!(
            "{what} has a name that is longer than {NAME_CHARS_MAX} characters or has control characters in it"
        ));
    }
    Ok(())
}

fn check_parameters(parameters: &[Parameter], noun: &str, plan: &str) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for parameter in parameters {
        check_name(&format!("a {noun} of {plan}"), &parameter.name)?;
        let place = format!("{noun} {} of {plan}", parameter.name);
        if !names.insert(parameter.name.as_str()) {
            return Err(format!("{place} is there twice"));
        }
        check_parameter(parameter).map_err(|why| format!("{place} {why}"))?;
    }
    for parameter in parameters {
        for dependency in &parameter.dependencies {
            if dependency.key == parameter.name || !names.contains(dependency.key.as_str()) {
                return Err(format!(
                    "{noun} {} of {plan} depends on {}, which is not another {noun} of it",
                    parameter.name, dependency.key
                ));
            }
        }
    }
    Ok(())
}

/// What is wrong with a parameter, after its name.
fn check_parameter(parameter: &Parameter) -> Result<(), String> {
    let type_ = parameter.type_.as_deref().map(Type::named).transpose()?;
    match &parameter.choices {
        Some(choices) if choices.is_empty() => {
            return Err("has an empty enum, so no value is right".to_owned());
        }
        Some(choices) => {
            let mut seen = BTreeSet::new();
            if let Some(twice) = choices.iter().find(|one| !seen.insert(one.to_string())) {
                return Err(format!("has {twice} twice in its enum"));
            }
        }
        None if type_ == Some(Type::Enum) => {
            return Err("is of type enum and has no enum: list its values there".to_owned());
        }
        None => {}
    }
    if let Some(pattern) = &parameter.pattern {
        pattern::check(pattern)
            .map_err(|why| format!("has the pattern {pattern:?}, which is none: {why}"))?;
    }
    if parameter.multiple_of.is_some_and(|step| step <= 0.0) {
        return Err("has a multiple_of that is not greater than 0".to_owned());
    }
    let limits = [
        parameter.multiple_of,
        parameter.minimum,
        parameter.maximum,
        parameter.exclusive_minimum,
        parameter.exclusive_maximum,
    ];
    if limits.iter().flatten().any(|limit| !limit.is_finite()) {
        return Err("has a limit that is not a number".to_owned());
    }
    let low = parameter.minimum.or(parameter.exclusive_minimum);
    let high = parameter.maximum.or(parameter.exclusive_maximum);
    let (short, long) = (parameter.min_length, parameter.max_length);
    if low.zip(high).is_some_and(|(low, high)| low > high)
        || short.zip(long).is_some_and(|(short, long)| short > long)
    {
        return Err("has a lower limit above its upper one, so no value is right".to_owned());
    }
    Ok(())
}

/// Platforms refuse a whole catalog for one schema that is too long.
fn check_lengths(plan: &PlanDescription, place: &str) -> Result<(), String> {
    let schemas = plan.schemas();
    for schema in [schemas.create, schemas.update, schemas.bind] {
        let length = schema.to_string().len();
        if length > SCHEMA_BYTES_MAX {
            return Err(format!(
                "the parameters of {place} make a schema of {length} bytes, and platforms take {SCHEMA_BYTES_MAX}: shorten them"
            ));
        }
    }
    Ok(())
}

fn parameters_in(
    plan: &mut Map<String, Value>,
    key: &str,
    noun: &str,
    plan_place: &str,
) -> Result<Vec<Parameter>, String> {
    let items = list(plan, key, plan_place)?.into_iter().enumerate();
    items
        .map(|(position, item)| {
            let place = format!("{} of {plan_place}", placed(noun, &item, position));
            understood(object(item, &place)?, &place)
        })
        .collect()
}

/// Takes a list out of an object; a member without a value is an empty one.
fn list(members: &mut Map<String, Value>, key: &str, place: &str) -> Result<Vec<Value>, String> {
    match members.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{key} of {place} is not a list")),
    }
}

fn object(value: Value, place: &str) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(format!("{place} is not a mapping of names to values")),
    }
}

/// What an item of a list is called: by its name where it has one, or else by its position, from 1.
fn placed(noun: &str, item: &Value, position: usize) -> String {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => format!("{noun} {name}"),
        None => format!("{noun} {}", position + 1),
    }
}

/// A value made of an object's members. The parser does not say which member it stumbled over, so each is tried alone.
fn understood<T: DeserializeOwned>(members: Map<String, Value>, place: &str) -> Result<T, String> {
    let parsed = |members: Map<String, Value>| serde_json::from_value::<T>(members.into());
    let whole = match parsed(members.clone()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    for (key, value) in members {
        let mut alone = Map::from_iter([("name".to_owned(), Value::from("x"))]);
        alone.insert(key.clone(), value);
        if let Err(error) = parsed(alone) {
            return Err(format!("{key} of {place}: {error}"));
        }
    }
    Err(format!("{place}: {whole}"))
}
