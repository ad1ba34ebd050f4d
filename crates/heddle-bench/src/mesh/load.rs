//! `heddle-bench load`: the load generator, a process of its own so that its cost is not the server's.
//!
//! Keep-alive connections on one thread, which is the cheapest way to keep many of them busy. Closed loop: each connection
//! sends its next request when the last was answered. With `--rate` requests are sent by schedule instead; one that could
//! not be sent in time because its connection still waited counts from when it should have been sent.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use heddle_rt::metrics::Latencies;
use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::template::{Shape, Template};
use super::wire::{self, Wire};
use heddle::terminal::Terminal;
use heddle::wire::World;

/// How long to leave a server alone that says it has too much to do.
const PRESSURE_PAUSE: Duration = Duration::from_millis(10);

/// Sends events as fast as they are answered, or at a rate
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Args {
    /// Where to send to
    pub(super) address: SocketAddr,

    /// The path of the requests
    #[arg(long, default_value = "/")]
    pub(super) path: String,

    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) connections: u16,

    /// How long to measure
    #[arg(long, default_value_t = 1.0)]
    pub(super) seconds: f64,

    /// How long to send before measuring
    #[arg(long, default_value_t = 0.0)]
    pub(super) warm_up: f64,

    /// End after so many accepted events instead
    #[arg(long)]
    pub(super) count: Option<u64>,

    /// Events per second in all, instead of as many as possible
    #[arg(long)]
    pub(super) rate: Option<f64>,

    /// Events in each request; more than one travel as a JSON batch
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) batch: u16,

    #[arg(long, default_value_t = 1024)]
    pub(super) data_bytes: usize,
}

impl Args {
    /// The plain closed loop, to be changed with struct update syntax.
    pub(super) fn to(address: SocketAddr, path: &str) -> Self {
        Self {
            address,
            path: path.to_owned(),
            connections: 64,
            seconds: 1.0,
            warm_up: 0.0,
            count: None,
            rate: None,
            batch: 1,
            data_bytes: 1024,
        }
    }

    /// When a connection sends its request number `turn`, counted from the start: connections take turns evenly.
    pub(super) fn due(&self, turn: u32, connection: u32) -> Option<Duration> {
        let requests = f64::from(turn) * f64::from(self.connections) + f64::from(connection);
        let events = requests * f64::from(self.batch);
        Some(Duration::from_secs_f64(events / self.rate?))
    }

    /// The command line that parses to this.
    pub(super) fn command_line(&self) -> Vec<String> {
        let mut line = vec!["load".to_owned(), self.address.to_string()];
        let mut flag = |name: &str, value: String| line.extend([format!("--{name}"), value]);
        flag("path", self.path.clone());
        flag("connections", self.connections.to_string());
        flag("seconds", self.seconds.to_string());
        flag("warm-up", self.warm_up.to_string());
        flag("batch", self.batch.to_string());
        flag("data-bytes", self.data_bytes.to_string());
        if let Some(count) = self.count {
            flag("count", count.to_string());
        }
        if let Some(rate) = self.rate {
            flag("rate", rate.to_string());
        }
        line
    }
}

/// What the generator saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Events accepted, warm-up included: what CPU time is divided by.
    pub(super) accepted: u64,
    /// Events refused because the server had too much to do.
    pub(super) refused: u64,
    /// Events accepted per second, warm-up excluded.
    pub(super) rate: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Outcome {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "accepted": self.accepted, "refused": self.refused, "rate": self.rate,
            "p50Seconds": self.p50.as_secs_f64(), "p99Seconds": self.p99.as_secs_f64(),
        })
    }

    /// Reads what another process printed.
    pub(super) fn parse(line: &str) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_str(line)
            .with_context(|| format!("the load generator printed {line:?}"))?;
        let number = |name: &str| {
            let number = value[name].as_f64();
            number.with_context(|| format!("the load generator did not print {name}"))
        };
        let count = |name: &str| value[name].as_u64().unwrap_or_default();
        Ok(Self {
            accepted: count("accepted"),
            refused: count("refused"),
            rate: number("rate")?,
            p50: Duration::from_secs_f64(number("p50Seconds")?),
            p99: Duration::from_secs_f64(number("p99Seconds")?),
        })
    }
}

pub(in super::super) fn run(
    args: Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let outcome = super::on_one_thread(generate(args, world.clone()))?;
    writeln!(terminal.out, "{}", outcome.to_json())?;
    Ok(terminal.out.flush()?)
}

/// Runs all connections to their end.
pub(super) async fn generate(args: Args, world: World) -> anyhow::Result<Outcome> {
    let run = world.chance.suffix(8);
    let mut wires = Vec::new();
    for _ in 0..args.connections {
        let wire = Wire::connect(args.address).await;
        wires.push(wire.with_context(|| format!("cannot connect to {}", args.address))?);
    }
    let time = world.clock.now().to_string();
    let start = world.clock.monotonic();
    let warm = start + Duration::from_secs_f64(args.warm_up);
    let shared = Arc::new(Shared {
        stamps: Stamps::new(&world.clock),
        clock: world.clock,
        start,
        warm,
        end: warm + Duration::from_secs_f64(args.seconds),
        claimed: AtomicU64::new(0),
        tally: Mutex::default(),
        args,
    });
    let tasks = Tasks::new("load");
    for (number, wire) in wires.into_iter().enumerate() {
        let shape = Shape {
            host: shared.args.address,
            path: &shared.args.path,
            id_prefix: &format!("{run}-{number}-"),
            time: &time,
            data_bytes: shared.args.data_bytes,
        };
        let template = match shared.args.batch {
            1 => Template::single(shape),
            events => Template::batch(shape, events.into()),
        };
        let connection = Connection {
            shared: shared.clone(),
            wire,
            template,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            // Connections begin at different types, for they advance at the same pace.
            next: number as u64 * 61,
            tally: Tally::default(),
        };
        tasks.spawn_finishing(&format!("connection-{number}"), OnError::Report, |_| {
            connection.run()
        });
    }
    tasks.join().await;
    if let Some(failure) = tasks.failures().into_iter().next() {
        bail!("{}", failure.reason);
    }
    Ok(shared.outcome())
}

