//! `heddle update`: another plan, other parameters or another version for an instance, as a platform would ask for it.

use std::time::Duration;

use serde_json::json;

use super::osb::{Awaited, InstanceArgs, ParameterArgs, WaitArgs, choice_of, fetch, settle};
use crate::client::Remote;
use crate::client::osb::{Change, Osb, Reply, choose, version_of};
use crate::failure::Failure;
use crate::output::ReportFormat;
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
    wait: WaitArgs,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    instance: InstanceArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.instance.client).await?;
    update(&args, &remote, world, terminal).await
}

async fn update(
    args: &Args,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let namespace = args.instance.namespace(remote)?;
    let osb = Osb::of_namespace(remote, &namespace);
    let change = change(args, &osb, &namespace, remote).await?;
    let id = args.id.as_str();
    let state = match osb.update(id, &change).await? {
        Reply::Done(_) => "updated",
        Reply::Accepted(operation) if args.wait.wait => {
            let awaited = Awaited {
                id,
                binding: None,
                operation: operation.as_deref(),
                limit: Duration::from_secs(args.wait.timeout),
            };
            settle(&osb, awaited, world, terminal).await?;
            "updated"
        }
        Reply::Accepted(_) => "accepted",
    };
    let report = json!({"instance": id, "namespace": namespace, "state": state});
    let text = args.output.render(&report, |_| match state {
        "updated" => format!("instance {id} is as asked\n"),
        _ => format!(
            "the change of instance {id} is accepted; `heddle explain instance {id} -n {namespace}` says how far it is\n"
        ),
    });
    terminal.out.write_all(text.as_bytes())?;
    Ok(terminal.out.flush()?)
}

/// What is asked for, by ids. The catalog is looked at only when a name has to become one.
async fn change(
    args: &Args,
    osb: &Osb<'_>,
    namespace: &str,
    remote: &Remote,
) -> anyhow::Result<Change> {
    let parameters = args.parameters.given()?;
    if args.plan.is_none() && args.version.is_none() && parameters.is_none() {
        let text = "nothing to change: name a --plan, a --param or a --version";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let before = choice_of(&fetch(&args.id, namespace, remote).await?)?;
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
