//! The binary: optimised, static, without symbols, and without anything of the machine it was built on.
//!
//! With musl the C library is in the binary, name resolution included, and it runs on any Linux of its processor. Building it
//! takes the target's standard library (`rustup target add`) and a C compiler for it (Debian: musl-tools), which
//! `.ci/tools.sh dist` brings.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::check::announce;

/// Builds for the processor of this machine; the path of the binary.
pub(super) fn binary(root: &Path) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "build",
        "--locked",
        "--release",
        "--package",
        "heddle",
        "--target",
    ];
    announce(&format!("==> cargo {} {triple}", arguments.join(" ")));
    let status = Command::new(cargo)
        .args(arguments)
        .arg(&triple)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("RUSTFLAGS", without_this_machine(root))
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    ensure!(
        status.success(),
        "the binary cannot be built: {status}; `.ci/tools.sh dist` brings what it needs"
    );
    Ok(target(root).join(triple).join("release/heddle"))
}

/// Paths end up in a binary, for messages of a panic: those of the sources are written as if they were everywhere the same.
fn without_this_machine(root: &Path) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = std::env::var_os("HOME").map(|user| PathBuf::from(user).join(".cargo"));
    let mut flags = vec![format!("--remap-path-prefix={}=/heddle", root.display())];
    if let Some(home) = home.or(user) {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    flags.join(" ")
}

/// Where cargo puts what it builds.
pub(super) fn target(root: &Path) -> PathBuf {
    let told = std::env::var_os("CARGO_TARGET_DIR");
    root.join(told.unwrap_or_else(|| "target".into()))
}

/// `SOURCE_DATE_EPOCH`, or when the last commit was made: the time that everything carries.
pub(super) fn epoch(root: &Path) -> Result<u64> {
    if let Some(told) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let told = told.to_string_lossy().into_owned();
        return told
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH is {told}, which is no number"));
    }
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .output()
        .context("cannot ask git when the last commit was made; set SOURCE_DATE_EPOCH")?;
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    told.parse()
        .context("git does not know when the last commit was made; set SOURCE_DATE_EPOCH")
}
