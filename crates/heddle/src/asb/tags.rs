//! `tag:` of a registry, in the three forms that are in use: one tag, several, or a default with tags of single images.

use heddle_api::registry::{NamedTag, Tags};

use super::node::{Node, Shape};
use crate::failure::Failure;
use crate::registries::Warning;

/// Reads `tag:`; `at` is the way to it.
pub(super) fn read(node: &Node, at: &str, warnings: &mut Vec<Warning>) -> Result<Tags, Failure> {
    match &node.shape {
        Shape::Map(entries) => by_name(entries, at, warnings),
        Shape::List(_) => Ok(several(node.texts(at)?)),
        _ => Ok(one(node.text(at)?)),
    }
}

fn one(text: String) -> Tags {
    let mut tags = Tags::default();
    if !text.is_empty() {
        tags.default = text;
    }
    tags
}

/// The first is the default; the others are followed in every repository as well.
fn several(texts: Vec<String>) -> Tags {
    let mut texts = texts.into_iter();
    let mut tags = one(texts.next().unwrap_or_default());
    for tag in texts {
        if tag != tags.default && !tags.select.contains(&tag) {
            tags.select.push(tag);
        }
    }
    tags
}

fn by_name(
    entries: &[(String, Node)],
    at: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Tags, Failure> {
    let mut tags = Tags::default();
    let mut named = Vec::new();
    for (key, value) in entries {
        let at = format!("{at}.{key}");
        match key.as_str() {
            "default" => tags = one(value.text(&at)?),
            "named" => named = images(value, &at)?,
            _ => {
                let text = "is dropped: known are `default` and `named`".to_owned();
                let line = value.line();
                let key = at;
                warnings.push(Warning { line, key, text });
            }
        }
    }
    for (image, value, at) in named {
        // One tag needs no list.
        let wanted = match &value.shape {
            Shape::List(_) => value.texts(&at)?,
            _ => vec![value.filled_text(&at)?],
        };
        for tag in wanted {
            if tag != tags.default {
                push(&mut tags, image, &tag);
            }
        }
    }
    Ok(tags)
}

/// The images of `named`, which is a map, or a list of maps with one key each.
fn images<'a>(node: &'a Node, at: &str) -> Result<Vec<(&'a str, &'a Node, String)>, Failure> {
    let pair = |(image, value): &'a (String, Node), at: &str| {
        (image.as_str(), value, format!("{at}.{image}"))
    };
    if let Shape::Map(entries) = &node.shape {
        return Ok(entries.iter().map(|entry| pair(entry, at)).collect());
    }
    let mut found = Vec::new();
    for (index, item) in node.items(at)?.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let entries = item.entries(&at)?;
        found.extend(entries.iter().map(|entry| pair(entry, &at)));
    }
    Ok(found)
}

fn push(tags: &mut Tags, image: &str, tag: &str) {
    let named = NamedTag {
        image: image.to_owned(),
        tag: tag.to_owned(),
    };
    if !tags.named.contains(&named) {
        tags.named.push(named);
    }
}
