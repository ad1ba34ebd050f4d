//! Filters: which events a Trigger wants and an EventPolicy allows.
//!
//! A filter is written in exactly one dialect. `all`, `any` and `not` contain further filters, and a structural schema
//! cannot describe a shape that contains itself; what is nested is therefore kept as it was sent ([`Nested`]) and read by
//! [`Nested::read`], so that a malformed filter deep inside one object can never stop the objects around it from being read.
//! What is wrong with a filter is said by [`check`]; deciding whether an event matches is left to the mesh.

mod check;
pub mod cost;
pub mod demand;
pub mod text;

pub use check::{Fault, NESTING_MAX, check};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::trigger::TriggerSpec;

/// One condition on the attributes of an event, in one dialect.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.exact), has(self.prefix), has(self.suffix), has(self.all), has(self.any), has(self.not), has(self.cesql)].filter(set, set).size() <= 1",
    "message": "a filter is written in one dialect; combine several with all or any"
}]))]
pub struct Filter {
    /// Attributes that must have exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exact: BTreeMap<String, String>,
    /// Attributes whose values must start with these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prefix: BTreeMap<String, String>,
    /// Attributes whose values must end with these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub suffix: BTreeMap<String, String>,
    /// Filters that must all match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<Nested>,
    /// Filters of which at least one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<Nested>,
    /// A filter that must not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<Nested>,
    /// An expression in CloudEvents SQL that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub cesql: Option<String>,
}

/// What a consumer asked for, in whichever way it was written.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum FilterSource {
    /// Nothing was asked for, so everything is wanted.
    #[default]
    Everything,
    /// Exact values; an empty one asks only that the attribute is there.
    Attributes(BTreeMap<String, String>),
    /// Filters that must all match.
    Filters(Vec<Filter>),
}

impl From<&TriggerSpec> for FilterSource {
    /// `filters` wins over `filter`.
    fn from(spec: &TriggerSpec) -> Self {
        match &spec.filter {
            _ if !spec.filters.is_empty() => Self::Filters(spec.filters.clone()),
            Some(filter) if !filter.attributes.is_empty() => {
                Self::Attributes(filter.attributes.clone())
            }
            _ => Self::Everything,
        }
    }
}

impl FilterSource {
    /// Everything that is wrong with it; the paths are those below the spec of a Trigger.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        let (field, faults) = match self {
            Self::Everything => return Vec::new(),
            Self::Attributes(attributes) => ("filter", check::attributes(attributes)),
            Self::Filters(filters) => ("filters", check(filters)),
        };
        let below = |fault: Fault| Fault {
            path: format!("{field}{}", fault.path),
            ..fault
        };
        faults.into_iter().map(below).collect()
    }
}

/// A filter inside another one, not yet looked at.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct Nested(pub Value);

/// A nested filter that is not one.
#[derive(Debug, thiserror::Error)]
#[error("invalid nested filter {text}")]
pub struct InvalidFilter {
    /// The filter as it was sent.
    text: String,
    source: serde_json::Error,
}

impl Nested {
    /// The filter, if it is one. Whether its expressions make sense is for the mesh to say.
    pub fn read(&self) -> Result<Filter, InvalidFilter> {
        Filter::deserialize(&self.0).map_err(|source| InvalidFilter {
            text: self.0.to_string(),
            source,
        })
    }
}

impl From<&Filter> for Nested {
    fn from(filter: &Filter) -> Self {
        Self(
            serde_json::to_value(filter)
                .expect("a filter has string keys only, so it is always JSON"),
        )
    }
}

impl JsonSchema for Nested {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nested".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}
