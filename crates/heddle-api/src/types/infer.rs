//! What JSON data has in common, as a JSON Schema: made from samples one by one, in bounded memory.
//!
//! It promises that the schema accepts every sample that it was made from. It says no more than the samples do: which members
//! there are, of which types, and which are always there. Values are not in it. What is deeper or wider than its bounds may
//! be anything.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// How deep samples are looked into.
const DEPTH_MAX: usize = 8;
/// Members of one object that are told apart.
const MEMBERS_MAX: usize = 100;
/// Members and items of everything together.
const PARTS_MAX: usize = 1000;
/// Items of one array that are looked at; if there are more, they may be anything.
const ITEMS_MAX: usize = 1000;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct DataShape {
    root: PlaceShape,
    samples: u64,
    parts: usize,
}

/// What was seen at one place.
#[derive(Clone, Debug, Default)]
struct PlaceShape {
    null: bool,
    boolean: bool,
    integer: bool,
    number: bool,
    string: bool,
    objects: u64,
    members: BTreeMap<String, MemberShape>,
    array: bool,
    items: Option<Box<Self>>,
    /// It was not looked into all that was there.
    anything: bool,
}

#[derive(Clone, Debug, Default)]
struct MemberShape {
    count: u64,
    shape: PlaceShape,
}

impl DataShape {
    /// Takes in one more sample.
    pub fn add(&mut self, sample: &Value) {
        self.samples += 1;
        self.root.add(sample, DEPTH_MAX, &mut self.parts);
    }

    /// How many it was made from.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// The schema, once there was a sample.
    #[must_use]
    pub fn schema(&self) -> Option<Value> {
        if self.samples == 0 {
            return None;
        }
        let mut schema = self.root.schema();
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        schema.insert("$schema".to_owned(), dialect.into());
        Some(Value::Object(schema))
    }
}

impl PlaceShape {
    fn add(&mut self, sample: &Value, depth: usize, parts: &mut usize) {
        if depth == 0 {
            self.anything = true;
            return;
        }
        match sample {
            Value::Null => self.null = true,
            Value::Bool(_) => self.boolean = true,
            Value::Number(number) if number.is_i64() || number.is_u64() => self.integer = true,
            Value::Number(_) => self.number = true,
            Value::String(_) => self.string = true,
            Value::Array(items) => self.add_items(items, depth, parts),
            Value::Object(members) => self.add_members(members, depth, parts),
        }
    }

    fn add_items(&mut self, items: &[Value], depth: usize, parts: &mut usize) {
        self.array = true;
        if items.is_empty() {
            return;
        }
        let shape = self.items.get_or_insert_with(Box::default);
        shape.anything |= items.len() > ITEMS_MAX;
        for item in items.iter().take(ITEMS_MAX) {
            shape.add(item, depth - 1, parts);
        }
    }

    fn add_members(&mut self, members: &Map<String, Value>, depth: usize, parts: &mut usize) {
        self.objects += 1;
        for (name, value) in members {
            let has_room = self.members.len() < MEMBERS_MAX && *parts < PARTS_MAX;
            let member = match self.members.get_mut(name) {
                Some(member) => member,
                // What is not named may be anything.
                None if !has_room => continue,
                None => {
                    *parts += 1;
                    self.members.entry(name.clone()).or_default()
                }
            };
            member.count += 1;
            member.shape.add(value, depth - 1, parts);
        }
    }

    fn schema(&self) -> Map<String, Value> {
        let mut schema = Map::new();
        if self.anything {
            return schema;
        }
        let kinds = [
            (self.null, "null"),
            (self.boolean, "boolean"),
            (self.integer && !self.number, "integer"),
            (self.number, "number"),
            (self.string, "string"),
            (self.array, "array"),
            (self.objects > 0, "object"),
        ];
        let kinds = kinds.iter().filter(|(seen, _)| *seen);
        let kinds: Vec<Value> = kinds.map(|(_, kind)| json!(kind)).collect();
        let kinds = match <[Value; 1]>::try_from(kinds) {
            Ok([kind]) => kind,
            Err(kinds) => Value::Array(kinds),
        };
        schema.insert("type".to_owned(), kinds);
        if let Some(items) = &self.items {
            schema.insert("items".to_owned(), Value::Object(items.schema()));
        }
        if !self.members.is_empty() {
            let members = self.members.iter();
            let properties =
                members.map(|(name, member)| (name.clone(), Value::Object(member.shape.schema())));
            schema.insert("properties".to_owned(), Value::Object(properties.collect()));
            let members = self.members.iter();
            let always = members.filter(|(_, member)| member.count == self.objects);
            let always: Vec<Value> = always.map(|(name, _)| json!(name)).collect();
            if !always.is_empty() {
                schema.insert("required".to_owned(), Value::Array(always));
            }
        }
        schema
    }
}
