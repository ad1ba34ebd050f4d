//! `heddle doctor`: look everywhere at once and say what is wrong, and what would help.
//!
//! Asks the server for its readiness, its accounts and the conditions of the objects events pass
//! through. What that means is decided in `findings.rs` and, for flows, in `flows.rs`, which are pure. Nothing is changed.

mod findings;
mod flows;

use heddle_api::conditions::READY;
use heddle_api::{
    Application, Broker, Channel, Condition, EventFlow, EventPolicy, Registry, ServiceBinding,
    ServiceInstance, Subscription, Trigger,
};
use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::Resource;
use serde::Deserialize as _;
use serde_json::{Value, json};

use self::findings::{Facts, Finding, Level, Unready};
use self::flows::{Flows, MOMENT};
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote, objects};
use crate::cmd::CommandContext;
use crate::failure::{Failure, exit_code};
use crate::output::{ReportFormat, age, count, harmless};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle doctor                              everything, the worst first
  heddle doctor -o json | jq '.findings[] | select(.level != \"ok\")'

Ends with 1 when something is bad; a warning alone ends with 0.";

/// Check that every event is accounted for and everything is ready
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    // A server that is not ready says so with 503, which is an answer here.
    let remote = Remote::connect_once(&args.client).await?;
    examine(args.output, CommandContext::new(&remote, world, terminal)).await
}

async fn examine(output: ReportFormat, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let now = ctx.world.clock.now();
    let facts = gather(ctx.remote, now).await?;
    let findings = findings::of(&facts, now);
    let report = json!({"findings": findings.iter().map(Finding::to_json).collect::<Vec<_>>()});
    let colour = ctx.terminal.colour_out;
    let text = output.render(&report, |_| text(&findings, colour));
    ctx.terminal.print(&text)?;
    let bad = findings
        .iter()
        .filter(|finding| finding.level == Level::Bad);
    match bad.count() as u64 {
        0 => Ok(()),
        bad => Err(Failure::Rejected(format!("{} bad", count(bad, "finding"))).into()),
    }
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
        let (word, tone) = match finding.level {
            Level::Bad => ("bad ", Tone::Bad),
            Level::Warn => ("warn", Tone::Strong),
            Level::Ok => ("ok  ", Tone::Good),
        };
        let label = paint(colour, tone, word);
        text.push_str(&format!(
            "{label}  {}: {}\n",
            harmless(&finding.about),
            harmless(&finding.what)
        ));
        if !finding.remedy.is_empty() {
            let remedy = paint(colour, Tone::Quiet, &harmless(&finding.remedy));
            text.push_str(&format!("      {remedy}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests;
