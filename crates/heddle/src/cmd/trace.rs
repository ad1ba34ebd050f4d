//! `heddle trace`: where an event is, and what each consumer made of it.
//!
//! The server knows every retained event, without sampling; this asks and shows (`render.rs`).
//! `--follow` asks again until the event has ended everywhere, telling each step as it happens.

mod render;

use std::collections::HashSet;
use std::time::Duration;

use heddle_api::ledger::{Trace, TracedEvent};
use heddle_rt::net::percent_encoded;

pub(super) use self::render::text as render;
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::cmd::{CommandContext, ui};
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const POLL_FIRST: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(1);
/// Whoever waits longer than this for an event to appear is told so.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// The summary of an event that has ended everywhere.
const DONE: &str = "done";

const EXAMPLES: &str = "\
Examples:
  heddle trace order-17                      every event with this id, and its way
  heddle trace order-17 --source /shop       of this source only
  heddle trace order-17 --follow             until it has ended everywhere
  heddle trace order-17 --link               where its page is
  heddle trace order-17 -o json | jq '.events[].verdicts[] | {consumer, state}'

A consumer says `filtered` with the term of the filter that did not hold, `waiting` with what it
waits for, and `deadLettered` with the last error; `heddle dead-letters` takes it from there.";

/// Show where an event is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The id of the event
    id: String,

    /// The source of the event, when several use the id
    #[arg(long, value_name = "URI")]
    source: Option<String>,

    /// Go on until the event has ended everywhere; waits for it when it is not there yet
    #[arg(short, long)]
    follow: bool,

    /// Give up following after so many seconds; 0 follows for ever
    #[arg(long, default_value_t = 0, value_name = "SECONDS", requires = "follow")]
    timeout: u64,

    /// Print the address of its page, and nothing else
    #[arg(long, conflicts_with_all = ["output", "follow"])]
    link: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    show(&args, CommandContext::new(&remote, world, terminal)).await
}

async fn show(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let wanted = Wanted {
        id: &args.id,
        source: args.source.as_deref(),
    };
    let trace = if args.follow {
        let limit = (args.timeout > 0).then(|| Duration::from_secs(args.timeout));
        follow(wanted, limit, ctx.remote, ctx.world, ctx.terminal).await?
    } else {
        Ledger::of(ctx.remote)
            .trace(wanted.id, wanted.source)
            .await?
    };
    if trace.events.is_empty() {
        return Err(wanted.unknown(&trace).into());
    }
    if args.link {
        let link = ui::page_address(ctx.remote, &wanted.page());
        return Ok(ctx.terminal.say(&link)?);
    }
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    let text = args
        .output
        .render(&trace, |trace| render(trace, now, colour));
    Ok(ctx.terminal.print(&text)?)
}

/// Which event is meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) id: &'a str,
    pub(super) source: Option<&'a str>,
}

impl Wanted<'_> {
    /// Its page, below `/ui/`.
    fn page(self) -> String {
        let source = self.source.map(percent_encoded);
        let source = source.map(|source| format!("&source={source}"));
        let id = percent_encoded(self.id);
        format!("trace?id={id}{}", source.unwrap_or_default())
    }

    /// Denies the event, unless it may be among what is lost.
    fn unknown(self, trace: &Trace) -> Failure {
        let from = self
            .source
            .map_or_else(String::new, |source| format!(" from {source}"));
        let mut text = format!("no retained event has the id {}{from}; ", self.id);
        let refused = trace.refused.first().map(render::refused);
        match (refused, trace.losses.is_empty()) {
            (Some(refused), _) => text.push_str(&refused),
            (None, true) => {
                text.push_str("it was refused long ago, never sent, or retention has let it go");
            }
            (None, false) => text.push_str(&trace.losses.join("; ")),
        }
        Failure::NotFound(harmless(&text))
    }
}

/// Asks until the event has ended everywhere, and tells what happens meanwhile.
pub(super) async fn follow(
    wanted: Wanted<'_>,
    limit: Option<Duration>,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<Trace> {
    let started = world.clock.monotonic();
    let (mut told, mut pause, mut noted) = (HashSet::new(), POLL_FIRST, false);
    // What is not there yet can only come behind what was looked through.
    let mut from = 0;
    loop {
        let ledger = Ledger::of(remote);
        let trace = ledger.trace_from(wanted.id, wanted.source, from).await?;
        if wanted.source.is_none() {
            from = match trace.events.first() {
                None => trace.next.unwrap_or(from),
                Some(oldest) => oldest.offset,
            };
        }
        let mut news = false;
        for step in render::steps(&trace) {
            if told.insert(step.clone()) {
                terminal.note(&step);
                news = true;
            }
        }
        if !trace.events.is_empty() && trace.events.iter().all(ended) {
            return Ok(trace);
        }
        let waited = world.clock.monotonic().saturating_sub(started);
        if limit.is_some_and(|limit| waited >= limit) {
            return Err(overdue(wanted, &trace).into());
        }
        if trace.events.is_empty()
            && waited >= PROGRESS_AFTER
            && !std::mem::replace(&mut noted, true)
        {
            terminal.note(&format!(
                "waiting for an event with the id {}",
                harmless(wanted.id)
            ));
        }
        pause = if news {
            POLL_FIRST
        } else {
            (pause * 2).min(POLL_MAX)
        };
        world.clock.sleep(pause).await;
    }
}

fn ended(event: &TracedEvent) -> bool {
    event.summary == DONE
}

fn overdue(wanted: Wanted<'_>, trace: &Trace) -> Failure {
    match trace.events.iter().find(|event| !ended(event)) {
        Some(event) => Failure::TimedOut(harmless(&format!(
            "event {} has not ended: {}",
            event.id, event.summary
        ))),
        None => Failure::TimedOut(wanted.unknown(trace).to_string()),
    }
}

#[cfg(test)]
mod tests;
