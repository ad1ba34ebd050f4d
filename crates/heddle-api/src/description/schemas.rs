//! JSON schemas of a plan's parameters, in the draft that every platform knows.
//!
//! A parameter that nobody described is refused rather than passed on unseen. One that depends on another may be given only
//! together with the value it depends on; values of one parameter are alternatives, and of several all must hold.

use serde_json::{Map, Value, json};

use super::{Description, Parameter, PlanDescription};

const DRAFT: &str = "http://json-schema.org/draft-04/schema#";

/// JSON schemas of the parameters of each request.
#[derive(Clone, Debug, PartialEq)]
pub struct Schemas {
    /// Making an instance.
    pub create: Value,
    /// Changing one: only what may change, and nothing of it required.
    pub update: Value,
    /// Making a binding.
    pub bind: Value,
}

/// What a parameter's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Enum,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    Null,
}

impl Type {
    /// The type that an author means, in whatever case it is written.
    pub(super) fn named(word: &str) -> Result<Self, String> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "string" => Self::String,
            "enum" => Self::Enum,
            "int" | "integer" => Self::Integer,
            "number" => Self::Number,
            "bool" | "boolean" => Self::Boolean,
            "object" => Self::Object,
            "array" => Self::Array,
            "nil" | "null" => Self::Null,
            _ => {
                return Err(format!(
                    "has the type {word:?}: use string, enum, int, number, boolean, object, array or null"
                ));
            }
        })
    }

    const fn word(self) -> &'static str {
        match self {
            Self::String | Self::Enum => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Null => "null",
        }
    }
}

impl Description {
    /// The version that the bundle's author gave it.
    pub fn version(&self) -> Option<String> {
        match self.bundle_version.as_ref()? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The plan of that name.
    pub fn plan(&self, name: &str) -> Option<&PlanDescription> {
        self.plans.iter().find(|plan| plan.name == name)
    }
}

impl PlanDescription {
    /// The schemas of its parameters.
    pub fn schemas(&self) -> Schemas {
        let updatable = |parameter: &&Parameter| parameter.updatable;
        let updatable: Vec<&Parameter> = self.parameters.iter().filter(updatable).collect();
        Schemas {
            create: schema(&self.parameters.iter().collect::<Vec<_>>(), true),
            update: schema(&updatable, false),
            bind: schema(&self.bind_parameters.iter().collect::<Vec<_>>(), true),
        }
    }

    /// What its parameters are when nobody gives them.
    pub fn defaults(&self) -> Map<String, Value> {
        defaults(&self.parameters)
    }

    /// What the parameters of its bindings are when nobody gives them.
    pub fn bind_defaults(&self) -> Map<String, Value> {
        defaults(&self.bind_parameters)
    }
}

fn defaults(parameters: &[Parameter]) -> Map<String, Value> {
    let given = parameters.iter().filter_map(|parameter| {
        let value = parameter.default.clone()?;
        Some((parameter.name.clone(), value))
    });
    given.collect()
}

/// How a console shows parameters: one after the other, those of a group in a frame with its name.
pub fn form_definition(parameters: &[Parameter]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut group: Option<&str> = None;
    for parameter in parameters {
        let item = match &parameter.display_type {
            Some(shown) => json!({"key": parameter.name, "type": shown}),
            None => json!(parameter.name),
        };
        let named = parameter.display_group.as_deref();
        match named.filter(|name| !name.is_empty()) {
            None => items.push(item),
            Some(name) => {
                let last = items.last_mut().filter(|_| group == Some(name));
                match last.and_then(|frame| frame["items"].as_array_mut()) {
                    Some(framed) => framed.push(item),
                    None => items.push(json!({"type": "fieldset", "title": name, "items": [item]})),
                }
            }
        }
        group = named;
    }
    items.into()
}

fn schema(parameters: &[&Parameter], whole: bool) -> Value {
    let mut schema = Map::new();
    let mut put = |key: &str, value: Value| schema.insert(key.to_owned(), value);
    put("$schema", json!(DRAFT));
    put("type", json!("object"));
    put("additionalProperties", json!(false));
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|parameter| (parameter.name.clone(), property(parameter)))
        .collect();
    put("properties", properties.into());
    if !whole {
        // What the values depend on may be in force already, which a schema of the change alone cannot see.
        return schema.into();
    }
    // What has a default need not be given.
    let needed = |parameter: &Parameter| parameter.required && parameter.default.is_none();
    let plainly = |parameter: &&&Parameter| needed(parameter) && parameter.dependencies.is_empty();
    let required: Vec<&str> = parameters
        .iter()
        .filter(plainly)
        .map(|parameter| parameter.name.as_str())
        .collect();
    if !required.is_empty() {
        put("required", json!(required));
    }
    let dependent = parameters
        .iter()
        .filter(|parameter| !parameter.dependencies.is_empty());
    let (mut dependencies, mut conditional) = (Map::new(), Vec::new());
    for parameter in dependent {
        let met = condition(parameter, parameters);
        if needed(parameter) {
            conditional.push(json!({"anyOf": [{"not": met}, {"required": [parameter.name]}]}));
        }
        dependencies.insert(parameter.name.clone(), met);
    }
    if !dependencies.is_empty() {
        put("dependencies", dependencies.into());
    }
    if !conditional.is_empty() {
        put("allOf", conditional.into());
    }
    schema.into()
}

