//! A bundle's description: what its author says about it, in the format of Ansible playbook bundles.
//!
//! It comes from strangers. [`read`] takes text apart within bounds, [`Description::of`] tells whether it can be offered and
//! names what is wrong if not. Offerings, plans and JSON schemas are made of it by whoever needs them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What an author says about a bundle.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Version of this format; not of the bundle.
    #[serde(default)]
    pub version: Option<Value>,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub bindable: bool,
    /// `optional`, `required` or `unsupported`.
    #[serde(default, rename = "async")]
    pub asynchronous: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Version of the bundle, chosen by its author.
    #[serde(default, rename = "bundleVersion")]
    pub bundle_version: Option<Value>,
    #[serde(default)]
    pub plans: Vec<PlanDescription>,
}

/// What an author says about a plan.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct PlanDescription {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub free: Option<bool>,
    #[serde(default)]
    pub bindable: Option<bool>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    #[serde(default)]
    pub bind_parameters: Vec<Parameter>,
    /// Names of plans that an instance may change to.
    #[serde(default)]
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
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
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
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
}

/// A parameter means something only if another has this value.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Dependency {
    pub key: String,
    #[serde(default)]
    pub value: Value,
}
