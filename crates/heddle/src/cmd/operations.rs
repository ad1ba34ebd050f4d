//! What is done with many dead letters or many events: listed, stopped, and watched until it has ended.

use std::time::Duration;

use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};

use super::CommandContext;
use crate::client::ledger::{BulkOf, Ledger};
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, count, harmless};
use crate::terminal::Terminal;

/// Between two looks at an operation.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct OperationsArgs {
    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct StopArgs {
    /// An id, as `operations` shows it
    #[arg(value_name = "ID")]
    id: String,

    /// How to show what it had done
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

impl OperationsArgs {
    pub(super) async fn run(self, of: BulkOf, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.client).await?;
        let all = Ledger::of(&remote).bulk_operations(of).await?;
        if all.operations.is_empty() && self.output == ReportFormat::Table {
            let what = match of {
                BulkOf::DeadLetters => "nothing is done with many dead letters, nor was lately",
                BulkOf::Events => "no events are sent again, nor were lately",
            };
            terminal.note(what);
            return Ok(());
        }
        let colour = terminal.colour_out;
        let text = (self.output).render(&all, |all| operations(all, colour));
        Ok(terminal.print(&text)?)
    }
}

impl StopArgs {
    pub(super) async fn run(self, of: BulkOf, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.client).await?;
        let stopped = Ledger::of(&remote).stop_bulk(of, &self.id).await?;
        Ok(terminal.print(&self.output.render(&stopped, ended))?)
    }
}

fn operations(all: &BulkOperations, colour: bool) -> String {
    let headers = [
        "ID",
        "WHAT",
        "TO",
        "STATE",
        "DONE",
        "LEFT",
        "PER SECOND",
        "BY",
        "WAITS FOR",
    ];
    let row = |one: &BulkOperation| {
        vec![
            harmless(&one.id),
            one.act.word().to_owned(),
            harmless(one.consumer.as_deref().unwrap_or_default()),
            one.state.word().to_owned(),
            format!("{} of {}", one.count, one.total),
            one.eta_s.map_or_else(String::new, |eta| format!("{eta} s")),
            (one.rate_per_s).map_or_else(String::new, |rate| format!("{rate:.0}")),
            harmless(&one.by),
            harmless(one.waits.as_deref().unwrap_or_default()),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: all.operations.iter().map(row).collect(),
    };
    table.page(colour)
}

/// What an operation that has ended did.
fn ended(one: &BulkOperation) -> String {
    let done = match one.act {
        BulkAct::Redrive => "redriven",
        BulkAct::Discard => "discarded",
        BulkAct::Resend => "sent again",
    };
    let stopped = match one.state {
        BulkState::Stopped => "; stopped",
        BulkState::Running | BulkState::Done => "",
    };
    let left = match one.left {
        0 => String::new(),
        left => format!("; {left} left where they are"),
    };
    let all = match one.act {
        BulkAct::Resend => count(one.total, "event"),
        BulkAct::Redrive | BulkAct::Discard => count(one.total, "dead letter"),
    };
    format!("{} of {all} {done}{left}{stopped}\n", one.count)
}

/// How an operation is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct FollowedOperation {
    pub(super) of: BulkOf,
    /// Do not wait.
    pub(super) detach: bool,
    pub(super) output: ReportFormat,
}

/// Watches an operation until it has ended. It goes on without anybody who watches.
pub(super) async fn follow(
    mut operation: BulkOperation,
    how: FollowedOperation,
    ctx: CommandContext<'_>,
) -> anyhow::Result<()> {
    let id = operation.id.clone();
    if !how.detach {
        let stop = format!("heddle {} stop {id}", how.of.word());
        ctx.terminal.note(&format!(
            "operation {id}; it goes on if this command is interrupted, and ends with `{stop}`"
        ));
        while operation.state == BulkState::Running {
            ctx.world.clock.sleep(LOOK_EVERY).await;
            operation = Ledger::of(ctx.remote).bulk_operation(how.of, &id).await?;
            let waits = operation.waits.as_ref();
            let waits = waits.map_or_else(String::new, |waits| format!("; waits for {waits}"));
            ctx.terminal.note(&harmless(&format!(
                "{} of {}{waits}",
                operation.count, operation.total
            )));
        }
    }
    let text = how
        .output
        .render(&operation, |operation| match operation.state {
            BulkState::Running => format!("operation {id}\n"),
            BulkState::Done | BulkState::Stopped => ended(operation),
        });
    Ok(ctx.terminal.print(&text)?)
}
