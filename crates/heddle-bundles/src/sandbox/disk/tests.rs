//! What counts, what does not, and when nobody counts on.

#![expect(
    clippy::disallowed_methods,
    reason = "trees to be counted are made of plain files"
)]

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

const LIMITS: Limits = Limits {
    memory_bytes: 1,
    processes: 1,
    seconds: 1,
    network: false,
    disk_bytes: 1 << 20,
    disk_files: 10,
};

const ROOMY: Bound = Bound {
    bytes: 1 << 40,
    files: 1 << 20,
};

fn fill(path: &Path, bytes: usize) {
    fs::write(path, vec![b'x'; bytes]).unwrap();
}

fn weigh(bound: Bound, directory: &Path) -> Option<Excess> {
    bound.weigh(directory, || true).unwrap()
}

/// How many files are counted: the smallest bound that is not exceeded.
fn files(directory: &Path) -> u64 {
    let within = |files: &u64| {
        weigh(
            Bound {
                files: *files,
                ..ROOMY
            },
            directory,
        )
        .is_none()
    };
    (0..100).find(within).unwrap()
}

#[test]
fn everything_below_counts_once_and_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    assert_eq!(files(data), 0);
    fs::create_dir_all(data.join("a/b/c")).unwrap();
    fill(&data.join("a/b/c/one"), 300 << 10);
    fs::hard_link(data.join("a/b/c/one"), data.join("again")).unwrap();
    symlink("/", data.join("everything")).unwrap();
    symlink("..", data.join("a/loop")).unwrap();
    assert_eq!(files(data), 7);
    let bound = |bytes| Bound { bytes, ..ROOMY };
    assert_eq!(
        weigh(bound(400 << 10), data),
        None,
        "one file with two names"
    );
    assert!(weigh(bound(200 << 10), data).is_some());
    // What is claimed and not written takes no room.
    File::create(data.join("sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(weigh(bound(400 << 10), data), None);
}

#[test]
fn what_is_too_much_is_said_with_the_bound_and_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    for number in 0..11 {
        fill(&data.join(number.to_string()), 1);
    }
    let text = |action| {
        let excess = weigh(Bound::of(LIMITS, action), data);
        excess.map(|excess| excess.to_string()).unwrap_or_default()
    };
    let said = text(Action::Provision);
    for word in [
        "at least 11 files",
        "may have 10 files",
        "spec.actions.diskFiles",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(
        text(Action::Deprovision),
        "",
        "an archive has room beside it"
    );
    fill(&data.join("large"), 3 << 20);
    fs::remove_file(data.join("0")).unwrap();
    fs::remove_file(data.join("1")).unwrap();
    let said = text(Action::Update);
    for word in ["MiB in", "may have 1 MiB", "spec.actions.diskMegabytes"] {
        assert!(said.contains(word), "{said}");
    }
    assert!(text(Action::Unbind).contains("may have 2 MiB"));
}

#[test]
fn only_what_takes_away_begins_with_too_much() {
    let directory = tempfile::tempdir().unwrap();
    let begin = |action| refusal(LIMITS, action, directory.path()).unwrap();
    let all = [
        (Action::Provision, false),
        (Action::Update, false),
        (Action::Bind, false),
        (Action::Unbind, true),
        (Action::Deprovision, true),
    ];
    for (action, _) in all {
        assert_eq!(begin(action), None, "{action:?} of an empty instance");
    }
    fill(&directory.path().join("large"), 5 << 20);
    for (action, begins) in all {
        assert_eq!(begin(action).is_none(), begins, "{action:?}");
    }
}

#[test]
fn a_tree_that_is_too_deep_is_too_much() {
    let directory = tempfile::tempdir().unwrap();
    let deep: std::path::PathBuf = vec!["d"; DEPTH_MAX - 1].iter().collect();
    fs::create_dir_all(directory.path().join(&deep)).unwrap();
    assert_eq!(weigh(ROOMY, directory.path()), None);
    fs::create_dir(directory.path().join(&deep).join("d")).unwrap();
    assert_eq!(weigh(ROOMY, directory.path()), Some(Excess::Depth));
}

#[test]
fn nothing_is_counted_on_for_somebody_who_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..300 {
        fill(&directory.path().join(number.to_string()), 1);
    }
    let bound = Bound {
        files: 280,
        ..ROOMY
    };
    assert!(bound.weigh(directory.path(), || true).unwrap().is_some());
    assert_eq!(bound.weigh(directory.path(), || false).unwrap(), None);
}

#[test]
fn a_disk_that_is_nearly_full_says_how_much_stays_free() {
    let said = Excess::Room { free: 10 << 20 }.to_string();
    assert!(
        said.contains("10 MiB left") && said.contains("256 MiB stay free"),
        "{said}"
    );
}
