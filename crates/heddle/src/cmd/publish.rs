//! `heddle publish`: send CloudEvents, one or very many.
//!
//! What is sent is what was asked for: nothing is checked here that the server checks, so that its
//! refusals can be seen. `message.rs` turns the command line into requests, `many.rs` sends them at
//! a rate, `figures.rs` sums up.

mod figures;
mod many;
mod message;

use anyhow::Context as _;
use heddle_rt::shutdown::Interrupts;
use http::Request;
use serde_json::json;

use self::many::Pace;
use self::message::{Content, Identity, Message};
use crate::client::events::EventsArgs;
use crate::client::target::{self, Qualified};
use crate::client::{ClientArgs, ClientResponse, Remote, ledger};
use crate::failure::Failure;
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle publish shop --type order.created --data '{\"order\": 17}'
                                             an event of the Application shop
  heddle publish shop --type order.created --id order-17 --subject 17 --extension tier=gold
  heddle publish --broker team-a/default --type ping
                                             straight to a broker; --channel likewise
  heddle publish shop --type photo --data-file cat.png --content-type image/png
  heddle publish shop --event order.json     a CloudEvent in JSON, or an array of them as a batch
  heddle publish shop --type order.created --events https://heddle.example:4334 --token \"$TOKEN\"
                                             from another machine, as the Application; see docs/operating/remote.md
  heddle publish shop --type load --count 10000 --rate 500 --concurrency 16
                                             steadily; then how many were accepted, and how fast

An accepted event is safe on the server's disk. `heddle trace ID` shows what became of it.";

/// Publish CloudEvents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The Application the event comes from
    #[arg(value_name = "APP", required_unless_present_any = ["broker", "channel"], conflicts_with_all = ["broker", "channel"])]
    application: Option<String>,

    /// Publish to a broker instead
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "channel")]
    broker: Option<Qualified>,

    /// Publish to a channel instead
    #[arg(long, value_name = "NAMESPACE/NAME")]
    channel: Option<Qualified>,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    content: message::EventArgs,

    #[command(flatten)]
    pace: many::PaceArgs,

    #[command(flatten)]
    events: EventsArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl Args {
    /// The path below the events listener.
    fn path(&self) -> Result<String, Failure> {
        match (&self.application, &self.broker, &self.channel) {
            (Some(application), ..) => {
                target::check_name(application)?;
                Ok(format!("/{application}/events"))
            }
            (None, Some(broker), _) => Ok(format!("/broker/{broker}")),
            (None, None, Some(channel)) => Ok(format!("/channel/{channel}")),
            (None, None, None) => Err(Failure::Usage(
                "name an Application, or a --broker or --channel".to_owned(),
            )),
        }
    }
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let content = args.content.content(world)?;
    let door = EventDoor {
        remote: args.events.connect(&args.client).await?,
        path: args.path()?,
    };
    match args.pace.pace() {
        None => one(&door, &content, args.output, terminal).await,
        Some(pace) => steady(&door, &content, pace, args.output, world, terminal).await,
    }
}

async fn one(
    door: &EventDoor,
    content: &Content,
    output: ReportFormat,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let message = content.message(None)?;
    let answer = door.post(&message).await?;
    if !answer.code.is_success() {
        return Err(ledger::refused(&message.shown(), &answer).into());
    }
    let report = json!({
        "status": answer.code.as_u16(),
        "events": message.identities.iter().map(Identity::to_json).collect::<Vec<_>>(),
    });
    let text = output.render(&report, |_| {
        let number = message.identities.len() as u64;
        match message.identities.as_slice() {
            [event] => format!("{} accepted\n", harmless(&event.id)),
            _ => format!("{} accepted\n", count(number, "event")),
        }
    });
    terminal.print(&text)?;
    if let ([event], ReportFormat::Table) = (message.identities.as_slice(), output) {
        terminal.note(&format!(
            "`heddle trace {}` shows what becomes of it",
            harmless(&event.id)
        ));
    }
    Ok(())
}

async fn steady(
    door: &EventDoor,
    content: &Content,
    pace: Pace,
    output: ReportFormat,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let mut interrupts = Interrupts::from_signals().context("cannot listen for signals")?;
    let figures = many::run(door, content, pace, world, &mut interrupts, terminal).await?;
    let text = output.render(&figures.to_json(), |_| figures.to_text());
    terminal.print(&text)?;
    figures
        .verdict()
        .map_or(Ok(()), |failure| Err(failure.into()))
}

/// One path of the events listener.
#[derive(Debug)]
pub(super) struct EventDoor {
    pub(super) remote: Remote,
    pub(super) path: String,
}

impl EventDoor {
    /// Sends a message and waits for the answer, whatever it is.
    pub(super) async fn post(&self, message: &Message) -> anyhow::Result<ClientResponse> {
        let mut request = Request::post(self.path.as_str()).body(message.body.clone())?;
        *request.headers_mut() = message.headers.clone();
        self.remote.send(request).await
    }
}

pub(super) use self::message::{Draft, pair};

#[cfg(test)]
mod tests;
