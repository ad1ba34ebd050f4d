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

/// What is wrong with a description, in the order it is met.
type Faults = Vec<String>;

impl Description {
    /// What these members say, or the first thing that is wrong with them.
    pub fn of(members: &Map<String, Value>) -> Result<Self, String> {
        let (description, faults) = Self::judged(members);
        faults.into_iter().next().map_or(Ok(description), Err)
    }

    /// What can be understood of these members, and everything that is wrong with them. What is not understood stays where it
    /// is under its name, or its position, so that others who refer to it are not blamed for that.
    pub(super) fn judged(members: &Map<String, Value>) -> (Self, Faults) {
        let mut faults = Faults::new();
        let mut rest = members.clone();
        let plans = list(&mut rest, "plans", "the description", &mut faults);
        let mut description: Self = understood(rest, "x", "the description", &mut faults);
        for (position, plan) in plans.into_iter().enumerate() {
            description.plans.push(plan_in(plan, position, &mut faults));
        }
        description.check(&mut faults);
        (description, faults)
    }

    fn check(&self, faults: &mut Faults) {
        let head = [
            check_name("the description", &self.name),
            self.check_format(),
            self.check_version(),
            self.check_async(),
        ];
        faults.extend(head.into_iter().flatten());
        if self.plans.is_empty() {
            faults.push("it has no plans: add at least one".to_owned());
        }
        let mut names = BTreeSet::new();
        for plan in &self.plans {
            let place = format!("plan {}", plan.name);
            faults.extend(check_name("a plan", &plan.name));
            if !names.insert(plan.name.as_str()) {
                faults.push(format!("two plans have the name {}", plan.name));
            }
            check_parameters(&plan.parameters, "parameter", &place, faults);
            check_parameters(&plan.bind_parameters, "bind parameter", &place, faults);
            faults.extend(check_lengths(plan, &place));
        }
        for plan in &self.plans {
            let unknown = plan
                .updates_to
                .iter()
                .filter(|to| !names.contains(to.as_str()));
            faults.extend(unknown.map(|to| {
                format!(
                    "plan {} updates to {to}, and there is no such plan",
                    plan.name
                )
            }));
        }
    }

    fn check_async(&self) -> Option<String> {
        let word = self.asynchronous.as_ref()?;
        let known = ["optional", "required", "unsupported"].contains(&word.as_str());
        (!known).then(|| format!("async is {word:?}: use optional, required or unsupported"))
    }

    fn check_format(&self) -> Option<String> {
        let text = match &self.version {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => String::new(),
            None => {
                return Some(
                    "version, which is that of the format, is missing: use 1.0".to_owned(),
                );
            }
        };
        (!FORMATS.contains(&text.as_str())).then(|| format!(
            "version {text:?} is that of the format, of which only 1.0 is known; the bundle's own version is bundleVersion"
        ))
    }

    fn check_version(&self) -> Option<String> {
        let said = match self.bundle_version.as_ref()? {
            Value::String(text) => !text.trim().is_empty() && text.chars().count() <= 256,
            // 1.10 would have become 1.1 by now.
            Value::Number(number) => !number.is_f64(),
            _ => false,
        };
        let fault = "bundleVersion is not a text of 1 to 256 characters: put it in quotes";
        (!said).then(|| fault.to_owned())
    }
}

fn check_name(what: &str, name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some(format!("{what} has an empty name"));
    }
    let unfit = name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control);
    unfit.then(|| format!(
        "{what} has a name that is longer than {NAME_CHARS_MAX} characters or has control characters in it"
    ))
}

fn check_parameters(parameters: &[Parameter], noun: &str, plan: &str, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for parameter in parameters {
        faults.extend(check_name(&format!("a {noun} of {plan}"), &parameter.name));
        let place = format!("{noun} {} of {plan}", parameter.name);
        if !names.insert(parameter.name.as_str()) {
            faults.push(format!("{place} is there twice"));
        }
        let own = check_parameter(parameter).into_iter();
        faults.extend(own.map(|why| format!("{place} {why}")));
    }
    for parameter in parameters {
        for dependency in &parameter.dependencies {
            if dependency.key == parameter.name || !names.contains(dependency.key.as_str()) {
                faults.push(format!(
                    "{noun} {} of {plan} depends on {}, which is not another {noun} of it",
                    parameter.name, dependency.key
                ));
            }
        }
    }
}

/// What is wrong with a parameter, each after its name.
fn check_parameter(parameter: &Parameter) -> Faults {
    let mut faults = Faults::new();
    let type_ = match parameter.type_.as_deref().map(Type::named).transpose() {
        Ok(type_) => type_,
        Err(why) => {
            faults.push(why);
            None
        }
    };
    faults.extend(check_choices(parameter, type_));
    if let Some(pattern) = &parameter.pattern
        && let Err(why) = pattern::check(pattern)
    {
        faults.push(format!("has the pattern {pattern:?}, which is none: {why}"));
    }
    faults.extend(check_limits(parameter).map(str::to_owned));
    faults
}

