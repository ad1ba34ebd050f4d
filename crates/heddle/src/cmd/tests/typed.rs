//! Every command that a document, a comment or a message tells somebody to type is one.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::{Cli, shell_words};
use clap::Parser as _;

/// What a command may lack when it is only named: `heddle publish` in a sentence needs no Application.
const NAMED_ONLY: [ErrorKind; 5] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::MissingSubcommand,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ErrorKind::DisplayHelp,
    ErrorKind::DisplayVersion,
];

#[test]
fn every_command_in_a_document_is_a_command_line() {
    let mut findings = Vec::new();
    let mut seen = 0;
    for (path, text) in files("md") {
        for command in blocks(&text) {
            seen += 1;
            findings.extend(wrong(&command, &[]).map(|why| format!("{path}: {why}")));
        }
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    assert!(seen > 30, "only {seen} commands were found");
}

#[test]
fn every_command_that_is_named_in_passing_exists() {
    let mut findings = Vec::new();
    let mut seen = 0;
    for (path, text) in files("md").into_iter().chain(files("rs")) {
        for span in spans(&text) {
            seen += 1;
            findings.extend(wrong(span, &NAMED_ONLY).map(|why| format!("{path}: {why}")));
        }
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    assert!(seen > 100, "only {seen} commands were found");
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    let text = "```sh\n$ heddle provison x   # no\ncargo run --release -- serve\nls\n```\nSee `heddle get --colour` and `ls`.";
    assert_eq!(blocks(text), ["heddle provison x   # no", "heddle serve"]);
    assert!(wrong(&blocks(text)[0], &[]).is_some() && wrong(&blocks(text)[1], &[]).is_none());
    assert_eq!(spans(text), ["heddle get --colour"]);
    assert!(wrong(spans(text)[0], &NAMED_ONLY).is_some());
    assert!(
        wrong("heddle publish", &[]).is_some() && wrong("heddle publish", &NAMED_ONLY).is_none()
    );
}

/// Why this is no command line, unless what it lacks may be lacking.
fn wrong(command: &str, may_lack: &[ErrorKind]) -> Option<String> {
    let words = shell_words(command).into_iter();
    let words: Vec<String> = words
        .filter(|word| word != "…" && word != "<<END")
        .collect();
    let error = Cli::try_parse_from(words).err()?;
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default();
    (!may_lack.contains(&error.kind())).then(|| format!("`{command}`: {first}"))
}

/// The commands in code blocks, continued lines joined.
fn blocks(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let joined = block.replace("\\\n", " ");
        for line in joined.lines() {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = match line.strip_prefix("cargo run --release -- ") {
                Some(words) => format!("heddle {words}"),
                None => line.to_owned(),
            };
            commands.extend(line.starts_with("heddle ").then_some(line));
        }
    }
    commands
}

/// The commands between backticks of one line.
fn spans(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    lines.filter(|span| span.starts_with("heddle ")).collect()
}

/// Documents, or the sources of all crates, by their path in the repository.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the working tree; no fault is injected here"
)]
fn files(extension: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> = ["docs", "crates"].map(|name| root.join(name)).into();
    let mut paths = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => paths.push(path),
            }
        }
    }
    // This file speaks of commands that do not exist.
    paths.retain(|path| {
        path.extension().is_some_and(|found| found == extension)
            && !path.ends_with("tests/typed.rs")
    });
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            std::fs::read_to_string(&path).unwrap(),
        )
    };
    paths.into_iter().map(read).collect()
}
