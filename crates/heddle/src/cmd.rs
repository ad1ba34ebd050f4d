//! The command line: one module per command, and what all of them share.

mod alerts;
mod apply;
mod audit;
mod backup;
mod bind;
mod bundle;
mod catalog;
mod completions;
mod config;
mod crds;
mod dead_letters;
mod delays;
mod delete;
mod demo;
mod deprovision;
mod doctor;
mod events;
mod explain;
mod export;
mod get;
mod health;
mod inventory;
mod logs;
mod on_path;
mod operations;
mod osb;
mod osb_check;
mod provision;
mod publish;
mod registry;
mod repair;
mod restore;
mod serve;
mod smoke;
mod tail;
#[cfg(test)]
mod testing;
mod token;
mod top;
mod topology;
mod trace;
mod trigger;
mod types;
mod ui;
mod unbind;
mod update;
mod version;

use anyhow::Context as _;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::client::Remote;
use crate::failure::EXIT_CODES;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle demo                           a shop with events to look at, gone with Ctrl-C
  heddle serve                          start here; state goes to ./heddle-data
  export KUBECONFIG=$PWD/heddle-data/admin.kubeconfig
  heddle apply -f examples/             declare what should exist
  heddle get applications               see what became of it
  heddle get channels -A -w             and watch it change
  heddle provision order-events-4ad9b -n team-a --wait
  heddle publish shop --type order.created --data '{\"order\": 17}'
  heddle trace ID                       where the event went, and why
  heddle delete application shop        take it away again

kubectl works too, with the same KUBECONFIG.";

/// An Open Service Broker with a durable CloudEvents mesh, in one binary.
#[derive(Debug, Parser)]
#[command(name = "heddle", version, max_term_width = 110, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Args>),
    Demo(demo::Args),
    Apply(apply::Args),
    Get(get::Args),
    Delete(delete::Args),
    Catalog(catalog::Args),
    Provision(provision::Args),
    Update(update::Args),
    Deprovision(deprovision::Args),
    Bind(bind::Args),
    Unbind(unbind::Args),
    Logs(logs::Args),
    Inventory(inventory::Args),
    #[command(subcommand)]
    Registry(registry::Command),
    #[command(subcommand)]
    Bundle(bundle::Command),
    Publish(Box<publish::Args>),
    Trace(trace::Args),
    Events(events::Args),
    Tail(tail::Args),
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    #[command(subcommand)]
    Explain(explain::Command),
    #[command(subcommand)]
    Trigger(trigger::Command),
    Types(types::Args),
    Delays(delays::Args),
    Health(health::Args),
    Topology(topology::Args),
    Smoke(smoke::Args),
    Top(top::Args),
    Ui(ui::Args),
    #[command(subcommand)]
    Token(token::Command),
    Audit(audit::Args),
    #[command(subcommand)]
    Export(export::Command),
    Alerts(alerts::Args),
    Doctor(doctor::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    #[command(subcommand)]
    Repair(repair::Command),
    OsbCheck(osb_check::Args),
    Config(config::Args),
    Crds(crds::Args),
    Version(version::Args),
    Completions(completions::Args),
}

/// Reads the command line and does what it asks. A wrong command line ends the process here, with
/// clap's message and exit code 2.
pub(crate) fn run(terminal: &mut Terminal) -> anyhow::Result<()> {
    let mut command = Cli::command();
    command.build();
    plain_usage(&mut command);
    let matches = command.get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let world = World::real();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(Box::pin(dispatch(cli.command, &matches, &world, terminal)))
}

/// Says how each command is used whatever was given: otherwise the usage behind an error has every flag in it that a variable
/// of the environment gave, as if it were needed.
fn plain_usage(command: &mut clap::Command) {
    for inner in command.get_subcommands_mut() {
        plain_usage(inner);
        let usage = inner.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").to_owned();
        *inner = std::mem::take(inner).override_usage(usage);
    }
}

