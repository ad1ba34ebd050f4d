//! The pages that only the binary can write: a test of heddle knows the command line, and writes them or compares them.
//!
//! It is asked for among the libraries of the whole workspace, the build that the gate makes anyway: naming the package alone would
//! choose other features and compile everything once more.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// What the test looks at: with it, it writes.
const WRITE: &str = "HEDDLE_WRITE_REFERENCE";

const TEST: &str = "cmd::tests::reference::pages_about_the_command_line_are_fresh";

pub(super) fn write(root: &Path) -> Result<()> {
    run(root, &[(WRITE, "1")])
}

pub(super) fn check(root: &Path) -> Result<()> {
    run(root, &[])
}

fn run(root: &Path, environment: &[(&str, &str)]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--locked", "--quiet", "--workspace", "--lib"])
        .args(["--", "--exact", TEST])
        .env_remove(WRITE)
        .envs(environment.iter().copied())
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{printed}");
    ensure!(
        printed.contains("1 passed"),
        "heddle has no test {TEST}:\n{printed}"
    );
    Ok(())
}
