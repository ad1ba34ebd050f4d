//! `heddle demo`: a whole heddle to look at, gone when you have seen enough.
//!
//! ```text
//!   a temporary directory ─> server ─> shop.yaml applied ─> events, one a second
//!                                        trigger orders  ─> a subscriber that prints what arrives
//!                                        trigger refunds ─> a subscriber that fails until it is mended
//! ```
//! Everything is the real thing: the server is the one `heddle serve` runs, the subscribers are
//! HTTP servers in this process (`subscribers.rs`), and `guide.rs` says what to look at. `--once`
//! checks that the way is whole and ends.

mod guide;
mod subscribers;

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use heddle_api::ledger::{EventState, Trace};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{Subscription, Trigger};
use heddle_rt::shutdown::Interrupts;
use heddle_rt::{Tasks, net, telemetry};
use kube::Api;
use serde_json::json;

use self::guide::Guide;
use self::subscribers::{Arrival, Subscribers};
use super::apply::{self, Manner};
use super::on_path;
use super::publish::{Draft, EventDoor};
use super::trace::{self, Wanted};
use super::ui;
use crate::client::events::EventsArgs;
use crate::client::{ClientArgs, Remote, ledger};
use crate::config::Config;
use crate::failure::{Failure, exit_code};
use crate::manifest;
use crate::output::{harmless, span};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::{self, Running, World};

const MANIFEST: &str = include_str!("demo/shop.yaml");
const NAMESPACE: &str = "team-a";
const TRIGGERS: [&str; 2] = ["orders", "refunds"];
const SUBSCRIPTION: &str = "shop-team-a";

const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// Every so many orders one is cancelled.
const CANCELLED_EVERY: u64 = 3;
/// A failsafe only: each of these takes about a second.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  heddle demo                                until Ctrl-C; says what to look at
  heddle demo --once                         three events, their ways, and the end";

/// Run a server with something to look at, in a directory that is removed afterwards
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Publish a few events, wait until each has ended everywhere, show their ways and end
    #[arg(long)]
    once: bool,

    /// Log level or filter of the server
    #[arg(
        long,
        env = "HEDDLE_LOG",
        default_value = "warn",
        value_name = "FILTER"
    )]
    log: String,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    telemetry::init(&args.log, telemetry::Format::Auto)?;
    let mut signals = Interrupts::from_signals().context("cannot listen for signals")?;
    let dir = std::env::temp_dir().join(format!("heddle-demo-{}", world.chance.suffix(6)));
    let shown = Box::pin(in_directory(&dir, args.once, world, &mut signals, terminal)).await;
    if dir.exists() {
        std::fs::remove_dir_all(&dir)
            .with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    shown
}

async fn in_directory(
    dir: &Path,
    once: bool,
    world: &World,
    signals: &mut Interrupts,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let config = config(dir, terminal).await;
    let running = tokio::select! {
        running = Box::pin(wire::start(&config, world)) => running?,
        () = signals.next() => return Ok(()),
    };
    let subscribers = Tasks::new("demo");
    let shown = with_server(running, dir, once, &subscribers, world, signals, terminal).await;
    subscribers.cancel();
    subscribers.join().await;
    shown
}

/// Shows everything while the server runs, then ends the server in its own order.
async fn with_server(
    running: Running,
    dir: &Path,
    once: bool,
    tasks: &Tasks,
    world: &World,
    signals: &mut Interrupts,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let client = ClientArgs {
        kubeconfig: Some(running.published.kubeconfig.clone().into()),
        context: None,
        data_dir: dir.to_path_buf(),
    };
    let (stop, mut told_to_stop) = Interrupts::manual();
    let mut server = pin!(running.until_ended(&mut told_to_stop));
    let shown = tokio::select! {
        ended = &mut server => return ended.map(|_| ()).context("the server ended by itself"),
        shown = Box::pin(show(&client, once, tasks, world, terminal)) => shown,
        () = signals.next() => Ok(()),
    };
    if !once {
        terminal.note("\nstopping; the directory goes away");
    }
    let told = "the server listens until it has ended";
    stop.send(()).await.expect(told);
    let ended = tokio::select! {
        ended = &mut server => ended,
        () = signals.next() => {
            stop.send(()).await.expect(told);
            server.await
        }
    };
    shown?;
    ended.map(|_| ())
}

/// The usual ports where they are free, any others where not.
async fn config(dir: &Path, terminal: &mut Terminal) -> Config {
    let mut config = Config::default();
    config.data_dir = dir.to_path_buf();
    config.listen = usable(config.listen, terminal).await;
    config.events = usable(config.events, terminal).await;
    config
}

async fn usable(address: SocketAddr, terminal: &mut Terminal) -> SocketAddr {
    if net::bind(address).await.is_ok() {
        return address;
    }
    terminal.note(&format!("{address} is taken; another port is used"));
    SocketAddr::new(address.ip(), 0)
}

async fn show(
    client: &ClientArgs,
    once: bool,
    tasks: &Tasks,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let remote = Remote::connect(client).await?;
    let events = EventsArgs::default().connect(client).await?;
    let subscribers = Subscribers::start(tasks, world).await?;
    let documents = manifest::parse("demo", &MANIFEST.replace("SUBSCRIBERS", &subscribers.url))?;
    apply::all(
        &documents,
        remote.clone(),
        Manner::default(),
        world,
        terminal,
    )
    .await?;
    let mut stage = Stage {
        door: EventDoor {
            remote: events,
            path: "/shop/events".to_owned(),
        },
        remote,
        subscribers,
        world,
    };
    stage.until_ready(terminal).await?;
    if once {
        return stage.once(terminal).await;
    }
    let guide = Guide {
        path: &on_path::assignment(),
        data_dir: &client.data_dir,
        events: stage.door.remote.url(),
        subscribers: &stage.subscribers.url,
    };
    terminal.say(&guide.text(terminal.colour_out))?;
    let link = ui::link(&stage.remote).await?;
    terminal.say(&format!(
        "The page, for a minute from now (`heddle ui` makes another link):\n  {link}\n"
    ))?;
    stage.for_ever(terminal).await
}

