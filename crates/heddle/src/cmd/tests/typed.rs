//! Every command that a document, a comment or a message tells somebody to type is one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::{Cli, shell_words};
use clap::{CommandFactory as _, Parser as _};

/// What a command may lack when it is only named: `heddle publish` in a sentence needs no Application.
const NAMED_ONLY: [ErrorKind; 5] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::MissingSubcommand,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ErrorKind::DisplayHelp,
    ErrorKind::DisplayVersion,
];

/// Flags of other programs that documents speak of.
const OTHERS: [&str; 8] = [
    // cargo's, kubectl's, what bundles for Ansible are started with, and the comparison with a real kube-apiserver
    "--features",
    "--server-side",
    "--extra-vars",
    "--crds",
    // and heddle-bench's, which is no part of this
    "--quick",
    "--images",
    "--docker-registry",
    "--busybox",
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
fn every_flag_that_a_document_names_exists() {
    let flags = flags();
    let mut findings = Vec::new();
    let mut seen = 0;
    for (path, text) in files("md") {
        for flag in named_flags(&text) {
            seen += 1;
            if !flags.contains(flag) && !OTHERS.contains(&flag) {
                findings.push(format!("{path}: no command has {flag}"));
            }
        }
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    assert!(seen > 20, "only {seen} flags were found");
    assert_eq!(
        named_flags("`--data-dir DIR`, `--x=1`, `-n`, `curl --y`\n```\n--z\n```"),
        ["--data-dir", "--x"]
    );
    assert!(flags.contains("--data-dir") && !flags.contains("--data-dri"));
}

/// Every long flag of every command.
fn flags() -> BTreeSet<String> {
    let mut flags = BTreeSet::from(["--help".to_owned(), "--version".to_owned()]);
    let mut commands = vec![Cli::command()];
    while let Some(command) = commands.pop() {
        let long = command.get_arguments().filter_map(clap::Arg::get_long);
        flags.extend(long.map(|long| format!("--{long}")));
        commands.extend(command.get_subcommands().cloned());
    }
    flags
}

/// The flags that begin what stands between backticks.
fn named_flags(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let flags = spans.filter(|span| span.starts_with("--"));
    flags
        .filter_map(|span| span.split([' ', '=', '[']).next())
        .collect()
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

/// The commands between backticks of one line; what becomes a flag only while it runs cannot be known here.
fn spans(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    lines
        .filter(|span| span.starts_with("heddle ") && !span.contains("--{"))
        .collect()
}

/// Documents, or the sources of all crates, by their path in the repository.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the working tree; no fault is injected here"
)]
fn files(extension: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["docs", "crates", "bundles", "tests", "packaging"];
    let mut folders: Vec<PathBuf> = folders.map(|name| root.join(name)).into();
    let beside = std::fs::read_dir(&root).unwrap();
    let beside = beside.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = beside.filter(|path| path.is_file()).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                // What others wrote is not about this.
                true if path.ends_with("node_modules") => {}
                true => folders.push(path),
                false => paths.push(path),
            }
        }
    }
    // This file speaks of commands that do not exist, and the change log of some that no longer do.
    paths.retain(|path| {
        path.extension().is_some_and(|found| found == extension)
            && !path.ends_with("tests/typed.rs")
            && !path.ends_with("CHANGELOG.md")
    });
    let read = |path: PathBuf| {
        (
            path.display().to_string(),
            std::fs::read_to_string(&path).unwrap(),
        )
    };
    paths.into_iter().map(read).collect()
}
