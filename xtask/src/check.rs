//! The gate: everything that must hold before a change is shared, cheapest first.
//!
//! Each step is announced as a command that can be typed again, and the first one that fails ends the run. Warnings are
//! errors. Nothing is retried, skipped or filtered. A step that takes long says so now and then: cargo says nothing while it
//! compiles one big crate or waits for another cargo. What the gate leaves out is named at its end.

pub(crate) mod progress;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// One command of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Set for this command only.
    environment: &'static [(&'static str, &'static str)],
    /// What cargo is asked to do.
    arguments: &'static [&'static str],
}

const STEPS: &[Step] = &[
    Step::cargo(&["fmt", "--all", "--check"]),
    Step::cargo(&["test", "--locked", "--package", "xtask", "--test", "tidy"]),
    Step::cargo(&["xtask", "codegen", "--check"]),
    // With all features, so that the suites which need programs from outside are at least compiled and linted.
    Step::cargo(&[
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ]),
    Step::cargo(&["test", "--locked", "--workspace"]),
    // What the default build leaves out. The whole workspace is named, so that only the binary is built again.
    Step::cargo(&[
        "test",
        "--locked",
        "--workspace",
        "--features",
        "heddle/otlp",
        "--bin",
        "heddle",
        "otlp::",
    ]),
    Step {
        environment: &[("RUSTDOCFLAGS", "--deny warnings")],
        ..Step::cargo(&["doc", "--locked", "--workspace", "--no-deps"])
    },
];

/// What needs programs from outside Rust, and is therefore no step.
const LEFT_OUT: &str = "left out, and run by `make test`: kubectl, power loss, registries, sandboxes, bundles, fuzzing";

/// Runs the gate on the repository at `root`.
pub(crate) fn run(root: &Path) -> Result<()> {
    through(STEPS, announce, |step| {
        progress::reported(step.arguments[0], announce, || step.carry_out(root))
    })
}

/// Carries out the steps in order, up to and including the first that fails.
fn through(
    steps: &[Step],
    mut announce: impl FnMut(&str),
    mut carry_out: impl FnMut(&Step) -> Result<()>,
) -> Result<()> {
    for (index, step) in steps.iter().enumerate() {
        announce(&format!(
            "==> {} of {}: {}",
            index + 1,
            steps.len(),
            step.typed()
        ));
        carry_out(step)?;
    }
    announce(&format!("==> {LEFT_OUT}"));
    announce("==> all checks passed");
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "a chore talks to the person who started it"
)]
pub(crate) fn announce(line: &str) {
    eprintln!("{line}");
}

impl Step {
    const fn cargo(arguments: &'static [&'static str]) -> Self {
        Self {
            environment: &[],
            arguments,
        }
    }

    /// The step as a person would type it.
    fn typed(&self) -> String {
        let set = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}='{value}' "));
        format!(
            "{}cargo {}",
            set.collect::<String>(),
            self.arguments.join(" ")
        )
    }

    fn carry_out(&self, root: &Path) -> Result<()> {
        // Cargo says which one started us, so that the toolchain of the repository stays in charge.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .current_dir(root)
            .status()
            .with_context(|| format!("cannot start {}", self.typed()))?;
        if !status.success() {
            bail!("{} failed: {status}", self.typed());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
