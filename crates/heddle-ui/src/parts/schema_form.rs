//! A form for the parameters of a plan, from its JSON schema: pure.
//!
//! Text, numbers, switches and choices have fields of their own, objects are groups of fields, and whatever else a schema can
//! say is asked for as JSON. The server checks what was filled in against the whole schema; the form only helps with it. Each
//! field says with `data-at` where in the body its value goes (a JSON pointer) and with `data-value` how it is written.

use maud::{Markup, html};
use serde_json::Value;

/// Deeper objects are asked for as JSON.
const DEPTH_MAX: usize = 3;
/// So many fields a person fills in; a larger schema is asked for as JSON.
const FIELDS_MAX: usize = 100;

/// How a value is asked for and written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    /// Hidden while it is typed.
    Password,
    Integer,
    Number,
    Switch,
    /// The values as JSON.
    Choice(Vec<Value>),
    Json,
    Group(Vec<FormField>),
}

/// One value that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormField {
    /// Where it goes, as a JSON pointer.
    pub(crate) at: String,
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) kind: FieldKind,
    pub(crate) default: Option<Value>,
    pub(crate) help: String,
}

/// The fields of an object, required ones first, then by name, as the schema has no order. What is not an object, or is too
/// much for a form, is one field for JSON.
pub(crate) fn fields(schema: &Value, at: &str) -> Vec<FormField> {
    let fields = of_object(schema, at, 1);
    if count(&fields) > FIELDS_MAX {
        return vec![as_json(at)];
    }
    fields
}

/// A field for everything at once.
fn as_json(at: &str) -> FormField {
    FormField {
        at: at.to_owned(),
        name: "parameters".to_owned(),
        required: false,
        kind: FieldKind::Json,
        default: None,
        help: "an object, as JSON".to_owned(),
    }
}

fn count(fields: &[FormField]) -> usize {
    let of = |field: &FormField| match &field.kind {
        FieldKind::Group(inner) => 1 + count(inner),
        _ => 1,
    };
    fields.iter().map(of).sum()
}

fn of_object(schema: &Value, at: &str, depth: usize) -> Vec<FormField> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    let mut fields: Vec<FormField> = (properties.into_iter().flatten())
        .map(|(name, schema)| FormField {
            at: format!("{at}/{}", escaped(name)),
            name: name.clone(),
            required: required.iter().any(|required| required == name),
            kind: kind(schema, &format!("{at}/{}", escaped(name)), depth),
            default: schema.get("default").cloned(),
            help: help(schema),
        })
        .collect();
    fields.sort_by(|a, b| (!a.required, &a.name).cmp(&(!b.required, &b.name)));
    fields
}

/// One step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn kind(schema: &Value, at: &str, depth: usize) -> FieldKind {
    if let Some(values) = schema["enum"].as_array() {
        return FieldKind::Choice(values.clone());
    }
    // A part of a schema that decides between others is not drawn.
    let decides = ["oneOf", "anyOf", "allOf", "not", "$ref", "if"];
    if decides.iter().any(|key| schema.get(key).is_some()) {
        return FieldKind::Json;
    }
    match schema["type"].as_str() {
        Some("string") if is_secret(schema) => FieldKind::Password,
        Some("string") => FieldKind::Text,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Switch,
        Some("object") if depth < DEPTH_MAX && schema["properties"].is_object() => {
            FieldKind::Group(of_object(schema, at, depth + 1))
        }
        _ => FieldKind::Json,
    }
}

fn is_secret(schema: &Value) -> bool {
    let marked = ["format", "display_type", "x-display-type"];
    schema["writeOnly"] == true || marked.iter().any(|key| schema[*key] == "password")
}

/// What the schema says of it, and the bounds that a field does not show.
fn help(schema: &Value) -> String {
    let said = ["description", "title"].map(|key| schema[key].as_str());
    let said = said.into_iter().flatten().find(|text| !text.is_empty());
    let bounds = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("pattern", "like"),
    ];
    let bounds = bounds
        .iter()
        .filter_map(|(key, words)| match &schema[*key] {
            Value::Null => None,
            Value::String(text) => Some(format!("{words} {text}")),
            value => Some(format!("{words} {value}")),
        });
    let said = said.map(str::to_owned);
    said.into_iter()
        .chain(bounds)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Text that goes into a body without being asked for.
pub(crate) fn fixed(at: &str, value: &str) -> Markup {
    html! { input type="hidden" data-at=(at) data-value="text" value=(value); }
}

/// The fields, drawn.
pub(crate) fn draw(fields: &[FormField]) -> Markup {
    html! { @for field in fields { (draw_one(field)) } }
}

fn draw_one(field: &FormField) -> Markup {
    if let FieldKind::Group(inner) = &field.kind {
        return html! {
            fieldset { legend { (field.name) } @if !field.help.is_empty() { p.quiet { (field.help) } } (draw(inner)) }
        };
    }
    html! {
        label.field {
            span { (field.name) @if field.required { span.quiet { " (required)" } } }
            (input(field))
            @if !field.help.is_empty() { small.quiet { (field.help) } }
        }
    }
}

fn input(field: &FormField) -> Markup {
    let text = field.default.as_ref().map(|value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    });
    let at = &field.at;
    html! {
        @match &field.kind {
            FieldKind::Text => input type="text" data-at=(at) data-value="text" value=[text] required[field.required] autocomplete="off";
            FieldKind::Password => input type="password" data-at=(at) data-value="text" required[field.required] autocomplete="new-password";
            // Not of type number: browsers round what is longer than a float.
            FieldKind::Integer => input type="text" inputmode="numeric" pattern="-?[0-9]+" data-at=(at) data-value="json" value=[text] required[field.required];
            FieldKind::Number => input type="text" inputmode="decimal" pattern="-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?" data-at=(at) data-value="json" value=[text] required[field.required];
            FieldKind::Switch => select data-at=(at) data-value="json" required[field.required] { (options(&[true.into(), false.into()], field)) },
            FieldKind::Choice(values) => select data-at=(at) data-value="json" required[field.required] { (options(values, field)) },
            FieldKind::Json | FieldKind::Group(_) => textarea data-at=(at) data-value="json" rows="3" spellcheck="false" required[field.required] { (text.unwrap_or_default()) },
        }
    }
}

fn options(values: &[Value], field: &FormField) -> Markup {
    html! {
        @if !field.required || field.default.is_none() { option value="" { "–" } }
        @for value in values {
            option value=(value) selected[field.default.as_ref() == Some(value)] { @match value.as_str() { Some(text) => (text), None => (value) } }
        }
    }
}

#[cfg(test)]
mod tests;
