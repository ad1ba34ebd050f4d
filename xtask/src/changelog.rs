//! The change log: notes that were written with their changes (`changelog.d`), gathered into `CHANGELOG.md`.
//!
//! ```text
//!   cargo xtask changelog                 renews the section of what is not released yet, as `codegen` does
//!   cargo xtask changelog 1.2.0 DATE      makes it the section of a release, and empties changelog.d
//! ```
//! A note is never shortened or reworded here. Without notes there is no section, so that a release leaves a fresh file.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

const NOTES: &str = "changelog.d";
const FILE: &str = "CHANGELOG.md";
const UNRELEASED: &str = "## Not released yet";

/// Sorts of notes, most important first, by the end of their name.
const SORTS: [(&str, &str); 4] = [
    ("breaking", "Breaking"),
    ("added", "Added"),
    ("changed", "Changed"),
    ("fixed", "Fixed"),
];

const HEAD: &str = "# Changes

What changed for whoever uses heddle, newest first. Gathered by `cargo xtask changelog` from the notes that are written with each
change ([changelog.d](changelog.d/README.md)); edits of the first section are overwritten.
";

/// A note: the name of its file, and its text.
type Note = (String, String);

/// Renews what is not released yet, or makes a release of it.
pub(crate) fn run(root: &Path, release: Option<(&str, &str)>) -> Result<()> {
    let text = text(root, release)?;
    write(&root.join(FILE), &text)?;
    if release.is_some() {
        for (name, _) in notes(root)? {
            remove(&root.join(NOTES).join(name))?;
        }
    }
    Ok(())
}

/// Fails when a note was written, changed or removed since the change log was renewed.
pub(crate) fn check(root: &Path) -> Result<()> {
    ensure!(
        read(&root.join(FILE))? == text(root, None)?,
        "stale: {FILE}; run `cargo xtask codegen`"
    );
    Ok(())
}

/// What `CHANGELOG.md` would say with the notes of now.
pub(crate) fn text(root: &Path, release: Option<(&str, &str)>) -> Result<String> {
    let released = read(&root.join(FILE)).unwrap_or_default();
    let notes = notes(root)?;
    let title = match release {
        None if notes.is_empty() => return Ok(format!("{HEAD}{}", older(&released))),
        None => UNRELEASED.to_owned(),
        Some((version, date)) => {
            check_title(version, date)?;
            ensure!(
                !released.contains(&format!("\n## {version} ")),
                "{FILE} has a section for {version} already"
            );
            format!("## {version} ({date})")
        }
    };
    Ok(format!(
        "{HEAD}{}{}",
        section(&title, &notes)?,
        older(&released)
    ))
}

/// `1.2.0` and `2026-11-18`, and nothing else.
fn check_title(version: &str, date: &str) -> Result<()> {
    let numbers = |text: &str, by: char| {
        let mut parts = text.split(by);
        parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            && text.split(by).count() == 3
    };
    ensure!(
        numbers(version, '.'),
        "{version} is no version such as 1.2.0"
    );
    ensure!(
        numbers(date, '-') && date.len() == 10,
        "{date} is no date such as 2026-11-18"
    );
    Ok(())
}

/// Notes by sort, each as a point.
fn section(title: &str, notes: &[Note]) -> Result<String> {
    let mut text = format!("\n{title}\n");
    if notes.is_empty() {
        text.push_str("\nNothing.\n");
    }
    for (sort, heading) in SORTS {
        let of_sort = |note: &&Note| note.0.ends_with(&format!(".{sort}.md"));
        let points: String = notes.iter().filter(of_sort).map(point).collect();
        if !points.is_empty() {
            text.push_str(&format!("\n### {heading}\n\n{points}"));
        }
    }
    let known = |note: &Note| {
        SORTS
            .iter()
            .any(|(sort, _)| note.0.ends_with(&format!(".{sort}.md")))
    };
    if let Some((name, _)) = notes.iter().find(|note| !known(note)) {
        bail!("{NOTES}/{name} is of no known sort: added, changed, fixed or breaking");
    }
    Ok(text)
}

/// Links of a note begin in its folder, those of the change log one above.
fn point((_, text): &Note) -> String {
    let text = text.replace("](../", "](");
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let rest = lines.map(|line| match line.trim_end() {
        "" => "\n".to_owned(),
        line => format!("  {line}\n"),
    });
    format!("- {first}\n{}", rest.collect::<String>())
}

/// The sections of releases, which stay as they are.
fn older(changelog: &str) -> String {
    let sections = changelog.split("\n## ").skip(1);
    let released = sections
        .filter(|section| !UNRELEASED.ends_with(section.lines().next().unwrap_or_default()));
    released.map(|section| format!("\n## {section}")).collect()
}

/// All notes, by name.
fn notes(root: &Path) -> Result<Vec<Note>> {
    let mut notes = Vec::new();
    for entry in std::fs::read_dir(root.join(NOTES)).context("cannot list changelog.d")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != "README.md" {
            notes.push((name.into_owned(), read(&path)?));
        }
    }
    notes.sort();
    Ok(notes)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore reads the working tree; no fault is injected here"
)]
fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore writes into the working tree; no fault is injected here"
)]
fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore changes the working tree; no fault is injected here"
)]
fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests;
