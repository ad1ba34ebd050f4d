//! What documents say about the repository: paths, chores and targets that they name exist, every page can be found from the
//! index, and whoever begins with the README is not told to type what is not there yet.
//!
//! That commands of heddle are command lines is tested where the command line is known, and that they work where they can be
//! typed (`crates/heddle/src/cmd/tests/typed.rs`, `crates/heddle/tests/e2e/documents.rs`).

use std::collections::BTreeSet;

use super::{File, assert_none, files, linked_files, named_paths, root};

/// Folders that only this repository has; what lies below others may be on a user's machine.
const OURS: [&str; 7] = [
    "crates/",
    "docs/",
    "xtask/",
    "tests/",
    "packaging/",
    "examples/",
    "changelog.d/",
];

/// Where it is tested that the README can be typed, and the test that begins with its first block.
const README_TESTS: &str = "crates/heddle/tests/e2e/documents/readme.rs";
const FIRST_BLOCK_TEST: &str = "async fn the_first_block_can_be_typed()";

fn documents() -> Vec<File> {
    let mut files = files();
    files.retain(|file| file.path.ends_with(".md"));
    files
}

/// Paths that look like ours and lead nowhere.
fn wrong_paths(document: &File) -> Vec<String> {
    let ours = |path: &String| OURS.iter().any(|folder| path.starts_with(folder));
    let absent = named_paths(&document.text).into_iter().filter(ours);
    absent
        .filter(|path| !root().join(path).exists())
        .map(|path| format!("{} names {path}, which does not exist", document.path))
        .collect()
}

/// The words behind a command wherever a document names it: in backticks, or at the beginning of a line of a block.
fn words_after<'a>(text: &'a str, command: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let typed = line.strip_prefix("$ ").unwrap_or(line);
        let spans = line.split('`').skip(1).step_by(2);
        for span in spans.chain([typed]) {
            let rest = span
                .strip_prefix(command)
                .and_then(|rest| rest.strip_prefix(' '));
            found.extend(rest.and_then(|rest| rest.split_whitespace().next()));
        }
    }
    found
}

/// `make` of what the Makefile does not make, and chores that xtask does not have.
fn wrong_chores(document: &File, makefile: &str, xtask: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let plain = |word: &&str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    for target in words_after(&document.text, "make")
        .into_iter()
        .filter(plain)
    {
        if !makefile.contains(&format!("\n{target}:")) {
            findings.push(format!("{}: there is no make {target}", document.path));
        }
    }
    for chore in words_after(&document.text, "cargo xtask") {
        if !xtask.contains(&format!("[\"{chore}\"")) {
            findings.push(format!(
                "{}: there is no cargo xtask {chore}",
                document.path
            ));
        }
    }
    findings
}

/// Pages below `docs` that cannot be reached from the index, over however many links.
fn unreachable(documents: &[File]) -> Vec<String> {
    let mut reached = BTreeSet::from(["docs/README.md".to_owned()]);
    let mut next: Vec<String> = reached.iter().cloned().collect();
    while let Some(path) = next.pop() {
        let Some(document) = documents.iter().find(|document| document.path == path) else {
            continue;
        };
        for target in linked_files(&document.text) {
            let target = joined(&path, &target);
            if reached.insert(target.clone()) {
                next.push(target);
            }
        }
    }
    let pages = documents.iter().map(|document| &document.path);
    let pages = pages.filter(|path| path.starts_with("docs/") && !reached.contains(*path));
    pages
        .map(|path| format!("{path} cannot be found from docs/README.md"))
        .collect()
}

/// Where a link leads, from the root of the repository.
fn joined(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What is wrong with the way a newcomer is led.
fn misleading(readme: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut blocks = readme.split("\n```");
    let before = blocks.next().unwrap_or_default();
    let first = blocks.next().unwrap_or_default();
    for command in ["cargo run --release -- serve", "make test"] {
        if !first
            .lines()
            .any(|line| line.starts_with(&format!("{command} ")))
        {
            findings.push(format!(
                "the first block of the README does not type {command}"
            ));
        }
    }
    if readme.contains("not run:") || before.lines().count() > 12 {
        findings.push(
            "the first block of the README does not stand at the top, or is not run".to_owned(),
        );
    }
    let blocks = readme.split("\n```").skip(1).step_by(2);
    let mut known = false;
    for line in blocks.flat_map(str::lines) {
        let typed = line.strip_prefix("$ ").unwrap_or(line);
        known |= typed.starts_with("export PATH=");
        if typed.starts_with("heddle ") && !known {
            findings.push(format!(
                "the README types `{typed}` before anybody has heddle"
            ));
        }
    }
    findings
}

#[test]
fn paths_and_chores_that_documents_name_exist() {
    let (makefile, xtask) = (text("Makefile"), text("xtask/src/main.rs"));
    let documents = documents();
    assert!(documents.len() > 30, "only {} documents", documents.len());
    let findings: Vec<String> = documents
        .iter()
        .flat_map(|document| {
            let chores = wrong_chores(document, &makefile, &xtask);
            wrong_paths(document).into_iter().chain(chores)
        })
        .collect();
    assert_none(&findings);
    let planted = File {
        path: "docs/x.md".to_owned(),
        text: "`docs/gone.md`, `make coffee`, `cargo xtask brew`, `crates/heddle`, `store/x`\n$ make tea\n`make test`"
            .to_owned(),
    };
    assert_eq!(wrong_paths(&planted).len(), 1);
    assert_eq!(wrong_chores(&planted, &makefile, &xtask).len(), 3);
}

#[test]
fn every_page_can_be_found_from_the_index() {
    let mut documents = documents();
    assert_none(&unreachable(&documents));
    documents.push(File {
        path: "docs/flows/lost.md".to_owned(),
        text: String::new(),
    });
    assert_eq!(
        unreachable(&documents),
        ["docs/flows/lost.md cannot be found from docs/README.md"]
    );
}

#[test]
fn the_readme_begins_with_what_can_be_typed_and_a_test_types_it() {
    let readme = text("README.md");
    assert_none(&misleading(&readme));
    assert!(text(README_TESTS).contains(FIRST_BLOCK_TEST));
    assert_eq!(
        misleading(&readme.replace("\nmake test", "\nmake love")).len(),
        1
    );
    assert!(misleading(&readme.replace("export PATH", "export WAY")).len() > 3);
    assert_eq!(
        misleading(&format!("{readme}<!-- not run: no -->")).len(),
        1
    );
}

fn text(path: &str) -> String {
    let mut files = files().into_iter();
    let file = files.find(|file| file.path == path);
    file.unwrap_or_else(|| panic!("there is no {path}")).text
}
