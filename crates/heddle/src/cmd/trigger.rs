//! `heddle trigger`: what a trigger is told to do for now: keep its events, let them go, how fast, signed or not, and which ones
//! it wants.
//!
//! Each is one change of the object through the resource API, in the name of whoever asks; who that is, the server says. Keys
//! are made by the server.

mod sign;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context as _;
use heddle_api::Trigger;
use heddle_api::filter::text;
use heddle_api::pause::DeliveryPause;
use heddle_api::rate::{self, DeliveryRate};
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::CommandContext;
use super::token::time_to_live;
use crate::client::target::Qualified;
use crate::client::{ClientArgs, Remote, objects};
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle trigger pause team-a/orders --reason \"the pool is being mended\"
  heddle trigger pause team-a/orders --for 2h      and it goes on by itself
  heddle trigger resume team-a/orders
  heddle trigger rate team-a/orders 100/s          or 0.5/s, 30/min, none
  heddle trigger filter team-a/orders 'exact type = order.created'
  heddle trigger sign team-a/orders                and its subscriber can tell who sends

A paused trigger keeps its events, which are accepted as always; none is lost.";

/// Pause, resume, pace, filter and sign a trigger
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// Keep its events and send nothing
    Pause(PauseArgs),
    /// Send what was kept, and go on
    Resume(ResumeArgs),
    /// Send no more than so many events, evenly spaced; the others wait
    Rate(RateArgs),
    /// Ask for other events; what came before stays judged by the former filter
    Filter(FilterChangeArgs),
    /// Sign what is sent to its subscriber; the key is shown once
    Sign(sign::SignArgs),
}

/// Which trigger, and what is shown.
#[derive(Debug, clap::Args)]
struct TriggerTarget {
    /// The trigger
    #[arg(value_name = "NAMESPACE/NAME")]
    name: Qualified,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    target: TriggerTarget,

    /// Why, for whoever wonders
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Go on by itself at this time, in RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "for")]
    until: Option<Timestamp>,

    /// Go on by itself after so long, such as 30m, 12h or 2d
    #[arg(long, value_name = "TIME", value_parser = time_to_live)]
    r#for: Option<Duration>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    target: TriggerTarget,
}

#[derive(Debug, clap::Args)]
pub(super) struct RateArgs {
    #[command(flatten)]
    target: TriggerTarget,

    /// How many events per second (s), minute (min) or hour (h), such as 100/s or 30/min; none for no bound
    #[arg(value_name = "RATE", value_parser = wanted_rate)]
    rate: WantedRate,
}

/// A rate, or none.
#[derive(Clone, Copy, Debug)]
struct WantedRate(Option<DeliveryRate>);

fn wanted_rate(text: &str) -> Result<WantedRate, String> {
    match text {
        "none" => Ok(WantedRate(None)),
        text => DeliveryRate::parse(text)
            .map(|rate| WantedRate(Some(rate)))
            .ok_or_else(|| format!("wanted is {}, or none", rate::WANTED)),
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct FilterChangeArgs {
    #[command(flatten)]
    target: TriggerTarget,

    /// Filters, one on a line, such as `exact type = order.created`; nothing asks for every event
    #[arg(value_name = "FILTERS", allow_hyphen_values = true)]
    filters: String,
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.target().client).await?;
        self.act(CommandContext::new(&remote, world, terminal))
            .await
    }

    fn target(&self) -> &TriggerTarget {
        match self {
            Self::Pause(args) => &args.target,
            Self::Resume(args) => &args.target,
            Self::Rate(args) => &args.target,
            Self::Filter(args) => &args.target,
            Self::Sign(args) => args.target(),
        }
    }

    async fn act(self, context: CommandContext<'_>) -> anyhow::Result<()> {
        match self {
            Self::Pause(args) => pause(args, context).await,
            Self::Resume(args) => resume(args, context).await,
            Self::Rate(args) => rate(args, context).await,
            Self::Filter(args) => filter(args, context).await,
            Self::Sign(args) => args.run(context).await,
        }
    }
}

async fn pause(args: PauseArgs, context: CommandContext<'_>) -> anyhow::Result<()> {
    let now = context.world.clock.now();
    let after = args
        .r#for
        .map(|span| now.saturating_add(span))
        .transpose()?;
    let until = args.until.or(after);
    if until.is_some_and(|until| until <= now) {
        let text = "that time is over; name one that is to come, or leave --until out";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let pause = DeliveryPause {
        until,
        by: Some(who(context.remote).await?),
        reason: args.reason,
    };
    let changed = change(&args.target, &pause.patch(), context.remote).await?;
    let until = match pause.until {
        Some(until) => format!("until {until}"),
        None => "until `heddle trigger resume` ends it".to_owned(),
    };
    let text = format!(
        "trigger {} paused {until}; its events are kept\n",
        args.target.name
    );
    Ok(context
        .terminal
        .print(&args.target.output.render(&changed, |_| text))?)
}

async fn resume(args: ResumeArgs, context: CommandContext<'_>) -> anyhow::Result<()> {
    let end = DeliveryPause::end_patch();
    let changed = change(&args.target, &end, context.remote).await?;
    let text = format!("trigger {} resumed\n", args.target.name);
    Ok(context
        .terminal
        .print(&args.target.output.render(&changed, |_| text))?)
}

async fn rate(args: RateArgs, context: CommandContext<'_>) -> anyhow::Result<()> {
    let WantedRate(rate) = args.rate;
    let changed = change(&args.target, &DeliveryRate::patch(rate), context.remote).await?;
    let name = &args.target.name;
    let text = match rate {
        Some(rate) => format!(
            "trigger {name} is sent {rate} at most; `heddle explain trigger {name}` tells what that costs in delay\n"
        ),
        None => format!("trigger {name} is sent as many events as its subscriber takes\n"),
    };
    Ok(context
        .terminal
        .print(&args.target.output.render(&changed, |_| text))?)
}

async fn filter(args: FilterChangeArgs, context: CommandContext<'_>) -> anyhow::Result<()> {
    let filters = text::parse(&args.filters).map_err(|fault| {
        let (message, character) = (fault.message, fault.position + 1);
        Failure::Usage(format!(
            "the filters cannot be read at character {character}: {message}"
        ))
    })?;
    let patch = json!({"spec": {"filters": filters, "filter": null}});
    let changed = change(&args.target, &patch, context.remote).await?;
    let name = &args.target.name;
    let text = format!(
        "trigger {name} asks for {}; `heddle explain trigger {name}` tells from which place on\n",
        match filters.len() {
            0 => "every event".to_owned(),
            _ => harmless(&text::print(&filters).replace('\n', " and ")),
        }
    );
    Ok(context
        .terminal
        .print(&args.target.output.render(&changed, |_| text))?)
}

/// Changes the object, and gives what it is then.
async fn change(target: &TriggerTarget, patch: &Value, remote: &Remote) -> anyhow::Result<Value> {
    let Qualified { namespace, name } = &target.name;
    objects::merge::<Trigger>(remote, Some(namespace), name, patch).await
}

/// Who asks, as the server knows them.
async fn who(remote: &Remote) -> anyhow::Result<String> {
    let request = Request::get("/heddle/v1/session").body(Vec::new())?;
    let known = remote.send(request).await?.ok("who you are")?;
    let user = known["user"].as_str();
    user.map(str::to_owned)
        .context("the server does not say who you are")
}
