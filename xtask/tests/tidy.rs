//! What keeps the repository honest and no compiler checks: arrows, names, headers, sizes.
//!
//! Every rule is a function from text to findings, so that it is tried twice: on the repository, which must have none, and
//! on a planted fault, which must be found.

#![expect(
    clippy::disallowed_methods,
    reason = "a chore reads the working tree; no fault is injected here"
)]
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "tidy/documents.rs"]
mod documents;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Who may know whom. Tests of a crate count as the crate: what needs more neighbours belongs into heddle-sim, which may
/// see everything but the binary.
const ARROWS: &[(&str, &[&str])] = &[
    ("heddle-rt", &[]),
    ("heddle-api", &[]),
    ("heddle-store", &["heddle-rt"]),
    (
        "heddle-apiserver",
        &["heddle-api", "heddle-rt", "heddle-store"],
    ),
    ("heddle-controllers", &["heddle-api", "heddle-rt"]),
    ("heddle-bundles", &["heddle-api", "heddle-rt"]),
    ("heddle-mesh", &["heddle-api", "heddle-rt", "heddle-store"]),
    ("heddle-front", &["heddle-api", "heddle-rt"]),
    ("heddle-origins", &["heddle-api", "heddle-rt"]),
    ("heddle-osb-check", &["heddle-rt"]),
    ("heddle-ui", &["heddle-api", "heddle-rt"]),
    (
        "heddle-sim",
        &[
            "heddle-api",
            "heddle-apiserver",
            "heddle-bundles",
            "heddle-controllers",
            "heddle-front",
            "heddle-mesh",
            "heddle-rt",
            "heddle-store",
        ],
    ),
    (
        "heddle",
        &[
            "heddle-api",
            "heddle-apiserver",
            "heddle-bundles",
            "heddle-controllers",
            "heddle-front",
            "heddle-mesh",
            "heddle-osb-check",
            "heddle-rt",
            "heddle-store",
            "heddle-ui",
        ],
    ),
    (
        "heddle-bench",
        &[
            "heddle",
            "heddle-api",
            "heddle-apiserver",
            "heddle-bundles",
            "heddle-rt",
        ],
    ),
    ("xtask", &["heddle-api"]),
];

/// Dependencies that are a decision of one crate and must not leak out of it.
const KEPT_IN: &[(&str, &[&str])] = &[
    ("getrandom", &["heddle-rt"]),
    ("tokio-rustls", &["heddle-rt", "heddle"]),
    ("redb", &["heddle-store"]),
    ("kube-cel", &["heddle-apiserver", "heddle-api"]),
    ("clap", &["heddle", "heddle-bench"]),
    ("clap_mangen", &["heddle"]),
    ("fuser", &["heddle"]),
    ("nix", &["heddle-bundles"]),
    ("seccompiler", &["heddle-bundles"]),
    ("tar", &["heddle-bundles", "xtask"]),
    ("turmoil", &["heddle-sim"]),
    ("rcgen", &["heddle", "heddle-rt"]),
];

/// Past this, somebody took in a package without looking at what it brings. Raising it takes a reason.
const PACKAGES_MAX: usize = 388;

/// Without tests: past this a file holds two ideas.
const SOURCE_LINES_MAX: usize = 600;

/// Documents whose paths must exist. Others may speak of files that a user has.
const MAPS: &[&str] = &[
    "ARCHITECTURE.md",
    "docs/flows/",
    "docs/checklists/",
    "docs/operating/limits.md",
];

/// Places on somebody's machine, in pieces so that this file does not name them itself.
const MACHINE: &[&[&str]] = &[
    &["/ho", "me/"],
    &["/ro", "ot/"],
    &["/Us", "ers/"],
    &["/wo", "rk/"],
];

/// A file of the repository: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    /// Where the lines are that have this fault.
    fn lines_where(&self, has_fault: impl Fn(&str) -> bool, fault: &str) -> Vec<String> {
        let lines = self.text.lines().enumerate();
        lines
            .filter(|(_, line)| has_fault(line))
            .map(|(index, _)| format!("{}:{}: {fault}", self.path, index + 1))
            .collect()
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("xtask is a folder of the repository")
        .to_owned()
}

/// Every text file of the working tree that a person wrote or generated on purpose.
fn files() -> Vec<File> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(&root).unwrap().to_str().unwrap();
            if matches!(
                relative,
                ".git"
                    | "target"
                    | "heddle-data"
                    | "Cargo.lock"
                    | "tests/ui/node_modules"
                    | "tests/ui/artefacts"
            ) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = relative.to_owned();
                files.push(File { path, text });
            }
        }
    }
    assert!(
        files.len() > 100,
        "the walk found next to nothing: {}",
        files.len()
    );
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// The packages of the workspace with all dependencies, ours and others, of every sort.
fn packages(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let listed = metadata["packages"].as_array().unwrap();
    let of = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        dependencies.iter().map(name).collect()
    };
    listed
        .iter()
        .map(|package| (name(package), of(package)))
        .collect()
}

