//! `heddle export`: what other programs take from heddle, made from the same tables as everything else.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_api::health::alerts;
use heddle_api::health::dashboards::{DASHBOARDS, Dashboard};
use serde_json::Value;

use super::ui;
use crate::base_url;
use crate::client::{ClientArgs, configuration};
use crate::files;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle export alerts > /etc/prometheus/heddle.rules.yml      then name the file under rule_files and reload
  heddle export alerts --url https://heddle.example            alerts lead to the pages of that address
  heddle export alerts | promtool check rules /dev/stdin
  heddle export dashboards /var/lib/grafana/dashboards/heddle  where Grafana is told to look for dashboards";

/// Write rules for Prometheus and dashboards for Grafana
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// Alert rules: when somebody should look, and which reason codes it may be about
    Alerts(AlertsArgs),
    /// Dashboards for Grafana: brokers and triggers, delivery, latency, process, backlog, heartbeats
    Dashboards {
        /// Write a file for each into this directory, which must exist; without it all are printed as one JSON list
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct AlertsArgs {
    /// Where people reach the page, as `runbook_url` and `page` of each alert say; the default is the address of the kubeconfig
    #[arg(long, value_name = "BASE")]
    url: Option<String>,

    #[command(flatten)]
    client: ClientArgs,
}

impl AlertsArgs {
    /// The address as it was given, or that of the server that other commands talk to. Nothing is sent.
    async fn base(&self) -> anyhow::Result<Option<String>> {
        let example = "https://heddle.example";
        if let Some(url) = &self.url {
            base_url::parse(url, "address of the page", &["http", "https"], example)?;
            return Ok(Some(url.clone()));
        }
        let known = configuration(&self.client).await.ok();
        Ok(known.map(|(config, _)| ui::for_browsers(&config.cluster_url.to_string())))
    }
}

impl Command {
    pub(super) async fn run(self, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Alerts(args) => {
                let base = args.base().await?;
                if base.is_none() {
                    terminal.note("no server is known here, so the alerts lead to no page; name its address with --url");
                }
                terminal.print(&alerts::rules(base.as_deref()))?;
            }
            Self::Dashboards { dir: None } => {
                let all: Vec<Value> = DASHBOARDS.iter().map(Dashboard::grafana).collect();
                terminal.print(&pretty(&all.into())?)?;
            }
            Self::Dashboards { dir: Some(dir) } => {
                for dashboard in DASHBOARDS {
                    let file = dir.join(dashboard.file_name());
                    write(&file, &pretty(&dashboard.grafana())?)?;
                    terminal.say(&file.display().to_string())?;
                }
            }
        }
        Ok(())
    }
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = files::create(path)?;
    let written = file.write_all(text.as_bytes());
    written.with_context(|| format!("cannot write {}", path.display()))
}
