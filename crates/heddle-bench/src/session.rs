//! One run of a benchmark: a directory that goes whatever happens, an interrupt that is heard, and a report at the end.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_rt::shutdown::Interrupts;

use super::report::Report;
use heddle::output::{self, Format};
use heddle::terminal::Terminal;
use heddle::wire::World;

/// Where files go for the time of the run, and how its report is shown.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) dir: PathBuf,
    pub(super) format: Format,
}

impl Session {
    /// Measures in a directory of its own, and shows what was found out.
    pub(super) async fn run(
        self,
        world: &World,
        terminal: &mut Terminal,
        measure: impl AsyncFnOnce(&Path, &mut Terminal) -> anyhow::Result<Report>,
    ) -> anyhow::Result<()> {
        if cfg!(debug_assertions) {
            terminal.warn("this heddle was built without optimisation; its figures mean little");
        }
        let dir = self
            .dir
            .join(format!("heddle-bench-{}", world.chance.suffix(6)));
        // Without this an interrupt would leave the directory and its servers behind.
        let mut interrupts = Interrupts::from_signals().context("cannot listen for signals")?;
        let report = tokio::select! {
            report = Box::pin(measure(&dir, terminal)) => report,
            () = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
        };
        if world.vfs.exists(&dir)? {
            std::fs::remove_dir_all(&dir)
                .with_context(|| format!("cannot remove {}", dir.display()))?;
        }
        let report = report?;
        let text = match self.format {
            Format::Json => output::json(&report.to_json()),
            Format::Yaml => output::yaml(&report.to_json()),
            Format::Table | Format::Wide | Format::Name => report.to_text(terminal.colour_out),
        };
        terminal.out.write_all(text.as_bytes())?;
        Ok(terminal.out.flush()?)
    }
}
