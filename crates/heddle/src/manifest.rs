//! Manifests: text to documents, in the order they can be applied.
//!
//! Accepts what kubectl accepts: YAML or JSON, many documents per file, `List` kinds, files,
//! folders and standard input. A document knows where it came from, so that every later message
//! can name the file and not only the object. Nothing is validated here beyond "it names itself":
//! the server knows the schema.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::files;

/// One object as somebody wrote it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// Where it was read, for messages: `shop.yaml, document 2`.
    pub(crate) origin: String,
    pub(crate) object: Value,
}

impl Document {
    pub(crate) fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }
}

/// Reads every input, `-` being standard input, in dependency order.
pub(crate) fn read(inputs: &[String]) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for input in inputs {
        if input == "-" {
            documents.extend(parse("standard input", &files::read_stdin()?)?);
            continue;
        }
        let path = Path::new(input);
        let paths = if path.is_dir() {
            let found = files::manifests_under(path)?;
            if found.is_empty() {
                bail!("no .yaml, .yml or .json file under {input}");
            }
            found
        } else {
            vec![path.to_path_buf()]
        };
        for path in paths {
            documents.extend(parse(
                &path.display().to_string(),
                &files::read_text(&path)?,
            )?);
        }
    }
    if documents.is_empty() {
        bail!("no object found in {}", inputs.join(", "));
    }
    // Stable: what the author ordered stays ordered within a rank.
    documents.sort_by_key(rank);
    Ok(documents)
}

/// What others need to exist goes first.
fn rank(document: &Document) -> u8 {
    match document.kind() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    }
}

/// The documents of one text.
pub(crate) fn parse(origin: &str, text: &str) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    let values = if text.trim_start().starts_with('{') {
        parse_json(origin, text)?
    } else {
        parse_yaml(origin, text)?
    };
    let many = values.len() > 1;
    for (index, value) in values {
        let origin = if many {
            format!("{origin}, document {index}")
        } else {
            origin.to_owned()
        };
        flatten(origin, value, &mut documents)?;
    }
    Ok(documents)
}

fn parse_json(origin: &str, text: &str) -> anyhow::Result<Vec<(usize, Value)>> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut values = Vec::new();
    for (index, value) in stream.enumerate() {
        values.push((
            index + 1,
            value.with_context(|| format!("{origin} is not valid JSON"))?,
        ));
    }
    Ok(values)
}

/// Documents are split before they are parsed, so that limits hold per object and not per file.
fn parse_yaml(origin: &str, text: &str) -> anyhow::Result<Vec<(usize, Value)>> {
    let mut values = Vec::new();
    for (index, (first_line, document)) in split_yaml(text).into_iter().enumerate() {
        let value: Value = serde_saphyr::from_str_with_options(&document, yaml_options())
            .map_err(|error| anyhow::anyhow!("{error}"))
            .with_context(|| {
                format!(
                    "{origin} is not valid YAML (in the document that starts on line {first_line})"
                )
            })?;
        if !value.is_null() {
            values.push((index + 1, value));
        }
    }
    Ok(values)
}

fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { with_snippet: false }
}

/// The documents of a YAML stream with the line each starts on. A line that begins with `---`
/// cannot be anything but a separator: block text is always indented.
fn split_yaml(text: &str) -> Vec<(usize, String)> {
    let mut documents = Vec::new();
    let mut current = String::new();
    let mut first_line = 1;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            documents.push((first_line, std::mem::take(&mut current)));
            first_line = index + 1;
            // `--- {a: b}` carries content on the separator's own line.
            current.push_str(rest);
        } else {
            current.push_str(line);
        }
        current.push('\n');
    }
    documents.push((first_line, current));
    documents.retain(|(_, document)| !document.trim().is_empty());
    documents
}

/// Takes `List` kinds apart and insists that every object says what and who it is.
fn flatten(origin: String, value: Value, documents: &mut Vec<Document>) -> anyhow::Result<()> {
    if !value.is_object() {
        bail!("{origin}: expected an object with apiVersion, kind and metadata");
    }
    let document = Document {
        origin,
        object: value,
    };
    for (field, text) in [
        ("apiVersion", document.api_version()),
        ("kind", document.kind()),
    ] {
        if text.is_empty() {
            bail!("{}: {field} is missing", document.origin);
        }
    }
    if document.kind().ends_with("List") && document.object["items"].is_array() {
        let Document { origin, mut object } = document;
        if let Value::Array(items) = object["items"].take() {
            for (index, item) in items.into_iter().enumerate() {
                flatten(format!("{origin}, item {}", index + 1), item, documents)?;
            }
        }
        return Ok(());
    }
    if document.name().is_empty() {
        bail!(
            "{}: {} has no metadata.name",
            document.origin,
            document.kind()
        );
    }
    documents.push(document);
    Ok(())
}

#[cfg(test)]
mod tests;
