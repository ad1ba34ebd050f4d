//! `heddle osb-check`: does a broker keep the promises of the Open Service Broker API?
//!
//! The suite is a crate of its own (`heddle-osb-check`). Here it gets its way to the broker, and what it found out is shown,
//! written down, and turned into an exit code.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use heddle_osb_check::{CheckResult, Outcome, Report, Settings, Transport, Unreachable};
use http::{Request, Response};
use serde_json::json;

use crate::client::Remote;
use crate::failure::Failure;
use crate::files;
use crate::output::{ReportFormat, count, harmless, json as json_text};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle osb-check http://127.0.0.1:4333 --username heddle --password \"$PASSWORD\"
  heddle osb-check http://127.0.0.1:4333/osb/team-a --username heddle --password-file pw
  heddle osb-check http://127.0.0.1:4333 --username heddle --password-file pw --only bind
  heddle osb-check http://127.0.0.1:4333 --username heddle --password-file pw --report junit --report-file osb.xml

It provisions, binds and removes for real: point it at a broker whose plans cost nothing.
Ends with 1 when a promise is broken.";

/// Ask a broker for every promise of OSB 2.17
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Address of the broker, without /v2
    url: http::Uri,

    #[arg(long, value_name = "NAME")]
    username: String,

    #[arg(
        long,
        value_name = "TEXT",
        env = "OSB_PASSWORD",
        hide_env_values = true
    )]
    password: Option<String>,

    /// A file with the password
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,

    /// Only promises whose group or text contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// What the broker is set to answer when no version is announced
    #[arg(long, value_name = "STATUS", default_value_t = 400)]
    missing_version: u16,

    /// Namespace that is sent as context, for brokers that have such
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    /// Write a report that test reporters and programs read
    #[arg(long, value_enum, value_name = "FORMAT")]
    report: Option<ReportKind>,

    /// Where the report goes; without it, to standard output in place of what is shown
    #[arg(long, value_name = "FILE", requires = "report")]
    report_file: Option<PathBuf>,
}

/// Which report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportKind {
    /// JUnit's XML, as continuous integration takes it
    Junit,
    /// One object with everything that was found out
    Json,
}

/// Our client as the suite's way to a broker.
#[derive(Debug)]
struct RemoteTransport(Remote);

