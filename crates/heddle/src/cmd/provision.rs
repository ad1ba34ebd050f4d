//! `heddle provision`: ask for an instance of an offering, as a platform would.

use super::osb::{ParameterArgs, RequestArgs, check_namespace};
use crate::client::Remote;
use crate::client::osb::{Osb, choose};
use crate::cmd::CommandContext;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle catalog -n team-a                                   what there is
  heddle provision order-events-4ad9b -n team-a --wait       and until its events flow
  heddle provision order-events-4ad9b -n team-a --id orders  under an id of your own
  heddle provision push-sqlite/default -n team-a -p name=x   a plan and a parameter

Without --wait the command ends when the request is recorded; the work goes on for ever until it
is done, and `heddle explain instance ID` says what it waits for. With --wait it ends with 0 when
the instance is ready, 1 when it failed, and 7 when the time is over.";

/// Provision an offering into a namespace
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What to provision: OFFERING, or OFFERING/PLAN where there are several plans
    offering: String,

    /// Id of the instance; the default is made from the offering's name. The same id again repeats the request
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    request: RequestArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.request.instance.client).await?;
    provision(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn provision(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let parameters = args.parameters.value()?;
    let namespace = args.request.instance.namespace(ctx.remote)?;
    let osb = Osb::of_namespace(ctx.remote, &namespace);
    let catalog = osb.catalog().await?;
    if catalog.is_empty() {
        check_namespace(&namespace, ctx.remote).await?;
    }
    let choice = choose(&catalog, &args.offering)?;
    let id = args.id.clone().unwrap_or_else(|| {
        let name = args.offering.split('/').next().unwrap_or_default();
        format!("{name}-{}", ctx.world.chance.suffix(5))
    });
    let reply = osb.provision(&id, &choice, &parameters).await?;
    let ended = args
        .request
        .ended(&osb, &id, reply, ctx.world, ctx.terminal)
        .await?;
    let (what, done) = (
        format!("instance {id}"),
        format!("instance {id} is ready\n"),
    );
    let place = (id.as_str(), namespace.as_str());
    (args.request).show_instance(place, ended, ("ready", done), &what, ctx.terminal)
}

#[cfg(test)]
mod tests;
