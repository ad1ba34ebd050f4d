//! `heddle doctor`: look everywhere at once and say what is wrong, and what would help.
//!
//! The server looks (`crate::checks`), with the rights of whoever asks, and the page shows the same. Nothing is changed.

use std::time::Duration;

use heddle_api::checks::{CheckCategory, CheckFinding, CheckReport, FindingLevel};

use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::failure::{Failure, exit_code};
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle doctor                              everything, by category, the worst of each first
  heddle doctor -o short                     only what is not well, a line each
  heddle doctor --wait --timeout 60          until nothing is bad any more, for instance after a start
  heddle doctor --category events
  heddle doctor -o json | jq '.findings[] | select(.level != \"ok\")'

Every finding has the id of its check; docs/reference/checks.md explains each.
Ends with 0 when nothing is bad, which warnings are not; with 1 when something is; with 7 when something still
is after waiting; and with 6 when no server answers.";

/// How often it is looked again while somebody waits.
const WAIT_PERIOD: Duration = Duration::from_secs(1);

/// Check that every event is accounted for and everything is ready
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: DoctorFormat,

    /// Only checks of one category
    #[arg(long, value_name = "NAME", value_parser = category)]
    category: Option<CheckCategory>,

    /// Look again until nothing is bad; a server that does not answer yet is waited for
    #[arg(long)]
    wait: bool,

    /// Give up waiting after so many seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS", requires = "wait")]
    timeout: u64,

    #[command(flatten)]
    client: ClientArgs,
}

/// `-o` of the doctor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum DoctorFormat {
    /// Every finding with its remedy, by category
    #[default]
    Table,
    /// Only what is not well, a line each
    Short,
    /// Everything, for machines
    Json,
    Yaml,
}

impl DoctorFormat {
    fn render(self, report: &CheckReport, colour: bool) -> String {
        match self {
            Self::Table => text(&report.findings, colour),
            Self::Short => short(&report.findings, colour),
            Self::Json => ReportFormat::Json.render(report, |_| String::new()),
            Self::Yaml => ReportFormat::Yaml.render(report, |_| String::new()),
        }
    }
}

fn category(text: &str) -> Result<CheckCategory, String> {
    let all = CheckCategory::ALL;
    let found = all.into_iter().find(|category| category.word() == text);
    found.ok_or_else(|| format!("it is one of {}", all.map(CheckCategory::word).join(", ")))
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let begun = world.clock.monotonic();
    let limit = Duration::from_secs(args.timeout);
    loop {
        let found = look(&args).await;
        let late = world.clock.monotonic().saturating_sub(begun) >= limit;
        match found {
            Ok(report) if !args.wait || late || bad(&report) == 0 => {
                return conclude(&args, &report, terminal);
            }
            Ok(_) => {}
            Err(error) if args.wait && !late && exit_code(&error) == 6 => {}
            Err(error) => return Err(error),
        }
        world.clock.sleep(WAIT_PERIOD).await;
    }
}

async fn look(args: &Args) -> anyhow::Result<CheckReport> {
    // A server that is not ready says so in its findings.
    let remote = Remote::connect_once(&args.client).await?;
    examine(args.category, &remote).await
}

async fn examine(category: Option<CheckCategory>, remote: &Remote) -> anyhow::Result<CheckReport> {
    let mut report = Ledger::of(remote).checks().await?;
    let is_wanted = |found: CheckCategory| category.is_none_or(|wanted| found == wanted);
    report
        .findings
        .retain(|finding| is_wanted(finding.category));
    Ok(report)
}

fn conclude(args: &Args, report: &CheckReport, terminal: &mut Terminal) -> anyhow::Result<()> {
    let shown = args.output.render(report, terminal.colour_out);
    terminal.print(&shown)?;
    let bad = bad(report);
    let text = format!("{} bad", count(bad, "finding"));
    match bad {
        0 => Ok(()),
        _ if args.wait => Err(Failure::TimedOut(text).into()),
        _ => Err(Failure::Rejected(text).into()),
    }
}

fn bad(report: &CheckReport) -> u64 {
    let bad = report.findings.iter();
    bad.filter(|finding| finding.level == FindingLevel::Bad)
        .count() as u64
}

/// By category, in the order of an event's way; of each the worst first, as they came.
fn text(findings: &[CheckFinding], colour: bool) -> String {
    let of = |category: CheckCategory| {
        let found = findings.iter();
        let found = found.filter(|finding| finding.category == category);
        let lines: String = found.map(|finding| explained(finding, colour)).collect();
        let heading = paint(colour, Tone::Strong, category.word());
        (!lines.is_empty()).then(|| format!("{heading}\n{lines}"))
    };
    let sections: Vec<String> = CheckCategory::ALL.into_iter().filter_map(of).collect();
    sections.join("\n")
}

/// A finding below its category. What is not well has its remedy and the place that explains the check.
fn explained(finding: &CheckFinding, colour: bool) -> String {
    let mut text = format!("  {}", line(finding, colour));
    let link = (finding.level != FindingLevel::Ok).then_some(finding.link.as_str());
    let hints = [Some(finding.remedy.as_str()), link].into_iter().flatten();
    for hint in hints.filter(|hint| !hint.is_empty()) {
        let hint = paint(colour, Tone::Quiet, &harmless(hint));
        text.push_str(&format!("                {hint}\n"));
    }
    text
}

fn short(findings: &[CheckFinding], colour: bool) -> String {
    let unwell = findings
        .iter()
        .filter(|finding| finding.level != FindingLevel::Ok);
    unwell.map(|finding| line(finding, colour)).collect()
}

fn line(finding: &CheckFinding, colour: bool) -> String {
    let (word, tone) = match finding.level {
        FindingLevel::Bad => ("bad ", Tone::Bad),
        FindingLevel::Warn => ("warn", Tone::Strong),
        FindingLevel::Ok => ("ok  ", Tone::Good),
    };
    format!(
        "{}  {}  {}: {}\n",
        paint(colour, tone, word),
        finding.id,
        harmless(&finding.about),
        harmless(&finding.what)
    )
}

#[cfg(test)]
mod tests;
