//! Filters as people type them: one term on a line, and all of them must hold.
//!
//! ```text
//!   exact type = order.created
//!   prefix subject = eu-          suffix source = /eu
//!   cesql amount > 100 AND EXISTS tier
//!   {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}      any filter of a Trigger, as JSON on one line
//!   # a remark
//! ```
//! What [`print()`] writes, [`parse`] reads as the same filters. What `parse` takes, admission takes too; what it refuses, it
//! refuses with the character that is wrong. Both are pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use super::{Filter, FilterSource, check};
use crate::cesql::Expression;

/// Filters in one Trigger; its schema has the same bound.
const FILTERS_MAX: usize = 256;

/// What cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterTextFault {
    /// The character, counted from 0 over the whole text.
    pub position: usize,
    pub message: String,
}

/// A part of the text: what it says, and which character it begins with.
#[derive(Clone, Copy)]
struct TextSpan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TextSpan<'a> {
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        let skipped = self.text.chars().count() - text.chars().count();
        Self {
            text: text.trim_end(),
            at: self.at + skipped,
        }
    }

    fn after(self, bytes: usize) -> Self {
        let (before, text) = self.text.split_at(bytes);
        Self {
            text,
            at: self.at + before.chars().count(),
        }
    }

    fn fault<T>(self, message: impl Into<String>) -> Result<T, FilterTextFault> {
        Err(FilterTextFault {
            position: self.at,
            message: message.into(),
        })
    }

    /// At a byte of this part.
    fn fault_at<T>(self, byte: usize, message: impl Into<String>) -> Result<T, FilterTextFault> {
        self.after(self.text.floor_char_boundary(byte))
            .fault(message)
    }
}

/// The filters that a text means. An empty one means that everything is wanted.
pub fn parse(text: &str) -> Result<Vec<Filter>, FilterTextFault> {
    let mut filters = Vec::new();
    let mut at = 0;
    for line in text.split('\n') {
        let span = TextSpan { text: line, at }.trimmed();
        at += line.chars().count() + 1;
        if span.text.is_empty() || span.text.starts_with('#') {
            continue;
        }
        if filters.len() == FILTERS_MAX {
            return span.fault(format!("a trigger has at most {FILTERS_MAX} filters"));
        }
        filters.push(term(span)?);
    }
    // Each is well by itself: what is left is what they cost together.
    match check(&filters).first() {
        Some(fault) => TextSpan { text, at: 0 }.fault(fault.message.clone()),
        None => Ok(filters),
    }
}

fn term(line: TextSpan<'_>) -> Result<Filter, FilterTextFault> {
    if line.text.starts_with('{') {
        return json(line);
    }
    let end = line.text.find(char::is_whitespace);
    let word = &line.text[..end.unwrap_or(line.text.len())];
    let rest = line.after(word.len()).trimmed();
    let mut filter = Filter::default();
    match word {
        "exact" => filter.exact = pair(rest)?,
        "prefix" => filter.prefix = pair(rest)?,
        "suffix" => filter.suffix = pair(rest)?,
        "cesql" => filter.cesql = Some(expression(rest)?),
        _ => {
            return line.fault(
                "a line begins with exact, prefix, suffix or cesql, or is a filter in JSON",
            );
        }
    }
    match check(std::slice::from_ref(&filter)).first() {
        Some(fault) => rest.fault(fault.message.clone()),
        None => Ok(filter),
    }
}

/// `NAME = VALUE`. Names have no `=` in them; values may.
fn pair(rest: TextSpan<'_>) -> Result<BTreeMap<String, String>, FilterTextFault> {
    let Some(equals) = rest.text.find('=') else {
        return rest
            .after(rest.text.len())
            .fault("write the name of an attribute, = and what it is compared with");
    };
    let value = rest.after(equals + 1).trimmed();
    if value.text.is_empty() {
        return value.fault(
            "there is nothing to compare with; `cesql EXISTS NAME` asks only that it is there",
        );
    }
    let name = rest.text[..equals].trim_end();
    Ok(BTreeMap::from([(name.to_owned(), value.text.to_owned())]))
}

