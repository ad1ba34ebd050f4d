//! `heddle registry sync`: read a registry now, and say what came of it.
//!
//! The request is an annotation with a value that was not there before; the registry's status tells which request was
//! answered last. Whoever asks later asks for everybody who asked before.

use std::time::Duration;

use heddle_api::conditions::Status;
use heddle_api::registry::condition::REACHABLE;
use heddle_api::sync_run::{self, SyncRunStatus};
use heddle_api::well_known::SYNC_ANNOTATION;
use heddle_api::{Registry, SyncRun};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::named;
use crate::client::{ClientArgs, Remote, objects};
use crate::cmd::CommandContext;
use crate::cmd::osb::WaitArgs;
use crate::failure::Failure;
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const POLL: Duration = Duration::from_millis(200);
/// Whoever waits longer than this without news is told what is waited for.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  heddle registry sync dh                    ask for a reading, and go on
  heddle registry sync dh --wait             and wait for what it finds
  heddle registry sync dh --wait -o json | jq .added

With --wait it ends with 0 when the registry was read, 1 when it could not be read, and 7 when the time is over.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct Args {
    /// Name of the registry
    name: String,

    #[command(flatten)]
    wait: WaitArgs,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

pub(super) async fn sync(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let name = &args.name;
    named(name, ctx.remote).await?;
    let request = format!("{}-{}", ctx.world.clock.now(), ctx.world.chance.suffix(5));
    let _: Registry = objects::annotate(ctx.remote, name, SYNC_ANNOTATION, Some(&request)).await?;
    if !args.wait.wait {
        let report = json!({"registry": name, "state": "requested"});
        let text = args.output.render(&report, |_| {
            format!("a reading of registry {name} is asked for; `heddle registry ls` shows what it comes to\n")
        });
        return Ok(ctx.terminal.print(&text)?);
    }
    let (registry, run) = answered(args, &request, ctx.remote, ctx.world, ctx.terminal).await?;
    let outcome = Outcome::of(&registry, run.as_ref());
    let text = args
        .output
        .render(&outcome.to_json(name), |_| outcome.text(name));
    ctx.terminal.print(&text)?;
    let status = registry.status.unwrap_or_default();
    if let Some(suspicion) = &status.suspicion {
        ctx.terminal.warn(&format!(
            "{} disappeared at once, which is not believed yet; if it is meant so, `heddle registry approve {name}`",
            count(u64::try_from(suspicion.count).unwrap_or_default(), "bundle")
        ));
    }
    match outcome.failure {
        Some(why) => {
            let text = format!("registry {name} could not be read: {}", harmless(&why));
            Err(Failure::Rejected(text).into())
        }
        None => Ok(()),
    }
}

/// Waits until the request, or a later one, was answered and its record is complete.
async fn answered(
    args: &Args,
    request: &str,
    remote: &Remote,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<(Registry, Option<SyncRun>)> {
    let started = world.clock.monotonic();
    let mut told = false;
    loop {
        let registry = named(&args.name, remote).await?;
        if is_answered(&registry, request) {
            let run = registry
                .status
                .as_ref()
                .and_then(|s| s.last_sync_run.as_ref());
            let run: Option<SyncRun> = match run {
                Some(run) => objects::one(remote, None, run).await?,
                None => None,
            };
            if run.as_ref().is_none_or(is_over) {
                return Ok((registry, run));
            }
        }
        let waited = world.clock.monotonic().saturating_sub(started);
        if waited >= Duration::from_secs(args.wait.timeout) {
            let text = format!(
                "registry {} was not read within {} s; the request stands",
                args.name, args.wait.timeout
            );
            return Err(Failure::TimedOut(text).into());
        }
        if waited >= PROGRESS_AFTER && !told {
            told = true;
            terminal.note(&format!(
                "waiting for the reading of registry {}",
                args.name
            ));
        }
        world.clock.sleep(POLL).await;
    }
}

fn is_answered(registry: &Registry, request: &str) -> bool {
    let answered = registry
        .status
        .as_ref()
        .and_then(|s| s.answered_request.as_deref());
    let asked = registry
        .annotations()
        .get(SYNC_ANNOTATION)
        .map(String::as_str);
    // A later request replaces ours, and its reading began after ours was asked for.
    answered.is_some() && (answered == Some(request) || answered == asked)
}

fn is_over(run: &SyncRun) -> bool {
    run.status
        .as_ref()
        .is_some_and(|status| status.finished_at.is_some())
}

/// What a reading came to.
struct Outcome {
    run: Option<String>,
    status: SyncRunStatus,
    failure: Option<String>,
}

impl Outcome {
    fn of(registry: &Registry, run: Option<&SyncRun>) -> Self {
        let status = run.and_then(|run| run.status.clone()).unwrap_or_default();
        let completed = status.conditions.find(sync_run::condition::COMPLETED.name);
        let reachable =
            (registry.status.as_ref()).and_then(|status| status.conditions.find(REACHABLE.name));
        let failed = |condition: &&heddle_api::Condition| condition.status != Status::True;
        // The registry says what is wrong with it; its record only that something is.
        let culprit = match completed {
            Some(condition) if condition.status == Status::True => None,
            Some(condition) => Some(reachable.filter(failed).unwrap_or(condition)),
            None => reachable.filter(failed),
        };
        let failure = culprit.map(|condition| {
            let reason = condition.reason.as_deref().unwrap_or("Failed");
            match condition.message.as_deref() {
                Some(message) if !message.is_empty() => format!("{reason}: {message}"),
                _ => reason.to_owned(),
            }
        });
        Self {
            run: run.map(ResourceExt::name_any),
            status,
            failure,
        }
    }

    fn numbers(&self) -> [(&'static str, i32); 7] {
        let status = &self.status;
        [
            ("present", status.present),
            ("absent", status.absent),
            ("unknown", status.unknown),
            ("added", status.added),
            ("updated", status.updated),
            ("marked", status.marked),
            ("unmarked", status.unmarked),
        ]
        .map(|(name, number)| (name, number.unwrap_or_default()))
    }

    fn to_json(&self, registry: &str) -> Value {
        let mut report = json!({
            "registry": registry, "syncRun": self.run, "failure": self.failure,
            "state": if self.failure.is_some() { "failed" } else { "read" },
            "requests": self.status.requests, "errors": self.status.errors,
        });
        for (name, number) in self.numbers() {
            report[name] = json!(number);
        }
        report
    }

    fn text(&self, registry: &str) -> String {
        let numbers = self
            .numbers()
            .map(|(name, number)| format!("{number} {name}"));
        let word = match self.failure {
            Some(_) => "was not read completely",
            None => "is read",
        };
        let mut text = format!("registry {registry} {word}: {}\n", numbers.join(", "));
        for error in &self.status.errors {
            let (image, message) = (harmless(&error.image), harmless(&error.message));
            text.push_str(&format!("  {image}: {message}\n"));
        }
        text
    }
}
