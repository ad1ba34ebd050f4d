//! Every target is built, and begins with something to change.

use super::*;
use crate::codegen::repository;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the working tree; no fault is injected here"
)]
fn every_target_has_a_program_and_seeds() {
    let root = repository();
    let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    let targets = targets(&root).unwrap();
    assert!(targets.len() >= 14, "{targets:?}");
    for target in &targets {
        let named = format!("name = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&named), "{target} is not in the manifest");
        let seeds = std::fs::read_dir(root.join("fuzz/seeds").join(target));
        assert!(
            seeds.is_ok_and(|seeds| seeds.count() > 0),
            "{target} has no seeds"
        );
    }
    assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
}

#[test]
fn a_time_that_is_none_is_refused_before_anything_is_built() {
    let error = run(&repository(), Some("soon")).unwrap_err();
    assert!(error.to_string().contains("soon"), "{error}");
}
