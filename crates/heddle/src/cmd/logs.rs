//! `heddle logs`: what the last action of an instance or binding printed.

use heddle_api::operation::RunReport;
use heddle_api::{ServiceBinding, names};
use http::Request;
use kube::Resource as _;
use kube::core::params::GetParams;
use serde_json::Value;

use super::osb::{InstanceArgs, fetch};
use crate::client::Remote;
use crate::failure::Failure;
use crate::output::harmless;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle logs db -n team-a                  what the last action of the instance printed
  heddle logs db -n team-a --binding web    the same of one of its bindings

Only offerings of bundles have actions. Logs are bounded, are kept for a while after an instance is gone, and have
passwords masked as far as they are known.";

/// Show what the last action of an instance or a binding printed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    id: String,

    /// Id of a binding of it
    #[arg(long, value_name = "ID")]
    binding: Option<String>,

    #[command(flatten)]
    instance: InstanceArgs,
}

pub(super) async fn run(args: Args, _world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.instance.client).await?;
    show(&args, &remote, terminal).await
}

async fn show(args: &Args, remote: &Remote, terminal: &mut Terminal) -> anyhow::Result<()> {
    let namespace = args.instance.namespace(remote)?;
    let (object, name) = match &args.binding {
        None => (
            fetch(&args.id, &namespace, remote).await?,
            format!("instance {}", args.id),
        ),
        Some(binding) => (
            binding_of(&args.id, binding, &namespace, remote).await?,
            format!("binding {binding}"),
        ),
    };
    let report: Option<RunReport> = serde_json::from_value(object["status"]["run"].clone())?;
    let Some(report) = report else {
        let text = format!("{name} has no action: none has run for it, or it is no bundle's");
        return Err(Failure::NotFound(text).into());
    };
    let request = Request::get(format!("/heddle/v1/runs/{}/log", report.id)).body(Vec::new())?;
    let answer = remote.send(request).await?;
    if !answer.code.is_success() {
        return Err(answer.refusal(&name).into());
    }
    let ended = report.ended.as_deref().unwrap_or("it is under way");
    let action = object["status"]["run"]["action"].as_str();
    let action = action.unwrap_or_default();
    terminal.note(&harmless(&format!(
        "{name}, {action}, attempt {}: {ended}",
        report.attempt
    )));
    Ok(terminal.print(&answer.text())?)
}

async fn binding_of(
    id: &str,
    binding: &str,
    namespace: &str,
    remote: &Remote,
) -> anyhow::Result<Value> {
    let path = ServiceBinding::url_path(&(), Some(namespace));
    let request =
        kube::core::Request::new(path).get(&names::binding(binding), &GetParams::default())?;
    let answer = remote.send(request).await?;
    if answer.code == http::StatusCode::NOT_FOUND {
        let text = format!("instance {id} has no binding {binding}");
        return Err(Failure::NotFound(text).into());
    }
    answer.ok(&format!("binding {binding}"))
}

#[cfg(test)]
mod tests;
