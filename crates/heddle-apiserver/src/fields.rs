//! Sets of fields: who owns what, as server-side apply sees it.
//!
//! A [`FieldSet`] is a trie of path elements in the encoding of `fieldsV1`: `f:name` is a field, `k:{"type":"Ready"}` the item of a
//! keyed list, `v:"text"` the item of a set, `i:0` an index. A path is a member of the set, or merely leads to members, or both:
//!
//! ```text
//! {"f:spec": {"f:size": {}}}              spec.size is a member, spec is not
//! {"f:spec": {".": {}, "f:size": {}}}     both are
//! ```
//!
//! Sets know nothing about objects; `walk` holds the walks that relate objects and sets, guided by a schema: the fields of an object, what
//! differs between two, merging two, removing a set from one.

mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::schema::{DEPTH_MAX, within_depth};

pub(crate) use walk::{Comparison, check_items, merge, remove};

/// A `fieldsV1` document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("field set is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("field set must be an object")]
    NotAnObject,
    #[error("unknown path element {0:?}")]
    UnknownElement(String),
}

/// One step of a path, held in its encoded form, which is canonical: equal steps have equal texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element(String);

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self(format!("f:{name}"))
    }

    /// The item of a keyed list with these values of its key fields.
    pub(crate) fn key(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)))
    }

    /// The item of a set with this value.
    pub(crate) fn value(value: &Value) -> Self {
        Self(format!("v:{value}"))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownElement(text.to_owned());
        let (kind, content) = text.split_once(':').ok_or_else(unknown)?;
        match kind {
            "f" => Ok(Self(text.to_owned())),
            "i" => content
                .parse::<i64>()
                .map(|index| Self(format!("i:{index}")))
                .map_err(|_| unknown()),
            "v" => serde_json::from_str(content)
                .map(|value| Self::value(&value))
                .map_err(|_| unknown()),
            "k" => serde_json::from_str(content)
                .map(Self::key)
                .map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }

    fn as_field(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

/// As conflicts name it: `.name`, `[type="Ready"]`, `[="text"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, content) = self.0.split_once(':').unwrap_or(("", ""));
        match kind {
            "f" => write!(f, ".{content}"),
            "v" => write!(f, "[={content}]"),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(content).unwrap_or_default();
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", keys.join(","))
            }
            _ => write!(f, "[{content}]"),
        }
    }
}

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Invariant: no entry is empty (neither a member nor leading to one).
    entries: BTreeMap<Element, Entry>,
}

/// What a set says about one step: whether it is a member, and what below it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    member: bool,
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Reads a `fieldsV1` document.
    pub(crate) fn parse(fields_v1: &Value) -> Result<Self, Error> {
        match within_depth(fields_v1) {
            true => Self::parse_level(fields_v1),
            false => Err(Error::TooDeep),
        }
    }

    fn parse_level(level: &Value) -> Result<Self, Error> {
        let mut set = Self::default();
        for (text, below) in level.as_object().ok_or(Error::NotAnObject)? {
            if text == "." {
                continue;
            }
            let steps = below.as_object().ok_or(Error::NotAnObject)?;
            let entry = Entry {
                member: steps.is_empty() || steps.contains_key("."),
                below: Self::parse_level(below)?,
            };
            set.insert(Element::parse(text)?, entry);
        }
        Ok(set)
    }

    /// Writes a `fieldsV1` document; equal sets give equal documents.
    pub(crate) fn to_value(&self) -> Value {
        let steps = self.entries.iter().map(|(element, entry)| {
            let mut below = entry.below.to_value();
            if let (true, false, Value::Object(steps)) =
                (entry.member, entry.below.is_empty(), &mut below)
            {
                steps.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.0.clone(), below)
        });
        Value::Object(steps.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds one path; the paths leading to it do not become members.
    pub(crate) fn insert_path(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let entry = self.entries.entry(first.clone()).or_default();
        match rest.is_empty() {
            true => entry.member = true,
            false => entry.below.insert_path(rest),
        }
    }

    /// Whether a path is a member.
    pub(crate) fn contains(&self, path: &[Element]) -> bool {
        match path
            .split_first()
            .and_then(|(first, rest)| Some((self.entries.get(first)?, rest)))
        {
            None => false,
            Some((entry, [])) => entry.member,
            Some((entry, rest)) => entry.below.contains(rest),
        }
    }

    /// Members of either.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.absorb(other);
        union
    }

    fn absorb(&mut self, other: &Self) {
        for (element, theirs) in &other.entries {
            match self.entries.get_mut(element) {
                Some(ours) => {
                    ours.member |= theirs.member;
                    ours.below.absorb(&theirs.below);
                }
                None => drop(self.entries.insert(element.clone(), theirs.clone())),
            }
        }
    }

    /// Members of both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut intersection = Self::default();
        for (element, ours) in &self.entries {
            if let Some(theirs) = other.entries.get(element) {
                let member = ours.member && theirs.member;
                intersection.insert(
                    element.clone(),
                    Entry {
                        member,
                        below: ours.below.intersection(&theirs.below),
                    },
                );
            }
        }
        intersection
    }

    /// Members of this set that are not members of the other; below a member of the other, only what it names itself is taken away.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut difference = Self::default();
        for (element, ours) in &self.entries {
            let left = match other.entries.get(element) {
                Some(theirs) => Entry {
                    member: ours.member && !theirs.member,
                    below: ours.below.difference(&theirs.below),
                },
                None => ours.clone(),
            };
            difference.insert(element.clone(), left);
        }
        difference
    }

    /// All members, those of a level before those below it.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for (element, _) in self.entries.iter().filter(|(_, entry)| entry.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            paths.push(path);
        }
        for (element, entry) in &self.entries {
            prefix.push(element.clone());
            entry.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    fn insert(&mut self, element: Element, entry: Entry) {
        if !entry.is_empty() {
            self.entries.insert(element, entry);
        }
    }
}

/// A path as conflicts name it: `.spec.conditions[type="Ready"].status`.
pub(crate) fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}