fn check_choices(parameter: &Parameter, type_: Option<Type>) -> Option<String> {
    let Some(choices) = &parameter.choices else {
        let fault = "is of type enum and has no enum: list its values there";
        return (type_ == Some(Type::Enum)).then(|| fault.to_owned());
    };
    if choices.is_empty() {
        return Some("has an empty enum, so no value is right".to_owned());
    }
    let mut seen = BTreeSet::new();
    let twice = choices.iter().find(|one| !seen.insert(one.to_string()))?;
    Some(format!("has {twice} twice in its enum"))
}

/// Each of these would make another one true, so only the first is told.
fn check_limits(parameter: &Parameter) -> Option<&'static str> {
    if parameter.multiple_of.is_some_and(|step| step <= 0.0) {
        return Some("has a multiple_of that is not greater than 0");
    }
    let limits = [
        parameter.multiple_of,
        parameter.minimum,
        parameter.maximum,
        parameter.exclusive_minimum,
        parameter.exclusive_maximum,
    ];
    if limits.iter().flatten().any(|limit| !limit.is_finite()) {
        return Some("has a limit that is not a number");
    }
    let low = parameter.minimum.or(parameter.exclusive_minimum);
    let high = parameter.maximum.or(parameter.exclusive_maximum);
    let (short, long) = (parameter.min_length, parameter.max_length);
    let is_empty = low.zip(high).is_some_and(|(low, high)| low > high)
        || short.zip(long).is_some_and(|(short, long)| short > long);
    is_empty.then_some("has a lower limit above its upper one, so no value is right")
}

/// Platforms refuse a whole catalog for one schema that is too long.
fn check_lengths(plan: &PlanDescription, place: &str) -> Option<String> {
    let schemas = plan.schemas();
    let lengths = [schemas.create, schemas.update, schemas.bind].map(|it| it.to_string().len());
    let length = lengths
        .into_iter()
        .find(|length| *length > SCHEMA_BYTES_MAX)?;
    Some(format!(
        "the parameters of {place} make a schema of {length} bytes, and platforms take {SCHEMA_BYTES_MAX}: shorten them"
    ))
}

fn plan_in(plan: Value, position: usize, faults: &mut Faults) -> PlanDescription {
    let (place, stand_in) = (&placed("plan", &plan, position), &number(position));
    let mut plan = object(plan, stand_in, place, faults);
    let parameters = parameters_in(&mut plan, "parameters", "parameter", place, faults);
    let bind_parameters = parameters_in(
        &mut plan,
        "bind_parameters",
        "bind parameter",
        place,
        faults,
    );
    PlanDescription {
        parameters,
        bind_parameters,
        ..understood(plan, stand_in, place, faults)
    }
}

fn parameters_in(
    plan: &mut Map<String, Value>,
    key: &str,
    noun: &str,
    plan_place: &str,
    faults: &mut Faults,
) -> Vec<Parameter> {
    let items = list(plan, key, plan_place, faults).into_iter().enumerate();
    items
        .map(|(position, item)| {
            let place = format!("{} of {plan_place}", placed(noun, &item, position));
            let stand_in = &number(position);
            let members = object(item, stand_in, &place, faults);
            understood(members, stand_in, &place, faults)
        })
        .collect()
}

/// Takes a list out of an object; a member without a value is an empty one.
fn list(
    members: &mut Map<String, Value>,
    key: &str,
    place: &str,
    faults: &mut Faults,
) -> Vec<Value> {
    match members.remove(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            faults.push(format!("{key} of {place} is not a list"));
            Vec::new()
        }
    }
}

fn object(value: Value, stand_in: &str, place: &str, faults: &mut Faults) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => {
            faults.push(format!("{place} is not a mapping of names to values"));
            only_name(stand_in)
        }
    }
}

/// What an item of a list is called: by its name where it has one, or else by its position, from 1.
fn placed(noun: &str, item: &Value, position: usize) -> String {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => format!("{noun} {name}"),
        None => format!("{noun} {}", number(position)),
    }
}

/// What people call the item at this position, and what stands in for its name where it has none.
fn number(position: usize) -> String {
    (position + 1).to_string()
}

fn only_name(name: &str) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), Value::from(name))])
}

/// A value made of an object's members, without those that are not understood. The parser does not say which member it
/// stumbled over, so each is tried alone.
fn understood<T: DeserializeOwned + Default>(
    mut members: Map<String, Value>,
    stand_in: &str,
    place: &str,
    faults: &mut Faults,
) -> T {
    let parsed = |members: Map<String, Value>| serde_json::from_value::<T>(members.into());
    let whole = match parsed(members.clone()) {
        Ok(value) => return value,
        Err(error) => error,
    };
    let before = faults.len();
    members.retain(|key, value| {
        let mut alone = only_name("x");
        alone.insert(key.clone(), value.clone());
        let fault = parsed(alone).err();
        faults.extend(
            fault
                .iter()
                .map(|error| format!("{key} of {place}: {error}")),
        );
        fault.is_none()
    });
    if faults.len() == before {
        faults.push(format!("{place}: {whole}"));
    }
    members
        .entry("name")
        .or_insert_with(|| Value::from(stand_in));
    parsed(members).unwrap_or_default()
}
