//! `heddle deprovision`: ask for the end of an instance and of everything it consists of.

use serde_json::json;

use super::osb::{RequestArgs, choice_of, fetch};
use crate::client::Remote;
use crate::client::osb::Osb;
use crate::cmd::CommandContext;
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
    request: RequestArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.request.instance.client).await?;
    deprovision(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn deprovision(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let (id, namespace) = (&args.id, args.request.instance.namespace(ctx.remote)?);
    let object = fetch(id, &namespace, ctx.remote).await?;
    let choice = choice_of(&object)?;
    let osb = Osb::of_instance(ctx.remote, &object, &namespace);
    let reply = osb.deprovision(id, &choice).await?;
    let ended = args
        .request
        .ended(&osb, id, reply, ctx.world, ctx.terminal)
        .await?;
    let (state, words) = match ended.as_deref() {
        Some("") => ("gone", format!("instance {id} is gone\n")),
        Some(note) => ("gone", format!("instance {id} is gone: {note}\n")),
        None => ("leaving", format!("instance {id} is being removed\n")),
    };
    let note = ended.unwrap_or_default();
    let report =
        json!({"instance": id, "namespace": namespace, "state": state, "description": note});
    args.request.show(&report, words, ctx.terminal)
}

#[cfg(test)]
mod tests;
