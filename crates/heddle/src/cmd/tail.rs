//! `heddle tail`: events as they come in, at most fifty a second, with how many there are.

use heddle_api::search::StreamedEvents;

use super::events::{lines, row};
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle tail                              everything, until Ctrl-C
  heddle tail type:order.* 'data.total>100'
  heddle tail --count 3 -o jsonl           the next three, for machines

The query is that of `heddle events`. What is left out of a busy stream is counted.";

/// Show events as they come in
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What to look for; nothing shows everything
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: TailFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum TailFormat {
    /// For people
    #[default]
    Table,
    /// An event per line, for machines
    Jsonl,
}

pub(super) async fn run(args: Args, _world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let mut tail = Ledger::of(&remote).tail(&args.query.join(" ")).await?;
    let mut shown = 0;
    while let Some(line) = tail.next().await? {
        match line {
            StreamedEvents::Item { item } => {
                let text = match args.output {
                    TailFormat::Table => format!("{}\n", row(&item).join("  ").trim_end()),
                    TailFormat::Jsonl => lines(std::slice::from_ref(&item))?,
                };
                terminal.print(&text)?;
                shown += 1;
                if args.count == Some(shown) {
                    return Ok(());
                }
            }
            StreamedEvents::Rate { rate } if rate.matched > rate.shown => {
                terminal.note(&format!("{} of {}/s", rate.shown, rate.matched));
            }
            StreamedEvents::Rate { .. } | StreamedEvents::Progress { .. } => {}
            StreamedEvents::End(end) => {
                let text = end.error.unwrap_or_else(|| "the server ended".to_owned());
                return Err(Failure::Rejected(text).into());
            }
        }
    }
    Err(Failure::Unreachable(
        "the server ended the stream; run this again when it is back".to_owned(),
    )
    .into())
}
