//! What can be said to a plan: its parameters, from the JSON schemas in the catalog.

use serde_json::Value;

use crate::output::harmless;

/// So many names fit a column; the rest is counted.
const NAMES_MAX: usize = 4;

/// What parameters are given with, and where their schema is.
const OCCASIONS: [(&str, [&str; 2]); 3] = [
    ("provision", ["service_instance", "create"]),
    ("update", ["service_instance", "update"]),
    ("bind", ["service_binding", "create"]),
];

/// The names of what `heddle provision` takes, required ones first.
pub(super) fn in_short(plan: &Value) -> String {
    let [(_, create), ..] = OCCASIONS;
    let mut names: Vec<String> = parameters(schema(plan, create))
        .into_iter()
        .map(|parameter| parameter.name)
        .collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let shown = names.join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Each plan of an offering with a line for each parameter and each occasion it can be given on.
pub(super) fn in_full(service: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in service["plans"].as_array().into_iter().flatten() {
        let description = match plan["description"].as_str().unwrap_or_default() {
            "" => String::new(),
            text => format!(": {}", harmless(text)),
        };
        let name = harmless(plan["name"].as_str().unwrap_or_default());
        lines.push(format!("plan {name}{description}"));
        for (occasion, path) in OCCASIONS {
            let described = parameters(schema(plan, path));
            let described = described.iter().map(Parameter::in_words);
            lines.extend(described.map(|words| format!("  {occasion} {words}")));
        }
    }
    lines
}

fn schema<'a>(plan: &'a Value, [of, on]: [&str; 2]) -> &'a Value {
    &plan["schemas"][of][on]["parameters"]
}

struct Parameter<'a> {
    name: String,
    required: bool,
    schema: &'a Value,
}

/// Required ones first, then by name, as the schema has no order.
fn parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    let mut parameters: Vec<Parameter<'_>> = (properties.into_iter().flatten())
        .map(|(name, schema)| Parameter {
            name: harmless(name),
            required: required.iter().any(|required| required == name),
            schema,
        })
        .collect();
    parameters.sort_by(|a, b| (!a.required, &a.name).cmp(&(!b.required, &b.name)));
    parameters
}

impl Parameter<'_> {
    /// `size (integer, required, 1 to 10, default 3): how much room`
    fn in_words(&self) -> String {
        let mut facts = vec![self.type_()];
        facts.extend(self.required.then(|| "required".to_owned()));
        facts.extend(self.range());
        let default = self.schema.get("default");
        facts.extend(default.map(|default| format!("default {default}")));
        let facts = facts.into_iter().filter(|fact| !fact.is_empty());
        let facts = facts.collect::<Vec<_>>().join(", ");
        let said = ["description", "title"].map(|key| self.schema[key].as_str());
        let said = said.into_iter().flatten().find(|text| !text.is_empty());
        let said = said.map_or_else(String::new, |said| format!(": {}", harmless(said)));
        format!("{} ({}){said}", self.name, harmless(&facts))
    }

    /// What it may be, in one word or in all of them.
    fn type_(&self) -> String {
        if let Some(values) = self.schema["enum"].as_array() {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            return format!("one of {}", values.join(", "));
        }
        self.schema["type"]
            .as_str()
            .unwrap_or("anything")
            .to_owned()
    }

    fn range(&self) -> Option<String> {
        let bound = |key: &str| self.schema.get(key).map(ToString::to_string);
        match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}")),
            (Some(least), None) => Some(format!("at least {least}")),
            (None, Some(most)) => Some(format!("at most {most}")),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_parameter_says_when_it_is_taken_and_what_it_takes() {
        let create = json!({"required": ["size"], "properties": {
            "color": {"enum": ["red", "blue"], "title": "Colour"},
            "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3, "description": "how much room"},
            "free": {},
        }});
        let plan = json!({"name": "small", "description": "one file", "schemas": {
            "service_instance": {"create": {"parameters": create}, "update": {"parameters": {"properties": {"size": {"type": "integer"}}}}},
            "service_binding": {"create": {"parameters": {"properties": {"role": {"type": "string"}}}}},
        }});
        assert_eq!(in_short(&plan), "size, color, free");
        let service = json!({"plans": [plan, {"name": "bare"}]});
        insta::assert_snapshot!(in_full(&service).join("\n"), @r#"
        plan small: one file
          provision size (integer, required, 1 to 10, default 3): how much room
          provision color (one of "red", "blue"): Colour
          provision free (anything)
          update size (integer)
          bind role (string)
        plan bare
        "#);
    }

    #[test]
    fn a_column_is_not_flooded() {
        let properties: serde_json::Map<String, Value> =
            (0..9).map(|n| (format!("p{n}"), json!({}))).collect();
        let plan = json!({"schemas": {"service_instance": {"create": {"parameters": {"properties": properties}}}}});
        assert_eq!(in_short(&plan), "p0, p1, p2, p3 and 5 more");
    }
}
