//! `heddle top`: who publishes and who receives how much right now, the most troubled first.
//!
//! The numbers are those of `/heddle/v1/stream`. On a terminal the picture is drawn again about once a second; elsewhere it is
//! printed once.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::health::stream::{ConsumerNumbers, PULSE, PulseEvent, SourceNumbers};

use crate::client::stream::EventStream;
use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, harmless, span};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle top                          live, until Ctrl-C
  heddle top -n team-a --rows 5       the five most troubled of one namespace
  heddle top --count 1                once, as it is when the output is no terminal
  heddle top -o json | jq '.n'

Rates are per second, over about the last second. OLDEST is how long the oldest event that has not ended has waited.";

/// The picture is drawn again at least this often, so that whoever counts pictures does not wait for something to happen.
const PERIOD: Duration = Duration::from_secs(1);

/// Events per second, backlogs and failures, the most troubled first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only triggers and subscriptions of one namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// At most so many lines of each table
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rows: u16,

    /// End after so many pictures; the default is no end on a terminal, and 1 elsewhere
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    if let Some(namespace) = &args.namespace {
        check_name(namespace)?;
    }
    let remote = Remote::connect(&args.client).await?;
    follow(&args, &remote, world, terminal).await
}

async fn follow(
    args: &Args,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let ends_after = args.count.or_else(|| (!terminal.redraws).then_some(1));
    let mut stream = EventStream::of(remote, PULSE, None, world);
    let mut picture = Picture::default();
    let mut events = stream.batch(world, terminal).await?;
    let mut shown = 0;
    loop {
        for event in events.iter().filter(|event| event.name == PULSE) {
            let pulse = serde_json::from_str(&event.data);
            picture.take(pulse.context("the server sent numbers that cannot be read")?);
        }
        let text = args.output.render(&picture.pulse(args), |_| {
            picture.text(args, terminal.colour_out)
        });
        terminal.redraw(&text)?;
        shown += 1;
        if ends_after == Some(shown) {
            return Ok(());
        }
        let waiting = stream.batch(world, terminal);
        events = match world.clock.timeout(PERIOD, waiting).await {
            Ok(batch) => batch?,
            Err(_) => Vec::new(),
        };
    }
}

/// What is known of whoever is busy.
#[derive(Debug, Default)]
struct Picture {
    last: PulseEvent,
    consumers: BTreeMap<String, ConsumerNumbers>,
    sources: BTreeMap<String, SourceNumbers>,
}

impl Picture {
    fn take(&mut self, pulse: PulseEvent) {
        if pulse.full {
            self.consumers.clear();
            self.sources.clear();
        }
        update(&mut self.consumers, &pulse.n);
        update(&mut self.sources, &pulse.sources);
        self.last = pulse;
    }

    /// Everything, in the shape in which it came.
    fn pulse(&self, args: &Args) -> PulseEvent {
        PulseEvent {
            full: true,
            n: (self.consumers(args).into_iter())
                .map(|(name, numbers)| (name.to_owned(), Some(numbers)))
                .collect(),
            sources: (self.sources.iter())
                .map(|(name, numbers)| (name.clone(), Some(*numbers)))
                .collect(),
            ..self.last.clone()
        }
    }

    /// Those of the namespace in question, the most troubled first: failures, then waiting, then traffic.
    fn consumers(&self, args: &Args) -> Vec<(&str, ConsumerNumbers)> {
        let within = |name: &str| {
            let namespace = name.split('/').nth(1);
            args.namespace.is_none() || namespace == args.namespace.as_deref()
        };
        let mut chosen: Vec<(&str, ConsumerNumbers)> = (self.consumers.iter())
            .filter(|(name, _)| within(name))
            .map(|(name, numbers)| (name.as_str(), *numbers))
            .collect();
        let trouble =
            |[matched, _, failed, _, oldest, _]: ConsumerNumbers| [failed, oldest, matched];
        chosen.sort_by(|(_, one), (_, other)| {
            let order = trouble(*other).into_iter().zip(trouble(*one));
            let order = order.map(|(other, one)| other.total_cmp(&one));
            order
                .reduce(std::cmp::Ordering::then)
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        chosen
    }

    fn text(&self, args: &Args, colour: bool) -> String {
        let rows_max = usize::from(args.rows);
        let consumers = self.consumers(args);
        let mut text = format!("{}\n\n", self.last.at);
        let rows = consumers.iter().take(rows_max).map(|(name, numbers)| {
            let [matched, delivered, failed, pending, oldest, in_flight] = *numbers;
            let oldest = Duration::try_from_secs_f64(oldest).unwrap_or_default();
            vec![
                harmless(name),
                rate(matched),
                rate(delivered),
                rate(failed),
                whole(pending),
                match pending > 0.0 {
                    true => span(oldest),
                    false => String::new(),
                },
                whole(in_flight),
            ]
        });
        let headers = [
            "CONSUMER",
            "MATCHED/S",
            "DELIVERED/S",
            "FAILED/S",
            "PENDING",
            "OLDEST",
            "IN FLIGHT",
        ];
        text.push_str(&section(
            &headers,
            rows.collect(),
            colour,
            "no event is on its way",
        ));
        text.push_str(&rest(consumers.len().saturating_sub(rows_max)));
        if args.namespace.is_none() {
            text.push('\n');
            let rows = self.sources.iter().take(rows_max).map(|(name, numbers)| {
                let [accepted, refused, failed, unmatched] = *numbers;
                let name = name.strip_prefix("application/").unwrap_or(name);
                vec![
                    harmless(name),
                    rate(accepted),
                    rate(refused),
                    rate(failed),
                    rate(unmatched),
                ]
            });
            let headers = [
                "APPLICATION",
                "ACCEPTED/S",
                "REFUSED/S",
                "FAILED/S",
                "UNMATCHED/S",
            ];
            text.push_str(&section(
                &headers,
                rows.collect(),
                colour,
                "nobody publishes",
            ));
            text.push_str(&rest(self.sources.len().saturating_sub(rows_max)));
        }
        if self.last.left_out > 0 {
            let left_out = self.last.left_out;
            text.push_str(&format!("the server left {left_out} less busy ones out\n"));
        }
        text
    }
}

fn update<T: Copy>(known: &mut BTreeMap<String, T>, news: &BTreeMap<String, Option<T>>) {
    for (name, numbers) in news {
        match numbers {
            Some(numbers) => known.insert(name.clone(), *numbers),
            None => known.remove(name),
        };
    }
}

fn section(headers: &[&str], rows: Vec<Vec<String>>, colour: bool, empty: &str) -> String {
    if rows.is_empty() {
        return format!("{empty}\n");
    }
    let headers = headers.iter().map(|&header| header.to_owned()).collect();
    let table = Table { headers, rows };
    table.render(&table.widths(&[]), true, colour)
}

fn rest(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        _ => format!("and {hidden} more; --rows shows them\n"),
    }
}

fn rate(number: f64) -> String {
    format!("{number:.1}")
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}
