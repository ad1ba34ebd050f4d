//! A bundle's description: what its author says about it, in the format of Ansible playbook bundles.
//!
//! It comes from strangers. [`read`] takes text apart within bounds, [`Description::of`] tells whether it can be offered and
//! names what is wrong if not. What is sound gives the JSON schemas of its plans' parameters ([`PlanDescription::schemas`]);
//! offerings are made of it by whoever needs them.
//!
//! Authors wrote for a parser that took `yes` for true and an empty member for none; so does this one.

mod check;
mod faults;
mod pattern;
mod schemas;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use faults::faults;
pub use schemas::{Schemas, form_definition};

/// The longest text that is looked at.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The most values a description may have, those that aliases repeat included. The largest known has a few hundred.
const NODES_MAX: usize = 20_000;
/// How deep values may lie in each other.
const DEPTH_MAX: usize = 32;

/// Takes a description apart and tells what it says, both as its author wrote it and as it is understood.
///
/// The text may come from anybody: its size, its depth and what its aliases add up to are bounded, so refusing one takes no
/// longer than reading a sound one.
pub fn read(text: &str) -> Result<(Map<String, Value>, Description), String> {
    let members = members(text)?;
    let description = Description::of(&members)?;
    Ok((members, description))
}

fn members(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!(
            "the description has {} bytes, and at most {TEXT_BYTES_MAX} are read",
            text.len()
        ));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 4 * NODES_MAX,
            max_documents: 1,
            max_anchors: 256,
            max_aliases: 1024,
            max_merge_keys: 1024,
            max_recorded_anchor_events: 4 * NODES_MAX,
            max_recorded_anchor_bytes: 4 * TEXT_BYTES_MAX,
            max_total_scalar_bytes: 4 * TEXT_BYTES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: DEPTH_MAX,
            max_alias_expansions_per_anchor: 1024,
        },
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("the description cannot be read as YAML: {error}"))?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err("the description is not a mapping of names to values".to_owned()),
    }
}

/// What an author says about a bundle.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Version of this format; not of the bundle.
    #[serde(default)]
    pub version: Option<Value>,
    pub name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    #[serde(default, deserialize_with = "flag")]
    pub bindable: bool,
    /// `optional`, `required` or `unsupported`.
    #[serde(default, rename = "async")]
    pub asynchronous: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: Map<String, Value>,
    /// Version of the bundle, chosen by its author.
    #[serde(default, rename = "bundleVersion")]
    pub bundle_version: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub plans: Vec<PlanDescription>,
}

/// What an author says about a plan.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct PlanDescription {
    pub name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    #[serde(default, deserialize_with = "maybe_flag")]
    pub free: Option<bool>,
    #[serde(default, deserialize_with = "maybe_flag")]
    pub bindable: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    pub metadata: Map<String, Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub parameters: Vec<Parameter>,
    #[serde(default, deserialize_with = "or_default")]
    pub bind_parameters: Vec<Parameter>,
    /// Names of plans that an instance may change to.
    #[serde(default, deserialize_with = "or_default")]
    pub updates_to: Vec<String>,
}

/// One setting of a plan.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Parameter {
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default, rename = "type")]
    pub type_: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default, deserialize_with = "flag")]
    pub required: bool,
    #[serde(default, deserialize_with = "flag")]
    pub updatable: bool,
    #[serde(default, alias = "maxlength")]
    pub max_length: Option<u64>,
    #[serde(default)]
    pub min_length: Option<u64>,
    #[serde(default)]
    pub pattern: Option<String>,
    #[serde(default)]
    pub multiple_of: Option<f64>,
    #[serde(default)]
    pub minimum: Option<f64>,
    #[serde(default)]
    pub maximum: Option<f64>,
    #[serde(default)]
    pub exclusive_minimum: Option<f64>,
    #[serde(default)]
    pub exclusive_maximum: Option<f64>,
    #[serde(default, rename = "enum")]
    pub choices: Option<Vec<Value>>,
    #[serde(default)]
    pub display_type: Option<String>,
    #[serde(default)]
    pub display_group: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub dependencies: Vec<Dependency>,
}

/// A parameter means something only if another has this value.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    pub key: String,
    #[serde(default)]
    pub value: Value,
}

/// A member without a value is none.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(maybe_flag(deserializer)?.unwrap_or_default())
}

/// True or false, in any of the spellings that older YAML has for them.
fn maybe_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let word = match value {
        None => return Ok(None),
        Some(Value::Bool(flag)) => return Ok(Some(flag)),
        Some(Value::String(word)) => word,
        Some(other) => {
            let text = format!("{other} is neither true nor false");
            return Err(serde::de::Error::custom(text));
        }
    };
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(Some(true)),
        "false" | "no" | "off" => Ok(Some(false)),
        _ => Err(serde::de::Error::custom(format!(
            "{word:?} is neither true nor false"
        ))),
    }
}
