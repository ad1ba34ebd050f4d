//! `heddle-bench registry`: what bundles cost before any of them has done anything.
//!
//! ```text
//!   sync      docker-registry on loopback <──reads── heddle                  for the first time, then with nothing new
//!   catalog   directories of images ──read──> heddle <── GET /v2/catalog     whole, compressed, and when it is known already
//!   sandbox   busybox `true` as an action, by turns with a plain start of it
//! ```
//! What a registry was asked for is counted by the registry itself, in its log. Servers are processes of their own, on
//! loopback and on a directory that goes with the run.

mod catalog;
mod docker_registry;
mod images;
mod readings;
mod sandbox;
mod sync;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use super::machine::Busy;
use super::programs::on_path;
use super::report::{Report, Row};
use super::session::{Measuring, Session, chosen};
use heddle::failure::Failure;
use heddle::terminal::Terminal;
use heddle::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle-bench registry                              all of it, some minutes
  heddle-bench registry --images 500 --only sync     one question, one size
  heddle-bench registry --docker-registry ./docker-registry --busybox ./busybox

What is missing is said, and its rows are left out; with --only that is an error.
On Debian, docker-registry and busybox-static are the packages to have.
Run nothing else beside it: the figures are of this machine.";

/// Measure the reading of registries, the catalog and the sandbox
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How many images a registry has; each number has a registry and a heddle of its own, the catalog has the largest
    #[arg(long, value_delimiter = ',', default_value = "500,5000", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    images: Vec<u32>,

    /// How often the sandbox is launched
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    launches: u32,

    /// Only these questions
    #[arg(long, value_enum, num_args = 1.., value_name = "NAME")]
    only: Vec<Question>,

    /// The registry to read from [default: the one on PATH, if there is one]
    #[arg(
        long,
        env = "DOCKER_REGISTRY",
        value_name = "FILE",
        hide_env_values = true
    )]
    docker_registry: Option<PathBuf>,

    /// The program to launch, linked statically [default: the one on PATH, if there is one]
    #[arg(long, env = "BUSYBOX", value_name = "FILE", hide_env_values = true)]
    busybox: Option<PathBuf>,

    #[command(flatten)]
    pub(super) session: Session,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Question {
    /// Reading a registry for the first time, and again when nothing is new
    Sync,
    /// Answering with the whole catalog
    Catalog,
    /// From the start of an action to its end
    Sandbox,
}

pub(super) async fn measure(args: Args, bench: Measuring<'_>) -> anyhow::Result<Report> {
    let registry = program(args.docker_registry, "docker-registry")?;
    let busybox = program(args.busybox, "busybox")?;
    let mut images = args.images;
    images.sort_unstable();
    images.dedup();
    let mut bench = Bench {
        world: bench.world,
        terminal: bench.terminal,
        // Shims and registries of directories start elsewhere.
        dir: std::path::absolute(bench.dir).context("cannot find the working directory")?,
        images,
        launches: args.launches,
        asked: !args.only.is_empty(),
        report: Report::default(),
    };
    for question in chosen(&args.only) {
        let name = format!("{question:?}").to_lowercase();
        bench.terminal.note(&format!("measuring {name}"));
        let measured = match question {
            Question::Sync => match &registry {
                Some(program) => Box::pin(sync::run(&mut bench, program)).await,
                None => bench.left_out(NO_REGISTRY),
            },
            Question::Catalog => Box::pin(catalog::run(&mut bench)).await,
            Question::Sandbox => match &busybox {
                Some(program) => Box::pin(sandbox::run(&mut bench, program)).await,
                None => bench.left_out(NO_BUSYBOX),
            },
        };
        measured.with_context(|| format!("cannot measure {name}"))?;
    }
    Ok(bench.report)
}

const NO_REGISTRY: &str = "there is no docker-registry, so no sync is measured; Debian's package docker-registry has it, \
     --docker-registry or DOCKER_REGISTRY names it";
const NO_BUSYBOX: &str = "there is no busybox, so no launch of a sandbox is measured; Debian's package busybox-static has \
     it, --busybox or BUSYBOX names it";

/// The program that was named, or the one that a shell would find.
fn program(named: Option<PathBuf>, name: &str) -> Result<Option<PathBuf>, Failure> {
    match named {
        Some(file) if !file.is_file() => {
            let text = format!("{name} is said to be {}, which is no file", file.display());
            Err(Failure::Usage(text))
        }
        Some(file) => Ok(Some(file)),
        None => Ok(on_path(name)),
    }
}

/// What all questions share.
#[derive(Debug)]
struct Bench<'a> {
    world: &'a World,
    terminal: &'a mut Terminal,
    /// Whole, not from here.
    dir: PathBuf,
    /// Different numbers, the largest last.
    images: Vec<u32>,
    launches: u32,
    /// Whether the questions were chosen, so that none may be left out.
    asked: bool,
    report: Report,
}

impl Bench<'_> {
    /// Something is missing: rows are, too, unless they were asked for.
    fn left_out(&mut self, why: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!self.asked, "{why}");
        self.terminal.note(why);
        Ok(())
    }

    /// Writes figures down, and says them at once: what follows may take long, or fail.
    fn rows(&mut self, rows: impl IntoIterator<Item = Row>, foreign_cores: f64) {
        for row in rows {
            self.terminal.note(&row.shown());
            self.report.rows.push(row.disturbed_by(foreign_cores));
        }
    }
}

/// What others used while something was measured.
#[derive(Debug)]
struct Neighbours {
    busy: Busy,
    started: Duration,
}

impl Neighbours {
    fn watch(world: &World) -> anyhow::Result<Self> {
        Ok(Self {
            busy: Busy::now()?,
            started: world.clock.monotonic(),
        })
    }

    fn cores(&self, world: &World) -> anyhow::Result<f64> {
        let elapsed = world.clock.monotonic().saturating_sub(self.started);
        Ok(Busy::now()?.foreign_cores_since(&self.busy, elapsed))
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
