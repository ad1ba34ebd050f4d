//! `heddle registry ls`.

use heddle_api::conditions::READY;
use heddle_api::{Condition, Registry};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::client::{ClientArgs, objects};
use crate::cmd::CommandContext;
use crate::output::{ReportFormat, Table, age, harmless, span};

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct Args {
    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// One registry, as it is now.
#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    type_: String,
    /// `True`, or one word why not.
    ready: String,
    message: String,
    live: i32,
    marked: i32,
    failures: i32,
    last_success: Option<Timestamp>,
}

pub(super) async fn list(args: &Args, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let registries: Vec<Registry> = objects::all(ctx.remote, None).await?;
    if registries.is_empty() && args.output == ReportFormat::Table {
        ctx.terminal
            .note("there is no registry; `heddle registry add` makes one");
        return Ok(());
    }
    let entries: Vec<Entry> = registries.iter().map(Entry::of).collect();
    let report: Vec<Value> = entries.iter().map(Entry::to_json).collect();
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    let text = (args.output).render(&report, |_| table(&entries, now, colour));
    Ok(ctx.terminal.print(&text)?)
}

impl Entry {
    fn of(registry: &Registry) -> Self {
        let status = registry.status.clone().unwrap_or_default();
        let ready = status.conditions.find(READY);
        let word = match ready {
            _ if registry.metadata.deletion_timestamp.is_some() => "Removing".to_owned(),
            _ if status.conditions.is_ready() => "True".to_owned(),
            Some(Condition {
                reason: Some(reason),
                ..
            }) => reason.clone(),
            _ => "Unknown".to_owned(),
        };
        Self {
            name: registry.name_any(),
            type_: type_word(registry),
            ready: word,
            message: ready
                .and_then(|ready| ready.message.clone())
                .unwrap_or_default(),
            live: status.live_bundle_count.unwrap_or_default(),
            marked: status.marked_bundle_count.unwrap_or_default(),
            failures: status.consecutive_failures.unwrap_or_default(),
            last_success: status.last_success.map(|time| time.0),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name, "type": self.type_, "ready": self.ready, "message": self.message,
            "live": self.live, "marked": self.marked, "failures": self.failures,
            "lastSuccess": self.last_success.map(|at| at.to_string()),
        })
    }
}

fn type_word(registry: &Registry) -> String {
    let word = json!(registry.spec.type_);
    word.as_str().unwrap_or_default().to_owned()
}

fn table(entries: &[Entry], now: Timestamp, colour: bool) -> String {
    let headers = [
        "NAME",
        "TYPE",
        "READY",
        "LIVE",
        "MARKED",
        "FAILURES",
        "LAST SUCCESS",
    ];
    let row = |entry: &Entry| {
        let success = entry.last_success;
        vec![
            harmless(&entry.name),
            entry.type_.clone(),
            harmless(&entry.ready),
            entry.live.to_string(),
            entry.marked.to_string(),
            entry.failures.to_string(),
            success.map_or_else(
                || "never".to_owned(),
                |at| format!("{} ago", span(age(at, now))),
            ),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: entries.iter().map(row).collect(),
    };
    table.page(colour)
}
