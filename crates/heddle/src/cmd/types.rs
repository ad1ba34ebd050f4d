//! `heddle types`: which types of events there are, who sends them, and who wants them.

#[cfg(test)]
mod tests;

use heddle_api::types::{SeenType, SeenTypes};

use crate::client::ledger::Ledger;
use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, count, harmless};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle types                        among the newest 10,000 events
  heddle types -n team-a              of those that reach a namespace
  heddle types --last 100000 -o json  with a schema of their data, for who may read it";

/// Types of events that were seen, and who wants them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only events that reach this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// How many of the newest events to look at
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    last: u64,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    if let Some(namespace) = &args.namespace {
        check_name(namespace)?;
    }
    let remote = Remote::connect(&args.client).await?;
    let types = Ledger::of(&remote)
        .types(args.last, args.namespace.as_deref())
        .await?;
    let colour = terminal.colour_out;
    let text = args.output.render(&types, |types| table(types, colour));
    Ok(terminal.print(&text)?)
}

fn table(types: &SeenTypes, colour: bool) -> String {
    if types.items.is_empty() {
        return "no event was seen\n".to_owned();
    }
    let headers = [
        "TYPE",
        "SOURCE",
        "ENTRY",
        "SEEN",
        "PER HOUR",
        "LAST",
        "SAMPLE",
        "WANTED BY",
    ];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: types.items.iter().map(row).collect(),
    };
    let mut text = table.render(&table.widths(&[]), true, colour);
    let examined = count(types.examined, "event");
    text.push_str(&format!("\namong the newest {examined}"));
    if let Some(place) = types.looked_back_to {
        text.push_str(&format!(", back to place {place}"));
    }
    if types.left_out > 0 {
        let left_out = count(types.left_out, "type");
        text.push_str(&format!("; {left_out} or more left out"));
    }
    text.push('\n');
    text
}

fn row(seen: &SeenType) -> Vec<String> {
    let wanted = seen.consumers.len() as u64 + seen.more_consumers;
    let wanted = match (wanted, seen.consumers.first()) {
        (0, _) => "nobody".to_owned(),
        (1, Some(only)) => harmless(only),
        (wanted, _) => count(wanted, "consumer"),
    };
    vec![
        harmless(&seen.type_),
        harmless(&seen.source),
        harmless(&seen.entry),
        seen.count.to_string(),
        seen.rate_per_s
            .map_or_else(String::new, |rate| format!("{:.1}", rate * 3600.0)),
        format!("{:.0}", seen.last_seen),
        seen.sample.to_string(),
        wanted,
    ]
}
