//! `heddle-bench mesh`: what an event costs, from the socket to the disk to the subscriber.
//!
//! ```text
//!   bench mesh ──starts──> serve (measured), noop and nats-server (compared with)
//!        │                     ^                │
//!        └──in turns──> load ──┘                └──> sink
//! ```
//! Every box is a process of its own; their CPU time and memory are what the kernel says. Goals are ratios between sides
//! that take turns in one run, so they hold on any machine; absolute figures are printed beside them.

mod lab;
pub(super) mod load;
pub(super) mod nats;
pub(super) mod noop;
mod processes;
pub(super) mod server;
pub(super) mod sink;
mod suite;
mod template;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use self::lab::Lab;
use super::programs::on_path;
use super::report::Report;
use super::session::{Measuring, Session, chosen};
// Under these names the modules below know what all benchmarks share.
use super::{applications, machine, programs, report, wire};
use heddle::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle-bench mesh --quick                  a first impression, some minutes
  heddle-bench mesh                          everything; needs a quiet machine and 20 GB of disk
  heddle-bench mesh --only ingest latency    two questions only
  heddle-bench mesh --nats ./nats-server     JetStream beside it";

/// Measure what an event costs, side by side with what it is compared to
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Shorter runs, fewer triggers, fewer waiting events
    #[arg(long)]
    quick: bool,

    /// Only these questions
    #[arg(long, value_enum, num_args = 1.., value_name = "NAME")]
    only: Vec<Question>,

    /// How long each run takes [default: 3, quick 1]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    seconds: Option<f64>,

    /// How often each side has its turn; the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    repeats: u8,

    /// How many events wait for a subscriber that is down [default: 10 million, quick 1 million]
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    queued: Option<u64>,

    /// The nats-server to compare with [default: the one on PATH, if there is one]
    #[arg(long, value_name = "FILE")]
    nats: Option<PathBuf>,

    #[command(flatten)]
    pub(super) session: Session,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Question {
    /// Durable ingest against a server that keeps nothing; batches
    Ingest,
    /// Ingest, matching and delivery together
    Path,
    /// The cost of triggers that do not match
    Triggers,
    /// End to end at a steady rate
    Latency,
    /// Healthy triggers alone, and beside six subscribers that misbehave
    Neighbours,
    /// At rest, after load, and with events that wait
    Memory,
    /// From a crash to accepting again
    Recovery,
    /// JetStream doing the same
    Jetstream,
    /// The full path with heartbeats and without
    Heartbeats,
}

/// The one question that is about health too.
pub(super) async fn measure_heartbeats(
    quick: bool,
    bench: Measuring<'_>,
) -> anyhow::Result<Report> {
    let mut lab = Lab {
        world: bench.world,
        terminal: bench.terminal,
        dir: bench.dir.to_path_buf(),
        seconds: if quick { 1.0 } else { 5.0 },
        repeats: if quick { 3 } else { 7 },
        quick,
        queued: 0,
        nats: None,
        report: Report::default(),
    };
    suite::heartbeats::run(&mut lab).await?;
    Ok(lab.report)
}

/// Publishes one event, which must be accepted.
pub(super) async fn publish_one(address: SocketAddr, path: &str) -> anyhow::Result<()> {
    let one = load::Args {
        count: Some(1),
        connections: 1,
        ..load::Args::to(address, path)
    };
    load::generate(one, World::real()).await.map(drop)
}

pub(super) async fn measure(args: Args, bench: Measuring<'_>) -> anyhow::Result<Report> {
    let (seconds, queued) = if args.quick {
        (1.0, 1_000_000)
    } else {
        (3.0, 10_000_000)
    };
    let mut lab = Lab {
        world: bench.world,
        terminal: bench.terminal,
        dir: bench.dir.to_path_buf(),
        seconds: args.seconds.unwrap_or(seconds),
        repeats: args.repeats.into(),
        quick: args.quick,
        queued: args.queued.unwrap_or(queued),
        nats: args.nats.or_else(|| on_path("nats-server")),
        report: Report::default(),
    };
    for question in chosen(&args.only) {
        let name = format!("{question:?}").to_lowercase();
        lab.terminal.note(&format!("measuring {name}"));
        let measured = match question {
            Question::Ingest => Box::pin(suite::ingest::run(&mut lab)).await,
            Question::Path => Box::pin(suite::path::run(&mut lab)).await,
            Question::Triggers => Box::pin(suite::triggers::run(&mut lab)).await,
            Question::Latency => Box::pin(suite::latency::run(&mut lab)).await,
            Question::Neighbours => Box::pin(suite::neighbours::run(&mut lab)).await,
            Question::Memory => Box::pin(suite::memory::run(&mut lab)).await,
            Question::Recovery => Box::pin(suite::recovery::run(&mut lab)).await,
            Question::Jetstream => Box::pin(suite::jetstream::run(&mut lab)).await,
            Question::Heartbeats => Box::pin(suite::heartbeats::run(&mut lab)).await,
        };
        measured.with_context(|| format!("cannot measure {name}"))?;
        // The next question starts with the room on the disk that this one had.
        if lab.world.vfs.exists(&lab.dir)? {
            std::fs::remove_dir_all(&lab.dir)
                .with_context(|| format!("cannot remove {}", lab.dir.display()))?;
        }
    }
    Ok(lab.report)
}

/// Runs a future on a runtime with one thread: the cheapest way to keep many connections busy, and the one that leaves
/// most of the machine to what is measured.
fn on_one_thread<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::task::block_in_place(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        runtime.block_on(future)
    })
}

fn positive(text: &str) -> anyhow::Result<f64> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 86_400.0 => Ok(seconds),
        _ => bail!("a number of seconds above zero is needed"),
    }
}
