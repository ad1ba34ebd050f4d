//! `heddle deprovision`: ask for the end of an instance and of everything it consists of.

use std::time::Duration;

use serde_json::json;

use super::osb::{Awaited, InstanceArgs, WaitArgs, choice_of, fetch, settle};
use crate::client::Remote;
use crate::client::osb::{Osb, Reply};
use crate::output::ReportFormat;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle deprovision shop-events-x7k2p -n team-a --wait

What its bindings gave out stops working, and no more events of the service come into the
namespace. Events that were accepted before are delivered, kept as dead letters or thrown away,
as the instance's spec.onDeprovision says.";

/// Remove an instance
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    id: String,

    #[command(flatten)]
    wait: WaitArgs,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    instance: InstanceArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.instance.client).await?;
    deprovision(&args, &remote, world, terminal).await
}

async fn deprovision(
    args: &Args,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let (id, namespace) = (&args.id, args.instance.namespace(remote)?);
    let object = fetch(id, &namespace, remote).await?;
    let choice = choice_of(&object)?;
    let osb = Osb::of_instance(remote, &object, &namespace);
    let mut note = String::new();
    let state = match osb.deprovision(id, &choice).await? {
        Reply::Done(_) => "gone",
        Reply::Accepted(operation) if args.wait.wait => {
            let awaited = Awaited {
                id,
                binding: None,
                operation: operation.as_deref(),
                limit: Duration::from_secs(args.wait.timeout),
            };
            note = settle(&osb, awaited, world, terminal).await?.description;
            "gone"
        }
        Reply::Accepted(_) => "leaving",
    };
    let report =
        json!({"instance": id, "namespace": namespace, "state": state, "description": note});
    let text = args
        .output
        .render(&report, |_| match (state, note.as_str()) {
            ("gone", "") => format!("instance {id} is gone\n"),
            ("gone", note) => format!("instance {id} is gone: {note}\n"),
            _ => format!("instance {id} is being removed\n"),
        });
    terminal.out.write_all(text.as_bytes())?;
    Ok(terminal.out.flush()?)
}

#[cfg(test)]
mod tests;
