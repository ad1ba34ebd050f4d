//! From the JSON of an OpenAPI v3 schema to nodes.
//!
//! Refuses what cannot be honoured (a pattern that is no regular expression, a rule that does not parse), so that a schema
//! which compiles never fails later. Keywords that only document are ignored.

use regex::Regex;
use serde_json::{Map, Value};

use super::{Additional, Bound, Error, Limits, ListKind, Logic, Node, Range, Type, within_depth};
use crate::cel;

/// Each level of a schema takes two of JSON (`properties`, then the name), and the rules engine stops at 64 levels.
const LEVELS_MAX: usize = 60;

/// A resource's schema: its root has `apiVersion`, `kind` and `metadata` whether or not the schema says so.
pub(super) fn resource(schema: &Value) -> Result<Node, Error> {
    let mut root = node(schema)?;
    root.embedded = true;
    Ok(root)
}

pub(super) fn node(schema: &Value) -> Result<Node, Error> {
    if !within_depth(schema) {
        return Err(Error::TooDeep(LEVELS_MAX));
    }
    Compiler {
        level: 0,
        path: String::new(),
    }
    .node(schema)
}

struct Compiler {
    level: usize,
    path: String,
}

impl Compiler {
    fn node(&mut self, schema: &Value) -> Result<Node, Error> {
        let Some(schema) = schema.as_object() else {
            return Err(self.problem("a schema must be an object"));
        };
        if self.level > LEVELS_MAX {
            return Err(Error::TooDeep(LEVELS_MAX));
        }
        let mut node = Node {
            types: self.types(schema)?,
            nullable: flag(schema, "nullable"),
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(schema, "x-kubernetes-embedded-resource"),
            list: self.list_kind(schema)?,
            atomic_map: schema.get("x-kubernetes-map-type").and_then(Value::as_str)
                == Some("atomic"),
            default: schema
                .get("default")
                .filter(|default| !default.is_null())
                .cloned(),
            limits: self.limits(schema)?,
            ..Node::default()
        };
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                node.properties
                    .insert(name.clone(), self.below(name, property)?);
            }
        }
        node.additional = match schema.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Additional::None,
            Some(Value::Bool(true)) => Additional::Any,
            Some(values) => Additional::Of(Box::new(self.below("*", values)?)),
        };
        if let Some(items) = schema.get("items") {
            node.items = Some(Box::new(self.below("[]", items)?));
        }
        node.logic = self.logic(schema)?;
        node.rules = cel::Rules::compile(schema)
            .map_err(|problem| self.problem(&problem))?
            .map(Box::new);
        node.rules_within = node.rules.is_some()
            || node
                .properties
                .values()
                .any(|property| property.rules_within)
            || matches!(&node.additional, Additional::Of(values) if values.rules_within)
            || node.items.as_ref().is_some_and(|items| items.rules_within);
        Ok(node)
    }

    fn below(&mut self, name: &str, schema: &Value) -> Result<Node, Error> {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        self.level += 1;
        let node = self.node(schema);
        self.level -= 1;
        self.path.truncate(length);
        node
    }

    fn problem(&self, problem: &str) -> Error {
        let path = if self.path.is_empty() {
            "."
        } else {
            &self.path
        };
        Error::Invalid {
            path: path.to_owned(),
            problem: problem.to_owned(),
        }
    }

    fn types(&self, schema: &Map<String, Value>) -> Result<Vec<Type>, Error> {
        if flag(schema, "x-kubernetes-int-or-string") {
            return Ok(vec![Type::Integer, Type::String]);
        }
        match schema.get("type").and_then(Value::as_str) {
            None | Some("") => Ok(Vec::new()),
            Some("object") => Ok(vec![Type::Object]),
            Some("array") => Ok(vec![Type::Array]),
            Some("string") => Ok(vec![Type::String]),
            Some("integer") => Ok(vec![Type::Integer]),
            Some("number") => Ok(vec![Type::Number]),
            Some("boolean") => Ok(vec![Type::Boolean]),
            Some(other) => Err(self.problem(&format!("unknown type {other:?}"))),
        }
    }

    fn list_kind(&self, schema: &Map<String, Value>) -> Result<ListKind, Error> {
        match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            None | Some("atomic") => Ok(ListKind::Atomic),
            Some("set") => Ok(ListKind::Set),
            Some("map") => {
                let keys: Vec<String> = texts(schema.get("x-kubernetes-list-map-keys"));
                match keys.is_empty() {
                    true => {
                        Err(self.problem("a list of type map needs x-kubernetes-list-map-keys"))
                    }
                    false => Ok(ListKind::Map(keys)),
                }
            }
            Some(other) => Err(self.problem(&format!("unknown list type {other:?}"))),
        }
    }

    fn limits(&self, schema: &Map<String, Value>) -> Result<Option<Box<Limits>>, Error> {
        const KEYWORDS: [&str; 14] = [
            "required",
            "enum",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "uniqueItems",
            "pattern",
            "format",
        ];
        if !KEYWORDS.iter().any(|keyword| schema.contains_key(*keyword)) {
            return Ok(None);
        }
        let bound = |value: &str, exclusive: &str| {
            let exclusive = flag(schema, exclusive);
            schema
                .get(value)
                .and_then(Value::as_f64)
                .map(|value| Bound { value, exclusive })
        };
        let range = |min: &str, max: &str| Range {
            min: schema.get(min).and_then(Value::as_u64),
            max: schema.get(max).and_then(Value::as_u64),
        };
        let pattern = match schema.get("pattern").and_then(Value::as_str) {
            None | Some("") => None,
            Some(pattern) => {
                Some(Regex::new(pattern).map_err(|error| self.problem(&error.to_string()))?)
            }
        };
        Ok(Some(Box::new(Limits {
            required: texts(schema.get("required")),
            allowed: schema
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: schema
                .get("multipleOf")
                .and_then(Value::as_f64)
                .filter(|factor| *factor > 0.0),
            length: range("minLength", "maxLength"),
            items: range("minItems", "maxItems"),
            properties: range("minProperties", "maxProperties"),
            unique_items: flag(schema, "uniqueItems"),
            pattern,
            format: schema
                .get("format")
                .and_then(Value::as_str)
                .map(str::to_owned),
        })))
    }

    fn logic(&mut self, schema: &Map<String, Value>) -> Result<Option<Box<Logic>>, Error> {
        let mut branches = |keyword: &str| -> Result<Vec<Node>, Error> {
            let branches = schema.get(keyword).and_then(Value::as_array);
            branches
                .into_iter()
                .flatten()
                .map(|branch| self.below(keyword, branch))
                .collect()
        };
        let logic = Logic {
            all_of: branches("allOf")?,
            any_of: branches("anyOf")?,
            one_of: branches("oneOf")?,
            not: schema
                .get("not")
                .map(|branch| self.below("not", branch))
                .transpose()?,
        };
        let empty = logic.all_of.is_empty()
            && logic.any_of.is_empty()
            && logic.one_of.is_empty()
            && logic.not.is_none();
        Ok((!empty).then(|| Box::new(logic)))
    }
}

fn flag(schema: &Map<String, Value>, keyword: &str) -> bool {
    schema
        .get(keyword)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
