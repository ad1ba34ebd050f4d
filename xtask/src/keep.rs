//! `cargo xtask keep-data-directory`: a data directory as this version writes it, for the tests of later ones.
//!
//! The directory is made by a test of the real binary, which also opens it again and looks at everything in it. What was
//! kept before is never replaced: it shows what was written then.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::check::announce;

/// Makes a directory, and writes it where the last variable says.
const TEST: &str = "kept::a_directory_of_today_can_be_kept";
const KEEP_AS: &str = "HEDDLE_KEEP_DATA_DIRECTORY";

pub(super) fn run(repository: &Path) -> Result<()> {
    let version = crate::dist::version(repository)?;
    let path = repository.join(format!("tests/data-directories/{version}.tar.gz"));
    ensure!(
        !path.exists(),
        "{} is kept already, and what was kept is never replaced",
        path.display()
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--locked", "-p", "heddle", "--test", "e2e", "--"])
        .args(["--exact", TEST])
        .env(KEEP_AS, &path)
        .current_dir(repository)
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "no directory could be made");
    ensure!(path.exists(), "{TEST} was not run");
    let kibibytes = std::fs::metadata(&path)?.len() / 1024;
    announce(&format!("{} ({kibibytes} KiB)", path.display()));
    Ok(())
}
