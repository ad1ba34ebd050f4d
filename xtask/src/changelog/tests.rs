#![expect(
    clippy::disallowed_methods,
    reason = "the tests plant files in directories of their own"
)]

use std::path::PathBuf;

use super::*;

/// A repository with these notes.
fn planted(name: &str, notes: &[(&str, &str)]) -> PathBuf {
    let root = std::env::temp_dir().join(format!("heddle-changelog-{name}-{}", std::process::id()));
    std::fs::create_dir_all(root.join(NOTES)).unwrap();
    for (name, text) in [("README.md", "not a note")].iter().chain(notes) {
        std::fs::write(root.join(NOTES).join(name), text).unwrap();
    }
    root
}

#[test]
fn notes_are_gathered_by_sort_and_a_release_keeps_what_was_there() {
    let root = planted(
        "all",
        &[
            ("b.fixed.md", "It works.\n"),
            ("a.breaking.md", "It is\n[another](../docs/x.md) one.\n"),
        ],
    );
    run(&root, None).unwrap();
    run(&root, None).unwrap();
    let text = read(&root.join(FILE)).unwrap();
    let section =
        "\n\n### Breaking\n\n- It is\n  [another](docs/x.md) one.\n\n### Fixed\n\n- It works.\n";
    assert_eq!(
        text,
        format!("{HEAD}\n{UNRELEASED}{section}"),
        "twice is once"
    );

    run(&root, Some(("1.0.0", "2026-11-18"))).unwrap();
    let text = read(&root.join(FILE)).unwrap();
    assert_eq!(text, format!("{HEAD}\n## 1.0.0 (2026-11-18){section}"));
    assert_eq!(notes(&root).unwrap(), [], "they are told");
    check(&root).unwrap();

    std::fs::write(root.join(NOTES).join("c.added.md"), "More.").unwrap();
    let stale = check(&root).unwrap_err();
    assert!(stale.to_string().contains(FILE), "{stale}");
    run(&root, None).unwrap();
    let text = read(&root.join(FILE)).unwrap();
    let more = "\n\n### Added\n\n- More.\n";
    assert_eq!(
        text,
        format!("{HEAD}\n{UNRELEASED}{more}\n## 1.0.0 (2026-11-18){section}")
    );
    check(&root).unwrap();
    let twice = run(&root, Some(("1.0.0", "2026-11-19"))).unwrap_err();
    assert!(twice.to_string().contains("already"), "{twice}");
    assert_eq!(notes(&root).unwrap().len(), 1, "nothing is lost");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_note_of_no_sort_a_version_and_a_date_that_are_none_are_refused() {
    let root = planted("none", &[("a.fxied.md", "x")]);
    let refused = |release| text(&root, release).unwrap_err().to_string();
    assert!(refused(None).contains("a.fxied.md"));
    assert!(refused(Some(("1.0", "2026-11-18"))).contains("1.0"));
    assert!(refused(Some(("1.0.0", "today"))).contains("today"));
    std::fs::remove_dir_all(root).unwrap();
}
