//! JSON as it was written. What reads a number into a machine's own makes 10.10 of 10.1, and rounds what has more digits than
//! that holds; data of events is not ours to round, so it travels and is shown as text.
//!
//! Attributes may be read by [`RawJson::value`]: their numbers are small and whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Number, Value};

/// What is nested deeper than anybody reads is indented no further.
const INDENTED_DEPTH_MAX: usize = 32;

/// One JSON value, byte for byte.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// The value in a text.
    ///
    /// # Errors
    /// Where the text is no JSON.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// To look into. Its numbers may be rounded.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// The members of an object, as they were written; none of anything else.
    #[must_use]
    pub fn members(&self) -> BTreeMap<String, Self> {
        serde_json::from_str(self.text()).unwrap_or_default()
    }

    /// An object without some of its members.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut members = self.members();
        members.retain(|name, _| !names.contains(&name.as_str()));
        to_raw_value(&members).map_or_else(|_| Self::default(), Self)
    }

    /// For people, with nothing changed but space.
    #[must_use]
    pub fn indented(&self) -> String {
        indented(self.text())
    }

    /// Whether [`Self::value`] has every number as it was written.
    #[must_use]
    pub fn has_plain_numbers(&self) -> bool {
        let is_plain = |number: &str| {
            let read = serde_json::from_str::<Number>(number);
            read.is_ok_and(|read| read.to_string() == number)
        };
        numbers(self.text()).all(is_plain)
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

/// Space and the order of members say nothing; how a number is written does.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |text| {
            let mut all: Vec<&str> = numbers(text).collect();
            all.sort_unstable();
            all
        };
        self.text() == other.text()
            || (self.value() == other.value() && sorted(self.text()) == sorted(other.text()))
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        to_raw_value(&value).map_or_else(|_| Self::default(), Self)
    }
}

/// The numbers in a text that is JSON.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            rest = &rest[start..];
            if let Some(string) = rest.strip_prefix('"') {
                rest = behind_string(string);
                continue;
            }
            let is_number =
                |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
            let end = rest.find(|c: char| !is_number(c)).unwrap_or(rest.len());
            let (number, behind) = rest.split_at(end);
            rest = behind;
            return Some(number);
        }
    })
}

/// What follows the end of a string that has begun.
fn behind_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = !escaped && c == '\\';
        ends
    });
    end.map_or("", |end| &text[end + 1..])
}

/// The text of a JSON value, indented, and nothing of it changed.
#[must_use]
pub fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for character in text.chars() {
        if in_string {
            out.push(character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            ' ' | '\n' | '\r' | '\t' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                // What is empty stays in one line.
                match out.trim_end().ends_with(['{', '[']) {
                    true => out.truncate(out.trim_end().len()),
                    false => new_line(&mut out, depth),
                }
            }
            '"' => in_string = true,
            _ => {}
        }
        out.push(character);
        match character {
            '{' | '[' => {
                depth += 1;
                new_line(&mut out, depth);
            }
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // What is nested deeper than anybody reads costs no more room.
    out.extend(std::iter::repeat_n("  ", depth.min(INDENTED_DEPTH_MAX)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EXACT: &str =
        r#"{"a":[9007199254740993, 10.10],"id":"-1\"2","n":123456789012345678901234567890,"e":{}}"#;

    #[test]
    fn numbers_stay_as_they_were_written() {
        let read = RawJson::read(EXACT).unwrap();
        assert_eq!(read.text(), EXACT);
        assert_eq!(serde_json::to_string(&read).unwrap(), EXACT);
        let one = &read.members()["n"];
        assert_eq!(one.text(), "123456789012345678901234567890");
        let less = read.without(&["id", "e"]);
        assert_eq!(
            less.text(),
            r#"{"a":[9007199254740993, 10.10],"n":123456789012345678901234567890}"#
        );
        let told = read.indented();
        assert!(
            told.contains("\n    10.10\n") && told.contains("\"e\": {}"),
            "{told}"
        );
        assert_eq!(RawJson::read(&told).unwrap(), read);
        assert_ne!(
            RawJson::read("10.10").unwrap(),
            RawJson::read("10.1").unwrap()
        );
        assert!(RawJson::read("{").is_err());
        assert_eq!(RawJson::default(), RawJson::from(Value::Null));
    }

    #[test]
    fn which_numbers_survive_being_read_is_known() {
        let all: Vec<&str> = numbers(EXACT).collect();
        assert_eq!(
            all,
            [
                "9007199254740993",
                "10.10",
                "123456789012345678901234567890"
            ]
        );
        for (text, is_plain) in [
            (r#"{"n":9007199254740993,"s":"10.10"}"#, true),
            (r#"[1,-2,0.5,true,null,"\\"]"#, true),
            ("10.10", false),
            ("1e3", false),
            ("[18446744073709551616]", false),
        ] {
            let read = RawJson::read(text).unwrap();
            assert_eq!(read.has_plain_numbers(), is_plain, "{text}");
        }
        assert!(RawJson::from(json!({"a": 1})).has_plain_numbers());
    }
}
