//! The reference page: each kind with its columns, fields, conditions and reasons, as Markdown.

use std::fmt::Write;

use anyhow::{Context, Result};
use heddle_api::{ConditionSet, KindInfo};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value};

/// The whole page.
pub(super) fn page(kinds: &[KindInfo]) -> Result<String> {
    let mut page = String::from(
        "# Kinds\n\nEvery resource kind with its fields, defaults, conditions and reasons. The definitions themselves are in [crds](crds/).\n\n\
         | Kind | Group and version | Scope | Short | Columns |\n|---|---|---|---|---|\n",
    );
    for kind in kinds {
        let spec = &kind.crd.spec;
        let version = &spec.versions[0];
        let columns: Vec<_> = version
            .additional_printer_columns
            .iter()
            .flatten()
            .map(|column| column.name.as_str())
            .collect();
        writeln!(
            page,
            "| [{kind}](#{anchor}) | `{group}/{version}` | {scope} | `{short}` | {columns} |",
            kind = spec.names.kind,
            anchor = spec.names.kind.to_lowercase(),
            group = spec.group,
            version = version.name,
            scope = spec.scope,
            short = spec
                .names
                .short_names
                .iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join("`, `"),
            columns = columns.join(", "),
        )?;
    }
    for kind in kinds {
        section(&mut page, kind)?;
    }
    Ok(page)
}

fn section(page: &mut String, kind: &KindInfo) -> Result<()> {
    let schema = schema(&kind.crd)?;
    let name = &kind.crd.spec.names.kind;
    writeln!(page, "\n## {name}\n\n{}", text(&schema, "description"))?;
    if kind.read_only {
        writeln!(page, "\nOnly controllers write it.")?;
    }
    writeln!(page, "\n| Field | Type | Default | |\n|---|---|---|---|")?;
    for part in ["spec", "status"] {
        let part_schema = schema["properties"][part]
            .as_object()
            .with_context(|| format!("{name} has no {part}"))?;
        fields(page, part, part_schema)?;
    }
    rules(page, &schema)?;
    conditions(page, &kind.conditions)
}

fn schema(crd: &CustomResourceDefinition) -> Result<Map<String, Value>> {
    let schema = crd.spec.versions[0]
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    match serde_json::to_value(schema)? {
        Value::Object(schema) => Ok(schema),
        _ => anyhow::bail!("{} has no schema", crd.spec.names.kind),
    }
}

/// One row per field, nested ones under their parent with the whole path.
fn fields(page: &mut String, path: &str, schema: &Map<String, Value>) -> Result<()> {
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    for (name, field) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let field = field
            .as_object()
            .with_context(|| format!("{path}.{name} has no schema"))?;
        let mark = if required.iter().any(|one| *one == name) {
            " *required*"
        } else {
            ""
        };
        let default = field
            .get("default")
            .map(|default| format!("`{default}`"))
            .unwrap_or_default();
        let field_path = format!("{path}.{name}");
        let about = cell(&format!("{}{}", text(field, "description"), limits(field)));
        writeln!(
            page,
            "| `{field_path}`{mark} | {} | {default} | {about} |",
            type_name(field)
        )?;
        // Conditions look the same everywhere and have a section of their own.
        if field_path == "status.conditions" {
            continue;
        }
        fields(page, &field_path, field)?;
        if let Some(items) = field.get("items").and_then(Value::as_object) {
            fields(page, &format!("{field_path}[]"), items)?;
        }
    }
    Ok(())
}

fn type_name(field: &Map<String, Value>) -> String {
    let plain = text(field, "type");
    match plain.as_str() {
        "array" => {
            let merge = match text(field, "x-kubernetes-list-type").as_str() {
                "map" => format!(" by {}", keys(field)),
                "set" => ", a set".to_owned(),
                _ => String::new(),
            };
            let item = field
                .get("items")
                .and_then(Value::as_object)
                .map(type_name)
                .unwrap_or_default();
            format!("list of {item}{merge}")
        }
        "object"
            if field
                .get("additionalProperties")
                .is_some_and(Value::is_object) =>
        {
            "map of strings".to_owned()
        }
        "object" if field.contains_key("x-kubernetes-preserve-unknown-fields") => {
            "free-form object".to_owned()
        }
        "string" if text(field, "format") == "date-time" => "time".to_owned(),
        _ => plain,
    }
}

