//! Manifests: the text that people write, taken apart into objects.
//!
//! Takes what kubectl takes: YAML or JSON, many documents in one text, `List` kinds. A document knows where it came from, so
//! that every later message can name that place and not only the object. Nothing is validated here beyond "it names itself":
//! the server knows the schema. Where a text comes from is for others.

use serde_json::Value;

/// A text that is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManifestFault(String);

fn fault(message: String) -> ManifestFault {
    ManifestFault(message)
}

/// One object as somebody wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it was read, for messages: `shop.yaml, document 2`.
    pub origin: String,
    pub object: Value,
}

impl Document {
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.object["metadata"]["namespace"].as_str()
    }
}

/// The documents of one text; `origin` is what messages call it.
///
/// # Errors
/// What cannot be read, or names no object.
pub fn parse(origin: &str, text: &str) -> Result<Vec<Document>, ManifestFault> {
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

fn parse_json(origin: &str, text: &str) -> Result<Vec<(usize, Value)>, ManifestFault> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut values = Vec::new();
    for (index, value) in stream.enumerate() {
        values.push((
            index + 1,
            value.map_err(|error| fault(format!("{origin} is not valid JSON: {error}")))?,
        ));
    }
    Ok(values)
}

/// Documents are split before they are parsed, so that limits hold per object and not per file.
fn parse_yaml(origin: &str, text: &str) -> Result<Vec<(usize, Value)>, ManifestFault> {
    let mut values = Vec::new();
    for (index, (first_line, document)) in split_yaml(text).into_iter().enumerate() {
        let value: Value = serde_saphyr::from_str_with_options(&document, yaml_options())
            .map_err(|error| {
                fault(format!(
                    "{origin} is not valid YAML (in the document that starts on line {first_line}): {error}"
                ))
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
fn flatten(
    origin: String,
    value: Value,
    documents: &mut Vec<Document>,
) -> Result<(), ManifestFault> {
    if !value.is_object() {
        return Err(fault(format!(
            "{origin}: expected an object with apiVersion, kind and metadata"
        )));
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
            return Err(fault(format!("{}: {field} is missing", document.origin)));
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
        return Err(fault(format!(
            "{}: {} has no metadata.name",
            document.origin,
            document.kind()
        )));
    }
    documents.push(document);
    Ok(())
}
