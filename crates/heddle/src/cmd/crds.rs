//! `heddle crds`: the definitions of our kinds, for a real cluster.
//!
//! They are made from the same Rust types the embedded server is built on, so the two agree.

use anyhow::Context as _;

use crate::output;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle crds | kubectl apply --server-side -f -
  heddle crds > crds.yaml";

/// Print the CustomResourceDefinitions of all kinds, as YAML
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    for crd in heddle_api::crds() {
        let value = serde_json::to_value(&crd).context("cannot write a definition")?;
        terminal
            .out
            .write_all(format!("---\n{}", output::yaml(&value)).as_bytes())?;
    }
    Ok(terminal.out.flush()?)
}
