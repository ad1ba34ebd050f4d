//! `heddle doctor`: look everywhere at once and say what is wrong, and what would help.
//!
//! Asks the server for its readiness, its accounts and the conditions of the objects events pass
//! through. What that means is decided in `findings.rs` and, for flows, in `flows.rs`, which are pure. Nothing is changed.

mod findings;
mod flows;

use std::time::Duration;

use heddle_api::checks::{CheckCategory, CheckReport, FindingLevel};
use heddle_api::conditions::READY;
use heddle_api::{
    Application, Broker, Channel, Condition, EventFlow, EventPolicy, Registry, ServiceBinding,
    ServiceInstance, Subscription, Trigger,
};
use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::Resource;
use serde::Deserialize as _;
use serde_json::Value;

use self::findings::{Facts, Finding, Unready};
use self::flows::{Flows, MOMENT};
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote, objects};
use crate::failure::{Failure, exit_code};
use crate::output::{ReportFormat, age, count, harmless};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle doctor                              everything, the worst first
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
    /// Every finding with its remedy
    #[default]
    Table,
    /// Only what is not well, a line each
    Short,
    /// Everything, for machines
    Json,
    Yaml,
}

impl DoctorFormat {
    fn render(self, findings: &[Finding], colour: bool) -> String {
        let report = CheckReport {
            findings: findings.iter().map(Finding::body).collect(),
        };
        match self {
            Self::Table => text(findings, colour),
            Self::Short => short(findings, colour),
            Self::Json => ReportFormat::Json.render(&report, |_| String::new()),
            Self::Yaml => ReportFormat::Yaml.render(&report, |_| String::new()),
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
        let found = look(&args, world).await;
        let late = world.clock.monotonic().saturating_sub(begun) >= limit;
        match found {
            Ok(findings) if !args.wait || late || bad(&findings) == 0 => {
                return conclude(&args, &findings, terminal);
            }
            Ok(_) => {}
            Err(error) if args.wait && !late && exit_code(&error) == 6 => {}
            Err(error) => return Err(error),
        }
        world.clock.sleep(WAIT_PERIOD).await;
    }
}

async fn look(args: &Args, world: &World) -> anyhow::Result<Vec<Finding>> {
    // A server that is not ready says so with 503, which is an answer here.
    let remote = Remote::connect_once(&args.client).await?;
    examine(args.category, &remote, world).await
}

async fn examine(
    category: Option<CheckCategory>,
    remote: &Remote,
    world: &World,
) -> anyhow::Result<Vec<Finding>> {
    let now = world.clock.now();
    let mut findings = findings::of(&gather(remote, now).await?, now);
    findings.retain(|finding| category.is_none_or(|wanted| finding.check.category == wanted));
    Ok(findings)
}

fn conclude(args: &Args, findings: &[Finding], terminal: &mut Terminal) -> anyhow::Result<()> {
    let shown = args.output.render(findings, terminal.colour_out);
    terminal.print(&shown)?;
    let bad = bad(findings);
    let text = format!("{} bad", count(bad, "finding"));
    match bad {
        0 => Ok(()),
        _ if args.wait => Err(Failure::TimedOut(text).into()),
        _ => Err(Failure::Rejected(text).into()),
    }
}

fn bad(findings: &[Finding]) -> u64 {
    let bad = findings.iter();
    bad.filter(|finding| finding.level == FindingLevel::Bad)
        .count() as u64
}

async fn gather(remote: &Remote, now: Timestamp) -> anyhow::Result<Facts> {
    let answer = remote
        .send(Request::get("/readyz").body(Vec::new())?)
        .await?;
    let unready_because = match answer.code {
        StatusCode::OK => Vec::new(),
        _ => answer.text().lines().map(str::to_owned).collect(),
    };
    let accounts = match Ledger::of(remote).accounts().await {
        Ok(accounts) => Ok(accounts),
        // Without a server or a token nothing can be found out at all.
        Err(error) if matches!(exit_code(&error), 5 | 6) => return Err(error),
        Err(error) => Err(format!("{error:#}")),
    };
    let mut unready = Vec::new();
    let mut looked_at = 0;
    let kinds = [
        kind::<Application>("application"),
        kind::<Channel>("channel"),
        kind::<Subscription>("subscription"),
        kind::<Broker>("broker"),
        kind::<Trigger>("trigger"),
        kind::<EventFlow>("eventflow"),
        kind::<EventPolicy>("eventpolicy"),
        kind::<ServiceInstance>("serviceinstance"),
        kind::<ServiceBinding>("servicebinding"),
        kind::<Registry>("registry"),
    ];
    for (kind, path) in kinds {
        let list = objects::below(remote, &path, kind).await?;
        looked_at += list.len() as u64;
        unready.extend(
            list.iter()
                .filter_map(|object| unready_of(kind, object, now)),
        );
    }
    Ok(Facts {
        unready_because,
        accounts,
        objects: looked_at,
        unready,
        flows: Flows {
            flows: objects::all(remote, None).await?,
            brokers: objects::all(remote, None).await?,
            subscriptions: objects::all(remote, None).await?,
            activations: objects::all(remote, None).await?,
            policies: objects::all(remote, None).await?,
            instances: objects::all(remote, None).await?,
        },
    })
}

fn kind<K: Resource<DynamicType = ()>>(name: &'static str) -> (&'static str, String) {
    (name, K::url_path(&(), None))
}

/// Why an object is not ready, unless it is.
fn unready_of(kind: &str, object: &Value, now: Timestamp) -> Option<Unready> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let object_name = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    };
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut conditions = conditions.filter_map(|condition| Condition::deserialize(condition).ok());
    let ready = conditions.find(|condition| condition.type_ == READY);
    let unready = Unready::unless_true(object_name, ready)?;
    Some(Unready {
        settling: is_settling(object, unready.certain, now),
        explained_by: explained_by(kind, object),
        ..unready
    })
}

