//! The part of JSONPath that printer columns and selectable fields use, compiled once.
//!
//! `.a.b`, `.a[0]`, `.a[-1]`, `.a[*]`, `['x.y']`, `.x\.y`, and filters: `[?(@.type=="Ready")]` with `==`, `!=`, `<`, `<=`, `>`, `>=`, or
//! `[?(@.type)]` for presence. A path may stand in braces and start with `$`. Whatever is missing on the way yields no result.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::Value;

/// A path that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read JSONPath {path:?}: {problem}")]
pub struct Error {
    pub path: String,
    pub problem: String,
}

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Where(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    path: JsonPath,
    /// Presence is asked for when there is nothing to compare with.
    test: Option<(Comparator, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let trimmed = text.trim();
        let inner = trimmed
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
            .unwrap_or(trimmed);
        let inner = inner.strip_prefix('$').unwrap_or(inner);
        Parser { rest: inner }.path().map_err(|problem| Error {
            path: text.to_owned(),
            problem,
        })
    }

    /// Everything the path leads to, in order.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.steps.iter().fold(vec![value], |values, step| {
            values
                .into_iter()
                .flat_map(|value| step.follow(value))
                .collect()
        })
    }

    pub fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.find(value).into_iter().next()
    }
}

impl Step {
    fn follow<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                let from_start = match usize::try_from(*index) {
                    Ok(index) => Some(index),
                    Err(_) => usize::try_from(index.unsigned_abs())
                        .ok()
                        .and_then(|back| items.len().checked_sub(back)),
                };
                from_start
                    .and_then(|index| items.get(index))
                    .into_iter()
                    .collect()
            }
            Self::All => elements(value),
            Self::Where(filter) => elements(value)
                .into_iter()
                .filter(|element| filter.accepts(element))
                .collect(),
        }
    }
}

fn elements(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

impl Filter {
    fn accepts(&self, element: &Value) -> bool {
        let Some(found) = self.path.first(element) else {
            return false;
        };
        let Some((comparator, literal)) = &self.test else {
            return true;
        };
        let order = match (found, literal) {
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().partial_cmp(&right.as_f64())
            }
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (left, right) => (left == right).then_some(Ordering::Equal),
        };
        match comparator {
            Comparator::Equal => order == Some(Ordering::Equal),
            Comparator::NotEqual => order != Some(Ordering::Equal),
            Comparator::Less => order == Some(Ordering::Less),
            Comparator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Comparator::Greater => order == Some(Ordering::Greater),
            Comparator::GreaterOrEqual => {
                matches!(order, Some(Ordering::Greater | Ordering::Equal))
            }
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    /// Steps until the text ends, or until something that is no step (the operator of a filter).
    fn steps(&mut self) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                match self.name()? {
                    // A single dot is the object itself.
                    name if name.is_empty() && steps.is_empty() && !self.rest.starts_with('.') => {}
                    name if name.is_empty() => return Err("a name is missing after '.'".to_owned()),
                    name if name == "*" => steps.push(Step::All),
                    name => steps.push(Step::Field(name)),
                }
            } else if let Some(rest) = self.rest.strip_prefix('[') {
                self.rest = rest;
                steps.push(self.bracket()?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn path(mut self) -> Result<JsonPath, String> {
        // Columns are written with and without the leading dot.
        let mut steps = match self.rest.starts_with(['.', '[']) || self.rest.is_empty() {
            true => Vec::new(),
            false => vec![Step::Field(self.name()?)],
        };
        steps.extend(self.steps()?);
        match self.rest.is_empty() {
            true => Ok(JsonPath { steps }),
            false => Err(format!("unexpected {:?}", self.rest)),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, escaped)) => name.push(escaped),
                    None => return Err("nothing follows '\\'".to_owned()),
                },
                '.' | '[' | ']' | '(' | ')' | '=' | '!' | '<' | '>' | ' ' | '{' | '}' => {
                    self.rest = &self.rest[at..];
                    return Ok(name);
                }
                other => name.push(other),
            }
        }
        self.rest = "";
        Ok(name)
    }

    fn bracket(&mut self) -> Result<Step, String> {
        if let Some(rest) = self.rest.strip_prefix("?(") {
            self.rest = rest;
            let filter = self.filter()?;
            self.expect(")]")?;
            return Ok(Step::Where(filter));
        }
        let step = if let Some(rest) = self.rest.strip_prefix('*') {
            self.rest = rest;
            Step::All
        } else if self.rest.starts_with(['\'', '"']) {
            Step::Field(self.quoted()?)
        } else {
            let end = self.rest.find(']').unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(end);
            self.rest = rest;
            Step::Index(
                number
                    .trim()
                    .parse()
                    .map_err(|_| format!("{number:?} is no index"))?,
            )
        };
        self.expect("]")?;
        Ok(step)
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        self.rest = self
            .rest
            .strip_prefix(text)
            .ok_or_else(|| format!("expected {text:?}"))?;
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut characters = self.rest.char_indices();
        let quote = characters.next().map(|(_, quote)| quote);
        let mut text = String::new();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                other if Some(other) == quote => {
                    self.rest = &self.rest[at + other.len_utf8()..];
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err("a quote is not closed".to_owned())
    }

    fn filter(&mut self) -> Result<Filter, String> {
        self.rest = self.rest.trim_start();
        self.expect("@")?;
        let path = JsonPath {
            steps: self.steps()?,
        };
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(')') {
            return Ok(Filter { path, test: None });
        }
        const COMPARATORS: [(&str, Comparator); 6] = [
            ("==", Comparator::Equal),
            ("!=", Comparator::NotEqual),
            ("<=", Comparator::LessOrEqual),
            (">=", Comparator::GreaterOrEqual),
            ("<", Comparator::Less),
            (">", Comparator::Greater),
        ];
        let found = COMPARATORS
            .iter()
            .find(|(text, _)| self.rest.starts_with(text));
        let (text, comparator) = found.ok_or("a filter needs a comparison")?;
        self.rest = self.rest[text.len()..].trim_start();
        let literal = self.literal()?;
        self.rest = self.rest.trim_start();
        Ok(Filter {
            path,
            test: Some((*comparator, literal)),
        })
    }

    fn literal(&mut self) -> Result<Value, String> {
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(Value::from);
        }
        let end = self.rest.find([')', ' ']).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        match serde_json::from_str(text) {
            Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => Ok(value),
            _ => Err(format!(
                "{text:?} is neither a text in quotes nor a number nor a boolean"
            )),
        }
    }
}
