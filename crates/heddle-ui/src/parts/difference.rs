//! In what one event differs from another: attributes and JSON data, field by field.
//!
//! Pure: values in, fields out. What is different in any two events (`id`, `time`, the trace) is left out. What is missing comes
//! first, for that is what subscribers most often stumble over.

use serde_json::{Map, Value};

use super::content::visible;
use crate::words::shortened;

/// Fields that are told; more are counted.
const FIELDS_MAX: usize = 200;
/// What is nested deeper is compared as a whole.
const DEPTH_MAX: usize = 24;
/// Letters of a value.
const VALUE_LETTERS_MAX: usize = 200;

/// Different in any two events.
const OWN_ATTRIBUTES: [&str; 4] = ["id", "time", "traceparent", "tracestate"];
const DATA: [&str; 2] = ["data", "data_base64"];

/// In what way a field is different. In this order they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldChange {
    Missing,
    Added,
    /// A text where a number was, and alike.
    OtherType,
    OtherValue,
}

impl FieldChange {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Missing => "missing here",
            Self::Added => "only here",
            Self::OtherType => "of another type",
            Self::OtherValue => "another value",
        }
    }
}

/// One field that is different. Values are as JSON has them, shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedField {
    pub(crate) path: String,
    pub(crate) change: FieldChange,
    pub(crate) before: Option<String>,
    pub(crate) now: Option<String>,
}

/// All that is different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventDifference {
    pub(crate) fields: Vec<ChangedField>,
    /// Fields that are different and not told.
    pub(crate) more: usize,
}

/// What is different in `now`, an event in the JSON format, as compared to `before`.
pub(crate) fn between(before: &Value, now: &Value) -> EventDifference {
    let mut found = EventDifference::default();
    let empty = Map::new();
    let [before, now] = [before, now].map(|event| event.as_object().unwrap_or(&empty));
    let is_attribute =
        |name: &&String| !OWN_ATTRIBUTES.contains(&name.as_str()) && !DATA.contains(&name.as_str());
    let own = |event: &Map<String, Value>| {
        let own = event.iter().filter(|(name, _)| is_attribute(name));
        own.map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<_, _>>()
    };
    found.members(&own(before), &own(now), "", 0);
    for name in DATA {
        found.field(before.get(name), now.get(name), name.to_owned(), 0);
    }
    found
        .fields
        .sort_by(|one, other| (one.change, &one.path).cmp(&(other.change, &other.path)));
    found.more = found.fields.len().saturating_sub(FIELDS_MAX);
    found.fields.truncate(FIELDS_MAX);
    found
}

impl EventDifference {
    fn members(
        &mut self,
        before: &Map<String, Value>,
        now: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        for (name, value) in before {
            self.field(Some(value), now.get(name), member(path, name), depth);
        }
        for (name, value) in now.iter().filter(|(name, _)| !before.contains_key(*name)) {
            self.field(None, Some(value), member(path, name), depth);
        }
    }

    fn field(&mut self, before: Option<&Value>, now: Option<&Value>, path: String, depth: usize) {
        let change = match (before, now) {
            (None, None) => return,
            (Some(_), None) => FieldChange::Missing,
            (None, Some(_)) => FieldChange::Added,
            (Some(before), Some(now)) if before == now => return,
            (Some(Value::Object(before)), Some(Value::Object(now))) if depth < DEPTH_MAX => {
                return self.members(before, now, &path, depth + 1);
            }
            (Some(Value::Array(before)), Some(Value::Array(now))) if depth < DEPTH_MAX => {
                return self.items(before, now, &path, depth + 1);
            }
            (Some(before), Some(now)) if kind(before) != kind(now) => FieldChange::OtherType,
            _ => FieldChange::OtherValue,
        };
        self.fields.push(ChangedField {
            path: visible(&shortened(&path, VALUE_LETTERS_MAX)),
            change,
            before: before.map(shown),
            now: now.map(shown),
        });
    }