fn keys(field: &Map<String, Value>) -> String {
    let keys = field
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    keys.filter_map(Value::as_str)
        .map(|key| format!("`{key}`"))
        .collect::<Vec<_>>()
        .join(" and ")
}

/// What a value must satisfy beyond its type, as a sentence.
fn limits(field: &Map<String, Value>) -> String {
    let mut limits = Vec::new();
    // Where variants are documented the description lists the values already.
    if let Some(Value::Array(values)) = field
        .get("enum")
        .filter(|_| !text(field, "description").contains("\n- "))
    {
        limits.push(format!(
            "one of {}",
            values
                .iter()
                .map(|value| format!("`{value}`"))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    for (key, bound, unit) in [
        ("minimum", "at least", ""),
        ("maximum", "at most", ""),
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minItems", "at least", " entries"),
        ("maxItems", "at most", " entries"),
    ] {
        match field.get(key).and_then(Value::as_f64) {
            Some(1.0) if key.starts_with("min") && !unit.is_empty() => {
                limits.push("not empty".to_owned())
            }
            Some(number) => limits.push(format!("{bound} {number}{unit}")),
            None => {}
        }
    }
    if let Some(Value::String(pattern)) = field.get("pattern") {
        limits.push(format!("matches `{pattern}`"));
    }
    if limits.is_empty() {
        String::new()
    } else {
        format!(" ({})", limits.join("; "))
    }
}

/// Rules that span fields or generations, wherever they are attached.
fn rules(page: &mut String, schema: &Map<String, Value>) -> Result<()> {
    let mut found = Vec::new();
    collect_rules("", schema, &mut found);
    if !found.is_empty() {
        writeln!(page, "\nRules:\n")?;
        for (path, message) in found {
            writeln!(page, "- `{path}`: {message}")?;
        }
    }
    Ok(())
}

fn collect_rules(path: &str, schema: &Map<String, Value>, found: &mut Vec<(String, String)>) {
    for rule in schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        found.push((
            path.to_owned(),
            rule["message"].as_str().unwrap_or_default().to_owned(),
        ));
    }
    for (name, field) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let field_path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        if let Some(field) = field.as_object() {
            collect_rules(&field_path, field, found);
        }
    }
    if let Some(items) = schema.get("items").and_then(Value::as_object) {
        collect_rules(&format!("{path}[]"), items, found);
    }
}

fn conditions(page: &mut String, set: &ConditionSet) -> Result<()> {
    writeln!(page, "\n| Condition | True when | Reasons |\n|---|---|---|")?;
    for condition in set.iter() {
        let reasons: Vec<_> = condition
            .reasons
            .iter()
            .map(|reason| format!("`{}`: {}", reason.name, reason.meaning))
            .collect();
        let informational = if set.informational.contains(condition) {
            " (informational)"
        } else {
            ""
        };
        writeln!(
            page,
            "| `{}`{informational} | {} | {} |",
            condition.name,
            cell(condition.meaning),
            cell(&reasons.join("\n"))
        )?;
    }
    let names: Vec<_> = set
        .dependents
        .iter()
        .map(|condition| format!("`{}`", condition.name))
        .collect();
    writeln!(
        page,
        "| `Ready` | {} | that of the first condition that decides it |",
        cell(&format!("{} hold.", names.join(", ")))
    )?;
    Ok(())
}

fn text(schema: &Map<String, Value>, key: &str) -> String {
    schema
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A cell of a table is one line.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace("\n\n", "<br>")
        .replace('\n', "<br>")
}
