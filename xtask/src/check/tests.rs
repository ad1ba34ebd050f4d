//! The gate stops where it should, and says what it runs.

use super::*;

/// Which steps were announced and which carried out, when `failing` fails.
fn walk(steps: &[Step], failing: Option<&Step>) -> (Vec<String>, Vec<Step>, bool) {
    let (mut announced, mut carried_out) = (Vec::new(), Vec::new());
    let outcome = through(
        steps,
        |line| announced.push(line.to_owned()),
        |step| {
            carried_out.push(step.clone());
            if Some(step) == failing {
                bail!("no");
            }
            Ok(())
        },
    );
    (announced, carried_out, outcome.is_ok())
}

#[test]
fn every_step_is_announced_and_carried_out_in_order() {
    let steps = steps(None);
    let (announced, carried_out, passed) = walk(&steps, None);
    assert!(passed);
    assert_eq!(carried_out, steps);
    assert_eq!(announced.len(), steps.len());
    let fmt = format!("==> 1 of {}: cargo fmt --all --check", steps.len());
    assert_eq!(announced[0], fmt);
    let whole = |line: &String| {
        line.ends_with(": cargo test --locked --workspace --features heddle-mesh/fault-injection")
    };
    assert!(announced.iter().any(whole));
}

#[test]
fn the_first_failure_ends_the_run() {
    let steps = steps(None);
    for (index, step) in steps.iter().enumerate() {
        let (_, carried_out, passed) = walk(&steps, Some(step));
        assert!(!passed);
        assert_eq!(carried_out.len(), index + 1);
    }
}

#[test]
fn suites_are_tests_of_the_same_build() {
    let typed: Vec<String> = steps(Some("a/x,b/y")).iter().map(Step::typed).collect();
    let tests: Vec<&String> = (typed.iter())
        .filter(|line| line.starts_with("cargo test"))
        .collect();
    assert_eq!(
        tests,
        [
            "cargo test --locked --workspace --features a/x,b/y,heddle-mesh/fault-injection --test tidy",
            "cargo test --locked --workspace --features a/x,b/y,heddle-mesh/fault-injection",
            "cargo test --locked --workspace --features a/x,b/y,heddle/otlp,heddle-mesh/fault-injection --lib otlp::",
        ]
    );
    assert!(typed.contains(&"cargo xtask codegen --check".to_owned()));
}

#[test]
fn a_command_that_fails_is_a_failure_and_is_named() {
    let step = Step::cargo("no-such-command-of-cargo");
    let error = step.carry_out(Path::new(".")).unwrap_err().to_string();
    assert!(
        error.contains("cargo no-such-command-of-cargo failed"),
        "{error}"
    );
}

#[test]
fn a_step_is_shown_as_it_would_be_typed() {
    let step = Step {
        environment: &[("RUSTDOCFLAGS", "--deny warnings")],
        ..Step::cargo("doc")
    };
    assert_eq!(step.typed(), "RUSTDOCFLAGS='--deny warnings' cargo doc");
}
