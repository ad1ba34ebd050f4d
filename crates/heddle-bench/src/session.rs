//! One run of a benchmark: a directory that goes whatever happens, an interrupt that is heard, and a report at the end.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_rt::shutdown::Interrupts;

use super::report::Report;
use heddle::output::{self, Format};
use heddle::terminal::Terminal;
use heddle::wire::World;

/// Where files go for the time of the run, and how its report is shown.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Session {
    /// Where files go for the time of the run; should be a real disk
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// `json` for machines
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// What a benchmark measures with.
#[derive(Debug)]
pub(super) struct Measuring<'a> {
    /// Of this run alone.
    pub(super) dir: &'a Path,
    pub(super) world: &'a World,
    pub(super) terminal: &'a mut Terminal,
}

/// The questions that were asked; without any, all that there are.
pub(super) fn chosen<Q: clap::ValueEnum>(only: &[Q]) -> &[Q] {
    match only {
        [] => Q::value_variants(),
        only => only,
    }
}

impl Session {
    /// Measures in a directory of its own, and shows what was found out.
    pub(super) async fn run<A>(
        self,
        args: A,
        measure: impl AsyncFnOnce(A, Measuring<'_>) -> anyhow::Result<Report>,
        world: &World,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        if cfg!(debug_assertions) {
            terminal.warn("this heddle was built without optimisation; its figures mean little");
        }
        let dir = self
            .dir
            .join(format!("heddle-bench-{}", world.chance.suffix(6)));
        // Without this an interrupt would leave the directory and its servers behind.
        let mut interrupts = Interrupts::from_signals().context("cannot listen for signals")?;
        let measuring = Measuring {
            dir: &dir,
            world,
            terminal,
        };
        let report = tokio::select! {
            report = Box::pin(measure(args, measuring)) => report,
            () = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
        };
        if world.vfs.exists(&dir)? {
            std::fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot remove {}", dir.display()))?;
        }
        let report = report?;
        let text = match self.output {
            Format::Json => output::json(&report.to_json()),
            Format::Yaml => output::yaml(&report.to_json()),
            Format::Table | Format::Wide | Format::Name => report.to_text(terminal.colour_out),
        };
        terminal.out.write_all(text.as_bytes())?;
        Ok(terminal.out.flush()?)
    }
}