    fn items(&mut self, before: &[Value], now: &[Value], path: &str, depth: usize) {
        for index in 0..before.len().max(now.len()) {
            let path = format!("{path}[{index}]");
            self.field(before.get(index), now.get(index), path, depth);
        }
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// A value as JSON has it; only its beginning is written.
fn shown(value: &Value) -> String {
    visible(&shortened(&value.to_string(), VALUE_LETTERS_MAX))
}

fn member(path: &str, name: &str) -> String {
    let is_plain = !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "_-".contains(character));
    match (is_plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{}]", Value::from(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, now: &str) -> Vec<String> {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let found = between(&read(before), &read(now));
        let line = |field: &ChangedField| {
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            format!(
                "{} {}: {} > {}",
                field.path,
                field.change.words(),
                text(&field.before),
                text(&field.now)
            )
        };
        found.fields.iter().map(line).collect()
    }

    #[test]
    fn differences_are_told_field_by_field() {
        let cases: [(&str, &str, &[&str]); 12] = [
            (r#"{"id":"1","time":"a"}"#, r#"{"id":"2","time":"b"}"#, &[]),
            (r#"{"type":"a"}"#, r#"{"type":"a"}"#, &[]),
            (
                r#"{"type":"a","region":"eu"}"#,
                r#"{"type":"a"}"#,
                &[r#"region missing here: "eu" > -"#],
            ),
            (
                r#"{"data":{"total":1,"order":7}}"#,
                r#"{"data":{"order":8,"note":null}}"#,
                &[
                    "data.total missing here: 1 > -",
                    "data.note only here: - > null",
                    "data.order another value: 7 > 8",
                ],
            ),
            (
                r#"{"data":{"n":17}}"#,
                r#"{"data":{"n":"17"}}"#,
                &[r#"data.n of another type: 17 > "17""#],
            ),
            (
                r#"{"data":{"items":[{"sku":"a"},{"sku":"b"}]}}"#,
                r#"{"data":{"items":[{"sku":"a"}]}}"#,
                &[r#"data.items[1] missing here: {"sku":"b"} > -"#],
            ),
            (
                r#"{"data":{"a b":{"":1}}}"#,
                r#"{"data":{"a b":{"":2}}}"#,
                &[r#"data["a b"][""] another value: 1 > 2"#],
            ),
            (
                r#"{"data":9007199254740993}"#,
                r#"{"data":9007199254740992}"#,
                &["data another value: 9007199254740993 > 9007199254740992"],
            ),
            (
                r#"{"data":{"a":1}}"#,
                r#"{"data_base64":"AAE="}"#,
                &[
                    r#"data missing here: {"a":1} > -"#,
                    r#"data_base64 only here: - > "AAE=""#,
                ],
            ),
            (
                r#"{"data":[1]}"#,
                r#"{"data":{"0":1}}"#,
                &[r#"data of another type: [1] > {"0":1}"#],
            ),
            ("[]", r#"{"type":"a"}"#, &[r#"type only here: - > "a""#]),
            (
                r#"{"data":"a"}"#,
                "{\"data\":\"a\u{202e}\"}",
                &[r#"data another value: "a" > "a\u{202e}""#],
            ),
        ];
        for (before, now, expected) in cases {
            assert_eq!(told(before, now), expected, "{before} and {now}");
        }
    }

    #[test]
    fn much_is_counted_and_deep_is_compared_as_a_whole() {
        let many: Map<String, Value> = (0..1000)
            .map(|number| (format!("f{number}"), Value::from(number)))
            .collect();
        let event = serde_json::json!({ "data": many });
        let found = between(&event, &serde_json::json!({ "data": {} }));
        assert_eq!((found.fields.len(), found.more), (FIELDS_MAX, 800));
        let deep = |end: &str| format!("{{\"data\":{}{end}{}}}", "[".repeat(90), "]".repeat(90));
        assert_eq!(told(&deep("1"), &deep("2")).len(), 1);
        let long = format!("{{\"data\":\"{}\"}}", "x".repeat(5000));
        assert!(told(&long, "{}")[0].len() < 300);
    }
}
