//! `heddle-bench health`: what it costs to know how well the mesh is, and how soon a fault is known.
//!
//! Four questions. *Cost*: a heddle with heartbeats and one without, with the same Applications and nothing else to do, in the
//! same minute; what the first uses more is what heartbeats cost. *List*: the health of all Applications, asked for again and
//! again. *Detection*: faults that can be made from outside, one after the other, until the verdict names them. *Mesh*: events as
//! fast as they go, with heartbeats and without, by turns.

mod cost;
mod detection;
mod list;
mod stage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use super::mesh;
use super::report::{Report, Row};
use super::session::{Measuring, Session, chosen};
use heddle::terminal::Terminal;
use heddle::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle-bench health --quick                a first impression, with 100 applications at most
  heddle-bench health                        everything, about ten minutes
  heddle-bench health --only cost list       two questions only";

/// Measure what health costs and how soon a fault is known
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Shorter runs and fewer applications
    #[arg(long)]
    quick: bool,

    /// Only these questions
    #[arg(long, value_enum, num_args = 1.., value_name = "NAME")]
    only: Vec<Question>,

    /// How many applications there are, each number in turn [default: 10 100 1000, quick 10 100]
    #[arg(long, num_args = 1.., value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    applications: Vec<u32>,

    /// For how long heartbeats are watched [default: 60, quick 15]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,

    #[command(flatten)]
    pub(super) session: Session,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Question {
    /// Processor time and log of heartbeats
    Cost,
    /// The health of all applications over HTTP
    List,
    /// From a fault to the verdict that names it
    Detection,
    /// Events with heartbeats and without
    Mesh,
}

/// Where everything is measured and written down.
#[derive(Debug)]
struct HealthBench<'a> {
    world: &'a World,
    terminal: &'a mut Terminal,
    dir: PathBuf,
    /// In growing order.
    applications: Vec<u32>,
    window: Duration,
    report: Report,
}

impl HealthBench<'_> {
    fn row(&mut self, row: Row) {
        self.terminal.note(&row.shown());
        self.report.rows.push(row);
    }
}

pub(super) async fn measure(args: Args, bench: Measuring<'_>) -> anyhow::Result<Report> {
    let (usual, seconds): (&[u32], u32) = if args.quick {
        (&[10, 100], 15)
    } else {
        (&[10, 100, 1000], 60)
    };
    let mut applications = args.applications;
    if applications.is_empty() {
        applications = usual.to_vec();
    }
    applications.sort_unstable();
    applications.dedup();
    let mut health = HealthBench {
        world: bench.world,
        terminal: bench.terminal,
        dir: bench.dir.to_path_buf(),
        applications,
        window: Duration::from_secs(args.seconds.unwrap_or(seconds).into()),
        report: Report::default(),
    };
    for question in chosen(&args.only) {
        let name = format!("{question:?}").to_lowercase();
        health.terminal.note(&format!("measuring {name}"));
        let measured = match question {
            Question::Cost => Box::pin(cost::run(&mut health)).await,
            Question::List => Box::pin(list::run(&mut health)).await,
            Question::Detection => Box::pin(detection::run(&mut health)).await,
            Question::Mesh => Box::pin(with_and_without(&mut health, args.quick)).await,
        };
        measured.with_context(|| format!("cannot measure {name}"))?;
    }
    Ok(health.report)
}

/// What `heddle-bench mesh` knows how to measure.
async fn with_and_without(health: &mut HealthBench<'_>, quick: bool) -> anyhow::Result<()> {
    let bench = Measuring {
        dir: &health.dir,
        world: health.world,
        terminal: health.terminal,
    };
    let measured = mesh::measure_heartbeats(quick, bench).await?;
    health.report.rows.extend(measured.rows);
    health.report.samples.extend(measured.samples);
    Ok(())
}
