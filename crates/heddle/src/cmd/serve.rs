//! `heddle serve`: run the server until it is told to stop.

use anyhow::Context as _;
use clap::ArgMatches;
use heddle_rt::shutdown::{End, Interrupts};
use heddle_rt::telemetry;

use super::on_path;
use crate::config::{Config, ConfigArgs, LogFormat};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::{self, World};

const EXAMPLES: &str = "\
Examples:
  heddle serve                               state in ./heddle-data, on 127.0.0.1:4333
  heddle serve --data-dir /var/lib/heddle --log info,heddle_store=debug
  heddle serve --listen 127.0.0.1:0          any free port; see endpoints.json
  heddle serve --config heddle.yaml --print-config
                                             what would be used, and who set it

When ready, the data directory holds endpoints.json (where), admin.kubeconfig (for
kubectl and heddle) and osb-credentials.json. The first SIGINT or SIGTERM finishes
what is under way, a second one ends at once.";

/// Run the server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArgs,

    /// Show the configuration that results from file, environment and flags, and exit
    #[arg(long)]
    print_config: bool,
}

pub(super) async fn run(
    args: Args,
    matches: &ArgMatches,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let config = Config::load(args.config, |id| matches.value_source(id))?;
    if args.print_config {
        return Ok(terminal.print(&config.print())?);
    }
    let format = match config.log_format {
        LogFormat::Auto => telemetry::Format::Auto,
        LogFormat::Human => telemetry::Format::Human,
        LogFormat::Json => telemetry::Format::Json,
    };
    telemetry::init(&config.log_filter, format)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    // Listened to from the start: a signal during recovery must not kill half-way.
    let mut interrupts = Interrupts::from_signals().context("cannot listen for signals")?;
    let running = tokio::select! {
        running = Box::pin(wire::start(&config, world)) => running?,
        () = interrupts.next() => return Ok(()),
    };
    greet(&running.published, terminal)?;
    match running.until_ended(&mut interrupts).await? {
        End::Clean => Ok(()),
        end => anyhow::bail!("stopped without finishing: {end:?}"),
    }
}

fn greet(published: &crate::identity::Published, terminal: &mut Terminal) -> std::io::Result<()> {
    let colour = terminal.colour_out;
    let address = paint(colour, Tone::Strong, &published.control);
    let kubeconfig = published.kubeconfig.display();
    terminal.say(&format!("heddle is ready at {address}\n"))?;
    let path = on_path::assignment();
    terminal.say(&format!("  export {path}KUBECONFIG={kubeconfig}"))?;
    terminal.say("  heddle get applications        # kubectl works as well\n")
}
