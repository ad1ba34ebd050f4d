//! `heddle bind`: ask for credentials of an instance, and show them.

use std::time::Duration;

use serde_json::{Value, json};

use super::osb::{Awaited, InstanceArgs, ParameterArgs, choice_of, fetch, settle};
use crate::client::Remote;
use crate::client::osb::{Osb, Reply};
use crate::cmd::CommandContext;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle bind crm-4tq9w -n team-a                     new credentials, shown once they exist
  heddle bind crm-4tq9w -n team-a --id web            under an id of your own; again shows the same
  heddle bind crm-4tq9w -n team-a -o json | jq -r .credentials.GATEWAY_URL

Take them back with `heddle unbind INSTANCE BINDING`.";

/// Get credentials for an instance
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Id of the instance
    instance_id: String,

    /// Id of the binding; the default is made from the instance's
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    parameters: ParameterArgs,

    /// Give up waiting after so many seconds; the work goes on
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    instance: InstanceArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.instance.client).await?;
    bind(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn bind(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let parameters = args.parameters.value()?;
    let (instance, namespace) = (&args.instance_id, args.instance.namespace(ctx.remote)?);
    let object = fetch(instance, &namespace, ctx.remote).await?;
    let choice = choice_of(&object)?;
    let osb = Osb::of_instance(ctx.remote, &object, &namespace);
    let id = args.id.clone();
    let id = id.unwrap_or_else(|| format!("{instance}-{}", ctx.world.chance.suffix(5)));
    let mut binding = match osb.bind(instance, &id, &choice, &parameters).await? {
        Reply::Done(binding) => binding,
        Reply::Accepted(operation) => {
            let awaited = Awaited {
                id: instance,
                binding: Some(&id),
                operation: operation.as_deref(),
                limit: Duration::from_secs(args.timeout),
            };
            settle(&osb, awaited, ctx.world, ctx.terminal).await?;
            osb.binding(instance, &id).await?
        }
    };
    binding["binding"] = json!(id);
    let text = args.output.render(&binding, |binding| text(&id, binding));
    Ok(ctx.terminal.print(&text)?)
}

fn text(id: &str, binding: &Value) -> String {
    let mut text = format!("binding {id}\n");
    for (name, value) in binding["credentials"].as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("  {} {}\n", harmless(name), harmless(&value)));
    }
    text
}

#[cfg(test)]
mod tests;