fn metadata() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    packages(&serde_json::from_slice(&output.stdout).unwrap())
}

/// Arrows that are in the manifests and not in the table, or the other way round.
fn wrong_arrows(packages: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let drawn: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    let mut findings = Vec::new();
    for name in drawn.keys().filter(|name| !packages.contains_key(**name)) {
        findings.push(format!("{name} is in the table and does not exist"));
    }
    for (name, dependencies) in packages {
        let Some(allowed) = drawn.get(name.as_str()) else {
            findings.push(format!("{name} is not in the table"));
            continue;
        };
        let ours = dependencies
            .iter()
            .map(String::as_str)
            .filter(|dependency| packages.contains_key(*dependency));
        let ours: BTreeSet<&str> = ours.collect();
        for to in ours.difference(allowed) {
            findings.push(format!("{name} must not know {to}"));
        }
        for to in allowed.difference(&ours) {
            findings.push(format!(
                "{name} does not know {to} any more: take the arrow out"
            ));
        }
    }
    findings
}

fn leaked_dependencies(packages: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut findings = Vec::new();
    for (dependency, owners) in KEPT_IN {
        for (name, dependencies) in packages {
            if dependencies.contains(*dependency) && !owners.contains(&name.as_str()) {
                findings.push(format!(
                    "{name} must not depend on {dependency}, which is kept in {owners:?}"
                ));
            }
        }
    }
    findings
}

#[test]
fn packages_do_not_creep_in() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let count = lock.matches("\n[[package]]\n").count();
    assert!(
        count <= PACKAGES_MAX,
        "Cargo.lock names {count} packages, and no more than {PACKAGES_MAX} are agreed on"
    );
}

#[test]
fn crates_know_only_whom_they_may() {
    assert_none(&wrong_arrows(&metadata()));
    assert_none(&leaked_dependencies(&metadata()));
}

#[test]
fn a_forbidden_a_missing_and_an_unknown_arrow_are_found() {
    let mut planted = metadata();
    let mut know = |from: &str, to: &str| {
        planted.get_mut(from).unwrap().insert(to.to_owned());
    };
    know("heddle-controllers", "heddle-store");
    know("heddle-controllers", "redb");
    planted.get_mut("heddle-store").unwrap().remove("heddle-rt");
    planted.insert("heddle-new".to_owned(), BTreeSet::new());
    assert_eq!(
        wrong_arrows(&planted),
        [
            "heddle-controllers must not know heddle-store",
            "heddle-new is not in the table",
            "heddle-store does not know heddle-rt any more: take the arrow out",
        ]
    );
    assert_eq!(leaked_dependencies(&planted).len(), 1);
    planted.remove("heddle-rt");
    assert!(
        wrong_arrows(&planted).contains(&"heddle-rt is in the table and does not exist".to_owned())
    );
}

#[test]
fn every_folder_of_crates_is_a_crate_of_that_name_and_on_the_map() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let mut folders = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        folders.insert(entry.unwrap().file_name().into_string().unwrap());
    }
    let drawn: BTreeSet<String> = ARROWS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .filter(|name| name != "xtask")
        .collect();
    assert_eq!(folders, drawn);
    for name in &folders {
        assert!(
            map.contains(&format!("### `crates/{name}`")),
            "ARCHITECTURE.md has no section about {name}"
        );
    }
}

/// The words in backticks outside of code blocks that look like a path, and the targets of links.
fn named_paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let looks = span.contains('/') || span.ends_with(".rs") || span.ends_with(".md");
            if looks && span.chars().all(plain) && !span.starts_with('/') {
                paths.push(span.to_owned());
            }
        }
    }
    paths
}

/// The targets of links that lead to a file, as they stand.
fn linked_files(text: &str) -> Vec<String> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target).to_owned())
        .collect()
}

/// Names from the root of the repository; those of a crate may leave `crates/` away.
fn absent_paths(file: &File) -> Vec<String> {
    let mut findings = Vec::new();
    if MAPS.iter().any(|map| file.path.starts_with(map)) {
        for path in named_paths(&file.text) {
            if !root().join(&path).exists() && !root().join("crates").join(&path).exists() {
                findings.push(format!("{} names {path}, which does not exist", file.path));
            }
        }
    }
    let written = file.path.ends_with(".md") && !file.path.starts_with("docs/reference/");
    for target in linked_files(&file.text).into_iter().filter(|_| written) {
        let beside = root().join(&file.path).with_file_name(&target);
        if !beside.exists() {
            findings.push(format!(
                "{} links to {target}, which does not exist",
                file.path
            ));
        }
    }
    findings
}

