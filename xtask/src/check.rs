//! The gate: everything that must hold before a change is shared, cheapest first.
//!
//! Each step is announced as a command that can be typed again, and the first one that fails ends the run. Warnings are
//! errors. Nothing is retried, skipped or filtered. A step that takes long says so now and then: cargo says nothing while it
//! compiles one big crate or waits for another cargo. What the gate leaves out is named at its end.

pub(crate) mod progress;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::codegen;

/// One command of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    program: Program,
    /// Set for this command only.
    environment: &'static [(&'static str, &'static str)],
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Cargo,
    /// `cargo xtask codegen --check`, without the cargo, which would build this program once more: with the features that
    /// its own dependencies have alone.
    Codegen,
}

/// Lets tests break a hop of the mesh. Nothing but tests is built with it.
const FAULTS: &str = "heddle-mesh/fault-injection";

/// The gate. Tests are built with `features`, which let suites run whose programs are there. All of them name the whole
/// workspace, so that dependencies have the same features everywhere and are built once.
fn steps(features: Option<&str>) -> Vec<Step> {
    let with = |more: Option<&str>| {
        let features = features.into_iter().chain(more).chain([FAULTS]);
        let features: Vec<&str> = features.collect();
        format!(" --features {}", features.join(","))
    };
    let (suites, otlp) = (with(None), with(Some("heddle/otlp")));
    vec![
        Step::cargo("fmt --all --check"),
        Step::cargo(&format!("test --locked --workspace{suites} --test tidy")),
        Step::new(Program::Codegen, "xtask codegen --check"),
        // With all features, so that the suites which need programs from outside are at least compiled and linted.
        Step::cargo("clippy --locked --workspace --all-targets --all-features -- --deny warnings"),
        Step::cargo(&format!("test --locked --workspace{suites}")),
        // What the default build leaves out; only the library of the binary is built again.
        Step::cargo(&format!("test --locked --workspace{otlp} --lib otlp::")),
        Step {
            environment: &[("RUSTDOCFLAGS", "--deny warnings")],
            // With all features, as the lints: what they have compiled of dependencies serves here too.
            ..Step::cargo("doc --locked --workspace --all-features --no-deps")
        },
    ]
}

/// What needs programs from outside Rust, and is therefore no step.
const LEFT_OUT: &str = "left out, and run by `make test`: kubectl, power loss, registries, sandboxes, bundles, fuzzing";

/// Runs the gate on the repository at `root`.
pub(crate) fn run(root: &Path, features: Option<&str>) -> Result<()> {
    through(&steps(features), announce, |step| {
        progress::reported(&step.arguments[0], announce, || step.carry_out(root))
    })?;
    if features.is_none() {
        announce(&format!("==> {LEFT_OUT}"));
    }
    announce("==> all checks passed");
    Ok(())
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
    fn cargo(line: &str) -> Self {
        Self::new(Program::Cargo, line)
    }

    fn new(program: Program, line: &str) -> Self {
        Self {
            program,
            environment: &[],
            arguments: line.split(' ').map(str::to_owned).collect(),
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
        if self.program == Program::Codegen {
            return codegen::check_all(root);
        }
        // Cargo says which one started us, so that the toolchain of the repository stays in charge.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(&self.arguments)
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
