//! Many dead letters at once: what they have in common, what would happen to them, and one that is tried.

use heddle_api::dead_letters::marks::GroupMark;
use heddle_api::dead_letters::{
    BulkOperation, DeadLetterGroup, DeadLetterGroups, DeadLetterPreview, NOT_CURED_BY_REPEATING,
    TriedDeadLetter, TriedOutcome,
};

use super::selection::Selection;
use super::{ListArgs, TakeArgs, Verb};
use crate::client::ledger::{BulkOf, Ledger};
use crate::client::{ClientArgs, Remote};
use crate::cmd::CommandContext;
use crate::cmd::operations::{self, FollowedOperation};
use crate::failure::Failure;
use crate::output::{ReportFormat, Table, age, count, harmless, span};
use crate::terminal::Terminal;

/// What dead letters are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum By {
    /// Consumer, answer and reason, with numbers and ids taken out
    Cause,
    /// The type of their events
    Type,
    /// The Application that published them
    Application,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Type => "type",
            Self::Application => "application",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct TryArgs {
    /// A name, as `list` shows it
    #[arg(value_name = "NAME")]
    name: String,

    /// How to show the answer
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

impl TryArgs {
    pub(super) async fn run(self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect(&self.client).await?;
        let tried = Ledger::of(&remote).try_dead_letter(&self.name).await?;
        terminal.print(&self.output.render(&tried, in_words))?;
        match tried.outcome {
            TriedOutcome::Delivered | TriedOutcome::UnderWay => Ok(()),
            TriedOutcome::Failed | TriedOutcome::DeadLettered => Err(Failure::Rejected(format!(
                "dead letter {}: its subscriber did not take it",
                self.name
            ))
            .into()),
        }
    }
}

fn in_words(tried: &TriedDeadLetter) -> String {
    let status = tried.status.map(|status| format!(" {status}"));
    let latency = tried.latency_ms.map(|ms| format!(" after {ms:.1} ms"));
    let mut text = match tried.outcome {
        TriedOutcome::Delivered => "delivered: the subscriber answered",
        TriedOutcome::Failed => "failed, and will be tried again:",
        TriedOutcome::DeadLettered => "failed, and rests again:",
        TriedOutcome::UnderWay => "no answer yet; it is on its way all the same",
    }
    .to_owned();
    text.extend(status);
    text.extend(latency);
    if let Some(error) = &tried.error {
        text.push_str(&format!("; {}", harmless(error)));
    }
    text.push('\n');
    if let Some(name) = &tried.rests_as {
        text.push_str(&format!("  it is now called {}\n", harmless(name)));
    }
    if let Some(answer) = &tried.answer {
        text.push_str(&format!("  said: {}\n", harmless(answer)));
    }
    text
}

/// Watches an operation until it has ended.
pub(super) async fn follow(
    begun: Option<BulkOperation>,
    args: &TakeArgs,
    ctx: CommandContext<'_>,
) -> anyhow::Result<()> {
    match begun {
        Some(begun) => {
            let how = FollowedOperation {
                of: BulkOf::DeadLetters,
                detach: args.detach,
                output: args.output,
            };
            operations::follow(begun, how, ctx).await
        }
        None => Ok(()),
    }
}

/// Dead letters by what they have in common.
pub(super) async fn groups(args: &ListArgs, by: By, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let query = args.filters.query();
    let found = Ledger::of(ctx.remote)
        .dead_letter_groups(by.word(), &query)
        .await?;
    if found.groups.is_empty() && args.output == ReportFormat::Table {
        ctx.terminal.note("no dead letters");
        return Ok(());
    }
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    let text = (args.output).render(&found, |found: &DeadLetterGroups| {
        let headers = [
            "COUNT",
            "CONSUMER",
            "ANSWER",
            "REASON",
            "FIRST",
            "LAST",
            "TYPES",
            "SUBSCRIBER NOW",
            "SAMPLE",
            "MARK",
        ];
        let row = |group: &DeadLetterGroup| {
            let answer = group.status.map(|status| status.to_string());
            let class = || group.class.map(|class| class.word().to_owned());
            vec![
                group.count.to_string(),
                harmless(group.consumer.as_deref().unwrap_or("(several)")),
                answer.or_else(class).unwrap_or_default(),
                harmless(group.reason.as_deref().unwrap_or_default()),
                span(age(group.first, now)),
                span(age(group.last, now)),
                harmless(&group.types.join(", ")),
                group.subscriber_now.map_or("", |now| now.word()).to_owned(),
                harmless(&group.sample),
                harmless(
                    &group
                        .mark
                        .as_ref()
                        .map_or_else(String::new, GroupMark::in_words),
                ),
            ]
        };
        let table = Table {
            headers: headers.map(str::to_owned).to_vec(),
            rows: found.groups.iter().map(row).collect(),
        };
        table.page(colour)
    });
    ctx.terminal.print(&text)?;
    let marked = found.known + found.ignored;
    if marked > 0 && args.output == ReportFormat::Table {
        let text = format!(
            "{marked} of {} are marked: {} known, {} ignored",
            found.total, found.known, found.ignored
        );
        ctx.terminal.note(&text);
    }
    Ok(())
}

/// What would happen, in words.
pub(super) fn preview(preview: &DeadLetterPreview, verb: &str) -> String {
    let [least, most] = preview.estimate_s;
    let mut text = format!(
        "this would {verb} {}, {} bytes, in about {least} to {most} s\n",
        count(preview.count, "dead letter"),
        preview.bytes
    );
    for one in &preview.consumers {
        let order = match one.overtakes {
            0 => String::new(),
            some => format!(
                "; they go before {} that wait, for it keeps an order",
                count(some, "event")
            ),
        };
        let line = format!(
            "  {}: {}, its subscriber is {}{order}",
            one.consumer,
            one.count,
            one.verdict.word()
        );
        text.push_str(&harmless(&line));
        text.push('\n');
    }
    if preview.replies > 0 {
        let replies = count(preview.replies, "dead letter");
        text.push_str(&format!(
            "{replies} of replies would stay: they cannot be sent again\n"
        ));
    }
    if preview
        .hints
        .iter()
        .any(|hint| hint == NOT_CURED_BY_REPEATING)
    {
        text.push_str("some were refused for what they are, which repeating does not cure: try one first with `heddle dead-letters try NAME`\n");
    }
    text
}

/// Asks whoever is at the terminal, saying what would happen. Throwing many away needs their number.
pub(super) fn agreed(
    selection: &Selection,
    verb: Verb,
    previewed: &DeadLetterPreview,
    terminal: &mut Terminal,
) -> anyhow::Result<bool> {
    if previewed.count == 0 && previewed.replies == 0 {
        terminal.note("no dead letters");
        return Ok(false);
    }
    let of = selection.filters.words();
    let what = format!(
        "{} {}{of}",
        verb.now(),
        count(previewed.count, "dead letter")
    );
    if terminal.has_person() {
        terminal.note(preview(previewed, verb.now()).trim_end());
    }
    let answer = match verb {
        Verb::Discard if previewed.count > 1 => {
            let typed = terminal.answer(&format!("{what}? Type how many to go on:"))?;
            typed.map(|typed| typed == previewed.count.to_string())
        }
        Verb::Redrive | Verb::Discard => terminal.agrees(&format!("{what}?"))?,
    };
    match answer {
        Some(agreed) => Ok(agreed),
        None => Err(Failure::Usage(format!("this would {what}; pass --yes to do it")).into()),
    }
}
