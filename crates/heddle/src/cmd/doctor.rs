//! `heddle doctor`: look everywhere at once and say what is wrong, and what would help.
//!
//! Asks the server for its readiness, its accounts and the conditions of the objects events pass
//! through. What that means is decided in `findings.rs`, which is pure. Nothing is changed.

mod findings;

use anyhow::Context as _;
use heddle_api::conditions::READY;
use heddle_api::{Application, Broker, Channel, Condition, Subscription, Trigger};
use http::{Request, StatusCode};
use kube::Resource;
use kube::api::ListParams;
use serde::Deserialize as _;
use serde_json::{Value, json};

use self::findings::{Facts, Finding, Level, Unready};
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::failure::{Failure, exit_code};
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::{Terminal, Tone, paint};
use crate::wire::World;

/// How many objects one answer may hold.
const PAGE_OBJECTS_MAX: u32 = 500;

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
    examine(args.output, &remote, world, terminal).await
}

async fn examine(
    output: ReportFormat,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let facts = gather(remote).await?;
    let findings = findings::of(&facts, world.clock.now());
    let report = json!({"findings": findings.iter().map(Finding::to_json).collect::<Vec<_>>()});
    let colour = terminal.colour_out;
    let text = output.render(&report, |_| text(&findings, colour));
    terminal.out.write_all(text.as_bytes())?;
    terminal.out.flush()?;
    let bad = findings
        .iter()
        .filter(|finding| finding.level == Level::Bad);
    match bad.count() as u64 {
        0 => Ok(()),
        bad => Err(Failure::Rejected(format!("{} bad", count(bad, "finding"))).into()),
    }
}

async fn gather(remote: &Remote) -> anyhow::Result<Facts> {
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
    let mut objects = 0;
    let kinds = [
        kind::<Application>("application"),
        kind::<Channel>("channel"),
        kind::<Subscription>("subscription"),
        kind::<Broker>("broker"),
        kind::<Trigger>("trigger"),
    ];
    for (kind, path) in kinds {
        let list = list(kind, &path, remote).await?;
        objects += list.len() as u64;
        unready.extend(list.iter().filter_map(|object| unready_of(kind, object)));
    }
    Ok(Facts {
        unready_because,
        accounts,
        objects,
        unready,
    })
}

fn kind<K: Resource<DynamicType = ()>>(name: &'static str) -> (&'static str, String) {
    (name, K::url_path(&(), None))
}

async fn list(kind: &str, path: &str, remote: &Remote) -> anyhow::Result<Vec<Value>> {
    let mut params = ListParams::default().limit(PAGE_OBJECTS_MAX);
    let mut found = Vec::new();
    loop {
        let request = kube::core::Request::new(path).list(&params)?;
        let mut page = remote.send(request).await?.ok(kind)?;
        let items = page["items"].as_array_mut().map(std::mem::take);
        found.extend(items.with_context(|| format!("{kind}: the answer is no list"))?);
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => params = params.continue_token(next),
            _ => return Ok(found),
        }
    }
}

/// Why an object is not ready, unless it is.
fn unready_of(kind: &str, object: &Value) -> Option<Unready> {
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
    Unready::unless_true(
        object_name,
        conditions.find(|condition| condition.type_ == READY),
    )
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
