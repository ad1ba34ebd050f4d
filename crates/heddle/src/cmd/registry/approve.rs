//! `heddle registry approve`: somebody knows that the bundles are really gone.

use heddle_api::Registry;
use heddle_api::well_known::APPROVED_ANNOTATION;
use kube::ResourceExt as _;
use serde_json::json;

use super::named;
use crate::client::{ClientArgs, Remote, objects};
use crate::failure::Failure;
use crate::output::{ReportFormat, count};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle registry ls                         SuspectedMassRemoval is what can be approved
  heddle registry approve dh                 the bundles that disappeared are withdrawn

What is approved is the disappearance of exactly the bundles that are missing now. Instances of a
withdrawn bundle go on, and it comes back when the registry has it again.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct Args {
    /// Name of the registry
    name: String,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

pub(super) async fn approve(
    args: &Args,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let name = &args.name;
    let registry = named(name, remote).await?;
    let status = registry.status.clone().unwrap_or_default();
    let Some(suspicion) = status.suspicion else {
        let text =
            format!("nothing is suspected of registry {name}, so there is nothing to approve");
        return Err(Failure::Rejected(text).into());
    };
    let approved = registry.annotations().get(APPROVED_ANNOTATION);
    if approved != Some(&suspicion.id) {
        let id = Some(suspicion.id.as_str());
        let _: Registry = objects::annotate(remote, name, APPROVED_ANNOTATION, id).await?;
    }
    let bundles = count(u64::try_from(suspicion.count).unwrap_or_default(), "bundle");
    let report = json!({"registry": name, "suspicion": suspicion.id, "withdraws": suspicion.count});
    let text = args.output.render(&report, |_| {
        format!(
            "approved: {bundles} of registry {name} will be withdrawn; `heddle registry sync {name} --wait` does it now\n"
        )
    });
    Ok(terminal.print(&text)?)
}