#[test]
fn every_path_that_documents_name_exists() {
    let findings: Vec<String> = files().iter().flat_map(absent_paths).collect();
    assert_none(&findings);
    let maps = |map: &&&str| files().iter().any(|file| file.path.starts_with(**map));
    assert_eq!(
        MAPS.iter().filter(maps).count(),
        MAPS.len(),
        "a map is missing"
    );
}

#[test]
fn paths_are_found_in_prose_and_not_in_drawings() {
    let text = "See `crates/x.rs`, `write.rs`, `a/b`, `/readyz` and `kubectl get`.\n```\n`not/this`\n```\n[a](gone.md#part)";
    assert_eq!(named_paths(text), ["crates/x.rs", "write.rs", "a/b"]);
    assert_eq!(linked_files(text), ["gone.md"]);
    let planted = |path: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(absent_paths(&planted("ARCHITECTURE.md")).len(), 4);
    assert_eq!(absent_paths(&planted("docs/adr/0001-x.md")).len(), 1);
}

/// Sources say at the top what they are and promise. Unit tests stand beside the file that does.
fn without_header(file: &File) -> Option<String> {
    let is_rust = file.path.ends_with(".rs") && !file.path.ends_with("/tests.rs");
    (is_rust && !file.text.starts_with("//! "))
        .then(|| format!("{} does not open with what it is (//!)", file.path))
}

fn too_long(file: &File) -> Option<String> {
    let counts = file.path.ends_with(".rs")
        && file.path.contains("/src/")
        && !file.path.ends_with("/tests.rs");
    let lines = file.text.lines().count();
    (counts && lines > SOURCE_LINES_MAX)
        .then(|| format!("{} has {lines} lines: does it hold two ideas?", file.path))
}

/// A note to come back says who does.
fn nameless_notes(file: &File) -> Vec<String> {
    let word = ["TO", "DO"].concat();
    let nameless = |line: &str| {
        let mut after = line.split(&word).skip(1);
        after.any(|rest| !rest.starts_with('(') || rest.starts_with("()"))
    };
    file.lines_where(nameless, "a note without a name")
}

/// Texts that leave it to their readers whether there is one or more.
fn undecided_plurals(file: &File) -> Vec<String> {
    let undecided = [["(", "s)"].concat(), ["(", "es)"].concat()];
    let is_text = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        !line.trim_start().starts_with("//")
            && before.is_some_and(|c| c.is_ascii_lowercase())
            && line[..at].matches('"').count() % 2 == 1
    };
    let found = |line: &str| {
        let mut all = undecided
            .iter()
            .flat_map(|end| line.match_indices(end.as_str()));
        all.any(|(at, _)| is_text(line, at))
    };
    let fault = "say `1 event` or `2 events`, with heddle_api::counted";
    file.lines_where(|line| file.path.ends_with(".rs") && found(line), fault)
}

/// Paths that exist on one machine only.
fn machine_paths(file: &File) -> Vec<String> {
    let places: Vec<String> = MACHINE.iter().map(|pieces| pieces.concat()).collect();
    let named = |line: &str| {
        places.iter().any(|place| {
            line.match_indices(place.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && !".-_/}~".contains(c))
            })
        })
    };
    file.lines_where(named, "a path of one machine")
}

/// Manifests and release builds that ask for broken hops. Tests are told to on the command line, and nobody else is.
fn asked_for_faults(file: &File) -> Vec<String> {
    let feature = ["fault", "injection"].join("-");
    let defined = format!("{feature} = []");
    let is_manifest = file.path.ends_with("Cargo.toml");
    let is_defined = |line: &str| file.path == "crates/heddle-mesh/Cargo.toml" && line == defined;
    // A suite that is only built where somebody else asked.
    let is_left_out = |line: &str| line.starts_with("required-features = ");
    let asks = |line: &&str| {
        let line = line.trim();
        line.contains(&feature)
            && (line.contains("--release")
                || (is_manifest && !is_defined(line) && !is_left_out(line)))
    };
    let lines = file.text.lines().filter(asks);
    lines
        .map(|line| format!("{} asks for faults: {line}", file.path))
        .collect()
}

#[test]
fn nothing_that_is_shipped_can_break_a_hop_on_purpose() {
    assert_none(
        &files()
            .iter()
            .flat_map(asked_for_faults)
            .collect::<Vec<_>>(),
    );
    let feature = ["fault", "injection"].join("-");
    let found = |path: &str, text: String| {
        let path = path.to_owned();
        asked_for_faults(&File { path, text }).len()
    };
    let mesh = "crates/heddle-mesh/Cargo.toml";
    assert_eq!(found(mesh, format!("{feature} = []")), 0);
    assert_eq!(found(mesh, format!("default = [\"{feature}\"]")), 1);
    assert_eq!(
        found("crates/heddle/Cargo.toml", format!("{feature} = []")),
        1
    );
    let suite = format!("required-features = [\"heddle-mesh/{feature}\"]");
    assert_eq!(found("crates/heddle-sim/Cargo.toml", suite), 0);
    let build = format!("cargo build --release --features heddle-mesh/{feature}");
    assert_eq!(found("Makefile", build), 1);
}