/// The server with everything applied.
struct Stage<'a> {
    remote: Remote,
    door: EventDoor,
    subscribers: Subscribers,
    world: &'a World,
}

impl Stage<'_> {
    /// Returns when every event from now on will be sent.
    async fn until_ready(&self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let started = self.world.clock.monotonic();
        let mut noted = false;
        loop {
            let Some(missing) = self.unready().await? else {
                return Ok(());
            };
            let waited = self.world.clock.monotonic().saturating_sub(started);
            if waited >= PATIENCE {
                let text = format!("{missing} is not ready after {}", span(waited));
                return Err(Failure::TimedOut(text).into());
            }
            if waited >= PROGRESS_AFTER && !std::mem::replace(&mut noted, true) {
                terminal.note(&format!("waiting for {missing}"));
            }
            self.world.clock.sleep(POLL).await;
        }
    }

    /// The first object that is not ready yet.
    async fn unready(&self) -> anyhow::Result<Option<String>> {
        let subscriptions: Api<Subscription> =
            Api::namespaced(self.remote.client(), INTEGRATION_NAMESPACE);
        let subscription = subscriptions.get(SUBSCRIPTION).await?;
        if !(subscription.status).is_some_and(|status| status.conditions.is_ready()) {
            return Ok(Some(format!("subscription {SUBSCRIPTION}")));
        }
        let triggers: Api<Trigger> = Api::namespaced(self.remote.client(), NAMESPACE);
        for name in TRIGGERS {
            let trigger = triggers.get(name).await?;
            if !(trigger.status).is_some_and(|status| status.conditions.is_ready()) {
                return Ok(Some(format!("trigger {name}")));
            }
        }
        Ok(None)
    }

    /// Three events, followed until each has ended everywhere.
    async fn once(&mut self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let mut ways = Trace::default();
        for number in 1..=CANCELLED_EVERY {
            let id = self.publish(number).await?;
            let wanted = Wanted {
                id: &id,
                source: None,
            };
            let way =
                trace::follow(wanted, Some(PATIENCE), &self.remote, self.world, terminal).await?;
            check(&way, number)?;
            ways.events.extend(way.events);
        }
        let created = self.subscribers.arrived("/orders");
        ensure!(
            created >= CANCELLED_EVERY - 1,
            "the subscriber of trigger orders saw {created} events instead of {}",
            CANCELLED_EVERY - 1
        );
        let (now, colour) = (self.world.clock.now(), terminal.colour_out);
        Ok(terminal.say(trace::render(&ways, now, colour).trim_end())?)
    }

    /// One event a second, and every arrival in a line.
    async fn for_ever(&mut self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let mut ticks = self.world.clock.interval(PUBLISH_EVERY);
        let mut number = 0;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    number += 1;
                    match self.publish(number).await {
                        Ok(id) => terminal.say(&format!("published {id}, {}", type_of(number)))?,
                        // A full disk or a restart of the listener is part of the show.
                        Err(error) if exit_code(&error) != 2 => terminal.complain(&error),
                        Err(error) => return Err(error),
                    }
                }
                arrival = self.subscribers.next() => {
                    let line = arrival_text(&arrival, terminal.colour_out);
                    terminal.say(&line)?;
                }
            }
        }
    }

    /// Publishes the order with this number; its id.
    async fn publish(&self, number: u64) -> anyhow::Result<String> {
        let draft = Draft {
            id: format!("demo-{number}"),
            source: "shop".to_owned(),
            type_: type_of(number).to_owned(),
            optional: vec![("subject".to_owned(), format!("orders/{number}"))],
            content_type: None,
            data: Some(Bytes::from(json!({"order": number}).to_string())),
            structured: false,
        };
        let answer = self.door.post(&draft.message(None)?).await?;
        if !answer.code.is_success() {
            return Err(ledger::refused(&format!("event {}", draft.id), &answer).into());
        }
        Ok(draft.id)
    }
}

fn type_of(number: u64) -> &'static str {
    if number.is_multiple_of(CANCELLED_EVERY) {
        "order.cancelled"
    } else {
        "order.created"
    }
}

fn arrival_text(arrival: &Arrival, colour: bool) -> String {
    let tone = if arrival.answer < 300 {
        Tone::Good
    } else {
        Tone::Bad
    };
    let answer = paint(colour, tone, &arrival.answer.to_string());
    let (id, type_) = (harmless(&arrival.id), harmless(&arrival.type_));
    format!(
        "  {id} arrived at {}, {type_}; answered {answer}",
        arrival.path
    )
}

/// Each order ends where its type says: delivered to the one, at rest for the other.
fn check(way: &Trace, number: u64) -> anyhow::Result<()> {
    let (orders, refunds) = match type_of(number) {
        "order.created" => (EventState::Delivered, EventState::Filtered),
        _ => (EventState::Filtered, EventState::DeadLettered),
    };
    for (trigger, expected) in TRIGGERS.into_iter().zip([orders, refunds]) {
        let consumer = format!("trigger/{NAMESPACE}/{trigger}");
        let verdicts = way.events.iter().flat_map(|event| &event.verdicts);
        let found = verdicts
            .filter(|verdict| verdict.consumer == consumer)
            .map(|verdict| verdict.state)
            .next_back();
        ensure!(
            found == Some(expected),
            "event demo-{number} should be {expected:?} for {consumer}, but is {found:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