/// Whether controllers have not had their moment yet: it was just made and nothing is certain, or something was just asked
/// of it.
fn is_settling(object: &Value, is_certain: bool, now: Timestamp) -> bool {
    let operation = &object["spec"]["operation"];
    let progress = &object["status"]["operation"];
    let has_failed = progress["id"] == operation["id"] && progress["state"] == "failed";
    let accepted = Some(&operation["acceptedAt"]).filter(|_| !has_failed);
    let created = Some(&object["metadata"]["creationTimestamp"]).filter(|_| !is_certain);
    let times = [created, accepted];
    let times = times.into_iter().flatten().filter_map(Value::as_str);
    let mut times = times.filter_map(|time| time.parse::<Timestamp>().ok());
    times.any(|time| age(time, now) <= MOMENT)
}

/// The command that says more than the object does, where there is one.
fn explained_by(kind: &str, object: &Value) -> Option<String> {
    let namespace = object["metadata"]["namespace"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    match kind {
        "serviceinstance" => {
            let id = object["spec"]["instanceID"].as_str().unwrap_or(name);
            Some(format!("heddle explain instance {id} -n {namespace}"))
        }
        "trigger" => Some(format!("heddle explain trigger {namespace}/{name}")),
        _ => None,
    }
}

fn text(findings: &[Finding], colour: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        text.push_str(&line(finding, colour));
        if !finding.remedy.is_empty() {
            let remedy = paint(colour, Tone::Quiet, &harmless(&finding.remedy));
            text.push_str(&format!("              {remedy}\n"));
        }
    }
    text
}

fn short(findings: &[Finding], colour: bool) -> String {
    let unwell = findings
        .iter()
        .filter(|finding| finding.level != FindingLevel::Ok);
    unwell.map(|finding| line(finding, colour)).collect()
}

fn line(finding: &Finding, colour: bool) -> String {
    let (word, tone) = match finding.level {
        FindingLevel::Bad => ("bad ", Tone::Bad),
        FindingLevel::Warn => ("warn", Tone::Strong),
        FindingLevel::Ok => ("ok  ", Tone::Good),
    };
    format!(
        "{}  {}  {}: {}\n",
        paint(colour, tone, word),
        finding.check.id,
        harmless(&finding.about),
        harmless(&finding.what)
    )
}

#[cfg(test)]
mod tests;