#[test]
fn sources_open_with_what_they_are_and_stay_readable() {
    let files = files();
    for find in [without_header, too_long] {
        assert_none(&files.iter().filter_map(find).collect::<Vec<_>>());
    }
}

#[test]
fn notes_have_names_and_no_path_is_of_one_machine() {
    let files = files();
    for find in [nameless_notes, machine_paths, undecided_plurals] {
        assert_none(&files.iter().flat_map(find).collect::<Vec<_>>());
    }
}

#[test]
fn planted_faults_of_a_file_are_found() {
    let note = ["TO", "DO"].concat();
    let home = ["/ho", "me/me/x"].concat();
    let file = |path: &str, text: String| File {
        path: path.to_owned(),
        text,
    };
    let source = "crates/x/src/lib.rs";
    assert!(without_header(&file(source, "use a;\n".to_owned())).is_some());
    assert!(without_header(&file(source, "//! A thing.\n".to_owned())).is_none());
    assert!(without_header(&file("crates/x/src/a/tests.rs", "use a;\n".to_owned())).is_none());
    let long = "//! A thing.\n".repeat(SOURCE_LINES_MAX + 1);
    assert!(too_long(&file(source, long.clone())).is_some());
    assert!(too_long(&file("crates/x/tests/a.rs", long)).is_none());
    assert_eq!(
        nameless_notes(&file(source, format!("// {note}: later"))).len(),
        1
    );
    assert!(nameless_notes(&file(source, format!("// {note}(ada): later"))).is_empty());
    assert_eq!(machine_paths(&file(source, format!("\"{home}\""))).len(), 1);
    assert!(machine_paths(&file(source, format!("https://x{home}"))).is_empty());
    let undecided = ["event(", "s)"].concat();
    let plurals = |text: String| undecided_plurals(&file(source, text)).len();
    assert_eq!(plurals(format!("say(\"{{n}} {undecided}\")")), 1);
    assert_eq!(plurals(format!("let all = {undecided};")), 0);
}

/// Decisions have the same parts, in the same order; notes for users have a known sort.
fn shapeless(file: &File) -> Option<String> {
    const PARTS: [&str; 5] = [
        "## Context",
        "## Decision",
        "## What becomes harder",
        "## Alternatives",
        "## Log",
    ];
    if file.path.starts_with("docs/adr/0") {
        let found: Vec<&str> = file.text.lines().filter(|l| l.starts_with("## ")).collect();
        return (found != PARTS).then(|| format!("{} has the parts {found:?}", file.path));
    }
    let note = file.path.strip_prefix("changelog.d/")?;
    let sort = note.strip_suffix(".md").and_then(|n| n.rsplit('.').next());
    let known = matches!(sort, Some("added" | "changed" | "fixed" | "breaking"));
    (!known && note != "README.md").then(|| format!("{} has no known sort", file.path))
}

#[test]
fn decisions_and_changes_have_their_shape() {
    let files = files();
    let findings: Vec<String> = files.iter().filter_map(shapeless).collect();
    assert_none(&findings);
    let planted = |path: &str| File {
        path: path.to_owned(),
        text: "## Decision\n".to_owned(),
    };
    assert!(shapeless(&planted("docs/adr/0099-x.md")).is_some());
    assert!(shapeless(&planted("changelog.d/x.md")).is_some());
    assert!(shapeless(&planted("changelog.d/x.added.md")).is_none());
}

/// Variables on which the Makefile makes a suite depend without saying so when they are not set.
fn silently_optional(makefile: &str) -> Vec<String> {
    let said = makefile
        .lines()
        .find_map(|line| line.strip_prefix("optional := "));
    let said: BTreeSet<&str> = said.unwrap_or_default().split_whitespace().collect();
    let asked = makefile.split("$(if $(").skip(1);
    let asked: BTreeSet<&str> = asked
        .filter_map(|rest| rest.split(')').next())
        .filter(|name| name.starts_with("HEDDLE_"))
        .collect();
    let missing = asked.difference(&said).map(|name| {
        format!("the Makefile leaves something out without {name} and does not say so")
    });
    missing.collect()
}

#[test]
fn what_the_makefile_leaves_out_it_names() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    assert_none(&silently_optional(&makefile));
    assert_eq!(
        makefile.matches("@$(left_out)").count(),
        2,
        "before the tests and after them"
    );
    let planted = format!("{makefile}\n\t$(if $(HEDDLE_NEW),some/test.sh)\n");
    assert_eq!(silently_optional(&planted).len(), 1);
}
