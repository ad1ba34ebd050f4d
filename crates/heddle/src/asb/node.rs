//! A YAML document in which every value knows its place, so that a refusal can name it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::failure::Failure;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    place: Location,
    pub(super) shape: Shape,
}

/// What a value is, before anybody asks what it should be.
#[derive(Debug)]
pub(super) enum Shape {
    Nothing,
    Flag(bool),
    /// As it was understood, which is not always as it was written: `3.10` is 3.1.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Takes a text apart.
pub(super) fn parse(text: &str) -> Result<Node, Failure> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Failure::Usage(format!("not valid YAML: {error}")))
}

impl Node {
    pub(super) fn line(&self) -> u64 {
        self.place.line()
    }

    /// A refusal of the whole file because of this value.
    pub(super) fn fail(&self, text: &str) -> Failure {
        let (line, column) = (self.place.line(), self.place.column());
        Failure::Usage(format!("line {line}, column {column}: {text}"))
    }

    fn misses(&self, what: &str, wanted: &str) -> Failure {
        let found = match &self.shape {
            Shape::Nothing => "nothing".to_owned(),
            Shape::Flag(flag) => format!("{flag}"),
            Shape::Number(number) => format!("the number {number}"),
            Shape::Text(text) => format!("`{text}`"),
            Shape::List(_) => "a list".to_owned(),
            Shape::Map(_) => "a map".to_owned(),
        };
        self.fail(&format!("{what} is {found}, and should be {wanted}"))
    }

    /// Text; nothing at all is empty text. What only looks like text is refused: `1.10` would lose its zero.
    pub(super) fn text(&self, what: &str) -> Result<String, Failure> {
        match &self.shape {
            Shape::Text(text) => Ok(text.clone()),
            Shape::Nothing => Ok(String::new()),
            Shape::Number(number) => Err(self.fail(&format!(
                "{what} is read as the number {number}; quote it to make it text"
            ))),
            Shape::Flag(flag) => Err(self.fail(&format!(
                "{what} is read as {flag}; quote it to make it text"
            ))),
            Shape::List(_) | Shape::Map(_) => Err(self.misses(what, "text")),
        }
    }

    /// A list of texts; nothing at all is an empty list.
    pub(super) fn texts(&self, what: &str) -> Result<Vec<String>, Failure> {
        let text = |(index, item): (usize, &Self)| item.filled_text(&format!("{what}[{index}]"));
        self.items(what)?.iter().enumerate().map(text).collect()
    }

    /// Text with something in it.
    pub(super) fn filled_text(&self, what: &str) -> Result<String, Failure> {
        match self.text(what)? {
            text if text.is_empty() => Err(self.misses(what, "text")),
            text => Ok(text),
        }
    }

    /// Whether or not. The old broker's parser knew more words for it than YAML does today.
    pub(super) fn flag(&self, what: &str) -> Result<bool, Failure> {
        let word = match &self.shape {
            Shape::Flag(flag) => return Ok(*flag),
            Shape::Nothing => return Ok(false),
            Shape::Text(text) => text.to_lowercase(),
            _ => String::new(),
        };
        match word.as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(self.misses(what, "true or false")),
        }
    }

    pub(super) fn items(&self, what: &str) -> Result<&[Self], Failure> {
        match &self.shape {
            Shape::List(items) => Ok(items),
            Shape::Nothing => Ok(&[]),
            _ => Err(self.misses(what, "a list")),
        }
    }

    pub(super) fn entries(&self, what: &str) -> Result<&[(String, Self)], Failure> {
        match &self.shape {
            Shape::Map(entries) => Ok(entries),
            Shape::Nothing => Ok(&[]),
            _ => Err(self.misses(what, "a map")),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<Shape>::deserialize(from)?;
        Ok(Self {
            place: referenced,
            shape: value,
        })
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }

    fn visit_none<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Shape, E> {
        Ok(Shape::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Shape, E> {
        Ok(Shape::Number(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Shape, E> {
        Ok(Shape::Number(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Shape, E> {
        Ok(Shape::Number(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Shape::Map(entries))
    }
}
