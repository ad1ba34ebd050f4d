//! `heddle delays`: how long events took to be delivered, over time.
//!
//! The server works it out from its record; this puts each row into a line, with a bar for each piece of the time.

#[cfg(test)]
mod tests;

use heddle_api::delays::{DelayMap, DelayMeasure, DelayRow, DelayRows, level};

use crate::client::ledger::{DelaysAsked, Ledger};
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, harmless};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle delays                               of each trigger, within the last hour
  heddle delays --by type --since 1d          of each type of event, within a day
  heddle delays --by application --of p50     half of the deliveries took no longer
  heddle delays type:order.* data.total>100   of events that are found by a query, as heddle events takes it
  heddle delays consumer:trigger/team-a/orders -o json

A delay is the time from the acceptance of an event until it was delivered, attempts that failed and all. What waits counts
with the time it has waited so far, so its row says \u{2265}. The higher the bar, the longer it took: below 3 ms, 10 ms, 30 ms,
100 ms, 300 ms, 1 s, 10 s, or more.";

/// Bars of one line, at most.
const BARS_MAX: usize = 40;
const BARS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// How long events took to be delivered, over time
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Which events, as `heddle events` takes it; nothing means all
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// What has a row
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    by: DelayRowsArg,

    /// From when on, such as 15m, 2h, 3d or 2026-05-01T12:00:00Z
    #[arg(long, default_value = "1h", value_name = "TIME")]
    since: String,

    /// Until when; the default is now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Which delay stands for many: the one that half of them do not exceed, the one that 95 of 100 do not, or the longest
    #[arg(long, value_enum, default_value_t, value_name = "SHARE")]
    of: DelayMeasureArg,

    /// Pieces that the time is cut into
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=240))]
    columns: u32,

    /// How many events to look at, about; of each piece the newest
    #[arg(long, default_value_t = 12_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=240_000))]
    events: u64,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum DelayRowsArg {
    #[default]
    Trigger,
    Application,
    Type,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum DelayMeasureArg {
    P50,
    #[default]
    P95,
    Max,
}

impl From<DelayRowsArg> for DelayRows {
    fn from(by: DelayRowsArg) -> Self {
        match by {
            DelayRowsArg::Trigger => Self::Trigger,
            DelayRowsArg::Application => Self::Application,
            DelayRowsArg::Type => Self::Type,
        }
    }
}

impl From<DelayMeasureArg> for DelayMeasure {
    fn from(of: DelayMeasureArg) -> Self {
        match of {
            DelayMeasureArg::P50 => Self::P50,
            DelayMeasureArg::P95 => Self::P95,
            DelayMeasureArg::Max => Self::Max,
        }
    }
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let asked = DelaysAsked {
        by: args.by.into(),
        query: args.query.join(" "),
        since: args.since,
        until: args.until,
        columns: args.columns,
        events: args.events,
    };
    let map = Ledger::of(&remote).delays(&asked).await?;
    let colour = terminal.colour_out;
    let measure = args.of.into();
    let text = args.output.render(&map, |map| text(map, measure, colour));
    Ok(terminal.print(&text)?)
}

fn text(map: &DelayMap, measure: DelayMeasure, colour: bool) -> String {
    let mut text = format!("{:.0} to {:.0}\n", map.since, map.until);
    for line in map.in_words() {
        text.push_str(&format!("  {line}\n"));
    }
    for (what, rows) in [(map.by.name(), &map.rows), ("heartbeat", &map.heartbeats)] {
        if rows.is_empty() {
            continue;
        }
        let headers = [
            &*what.to_uppercase(),
            "OVER TIME",
            measure.name(),
            "MAX",
            "DELIVERED",
            "WAIT",
            "NOT DELIVERED",
        ];
        let table = Table {
            headers: headers.map(str::to_uppercase).to_vec(),
            rows: rows
                .iter()
                .map(|row| cells(row, map.columns.len(), measure))
                .collect(),
        };
        text.push('\n');
        text.push_str(&table.render(&table.widths(&[]), true, colour));
    }
    if map.rows.is_empty() {
        text.push_str("\nnothing was to be delivered in that time\n");
    }
    text
}

fn cells(row: &DelayRow, columns: usize, measure: DelayMeasure) -> Vec<String> {
    let delays = &row.delays;
    vec![
        harmless(&row.name),
        bars(row, columns, measure),
        delays.in_words(measure),
        delays.in_words(DelayMeasure::Max),
        delays.delivered.to_string(),
        delays.waiting.to_string(),
        delays.undelivered.to_string(),
    ]
}

/// A bar for each piece of the time, the slowest of several where there is no room for each; a dot where nothing was to be
/// delivered.
fn bars(row: &DelayRow, columns: usize, measure: DelayMeasure) -> String {
    let count = columns.clamp(1, BARS_MAX);
    let mut slowest = vec![None; count];
    for cell in &row.cells {
        let at = cell.column as usize * count / columns.max(1);
        let found = cell.delays.measured(measure).map(level);
        if let Some(bar) = slowest.get_mut(at) {
            *bar = found.max(*bar);
        }
    }
    let drawn = slowest.into_iter();
    drawn
        .map(|level| level.map_or('\u{b7}', |level| BARS[level.min(BARS.len() - 1)]))
        .collect()
}
