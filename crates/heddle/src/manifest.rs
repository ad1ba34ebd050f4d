//! Manifests: files, folders and standard input to documents, in the order they can be applied.
//!
//! What a text says is for `heddle_api::manifest`.

use std::path::Path;

use anyhow::bail;
pub(crate) use heddle_api::manifest::{Document, parse};

use crate::files;

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

#[cfg(test)]
mod tests;
