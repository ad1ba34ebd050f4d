//! Generated files are fresh, and staleness is noticed.

use super::*;

#[test]
fn generated_files_are_fresh() {
    check(&repository()).unwrap();
}

#[test]
fn generating_twice_gives_the_same_bytes() {
    assert_eq!(generated().unwrap(), generated().unwrap());
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test plants files in a directory of its own"
)]
fn a_missing_a_changed_and_an_orphaned_file_are_each_named() {
    let root = std::env::temp_dir().join(format!("heddle-codegen-{}", std::process::id()));
    write(&root).unwrap();
    check(&root).unwrap();

    let stale = |path: &str| {
        let error = check(&root).unwrap_err().to_string();
        assert!(error.contains(path), "{error}");
        write(&root).unwrap();
        check(&root).unwrap();
    };
    let changed = "docs/reference/kinds.md";
    std::fs::write(root.join(changed), "something else").unwrap();
    stale(changed);

    let missing = "docs/reference/crds/brokers.eventing.knative.dev.yaml";
    std::fs::remove_file(root.join(missing)).unwrap();
    stale(missing);

    let orphan = "docs/reference/crds/gone.example.org.yaml";
    std::fs::write(root.join(orphan), "").unwrap();
    stale(orphan);

    std::fs::remove_dir_all(&root).unwrap();
}