/// What all connections see.
#[derive(Debug)]
struct Shared {
    args: Args,
    clock: Clock,
    stamps: Stamps,
    start: Duration,
    /// From here on latencies and rates count.
    warm: Duration,
    end: Duration,
    /// With a count: events that some connection is sending or has sent.
    claimed: AtomicU64,
    tally: Mutex<Tally>,
}

impl Shared {
    /// Whether `events` more are to be sent.
    fn claim(&self, events: u64, now: Duration) -> bool {
        match self.args.count {
            Some(count) => {
                let more = |claimed| (claimed < count).then_some(claimed + events);
                let claimed = &self.claimed;
                claimed
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                    .is_ok()
            }
            None => now < self.end,
        }
    }

    fn outcome(&self) -> Outcome {
        let tally = self.tally.lock();
        let measured = match self.args.count {
            Some(_) => self.clock.monotonic().saturating_sub(self.warm),
            None => self.end - self.warm,
        };
        let rate = tally.measured as f64 / measured.as_secs_f64().max(f64::MIN_POSITIVE);
        Outcome {
            accepted: tally.accepted,
            refused: tally.refused,
            rate,
            p50: tally.latencies.percentile(0.5),
            p99: tally.latencies.percentile(0.99),
        }
    }
}

/// What one connection counted.
#[derive(Debug, Default)]
struct Tally {
    accepted: u64,
    measured: u64,
    refused: u64,
    latencies: Latencies,
}

struct Connection {
    shared: Arc<Shared>,
    wire: Wire,
    template: Template,
    number: u32,
    /// The number of the next event; never used twice, also when an event was refused.
    next: u64,
    tally: Tally,
}

impl Connection {
    async fn run(mut self) -> anyhow::Result<()> {
        let mut turn = 0;
        loop {
            let due = self.due(turn).await;
            turn += 1;
            let now = self.shared.clock.monotonic();
            let events = self.template.events();
            if !self.shared.claim(events, now) {
                break;
            }
            // Late only if the connection was busy; a timer that fired late is not the server's fault.
            let since = due.filter(|due| due.missed).map_or(now, |due| due.at);
            let request = self.template.fill(self.next, self.shared.stamps.at(since));
            self.next += events;
            self.wire.write(request).await?;
            self.answer(since, events).await?;
        }
        let mut total = self.shared.tally.lock();
        total.accepted += self.tally.accepted;
        total.measured += self.tally.measured;
        total.refused += self.tally.refused;
        total.latencies.merge(&self.tally.latencies);
        Ok(())
    }

    /// Waits for this connection's place in the schedule, if there is one.
    async fn due(&self, turn: u32) -> Option<Due> {
        let at = self.shared.start + self.shared.args.due(turn, self.number)?;
        let wait = at.checked_sub(self.shared.clock.monotonic());
        if let Some(wait) = wait {
            self.shared.clock.sleep(wait).await;
        }
        let missed = wait.is_none();
        Some(Due { at, missed })
    }

    async fn answer(&mut self, since: Duration, events: u64) -> anyhow::Result<()> {
        let address = self.shared.args.address;
        let answer = self.wire.message().await?;
        let frame = answer.with_context(|| format!("{address} closed the connection"))?;
        let status = wire::status(self.wire.head(frame))?;
        match status {
            200..=299 => {
                let now = self.shared.clock.monotonic();
                self.tally.accepted += events;
                if now >= self.shared.warm
                    && (self.shared.args.count.is_some() || now <= self.shared.end)
                {
                    self.tally.measured += events;
                    self.tally.latencies.record(now.saturating_sub(since));
                }
            }
            429 | 503 | 507 => {
                self.tally.refused += events;
                self.shared.claimed.fetch_sub(events, Ordering::Relaxed);
                self.shared.clock.sleep(PRESSURE_PAUSE).await;
            }
            _ => {
                let body = String::from_utf8_lossy(self.wire.body(frame));
                bail!(
                    "{address}{} answered {status}: {body}",
                    self.shared.args.path
                );
            }
        }
        self.wire.consume(frame);
        Ok(())
    }
}

/// When a request should be sent, and whether that moment had already passed.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Duration,
    missed: bool,
}

/// Turns this process's own clock into one that another process on the machine can compare with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    /// What the wall clock showed when the monotonic one began.
    origin_nanos: u64,
}

impl Stamps {
    pub(super) fn new(clock: &Clock) -> Self {
        let wall = u64::try_from(clock.now().as_nanosecond()).unwrap_or_default();
        Self {
            origin_nanos: wall.saturating_sub(nanos(clock.monotonic())),
        }
    }

    /// Nanoseconds since 1970 at a moment of the monotonic clock.
    pub(super) fn at(self, monotonic: Duration) -> u64 {
        self.origin_nanos + nanos(monotonic)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