fn expression(rest: TextSpan<'_>) -> Result<String, FilterTextFault> {
    match Expression::parse(rest.text) {
        Ok(_) => Ok(rest.text.to_owned()),
        Err(error) => rest.fault_at(error.position, error.message),
    }
}

fn json(line: TextSpan<'_>) -> Result<Filter, FilterTextFault> {
    let value: Value = match serde_json::from_str(line.text) {
        Ok(value) => value,
        // Columns are counted in bytes, from 1.
        Err(error) => return line.fault_at(error.column().saturating_sub(1), error.to_string()),
    };
    let filter = match Filter::deserialize(&value) {
        Ok(filter) => filter,
        Err(error) => return line.fault(error.to_string()),
    };
    if let Some(fault) = check(std::slice::from_ref(&filter)).first() {
        let path = fault.path.trim_start_matches("[0]");
        let place = if path.is_empty() {
            String::new()
        } else {
            format!("{path}: ")
        };
        return line.fault(format!("{place}{}", fault.message));
    }
    // What was not understood must not widen the filter.
    if serde_json::to_value(&filter).ok().as_ref() != Some(&value) {
        return line.fault("it has a dialect that there is not; choose from exact, prefix, suffix, all, any, not and cesql");
    }
    Ok(filter)
}

/// The text that means these filters.
#[must_use]
pub fn print(filters: &[Filter]) -> String {
    let lines: Vec<String> = filters.iter().map(print_one).collect();
    lines.join("\n")
}

fn print_one(filter: &Filter) -> String {
    let plain = plain(filter);
    // As a line only if it is read as what it is.
    let same = |line: &String| parse(line).is_ok_and(|read| read == [filter.clone()]);
    plain
        .filter(same)
        .unwrap_or_else(|| serde_json::to_string(filter).expect("a filter has string keys only"))
}

fn plain(filter: &Filter) -> Option<String> {
    let maps = [
        ("exact", &filter.exact),
        ("prefix", &filter.prefix),
        ("suffix", &filter.suffix),
    ];
    let mut pairs = maps
        .into_iter()
        .flat_map(|(word, map)| map.iter().map(move |(name, value)| (word, name, value)));
    let pair = pairs.next();
    match (pair, &filter.cesql) {
        (Some((word, name, value)), None) => Some(format!("{word} {name} = {value}")),
        (None, Some(expression)) => Some(format!("cesql {expression}")),
        _ => None,
    }
}

/// The text with one more term: an attribute is what it was in an example. A term that asked for another exact value of it
/// gives way, since both could never hold. `None` where nothing comes of it that admission would take.
#[must_use]
pub fn by_example(text: &str, name: &str, value: &str) -> Option<String> {
    let exact = Filter {
        exact: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..Filter::default()
    };
    let there = Filter {
        cesql: Some(format!("EXISTS {name}")),
        ..Filter::default()
    };
    let term = if value.is_empty() { there } else { exact };
    if !check(std::slice::from_ref(&term)).is_empty() {
        return None;
    }
    let mut filters = parse(text).ok()?;
    let is_of_it = |filter: &Filter| filter.exact.len() == 1 && filter.exact.contains_key(name);
    match filters.iter().position(is_of_it) {
        Some(place) => filters[place] = term,
        None => filters.push(term),
    }
    let text = print(&filters);
    parse(&text).ok().map(|_| text)
}

impl FilterSource {
    /// What was asked for, as filters: of the older form one for each attribute, exact values first.
    #[must_use]
    pub fn filters(&self) -> Vec<Filter> {
        let attributes = match self {
            Self::Everything => return Vec::new(),
            Self::Filters(filters) => return filters.clone(),
            Self::Attributes(attributes) => attributes,
        };
        let (present, exact): (Vec<_>, Vec<_>) =
            attributes.iter().partition(|(_, value)| value.is_empty());
        let exact = exact.into_iter().map(|(name, value)| Filter {
            exact: BTreeMap::from([(name.clone(), value.clone())]),
            ..Filter::default()
        });
        let present = present.into_iter().map(|(name, _)| Filter {
            cesql: Some(format!("EXISTS {name}")),
            ..Filter::default()
        });
        exact.chain(present).collect()
    }
}