impl Transport for RemoteTransport {
    fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>> {
        Box::pin(async move {
            let answer = self.0.send(request).await;
            let answer = answer.map_err(|error| Unreachable(format!("{error:#}")))?;
            let mut response = Response::new(answer.body().clone());
            *response.status_mut() = answer.code;
            *response.headers_mut() = answer.headers().clone();
            Ok(response)
        })
    }
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let to_stdout = args.report.is_some() && args.report_file.is_none();
    if to_stdout && args.output != ReportFormat::Table {
        let text = "a report and -o both want standard output; give the report a --report-file";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let settings = args.settings(world)?;
    let transport = RemoteTransport(Remote::anonymous(args.url.clone(), args.url.to_string())?);
    // Before anything is asked: nobody wants to hear after minutes that the report has no place.
    let file = args.report_file.as_deref().map(files::create).transpose()?;
    let shows = args.output == ReportFormat::Table && !to_stdout;
    let mut shown = Ok(());
    let observe = |result: &CheckResult| {
        if shows
            && shown.is_ok()
            && let Some(line) = line(result, terminal.colour_out)
        {
            shown = terminal.say(&line);
        }
    };
    let (clock, chance) = (&world.clock, &world.chance);
    let report =
        heddle_osb_check::run(&settings, Box::new(transport), clock, chance, observe).await;
    for stuck in &report.leftovers {
        terminal.note(&format!("could not be removed: {}", harmless(stuck)));
    }
    if let Some(kind) = args.report {
        let text = match kind {
            ReportKind::Junit => report.junit(),
            ReportKind::Json => json_text(&report.json()),
        };
        match file {
            Some(mut file) => file
                .write_all(text.as_bytes())
                .context("cannot write the report")?,
            None => terminal.print(&text)?,
        }
    }
    // Whoever reads along may have left; whoever waits for the report has not.
    shown?;
    if args.output != ReportFormat::Table {
        let rows: Vec<_> = report.results.iter().map(to_json).collect();
        terminal.print(&args.output.render(&rows, |_| String::new()))?;
    }
    judge(report, terminal)
}

impl Args {
    fn settings(&self, world: &World) -> anyhow::Result<Settings> {
        let password = match (&self.password, &self.password_file) {
            (Some(password), _) => password.clone(),
            (None, Some(file)) => {
                let bytes = world.vfs.read(file);
                let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
                String::from_utf8_lossy(&bytes).trim_end().to_owned()
            }
            (None, None) => {
                let text = "give the password with --password, --password-file or OSB_PASSWORD";
                return Err(Failure::Usage(text.to_owned()).into());
            }
        };
        Ok(Settings {
            address: without_credentials(&self.url),
            username: self.username.clone(),
            password,
            only: self.only.clone(),
            missing_version: self.missing_version,
            namespace: self.namespace.clone(),
        })
    }
}

/// The address as it may be written into a report.
fn without_credentials(url: &http::Uri) -> String {
    let text = url.to_string();
    let authority = url.authority().map_or("", |authority| authority.as_str());
    match authority.rsplit_once('@') {
        Some((_, host)) => text.replacen(authority, host, 1),
        None => text,
    }
}

/// What a run means for whoever started it.
fn judge(report: Report, terminal: &mut Terminal) -> anyhow::Result<()> {
    let counts = report.counts();
    if let Some(error) = report.not_started {
        let unreachable = error.chain().any(|cause| cause.is::<Unreachable>());
        return Err(match unreachable {
            true => Failure::Unreachable(format!("{error:#}")).into(),
            false => error,
        });
    }
    let mut text = format!(
        "{} kept, {} broken, {} without a plan to try them on",
        count(counts.kept, "promise"),
        counts.broken,
        counts.not_applicable
    );
    if let Some(why) = &report.interruption {
        terminal.note(&harmless(why));
        text.push_str(&format!(", {} not asked", counts.not_asked));
    }
    terminal.note(&text);
    match (counts.kept, counts.broken) {
        (0, 0) => Err(Failure::Usage("no promise was asked for; see --only".to_owned()).into()),
        (_, 0) => Ok(()),
        (_, broken) => {
            Err(Failure::Rejected(format!("{} broken", count(broken, "promise"))).into())
        }
    }
}

/// What is shown of a result. One that was not asked for is counted in the end, and nothing else.
fn line(result: &CheckResult, colour: bool) -> Option<String> {
    let (tone, word, more) = match &result.outcome {
        Outcome::Kept => (Tone::Good, "kept  ", String::new()),
        Outcome::Broken(why) => (
            Tone::Bad,
            "BROKEN",
            format!("\n          {}", harmless(why)),
        ),
        Outcome::NotApplicable(what) => (Tone::Quiet, "n/a   ", format!(" (no plan {what})")),
        Outcome::NotAsked(_) => return None,
    };
    let word = paint(colour, tone, word);
    let rule = &result.rule;
    Some(format!("{word}  {}: {}{more}", rule.group, rule.promise))
}

fn to_json(result: &CheckResult) -> serde_json::Value {
    let (word, why) = match &result.outcome {
        Outcome::Kept => ("kept", None),
        Outcome::Broken(why) => ("broken", Some(why.as_str())),
        Outcome::NotApplicable(what) => ("notApplicable", Some(*what)),
        Outcome::NotAsked(why) => ("notAsked", Some(why.as_str())),
    };
    json!({"group": result.rule.group, "promise": result.rule.promise, "verdict": word, "why": why})
}
