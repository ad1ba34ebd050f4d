//! Words: what the glossary says has a name in the code, and a name means one thing.
//!
//! A type name that occurs twice is found by whoever searches for the other one. Those that do are listed in
//! `xtask/tests/words/repeated.txt`, either because they mean the same everywhere (`Error`, `Args`) or because nobody has found
//! a better name yet; the list only grows by a decision, and a name that is no longer repeated leaves it.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test of the repository reads its files"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The product's sources, without tests.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join("crates")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !["tests", "benches", "target", "heddle-sim", "heddle-bench"].contains(&name) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" {
                found.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 300, "the sources are elsewhere");
    found
}

/// The name that a line declares with one of these keywords.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words = line.split_whitespace().peekable();
    if words.peek().is_some_and(|word| word.starts_with("pub")) {
        words.next();
        while words.peek().is_some_and(|word| word.ends_with(')')) {
            words.next();
        }
    }
    while words
        .peek()
        .is_some_and(|word| ["async", "const", "unsafe"].contains(word) && !keywords.contains(word))
    {
        words.next();
    }
    let keyword = words.next()?;
    if !keywords.contains(&keyword) {
        return None;
    }
    let rest = words.next()?;
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[test]
fn a_type_name_is_used_once_or_listed() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources() {
        let place = path.strip_prefix(root()).unwrap().display().to_string();
        let lines = text.lines().take_while(|line| *line != "mod tests {");
        for name in lines.filter_map(|line| declared(line, &["struct", "enum", "trait", "type"])) {
            places
                .entry(name.to_owned())
                .or_default()
                .insert(place.clone());
        }
    }
    let listed = std::fs::read_to_string(root().join("xtask/tests/words/repeated.txt")).unwrap();
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect();
    let repeated: BTreeSet<&str> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, _)| name.as_str())
        .collect();
    let new: Vec<_> = repeated
        .difference(&listed)
        .map(|name| (name, &places[*name]))
        .collect();
    assert!(new.is_empty(), "give one of each another name: {new:#?}");
    let gone: Vec<_> = listed.difference(&repeated).collect();
    assert!(
        gone.is_empty(),
        "no longer repeated, take it off the list: {gone:?}"
    );
}

/// The last column of each row of the glossary.
fn carried() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let name = |line: &str| {
        let cell = line.strip_suffix('|')?.rsplit('|').next()?.trim();
        let name = cell.strip_prefix('`')?.strip_suffix('`')?;
        Some(name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn every_word_of_the_glossary_has_its_name_in_the_code() {
    let sources = sources();
    let is_there = |name: &str| {
        sources.iter().any(|(_, text)| {
            text.lines().any(|line| {
                let keywords = ["struct", "enum", "trait", "type", "fn", "mod", "const"];
                let line = line.trim();
                let field = line
                    .trim_start_matches("pub(crate) ")
                    .trim_start_matches("pub ");
                let variant = field.strip_prefix(name);
                declared(line, &keywords) == Some(name)
                    || variant.is_some_and(|rest| {
                        rest.starts_with([':', ',', '(']) || rest.starts_with(" {")
                    })
            })
        })
    };
    let carried = carried();
    assert!(
        carried.len() >= 40,
        "the glossary has {} words",
        carried.len()
    );
    let missing: Vec<_> = carried.iter().filter(|name| !is_there(name)).collect();
    assert!(
        missing.is_empty(),
        "named in docs/glossary.md and nowhere else: {missing:?}"
    );
}

#[test]
fn a_declaration_is_recognised_however_visible_it_is() {
    for line in [
        "struct Name;",
        "pub struct Name<T> {",
        "pub(crate) enum Name {",
        "    pub(in crate::cmd) struct Name(u32);",
        "pub(super) type Name = u32;",
    ] {
        let found = declared(line, &["struct", "enum", "type"]);
        assert_eq!(found, Some("Name"), "{line}");
    }
    assert_eq!(declared("let struct_name = 1;", &["struct"]), None);
    assert_eq!(declared("pub(crate) async fn name(", &["fn"]), Some("name"));
}
