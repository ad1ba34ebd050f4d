//! `heddle events`: which events there are, by what they are, what is in them and what became of them.
//!
//! The query is the text of the find box; what it means is known to the server only. `heddle tail` (`tail.rs`) shows
//! events as they come in.

mod refused;
mod republish;
mod resend;

use std::time::Duration;

use anyhow::Context as _;
use heddle_api::search::{EventPage, FoundEvent, WholeEvent};
use serde_json::Value;

use crate::client::ledger::{BulkOf, EventsAsked, Ledger};
use crate::client::{ClientArgs, Remote};
use crate::cmd::CommandContext;
use crate::cmd::operations::{OperationsArgs, StopArgs};
use crate::output::{Table, harmless, json, moment};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle events                              the newest
  heddle events type:order.* since:1h        of a type, within the last hour
  heddle events 'data.total>100'             by what is in JSON data
  heddle events state:retrying,dead          by what became of them
  heddle events consumer:trigger/team-a/orders state:dead
  heddle events order-17                     by anything: an id, a place, a request id, a trace id, a text
  heddle events --refused                    what was refused lately, of whom and why
  heddle events show 4711                    one of them with its data
  heddle events republish 4711 --dry-run     who would want it, were it published again as a new event
  heddle events resend since:2h type:order.* --to trigger/team-a/orders
                                             send stored events to one trigger once more
  heddle events type:order.* -o cloudevents > orders.json
                                             to be published again

Fields: id type source subject entry place request trace cause consumer state since until ext.NAME data.PATH text cesql.
`*` stands for anything, quotes keep a text together, and -- before the query lets a term begin with `-`, which turns it round.";

/// How long a search may be silent.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// Events in one answer, at most.
const PAGE_MAX: u64 = 500;

/// Find events
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    list: FindEventsArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show one event with its attributes and its data
    Show(EventShowArgs),
    /// Publish one once more, as a new event that names the old one
    Republish(republish::RepublishArgs),
    /// Send stored events once more to one trigger, as they are
    Resend(resend::ResendArgs),
    /// List what is sent again
    Operations(OperationsArgs),
    /// Stop what is sent again
    Stop(StopArgs),
}

#[derive(Debug, clap::Args)]
struct FindEventsArgs {
    /// What to look for; nothing finds everything
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Only events that were accepted since, such as 15m, 2h, 3d or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Those that were refused lately, with who was refused what, where and why; with an id only those with that id
    #[arg(long, conflicts_with_all = ["since", "before"])]
    refused: bool,

    /// At most so many, the newest first
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// Only events before this place in the log: the `next` of an earlier answer
    #[arg(long, value_name = "PLACE")]
    before: Option<u64>,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: EventsFormat,

    #[command(flatten)]
    client: ClientArgs,
}

/// `-o` of what lists events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EventsFormat {
    /// For people
    #[default]
    Table,
    /// Everything about what was found, for machines
    Json,
    /// An event per line, as they are found
    Jsonl,
    /// The events themselves as a CloudEvents batch, to be published again
    Cloudevents,
}

