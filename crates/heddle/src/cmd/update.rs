//! `heddle update`: another plan, other parameters or another version for an instance, as a platform would ask for it.

use serde_json::Value;

use super::osb::{ParameterArgs, RequestArgs, choice_of, fetch};
use crate::client::Remote;
use crate::client::osb::{Change, Choice, Osb, choose, version_of};
use crate::cmd::CommandContext;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle update db -n team-a -p size=20 --wait    one parameter; the others stay as they are
  heddle update db -n team-a --plan large         another plan of the same offering
  heddle update db -n team-a --version latest     what the catalog offers now, where plans have versions
  heddle update db -n team-a -p size=null         back to what the plan has without it

What is not named stays. `heddle catalog -n NAMESPACE` shows plans and their parameters; which of these may be
changed is the plan's to say. With --wait it ends with 0 when it is done and 1 when it failed; an instance whose
update failed goes on as it was.";

/// The version that the catalog has.
const LATEST: &str = "latest";

/// Change an instance: its plan, its parameters or its version
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    id: String,

    /// Another plan of its offering
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,

    /// The version it should have; `latest` is what the catalog offers now
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    request: RequestArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.request.instance.client).await?;
    update(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn update(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let namespace = args.request.instance.namespace(ctx.remote)?;
    let parameters = args.parameters.given()?;
    if args.plan.is_none() && args.version.is_none() && parameters.is_none() {
        let text = "nothing to change: name a --plan, a --param or a --version";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let id = args.id.as_str();
    let object = fetch(id, &namespace, ctx.remote).await?;
    let osb = Osb::of_instance(ctx.remote, &object, &namespace);
    let change = change(args, &osb, choice_of(&object)?, parameters).await?;
    let reply = osb.update(id, &change).await?;
    let ended = args
        .request
        .ended(&osb, id, reply, ctx.world, ctx.terminal)
        .await?;
    let what = format!("the change of instance {id}");
    let done = ("updated", format!("instance {id} is as asked\n"));
    (args.request).show_instance((id, &namespace), ended, done, &what, ctx.terminal)
}

/// What is asked for, by ids. The catalog is looked at only when a name has to become one.
async fn change(
    args: &Args,
    osb: &Osb<'_>,
    before: Choice,
    parameters: Option<Value>,
) -> anyhow::Result<Change> {
    let latest = args.version.as_deref() == Some(LATEST);
    let catalog = match args.plan.is_some() || latest {
        true => osb.catalog().await?,
        false => Vec::new(),
    };
    let plan = match &args.plan {
        Some(plan) => {
            let words = format!("{}/{plan}", before.service_id);
            Some(choose(&catalog, &words)?.plan_id)
        }
        None => None,
    };
    let version = match &args.version {
        Some(_) if latest => {
            let plan = plan.as_ref().unwrap_or(&before.plan_id);
            let version = version_of(&catalog, plan);
            let missing = || {
                let text = "its plan has no version in the catalog, so there is no latest one";
                Failure::Rejected(format!("instance {}: {text}", args.id))
            };
            Some(version.ok_or_else(missing)?)
        }
        version => version.clone(),
    };
    Ok(Change {
        before,
        plan,
        parameters,
        version,
    })
}

#[cfg(test)]
mod tests;
