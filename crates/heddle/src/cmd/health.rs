//! `heddle health`: how well events get where they should, and what is broken if they do not.

mod inventory;
mod render;
#[cfg(test)]
mod tests;

use heddle_api::health::stream::VERDICT;
use heddle_api::health::{ApplicationHealth, HealthStatus, NamespaceHealth};

use crate::client::ledger::Ledger;
use crate::client::stream::EventStream;
use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote};
use crate::failure::{Failure, exit_code};
use crate::output::ReportFormat;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle health                       the mesh, and every application, the worst first
  heddle health shop                  one application and the namespaces that use it
  heddle health shop -n team-a        one way, plane by plane
  heddle health -w                    again whenever something changes
  heddle health inventory             what is looked at, and what can go wrong
  heddle health -o json | jq .reason

Ends with 0 when what was asked about is healthy or degraded, and with 1 when it is unhealthy or nobody can tell.";

/// How well events get where they should, and what is broken if they do not
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Inner>,

    /// Application; without one the mesh as a whole
    #[arg(value_name = "APPLICATION")]
    application: Option<String>,

    /// One namespace of the application
    #[arg(short, long, value_name = "NAME", requires = "application")]
    namespace: Option<String>,

    /// Show it again whenever something changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Inner {
    Inventory(inventory::Args),
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    if let Some(Inner::Inventory(inventory)) = args.command {
        return inventory::run(inventory, terminal).await;
    }
    for name in [&args.application, &args.namespace].into_iter().flatten() {
        check_name(name)?;
    }
    let remote = Remote::connect(&args.client).await?;
    if args.watch {
        return watch(&args, &remote, world, terminal).await;
    }
    let (text, what, health) = look(&args, &remote, terminal.colour_out).await?;
    terminal.print(&text)?;
    conclude(&what, health)
}

/// Shows it at the beginning and after each batch of verdicts about it, if it says something else then.
async fn watch(
    args: &Args,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let scope = args.application.as_ref().map(|application| {
        let namespace = args
            .namespace
            .iter()
            .map(|namespace| format!("/{namespace}"));
        format!("application/{application}{}", namespace.collect::<String>())
    });
    // Asked before the stream is, so that a name that does not exist is told and not waited for.
    let mut shown = String::new();
    let mut stream = EventStream::of(remote, VERDICT, scope.as_deref(), world);
    loop {
        match look(args, remote, terminal.colour_out).await {
            Ok((text, ..)) if unaged(&text) != shown => {
                terminal.print(&text)?;
                shown = unaged(&text);
            }
            Ok(_) => {}
            // The server may have gone meanwhile, or knows nothing yet; the stream goes on when there is something to tell.
            Err(error) if !shown.is_empty() && matches!(exit_code(&error), 3 | 6) => {
                let text = format!("{error:#}");
                if text != shown {
                    terminal.note(&text);
                    shown = text;
                }
            }
            Err(error) => return Err(error),
        }
        stream.batch(world, terminal).await?;
    }
}

/// What is to be shown, what it is about, and how well that is.
async fn look(
    args: &Args,
    remote: &Remote,
    colour: bool,
) -> anyhow::Result<(String, String, HealthStatus)> {
    let ledger = Ledger::of(remote);
    match (&args.application, &args.namespace) {
        (Some(application), Some(namespace)) => {
            let health: NamespaceHealth = ledger.pair_health(application, namespace).await?;
            let what = format!("application {application} in {namespace}");
            let text = args
                .output
                .render(&health, |health| render::pair(application, health, colour));
            Ok((text, what, health.verdict.health))
        }
        (Some(application), None) => {
            let health: ApplicationHealth = ledger.application_health(application).await?;
            let text = args
                .output
                .render(&health, |health| render::application(health, colour));
            let what = format!("application {application}");
            Ok((text, what, health.eventing.verdict.health))
        }
        (None, _) => {
            let mesh = ledger.mesh_health().await?;
            let text = args
                .output
                .render(&mesh, |mesh| render::overview(mesh, colour));
            Ok((text, "the mesh".to_owned(), mesh.verdict.health))
        }
    }
}

/// The text without what moves on by itself: the ages of heartbeats.
fn unaged(text: &str) -> String {
    let still = |line: &&str| !line.trim_start().starts_with("heartbeat");
    text.lines().filter(still).collect::<Vec<_>>().join("\n")
}

fn conclude(what: &str, health: HealthStatus) -> anyhow::Result<()> {
    match health {
        HealthStatus::Healthy | HealthStatus::Degraded => Ok(()),
        HealthStatus::Unhealthy | HealthStatus::Unknown => {
            Err(Failure::Rejected(format!("{what} is {}", health.word())).into())
        }
    }
}
