//! `heddle-bench registry`: it measures what it says, with programs that are there and with programs that are not.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a suite of real programs, started and waited for"
)]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The command, and a directory for it.
fn bench(words: &[&str]) -> (Command, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_heddle-bench"));
    command
        .args(["registry", "--images", "5", "--launches", "3"])
        .args(["-o", "json", "--dir"])
        .arg(dir.path())
        .args(words);
    (command, dir)
}

/// A program that `make test` has installed.
fn program(variable: &str) -> PathBuf {
    let path = std::env::var(variable);
    let path = path.unwrap_or_else(|_| {
        panic!("{variable} names no program; `.ci/tools.sh bundles` unpacks it")
    });
    PathBuf::from(path)
}

/// The figures, by what they are of.
fn value(report: &Value, measure: &str) -> f64 {
    let rows = report["measures"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == measure);
    let value = row.and_then(|row| row["value"].as_f64());
    value.unwrap_or_else(|| panic!("{measure} is not measured: {report:#}"))
}

#[test]
fn reading_the_catalog_and_the_sandbox_are_measured_and_nothing_is_left_behind() {
    let (mut command, dir) = bench(&[]);
    command
        .env("DOCKER_REGISTRY", program("DOCKER_REGISTRY"))
        .env("BUSYBOX", program("BUSYBOX"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // One page of the listing, and for each image its manifest and its configuration.
    let first = "first reading of 5 images";
    for (what, expected) in [
        ("requests", 11.0),
        ("manifests downloaded", 5.0),
        ("blobs downloaded", 5.0),
    ] {
        let found = value(&report, &format!("{first}, {what}"));
        assert_eq!(found, expected, "{what}");
    }
    // The page again, and for each image whether its digest is still the same.
    let again = "reading 5 images again, nothing new";
    for (what, expected) in [
        ("requests", 6.0),
        ("manifests downloaded", 0.0),
        ("blobs downloaded", 0.0),
    ] {
        let found = value(&report, &format!("{again}, {what}"));
        assert_eq!(found, expected, "{what}");
    }
    for measure in [
        first,
        again,
        "catalog with 5 offerings, whole, p99",
        "catalog with 5 offerings, whole, compressed, p99",
        "catalog with 5 offerings, known already, p99",
        "an action that does nothing, p99",
        "an action ÷ the same program, p50",
    ] {
        assert!(value(&report, measure) > 0.0, "{measure}: {report:#}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_is_missing_is_named_with_where_to_get_it() {
    let cases = [
        (
            "sync",
            "DOCKER_REGISTRY",
            "Debian's package docker-registry",
        ),
        ("sandbox", "BUSYBOX", "Debian's package busybox-static"),
    ];
    for (question, variable, advice) in cases {
        let (mut command, _dir) = bench(&["--only", question]);
        command.env_remove(variable).env("PATH", "");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains(advice), "{complaint}");
    }
}