#[derive(Debug, clap::Args)]
struct EventShowArgs {
    /// The place of the event in the log
    #[arg(value_name = "PLACE")]
    place: u64,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ShowFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ShowFormat {
    /// For people
    #[default]
    Table,
    /// Everything, for machines
    Json,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    match args.command {
        Some(Command::Show(args)) => {
            let remote = Remote::connect(&args.client).await?;
            show(&args, &remote, terminal).await
        }
        Some(Command::Republish(args)) => {
            let remote = Remote::connect(&args.client).await?;
            republish::run(&args, &remote, terminal).await
        }
        Some(Command::Resend(args)) => {
            let remote = Remote::connect(&args.client).await?;
            resend::run(&args, CommandContext::new(&remote, world, terminal)).await
        }
        Some(Command::Operations(args)) => args.run(BulkOf::Events, terminal).await,
        Some(Command::Stop(args)) => args.run(BulkOf::Events, terminal).await,
        None => {
            let remote = Remote::connect(&args.list.client).await?;
            list(&args.list, &remote, world, terminal).await
        }
    }
}

async fn list(
    args: &FindEventsArgs,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    if args.refused {
        return refused::list(args, remote, terminal).await;
    }
    let mut query = args.query.join(" ");
    if let Some(since) = &args.since {
        query.push_str(&format!(" since:{since}"));
    }
    let ledger = Ledger::of(remote);
    let mut asked = EventsAsked {
        query,
        limit: args.limit,
        before: args.before,
    };
    if args.output == EventsFormat::Cloudevents {
        return Ok(terminal.print(&ledger.events_batch(&asked).await?)?);
    }
    let begun = world.clock.monotonic();
    let mut whole = EventPage::default();
    loop {
        asked.limit = (args.limit - whole.items.len() as u64).min(PAGE_MAX);
        let page = ledger.events(&asked).await?;
        if args.output == EventsFormat::Jsonl {
            terminal.print(&lines(&page.items)?)?;
        }
        let to = if asked.before == args.before {
            page.looked_at.to
        } else {
            whole.looked_at.to
        };
        whole.items.extend(page.items);
        whole.direct.extend(page.direct);
        whole.looked_at = page.looked_at;
        whole.looked_at.to = to;
        whole.next = page.next;
        asked.before = page.next;
        if page.next.is_none() || whole.items.len() as u64 >= args.limit {
            break;
        }
        if world.clock.monotonic().saturating_sub(begun) >= PROGRESS_AFTER {
            let looked = whole.looked_at;
            let (seen, of) = (looked.to.saturating_sub(looked.from), looked.of);
            if looked.is_told() {
                terminal.note(&format!("looked at {seen} of {of} events"));
            }
        }
    }
    match args.output {
        EventsFormat::Json => terminal.print(&json(&serde_json::to_value(&whole)?))?,
        EventsFormat::Table => {
            let text = table(&whole.items, terminal.colour_out);
            terminal.print(&text)?;
            if let Some(next) = whole.next {
                terminal.note(&format!("there may be older ones: --before {next}"));
            }
        }
        EventsFormat::Jsonl | EventsFormat::Cloudevents => {}
    }
    Ok(())
}

pub(super) fn lines(events: &[FoundEvent]) -> anyhow::Result<String> {
    let mut text = String::new();
    for event in events {
        text.push_str(&serde_json::to_string(event)?);
        text.push('\n');
    }
    Ok(text)
}

fn table(events: &[FoundEvent], colour: bool) -> String {
    if events.is_empty() {
        return "no such event is retained\n".to_owned();
    }
    let headers = [
        "ACCEPTED", "PLACE", "TYPE", "ID", "SOURCE", "ENTRY", "STATES",
    ];
    let headers = headers.map(str::to_owned).to_vec();
    let rows = events.iter().map(row).collect();
    let table = Table { headers, rows };
    table.render(&table.widths(&[]), true, colour)
}

pub(super) fn row(event: &FoundEvent) -> Vec<String> {
    let states = event.states.iter();
    let states: Vec<String> = states
        .map(|(state, count)| format!("{state} {count}"))
        .collect();
    vec![
        moment(event.accepted_at),
        event.offset.to_string(),
        harmless(&event.type_),
        harmless(&event.id),
        harmless(&event.source),
        harmless(&event.entry),
        states.join(", "),
    ]
}

async fn show(
    args: &EventShowArgs,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let text = Ledger::of(remote).event(args.place).await?;
    if args.output == ShowFormat::Json {
        return Ok(terminal.print(&format!("{text}\n"))?);
    }
    let event: WholeEvent =
        serde_json::from_str(&text).context("the answer is not the JSON that was expected")?;
    Ok(terminal.print(&told(&event, &text))?)
}

fn told(event: &WholeEvent, whole: &str) -> String {
    let mut text = format!(
        "place       {}\naccepted    {}\nentry       {}\n",
        event.offset,
        moment(event.accepted_at),
        harmless(&event.entry)
    );
    let names = [("request", &event.request_id), ("trace", &event.trace_id)];
    for (name, value) in names {
        if let Some(value) = value {
            text.push_str(&format!("{name:<11} {}\n", harmless(value)));
        }
    }
    let attributes = event.event.as_object();
    for (name, value) in attributes.into_iter().flatten() {
        if name == "data" || name == "data_base64" {
            continue;
        }
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.push_str(&format!("{:<11} {}\n", harmless(name), harmless(&value)));
    }
    let bytes = event.data_bytes;
    match (event.data_withheld, bytes) {
        (true, _) => text.push_str(&format!(
            "data        {bytes} bytes, which you may not see\n"
        )),
        (false, 0) => {}
        (false, _) => {
            let hidden = match event.data_masked {
                true => "; parts of it are hidden from you",
                false => "",
            };
            text.push_str(&format!("data        {bytes} bytes{hidden}\n\n"));
            // As it stands in the answer: numbers are not rounded on their way to the screen.
            let data = raw_data(whole).unwrap_or_default();
            text.push_str(&harmless(data));
            text.push('\n');
        }
    }
    text
}

/// The data within the text of an answer; it is the last member of its last member.
fn raw_data(whole: &str) -> Option<&str> {
    let start = ["\"data\":", "\"data_base64\":"]
        .into_iter()
        .filter_map(|name| whole.find(name).map(|at| at + name.len()))
        .min()?;
    whole.get(start..whole.len().checked_sub(2)?)
}
