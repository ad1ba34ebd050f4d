//! Structural schemas: what an object of a kind may look like.
//!
//! A schema is compiled once from the OpenAPI v3 schema of a CustomResourceDefinition and then answers, per object: which
//! fields are unknown ([`Schema::prune`]), which are missing but have a default ([`Schema::default`]), what is wrong with the
//! rest ([`Schema::validate`], in the words a real server uses), and how lists and maps are to be merged ([`TypeRef`], for
//! server-side apply).
//!
//! Everything here recurses over objects, so everything is bounded: values nested deeper than [`DEPTH_MAX`] are refused.
//! Names, labels and the other rules of `metadata` belong to the write path; here metadata only has a shape.

mod compile;
mod format;
mod lists;
mod metadata;
mod path;
mod prune;
mod text;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::cel;

/// The deepest nesting of objects and arrays that is accepted anywhere. JSON bodies cannot exceed it (serde_json refuses),
/// YAML could; every recursion of this crate stays within it, so no input can exhaust a stack.
pub(crate) const DEPTH_MAX: usize = 128;

/// One thing that is wrong with an object; becomes a cause in the details of a 422 answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub field: String,
    pub reason: &'static str,
    pub message: String,
}

/// A schema that cannot be used; the CustomResourceDefinition has to be corrected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("schema at {path} is not usable: {problem}")]
    Invalid { path: String, problem: String },
    #[error("schema is nested deeper than {0} levels")]
    TooDeep(usize),
}

/// A compiled structural schema of a whole resource.
#[derive(Debug)]
pub struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of one version of a CustomResourceDefinition.
    pub fn compile(openapi_v3: &Value) -> Result<Self, Error> {
        Ok(Self {
            root: compile::resource(openapi_v3)?,
        })
    }

    /// Removes what the schema does not know and returns the paths removed, sorted: `spec.foo`, `spec.list[0].foo`. Strict
    /// decoding reports each as `unknown field "spec.foo"`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        match within_depth(object) {
            true => prune::prune(&self.root, object),
            // Left whole: validation refuses it.
            false => Vec::new(),
        }
    }

    /// Fills in defaults, after dropping nulls that are neither allowed nor have a default.
    pub fn default(&self, object: &mut Value) {
        if within_depth(object) {
            prune::drop_nulls(Some(&self.root), object);
            prune::default(&self.root, object);
        }
    }

    /// Everything wrong with `object`. With `old`, the object it replaces: parts that did not change are not held against the
    /// writer (a schema may have become stricter since), and transition rules see the old value.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        if !within_depth(object) {
            let message =
                format!("Invalid value: must not be nested deeper than {DEPTH_MAX} levels");
            return vec![Cause {
                field: "<nil>".to_owned(),
                reason: "FieldValueInvalid",
                message,
            }];
        }
        validate::object(&self.root, object, old.filter(|old| within_depth(old)))
    }

    /// The type of the whole resource, from which the types of its fields are reached.
    pub fn root(&self) -> TypeRef<'_> {
        TypeRef {
            node: Some(&self.root),
        }
    }
}

/// Whether a value is nested no deeper than [`DEPTH_MAX`].
pub(crate) fn within_depth(value: &Value) -> bool {
    depth(value) <= DEPTH_MAX
}

/// How deep a value is nested, or just more than [`DEPTH_MAX`]; does not recurse itself.
pub(crate) fn depth(value: &Value) -> usize {
    let mut pending = vec![(value, 1)];
    let mut deepest = 1;
    while let Some((value, depth)) = pending.pop() {
        if depth > DEPTH_MAX {
            return depth;
        }
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => pending.extend(
                items
                    .iter()
                    .filter(|item| nests(item))
                    .map(|item| (item, depth + 1)),
            ),
            Value::Object(fields) => {
                pending.extend(
                    fields
                        .values()
                        .filter(|field| nests(field))
                        .map(|field| (field, depth + 1)),
                );
            }
            _ => {}
        }
    }
    deepest
}

fn nests(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// What is known about the type at some path of a resource; nothing, below fields whose content is preserved unseen.
#[derive(Debug, Clone, Copy)]
pub struct TypeRef<'a> {
    node: Option<&'a Node>,
}

impl<'a> TypeRef<'a> {
    /// The type of a field (or of a map's value).
    pub fn field(self, name: &str) -> Self {
        Self {
            node: self.node.and_then(|node| node.child(name)),
        }
    }

    /// Whether the schema names this field, as opposed to it being a key of a map or unknown.
    pub fn names(self, field: &str) -> bool {
        self.node.is_some_and(|node| {
            node.properties.contains_key(field)
                || node.embedded && matches!(field, "apiVersion" | "kind" | "metadata")
        })
    }

    /// The type of a list's items.
    pub fn items(self) -> Self {
        Self {
            node: self.node.and_then(|node| node.items.as_deref()),
        }
    }

    /// How a list of this type is merged. Lists of unknown type are atomic.
    pub fn list(self) -> &'a ListKind {
        self.node.map_or(&ListKind::Atomic, |node| &node.list)
    }

    /// Whether an object of this type is owned and replaced as a whole.
    pub fn is_atomic_map(self) -> bool {
        self.node.is_some_and(|node| node.atomic_map)
    }

    /// The default of this type, if any; list keys left out by a client have their default's value.
    pub fn default(self) -> Option<&'a Value> {
        self.node.and_then(|node| node.default.as_ref())
    }
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced as a whole.
    #[default]
    Atomic,
    /// Scalars, each present at most once.
    Set,
    /// Objects told apart by these fields.
    Map(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// One node of a compiled schema.
#[derive(Debug, Default)]
struct Node {
    /// The types allowed; empty allows all.
    types: Vec<Type>,
    nullable: bool,
    preserve_unknown: bool,
    embedded: bool,
    properties: BTreeMap<String, Self>,
    additional: Additional,
    items: Option<Box<Self>>,
    list: ListKind,
    atomic_map: bool,
    default: Option<Value>,
    limits: Option<Box<Limits>>,
    logic: Option<Box<Logic>>,
    rules: Option<Box<cel::Rules>>,
    /// Whether this node or one below it has rules: lets evaluation skip whole subtrees.
    rules_within: bool,
}

/// `additionalProperties`.
#[derive(Debug, Default)]
enum Additional {
    #[default]
    None,
    Any,
    Of(Box<Node>),
}

/// Constraints on a value's content.
#[derive(Debug, Default)]
struct Limits {
    required: Vec<String>,
    allowed: Vec<Value>,
    minimum: Option<Bound>,
    maximum: Option<Bound>,
    multiple_of: Option<f64>,
    length: Range,
    items: Range,
    properties: Range,
    unique_items: bool,
    pattern: Option<Regex>,
    format: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    value: f64,
    exclusive: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Range {
    min: Option<u64>,
    max: Option<u64>,
}

/// `allOf`, `anyOf`, `oneOf`, `not`.
#[derive(Debug, Default)]
struct Logic {
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Node>,
}

impl Node {
    /// The schema of a field by its name.
    fn child(&self, name: &str) -> Option<&Self> {
        if self.embedded && name == "metadata" {
            return Some(metadata::object_meta());
        }
        match (self.properties.get(name), &self.additional) {
            (Some(node), _) => Some(node),
            (None, Additional::Of(node)) => Some(node),
            (None, Additional::None | Additional::Any) => None,
        }
    }
}
