//! The gate stops where it should, and says what it runs.

use super::*;

/// Which steps were announced and which carried out, when `failing` fails.
fn walk(failing: Option<&Step>) -> (Vec<String>, Vec<Step>, bool) {
    let (mut announced, mut carried_out) = (Vec::new(), Vec::new());
    let outcome = through(
        STEPS,
        |line| announced.push(line.to_owned()),
        |step| {
            carried_out.push(*step);
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
    let (announced, carried_out, passed) = walk(None);
    assert!(passed);
    assert_eq!(carried_out, STEPS);
    assert_eq!(announced.len(), STEPS.len() + 2);
    let fmt = format!("==> 1 of {}: cargo fmt --all --check", STEPS.len());
    assert_eq!(announced[0], fmt);
    let whole = |line: &String| line.ends_with(": cargo test --locked --workspace");
    assert!(announced.iter().any(whole));
    assert_eq!(announced[STEPS.len()], format!("==> {LEFT_OUT}"));
}

#[test]
fn the_first_failure_ends_the_run() {
    for (index, step) in STEPS.iter().enumerate() {
        let (announced, carried_out, passed) = walk(Some(step));
        assert!(!passed);
        assert_eq!(carried_out.len(), index + 1);
        assert!(!announced.contains(&"==> all checks passed".to_owned()));
    }
}

#[test]
fn a_command_that_fails_is_a_failure_and_is_named() {
    let step = Step::cargo(&["no-such-command-of-cargo"]);
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
        ..Step::cargo(&["doc"])
    };
    assert_eq!(step.typed(), "RUSTDOCFLAGS='--deny warnings' cargo doc");
}
