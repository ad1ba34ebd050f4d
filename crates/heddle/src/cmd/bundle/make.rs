//! `heddle bundle init` and `lint`: a bundle as its author has it, in a directory.

use std::path::PathBuf;

use anyhow::Context as _;
use heddle_bundles::pack::{self, Severity};

use crate::failure::Failure;
use crate::output::harmless;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct InitArgs {
    /// Directory to make
    directory: PathBuf,

    /// Name of the bundle; the default is that of the directory
    #[arg(long)]
    name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct LintArgs {
    /// Directory of the bundle
    directory: PathBuf,
}

pub(super) fn init(args: &InitArgs, terminal: &mut Terminal) -> anyhow::Result<()> {
    let directory = &args.directory;
    let last = directory.file_name().and_then(|name| name.to_str());
    let name = args.name.as_deref().or(last).unwrap_or("bundle");
    pack::init(directory, name)?;
    let path = directory.display();
    terminal.say(&format!("bundle {name} is in {path}"))?;
    terminal.note(&format!(
        "`heddle bundle push {path}` offers it; rootfs/bin/entrypoint is its program"
    ));
    Ok(())
}

pub(super) fn lint(args: &LintArgs, terminal: &mut Terminal) -> anyhow::Result<()> {
    let findings = pack::lint(&args.directory);
    for finding in &findings {
        terminal.say(&harmless(&finding.to_string()))?;
    }
    let is_error = |finding: &&pack::Finding| finding.severity == Severity::Error;
    let errors = findings.iter().filter(is_error).count();
    if errors > 0 {
        let text = format!("{} cannot be offered", args.directory.display());
        return Err(Failure::Rejected(text).into());
    }
    Ok(())
}

/// Packs a directory, or says why that cannot be done.
pub(super) fn image(directory: &std::path::Path) -> anyhow::Result<heddle_bundles::images::Image> {
    pack::image(directory).with_context(|| format!("cannot pack {}", directory.display()))
}