/// That everything a parameter depends on has a value it depends on. One that is not given counts with its default.
fn condition(parameter: &Parameter, all: &[&Parameter]) -> Value {
    let mut values: Map<String, Value> = Map::new();
    for dependency in &parameter.dependencies {
        let alternatives = values
            .entry(dependency.key.clone())
            .or_insert_with(|| json!([]));
        if let Some(alternatives) = alternatives.as_array_mut()
            && !alternatives.contains(&dependency.value)
        {
            alternatives.push(dependency.value.clone());
        }
    }
    let by_default = |key: &str, alternatives: &Value| {
        let other = all.iter().find(|other| other.name == key);
        let default = other.and_then(|other| other.default.as_ref());
        default.is_some_and(|default| {
            let alternatives = alternatives.as_array();
            alternatives.is_some_and(|alternatives| alternatives.contains(default))
        })
    };
    let needed = values.iter().filter(|(key, value)| !by_default(key, value));
    let needed: Vec<&String> = needed.map(|(key, _)| key).collect();
    let mut condition = Map::new();
    if !needed.is_empty() {
        condition.insert("required".to_owned(), json!(needed));
    }
    let properties: Map<String, Value> = values
        .iter()
        .map(|(key, values)| (key.clone(), json!({"enum": values})))
        .collect();
    condition.insert("properties".to_owned(), properties.into());
    condition.into()
}

fn property(parameter: &Parameter) -> Value {
    let mut property = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            property.insert(key.to_owned(), value);
        }
    };
    let texts = |text: &Option<String>| {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(Value::from)
    };
    put("title", texts(&parameter.title));
    put("description", texts(&parameter.description));
    let choices = parameter.choices.as_ref();
    let type_ = parameter.type_.as_deref();
    let type_ = type_.and_then(|word| Type::named(word).ok());
    // An enum of other things than texts says by its values what they are.
    let loose = type_ == Some(Type::Enum)
        && choices.is_some_and(|choices| choices.iter().any(|choice| !choice.is_string()));
    put(
        "type",
        type_.filter(|_| !loose).map(|type_| type_.word().into()),
    );
    put("default", parameter.default.clone());
    put("enum", choices.map(|choices| json!(choices)));
    put("maxLength", parameter.max_length.map(Value::from));
    put("minLength", parameter.min_length.map(Value::from));
    put("pattern", texts(&parameter.pattern));
    put("multipleOf", parameter.multiple_of.map(number));
    let below = limit(parameter.minimum, parameter.exclusive_minimum, f64::max);
    put("minimum", below.map(|(limit, _)| number(limit)));
    put("exclusiveMinimum", exclusive(below));
    let above = limit(parameter.maximum, parameter.exclusive_maximum, f64::min);
    put("maximum", above.map(|(limit, _)| number(limit)));
    put("exclusiveMaximum", exclusive(above));
    // Consoles hide it while it is typed, and it is not shown again.
    let secret = parameter.display_type.as_deref() == Some("password");
    put("format", secret.then(|| "password".into()));
    property.into()
}

/// The stricter of two limits, and whether the limit itself is excluded.
fn limit(
    within: Option<f64>,
    beyond: Option<f64>,
    stricter: fn(f64, f64) -> f64,
) -> Option<(f64, bool)> {
    match (within, beyond) {
        (within, None) => within.map(|limit| (limit, false)),
        (None, Some(limit)) => Some((limit, true)),
        (Some(within), Some(beyond)) => {
            let limit = stricter(within, beyond);
            Some((limit, limit.total_cmp(&beyond).is_eq()))
        }
    }
}

fn exclusive(limit: Option<(f64, bool)>) -> Option<Value> {
    limit.and_then(|(_, excluded)| excluded.then_some(Value::Bool(true)))
}

/// A number as people write it: without a fraction where it has none.
fn number(number: f64) -> Value {
    /// Above it a float does not tell whole numbers apart any more.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within the exact range"
        )]
        let whole = number as i64;
        return whole.into();
    }
    number.into()
}
