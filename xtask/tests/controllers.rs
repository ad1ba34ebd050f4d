//! What controllers promise and no compiler checks: every condition that a kind declares is set by somebody, and no reconcile
//! sleeps.
//!
//! As in `tidy.rs`, every rule is a function from text to findings, tried on the repository and on a planted fault.

#![expect(
    clippy::disallowed_methods,
    reason = "a chore reads the working tree; no fault is injected here"
)]
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Conditions that are declared and that nobody sets yet, each with what it waits for.
const UNSET: &[(&str, &str)] = &[];

/// Files in which something waits that is no reconcile: it has a task of its own.
const SLEEPERS: &[&str] = &[
    "bundle_revision/keep.rs",
    "health.rs",
    "leader.rs",
    "reconcile/controller.rs",
    "records.rs",
    "watch.rs",
];

/// A file by its path below a folder, and its text without tests.
type Source = (String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Every file below a folder that is no test.
fn sources(folder: &str) -> Vec<Source> {
    let top = root().join(folder);
    let (mut found, mut folders) = (Vec::new(), vec![top.clone()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&top).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if !name.contains("tests") && name.ends_with(".rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                found.push((name, text.to_owned()));
            }
        }
    }
    found.sort();
    found
}

/// The condition types that files of kinds declare, as `kind::NAME`.
fn declared(kinds: &[Source]) -> Vec<String> {
    let mut all = Vec::new();
    for (file, text) in kinds {
        let kind = file.trim_end_matches(".rs");
        let names = text.lines().filter_map(|line| {
            let rest = line.trim().strip_prefix("pub const ")?;
            rest.strip_suffix(": ConditionType = ConditionType {")
        });
        all.extend(names.map(|name| format!("{kind}::{name}")));
    }
    all
}

/// Declared conditions that are set nowhere. Whoever sets one names it behind `condition::` in a file that imports from the
/// kind, or behind the path of the kind.
fn unset(declared: &[String], controllers: &[Source]) -> Vec<String> {
    let sets = |condition: &&String| {
        let (kind, name) = condition.split_once("::").unwrap();
        let set = |(_, text): &Source| {
            let imports = text.contains(&format!("heddle_api::{kind}::"));
            let word = |prefix: &str| mentions(text, &format!("{prefix}condition::{name}"));
            word(&format!("{kind}::")) || (imports && word(""))
        };
        controllers.iter().any(set)
    };
    let missing = declared.iter().filter(|condition| !sets(condition));
    missing.cloned().collect()
}

/// Whether a word is there that does not go on, and that is not only looked up by its name.
fn mentions(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let behind = &text[at + word.len()..];
        let goes_on = behind.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        !goes_on && !behind.starts_with(".name")
    })
}

/// Files that sleep and are not known to.
fn sleeps(controllers: &[Source]) -> Vec<&str> {
    let sleeping = controllers
        .iter()
        .filter(|(file, text)| text.contains(".sleep(") && !SLEEPERS.contains(&file.as_str()));
    sleeping.map(|(file, _)| file.as_str()).collect()
}

#[test]
fn every_condition_that_is_declared_is_set_by_a_controller() {
    let declared = declared(&sources("crates/heddle-api/src"));
    assert!(declared.len() > 40, "{declared:?}");
    let controllers = sources("crates/heddle-controllers/src");
    let known: Vec<&str> = UNSET.iter().map(|(condition, _)| *condition).collect();
    assert_eq!(unset(&declared, &controllers), known);
}

#[test]
fn a_condition_that_nobody_sets_is_found() {
    let controllers = sources("crates/heddle-controllers/src");
    let planted = [
        "broker::NEVER_SET".to_owned(),
        "broker::INGRESS_READY".to_owned(),
        "broker::INGRESS".to_owned(),
    ];
    assert_eq!(
        unset(&planted, &controllers),
        ["broker::NEVER_SET", "broker::INGRESS"]
    );
}

#[test]
fn no_round_sleeps() {
    let controllers = sources("crates/heddle-controllers/src");
    assert_eq!(sleeps(&controllers), Vec::<&str>::new());
    for known in SLEEPERS {
        let found = controllers.iter().find(|(file, _)| file == known);
        assert!(
            found.unwrap().1.contains(".sleep("),
            "{known} no longer sleeps"
        );
    }
    let planted = ("x/observe.rs".to_owned(), "clock.sleep(p).await".to_owned());
    assert_eq!(sleeps(&[planted]), ["x/observe.rs"]);
}

/// Which kind a shared watch is of, by its name: `applications: SharedWatch<Application>`.
fn watches(lib: &str) -> BTreeMap<String, String> {
    let lines = lib
        .lines()
        .filter_map(|line| line.trim().split_once(": SharedWatch<"));
    lines
        .filter_map(|(name, kind)| Some((name.to_owned(), kind.strip_suffix(">,")?.to_owned())))
        .collect()
}

/// Per controller, the kinds it watches; its own comes first.
fn watching(
    sources: &[Source],
    watches: &BTreeMap<String, String>,
) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for (path, text) in sources {
        let Some((_, from)) = text.split_once("Controller::new(") else {
            continue;
        };
        let Some(name) = path.strip_suffix(".rs").filter(|name| !name.contains('/')) else {
            continue;
        };
        let mut kinds: Vec<String> = Vec::new();
        for rest in from.split("&mut watches.").skip(1) {
            let watch: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let kind = watches.get(&watch).cloned();
            let kind = kind.unwrap_or_else(|| panic!("{path}: {watch} is no watch"));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        found.insert(name.to_owned(), kinds);
    }
    found
}

/// Where what each controller watches is written down for people.
const TABLE: &str = "docs/reference/controllers.md";

/// The same as that table says it.
fn tabled(map: &str) -> BTreeMap<String, Vec<String>> {
    let (_, table) = map.split_once("| controller | reconciles |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let own = cells[2].split(' ').next().unwrap();
        let others = cells[3].split(", ").filter(|kind| *kind != "–");
        let kinds = [own].into_iter().chain(others).map(str::to_owned);
        (cells[1].trim_matches('`').to_owned(), kinds.collect())
    })
    .collect()
}

/// Controllers of which the table and the code say different things.
fn misdrawn(map: &str, code: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let table = tabled(map);
    let names: BTreeSet<&String> = table.keys().chain(code.keys()).collect();
    let sorted = |kinds: Option<&Vec<String>>| {
        let (own, others) = kinds?.split_first()?;
        Some((
            own.clone(),
            others.iter().cloned().collect::<BTreeSet<String>>(),
        ))
    };
    names
        .into_iter()
        .filter(|name| sorted(table.get(*name)) != sorted(code.get(*name)))
        .map(|name| {
            format!(
                "{name}: {TABLE} has {:?}, the code {:?}",
                table.get(name),
                code.get(name)
            )
        })
        .collect()
}

#[test]
fn the_table_of_controllers_is_what_they_watch() {
    let sources = sources("crates/heddle-controllers/src");
    let lib = sources.iter().find(|(path, _)| path == "lib.rs").unwrap();
    let code = watching(&sources, &watches(&lib.1));
    assert!(code.len() > 10, "only {code:?} were found");
    let map = std::fs::read_to_string(root().join(TABLE)).unwrap();
    let findings = misdrawn(&map, &code);
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    let planted = map.replace(
        "| Channel | Application, Broker |",
        "| Channel | Application |",
    );
    assert_eq!(misdrawn(&planted, &code).len(), 1);
}
