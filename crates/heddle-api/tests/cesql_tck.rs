//! The compatibility kit of CloudEvents SQL, from the folder that `HEDDLE_CESQL_TCK` names.
//!
//! The kit is not part of this repository, so the test is asked for by the feature `tck`. Once asked for, it fails when the
//! kit is not there or is smaller than it should be.

#![expect(
    clippy::disallowed_methods,
    reason = "reads test data from outside; no fault is injected here"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use heddle_api::attributes::{self, Attributes};
use heddle_api::cesql::{ErrorKind, Expression, Value};
use serde::Deserialize;

/// Version 1 of the language came with this many.
const CASES_MIN: usize = 275;

#[derive(Deserialize)]
struct Suite {
    name: String,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    expression: String,
    result: Option<Scalar>,
    error: Option<String>,
    event: Option<BTreeMap<String, Scalar>>,
    #[serde(default)]
    event_overrides: BTreeMap<String, Scalar>,
}

#[derive(Deserialize, Clone, Debug)]
#[serde(untagged)]
enum Scalar {
    Boolean(bool),
    Integer(i32),
    Text(String),
}

struct Event(BTreeMap<String, (Scalar, String)>);

impl Event {
    fn new(attributes: BTreeMap<String, Scalar>) -> Self {
        let with_text = |(name, value): (String, Scalar)| {
            let text = match &value {
                Scalar::Boolean(boolean) => boolean.to_string(),
                Scalar::Integer(integer) => integer.to_string(),
                Scalar::Text(text) => text.clone(),
            };
            (name, (value, text))
        };
        Self(attributes.into_iter().map(with_text).collect())
    }
}

impl Attributes for Event {
    fn attribute(&self, name: &str) -> Option<attributes::Value<'_>> {
        Some(match &self.0.get(name)?.0 {
            Scalar::Boolean(boolean) => attributes::Value::Boolean(*boolean),
            Scalar::Integer(integer) => attributes::Value::Integer(*integer),
            Scalar::Text(text) => attributes::Value::Text(text),
        })
    }

    fn text(&self, name: &str) -> Option<&str> {
        Some(&self.0.get(name)?.1)
    }
}

impl Case {
    fn event(&self) -> Event {
        let any = ["specversion", "id", "source", "type"].map(|name| {
            let value = if name == "specversion" { "1.0" } else { "any" };
            (name.to_owned(), Scalar::Text(value.to_owned()))
        });
        let mut attributes = self.event.clone().unwrap_or_else(|| any.into());
        attributes.extend(self.event_overrides.clone());
        Event::new(attributes)
    }

    /// What is not as the kit wants it.
    fn failure(&self) -> Option<String> {
        let (value, error) = match Expression::parse(&self.expression) {
            Err(_) => (None, Some("parse")),
            Ok(expression) => {
                let evaluation = expression.evaluate(&self.event());
                let error = evaluation.error.map(|error| name_of(error.kind));
                (Some(evaluation.value), error)
            }
        };
        let wanted = match &self.result {
            // A text that does not parse has no value, whatever the kit says.
            _ if value.is_none() => None,
            None => value.clone(),
            Some(Scalar::Boolean(boolean)) => Some(Value::Boolean(*boolean)),
            Some(Scalar::Integer(integer)) => Some(Value::Integer(*integer)),
            Some(Scalar::Text(text)) => Some(Value::Text(text.clone())),
        };
        (value != wanted || error != self.error.as_deref()).then(|| {
            format!(
                "{}: {} gave {value:?} and {error:?}, wanted {wanted:?} and {:?}",
                self.name, self.expression, self.error
            )
        })
    }
}

fn name_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Math => "math",
        ErrorKind::Cast => "cast",
        ErrorKind::MissingAttribute => "missingAttribute",
        ErrorKind::MissingFunction => "missingFunction",
        ErrorKind::FunctionEvaluation => "functionEvaluation",
    }
}

#[test]
fn every_case_of_the_kit_passes() {
    let folder = PathBuf::from(
        std::env::var("HEDDLE_CESQL_TCK").expect("HEDDLE_CESQL_TCK names the folder of the kit"),
    );
    let mut cases = 0;
    let mut failures = Vec::new();
    for file in folder.read_dir().expect("the folder can be listed") {
        let path = file.expect("the folder can be listed").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file of the kit can be read");
        let suite: Suite = serde_saphyr::from_str(&text).expect("a file of the kit is YAML");
        cases += suite.tests.len();
        let failed = suite.tests.iter().filter_map(Case::failure);
        failures.extend(failed.map(|failure| format!("{}: {failure}", suite.name)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(cases >= CASES_MIN, "only {cases} cases were found");
}
