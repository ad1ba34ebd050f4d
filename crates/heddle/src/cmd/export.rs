//! `heddle export`: what other programs take from heddle, made from the same tables as everything else.

use heddle_api::health::alerts;

use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle export alerts > /etc/prometheus/heddle.rules.yml      then name the file under rule_files and reload
  heddle export alerts | promtool check rules /dev/stdin";

/// Write rules for Prometheus
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// Alert rules: when somebody should look, and which reason codes it may be about
    Alerts,
}

impl Command {
    pub(super) fn run(self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let Self::Alerts = self;
        terminal.print(&alerts::rules())?;
        Ok(())
    }
}
