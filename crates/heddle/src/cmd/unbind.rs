//! `heddle unbind`: take credentials back.

use std::time::Duration;

use super::osb::{Awaited, InstanceArgs, choice_of, fetch, settle};
use crate::client::Remote;
use crate::client::osb::{Osb, Reply};
use crate::cmd::CommandContext;
use crate::terminal::Terminal;
use crate::wire::World;

/// How long removing credentials may take before the command gives up watching.
const PATIENCE: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  heddle get servicebindings -n team-a      which there are
  heddle unbind crm-4tq9w web -n team-a     the credentials stop working";

/// Take credentials of an instance back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    instance_id: String,

    /// Id of the binding
    binding_id: String,

    #[command(flatten)]
    instance: InstanceArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.instance.client).await?;
    unbind(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn unbind(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let (instance, binding) = (&args.instance_id, &args.binding_id);
    let namespace = args.instance.namespace(ctx.remote)?;
    let object = fetch(instance, &namespace, ctx.remote).await?;
    let choice = choice_of(&object)?;
    let osb = Osb::of_instance(ctx.remote, &object, &namespace);
    if let Reply::Accepted(operation) = osb.unbind(instance, binding, &choice).await? {
        let awaited = Awaited {
            id: instance,
            binding: Some(binding),
            operation: operation.as_deref(),
            limit: PATIENCE,
        };
        settle(&osb, awaited, ctx.world, ctx.terminal).await?;
    }
    Ok(ctx.terminal.say(&format!("binding {binding} is gone"))?)
}