async fn dispatch(
    command: Command,
    matches: &ArgMatches,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    match command {
        Command::Serve(args) => {
            Box::pin(serve::run(*args, innermost(matches), world, terminal)).await
        }
        Command::Demo(args) => Box::pin(demo::run(args, world, terminal)).await,
        Command::Apply(args) => apply::run(args, world, terminal).await,
        Command::Get(args) => get::run(args, world, terminal).await,
        Command::Delete(args) => delete::run(args, world, terminal).await,
        Command::Catalog(args) => catalog::run(args, world, terminal).await,
        Command::Provision(args) => provision::run(args, world, terminal).await,
        Command::Update(args) => update::run(args, world, terminal).await,
        Command::Deprovision(args) => deprovision::run(args, world, terminal).await,
        Command::Bind(args) => bind::run(args, world, terminal).await,
        Command::Unbind(args) => unbind::run(args, world, terminal).await,
        Command::Logs(args) => logs::run(args, world, terminal).await,
        Command::Inventory(args) => inventory::run(args, world, terminal).await,
        Command::Registry(command) => Box::pin(command.run(world, terminal)).await,
        Command::Bundle(command) => command.run(world, terminal).await,
        Command::Publish(args) => Box::pin(publish::run(*args, world, terminal)).await,
        Command::Trace(args) => trace::run(args, world, terminal).await,
        Command::Events(args) => events::run(args, world, terminal).await,
        Command::Tail(args) => tail::run(args, world, terminal).await,
        Command::DeadLetters(command) => command.run(world, terminal).await,
        Command::Explain(command) => command.run(world, terminal).await,
        Command::Trigger(command) => command.run(world, terminal).await,
        Command::Types(args) => types::run(args, terminal).await,
        Command::Delays(args) => delays::run(args, terminal).await,
        Command::Health(args) => health::run(args, world, terminal).await,
        Command::Smoke(args) => smoke::run(args, world, terminal).await,
        Command::Export(command) => command.run(terminal).await,
        Command::Topology(args) => topology::run(args, terminal).await,
        Command::Top(args) => top::run(args, world, terminal).await,
        Command::Token(command) => command.run(world, terminal).await,
        Command::Audit(args) => audit::run(args, world, terminal).await,
        Command::Ui(args) => ui::run(args, terminal).await,
        Command::Alerts(args) => alerts::run(args, terminal).await,
        Command::Doctor(args) => doctor::run(args, world, terminal).await,
        Command::Backup(args) => Box::pin(backup::run(args, world, terminal)).await,
        Command::Restore(args) => Box::pin(restore::run(args, world, terminal)).await,
        Command::Repair(command) => command.run(world, terminal),
        Command::OsbCheck(args) => Box::pin(osb_check::run(args, world, terminal)).await,
        Command::Config(args) => config::run(args, innermost(matches), terminal),
        Command::Crds(args) => crds::run(&args, terminal),
        Command::Version(args) => version::run(args, world, terminal).await,
        Command::Completions(args) => completions::run(&args, Cli::command(), terminal),
    }
}

/// The matches of the command that was asked for, which know where each value came from.
fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

/// What a command works with once it is connected.
#[derive(Debug)]
struct CommandContext<'a> {
    remote: &'a Remote,
    world: &'a World,
    terminal: &'a mut Terminal,
}

impl<'a> CommandContext<'a> {
    fn new(remote: &'a Remote, world: &'a World, terminal: &'a mut Terminal) -> Self {
        Self {
            remote,
            world,
            terminal,
        }
    }
}

/// Which namespace a command is about.
#[derive(Clone, Debug, Default, clap::Args)]
struct NamespaceArgs {
    /// Namespace; the default is the one of the kubeconfig's context
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespaceArgs {
    /// `None` means all of them.
    fn chosen<'a>(&'a self, default: &'a str) -> Result<Option<&'a str>, crate::failure::Failure> {
        if let Some(namespace) = &self.namespace {
            crate::client::target::check_name(namespace)?;
        }
        Ok((!self.all_namespaces).then(|| self.namespace.as_deref().unwrap_or(default)))
    }
}

/// Which objects of a resource a command is about.
#[derive(Clone, Debug, Default, clap::Args)]
struct SelectorArgs {
    /// Only objects with these labels, for example `team=shop,tier!=test`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    /// Only objects with these fields, for example `metadata.name=shop`
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
}

#[cfg(test)]
mod tests;
