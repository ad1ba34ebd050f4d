//! What is said about a group of dead letters, so that nobody looks into the same cause twice.

use std::time::Duration;

use heddle_api::dead_letters::marks::{GroupMark, MarkKind, MarkRequest};
use jiff::Timestamp;

use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::cmd::CommandContext;
use crate::cmd::token::time_to_live;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

/// What a group is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum As {
    /// Somebody knows the cause and sees to it
    Known,
    /// Nobody needs to see to it
    Ignored,
}

impl As {
    fn kind(self) -> MarkKind {
        match self {
            Self::Known => MarkKind::Known,
            Self::Ignored => MarkKind::Ignored,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct MarkArgs {
    /// A dead letter of the group, or the key that `list --by cause -o json` shows
    #[arg(value_name = "NAME|KEY")]
    group: String,

    /// What it is
    #[arg(long = "as", value_enum, default_value = "known", value_name = "WHAT")]
    kind: As,

    /// Why, for whoever wonders
    #[arg(long, value_name = "TEXT")]
    note: String,

    /// For so long, such as 12h or 30d; a week unless given
    #[arg(long, value_name = "TIME", value_parser = time_to_live, conflicts_with = "until")]
    r#for: Option<Duration>,

    /// Until this time, in RFC 3339
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,

    /// So many more are expected, and do not open it again
    #[arg(long, default_value_t = 0, value_name = "N")]
    more: u64,

    /// How to show the mark
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct UnmarkArgs {
    /// A dead letter of the group, or the key that `list --by cause -o json` shows
    #[arg(value_name = "NAME|KEY")]
    group: String,

    /// How to show what it was
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

impl MarkArgs {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.client).await?;
        self.act(CommandContext::new(&remote, world, terminal))
            .await
    }

    pub(super) async fn act(self, ctx: CommandContext<'_>) -> anyhow::Result<()> {
        let after = self
            .r#for
            .map(|span| ctx.world.clock.now().saturating_add(span));
        let request = MarkRequest {
            kind: self.kind.kind(),
            note: self.note,
            until: self.until.or(after.transpose()?),
            more: self.more,
            up_to: None,
        };
        let mark = Ledger::of(ctx.remote)
            .mark_group(&self.group, &request)
            .await?;
        let text = self.output.render(&mark, |mark: &GroupMark| {
            let words = harmless(&mark.in_words());
            format!("{words}; it opens again when it recurs\n")
        });
        Ok(ctx.terminal.print(&text)?)
    }
}

impl UnmarkArgs {
    pub(super) async fn run(self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.client).await?;
        let former = Ledger::of(&remote).unmark_group(&self.group).await?;
        let text = self.output.render(&former, |former: &GroupMark| {
            format!("open again; it was {}\n", harmless(&former.in_words()))
        });
        Ok(terminal.print(&text)?)
    }
}
