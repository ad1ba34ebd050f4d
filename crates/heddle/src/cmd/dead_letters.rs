//! `heddle dead-letters`: events at rest, listed, looked at, sent on their way again or thrown away.
//!
//! Dead letters are picked by name or by what they have in common (`selection.rs`). Nothing that
//! takes more than the named ones happens without `--yes` or somebody at the terminal who agrees.

mod bulk;
mod mark;
mod render;
mod selection;

use heddle_api::dead_letters::{BulkAct, BulkOperation};
use heddle_api::ledger::{DeadLetterPage, DeadLetterSelection, DeadLettersTaken};
use heddle_rt::net::percent_encoded;

use self::selection::{Filters, Selection};
use crate::client::ledger::{BulkOf, Ledger, PAGE_MAX, TakeAnswer};
use crate::client::{ClientArgs, Remote};
use crate::cmd::operations::{OperationsArgs, StopArgs};
use crate::cmd::{CommandContext, ui};
use crate::failure::Failure;
use crate::output::{ReportFormat, count};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle dead-letters list                   everything at rest, oldest first
  heddle dead-letters list --trigger team-a/orders --type order.created
  heddle dead-letters list --by cause        what they have in common, those with the most first
  heddle dead-letters mark NAME --note \"fixed in 1.2\"
                                             say of its group that the cause is known; it opens again when it recurs
  heddle dead-letters try NAME               send one again, and hear what its subscriber says
  heddle dead-letters show NAME              the event, the reason and the last answer
  heddle dead-letters redrive NAME           send it on its way again
  heddle dead-letters redrive --trigger team-a/orders --yes
                                             all of a trigger, once its subscriber is well
  heddle dead-letters discard NAME           also a reply that could not go on, which cannot be redriven
  heddle dead-letters discard -n team-a --type order.test --yes
                                             throw away, for good; your name is kept with it
  heddle dead-letters redrive --all --dry-run
                                             what would happen
  heddle dead-letters operations             what is under way with many of them";

/// Look at events that could not be delivered, send them again or discard them
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES, visible_alias = "dl")]
pub(super) enum Command {
    /// List dead letters, oldest first
    List(ListArgs),
    /// Show dead letters with the events themselves
    Show(ShowArgs),
    /// Send dead letters on their way again
    Redrive(TakeArgs),
    /// Throw dead letters away
    Discard(TakeArgs),
    /// Send one on its way again and tell what its subscriber says
    Try(bulk::TryArgs),
    /// Say of a group that its cause is known, or to be ignored
    Mark(mark::MarkArgs),
    /// Take back what was said of a group
    Unmark(mark::UnmarkArgs),
    /// List what is done with many dead letters
    Operations(OperationsArgs),
    /// Stop what is done with many dead letters
    Stop(StopArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    filters: Filters,

    /// Put together what has something in common
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["id", "limit"])]
    by: Option<bulk::By>,

    /// Show at most so many; 0 shows all
    #[arg(long, default_value_t = 500, value_name = "N")]
    limit: u64,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Names, as `list` shows them
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Print the addresses of their pages, and nothing else
    #[arg(long, conflicts_with = "output")]
    link: bool,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TakeArgs {
    #[command(flatten)]
    selection: Selection,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Tell what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not wait for many to be done; `operations` shows how far it is
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::List(args) => {
                let remote = Remote::connect(&args.client).await?;
                list(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Show(args) => {
                let remote = Remote::connect(&args.client).await?;
                show(&args, &remote, terminal).await
            }
            Self::Redrive(args) => {
                // A wrong selection is said before anybody is asked.
                args.selection.request()?;
                let remote = Remote::connect(&args.client).await?;
                let begun = take(&args, Verb::Redrive, &remote, terminal).await?;
                bulk::follow(begun, &args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Discard(args) => {
                args.selection.request()?;
                let remote = Remote::connect(&args.client).await?;
                let begun = take(&args, Verb::Discard, &remote, terminal).await?;
                bulk::follow(begun, &args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Try(args) => args.run(terminal).await,
            Self::Mark(args) => args.run(world, terminal).await,
            Self::Unmark(args) => args.run(terminal).await,
            Self::Operations(args) => args.run(BulkOf::DeadLetters, terminal).await,
            Self::Stop(args) => args.run(BulkOf::DeadLetters, terminal).await,
        }
    }
}

async fn list(args: &ListArgs, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    if let Some(by) = args.by {
        return bulk::groups(args, by, ctx).await;
    }
    let limit = if args.limit == 0 {
        u64::MAX
    } else {
        args.limit
    };
    let page = gather(&args.filters, limit, ctx.remote).await?;
    let (now, colour) = (ctx.world.clock.now(), ctx.terminal.colour_out);
    if page.items.is_empty() && args.output == ReportFormat::Table {
        ctx.terminal.note("no dead letters");
        return Ok(());
    }
    let text = args
        .output
        .render(&page, |page| render::table(page, now, colour));
    ctx.terminal.print(&text)?;
    let shown = page.items.len() as u64;
    if shown < page.total && args.output == ReportFormat::Table {
        ctx.terminal.note(&format!(
            "{shown} of {} shown; --limit 0 shows all",
            page.total
        ));
    }
    Ok(())
}

/// Pages until `limit` are found.
async fn gather(filters: &Filters, limit: u64, remote: &Remote) -> anyhow::Result<DeadLetterPage> {
    let mut query = filters.query();
    let mut found = DeadLetterPage::default();
    loop {
        query.limit = (limit - found.items.len() as u64).min(PAGE_MAX);
        let page = Ledger::of(remote).dead_letters(&query).await?;
        (found.total, found.next) = (page.total, page.next);
        found.items.extend(page.items);
        if found.next.is_none() || found.items.len() as u64 >= limit {
            return Ok(found);
        }
        query.after.clone_from(&found.next);
    }
}

async fn show(args: &ShowArgs, remote: &Remote, terminal: &mut Terminal) -> anyhow::Result<()> {
    for (index, name) in args.names.iter().enumerate() {
        let detail = Ledger::of(remote).dead_letter(name).await?;
        if args.link {
            let page = format!("dead-letters/{}", percent_encoded(name));
            terminal.say(&ui::page_address(remote, &page))?;
            continue;
        }
        match (index, args.output) {
            (_, ReportFormat::Yaml) => terminal.say("---")?,
            (1.., ReportFormat::Table) => terminal.say("")?,
            _ => {}
        }
        let colour = terminal.colour_out;
        let text = match args.output {
            ReportFormat::Table => render::detail(&detail, colour),
            ReportFormat::Json => render::detail_as_json(&detail),
            ReportFormat::Yaml => render::detail_as_yaml(&detail),
        };
        terminal.out.write_all(text.as_bytes())?;
    }
    Ok(terminal.out.flush()?)
}

/// What is done with the chosen ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Redrive,
    Discard,
}

impl Verb {
    fn act(self) -> BulkAct {
        match self {
            Self::Redrive => BulkAct::Redrive,
            Self::Discard => BulkAct::Discard,
        }
    }

    fn now(self) -> &'static str {
        match self {
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Redrive => "redriven",
            Self::Discard => "discarded",
        }
    }
}

/// Gives the operation that it became, if they are many.
async fn take(
    args: &TakeArgs,
    verb: Verb,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<Option<BulkOperation>> {
    let mut request = args.selection.request()?;
    if args.dry_run {
        let preview = Ledger::of(remote).preview(verb.act(), &request).await?;
        let text = (args.output).render(&preview, |preview| bulk::preview(preview, verb.now()));
        terminal.print(&text)?;
        return Ok(None);
    }
    if !args.yes && request.names.is_empty() {
        let preview = Ledger::of(remote).preview(verb.act(), &request).await?;
        if !bulk::agreed(&args.selection, verb, &preview, terminal)? {
            terminal.note("nothing was changed");
            return Ok(None);
        }
        // What comes to rest meanwhile was not agreed to.
        request.up_to = preview.up_to;
    }
    request.detach = args.detach;
    let taken = match send(verb, &request, remote).await? {
        TakeAnswer::Begun(operation) => return Ok(Some(*operation)),
        TakeAnswer::Taken(taken) => taken,
    };
    let text = args.output.render(&taken, |taken: &DeadLettersTaken| {
        format!("{} {}\n", count(taken.count, "dead letter"), verb.done())
    });
    terminal.print(&text)?;
    if taken.replies > 0 {
        let text = format!(
            "{} left where they are: a reply cannot be sent again, for its event was delivered; look at it with `heddle dead-letters show` and discard it",
            count_replies(taken.replies)
        );
        if taken.count + taken.replies >= request.names.len() as u64 && taken.count > 0 {
            terminal.note(&text);
        } else {
            return Err(Failure::Usage(text).into());
        }
    }
    let named = (request.names.len() as u64).saturating_sub(taken.replies);
    if taken.count < named {
        let text = format!(
            "{} of {} were not there to {}; `heddle dead-letters list` shows what is",
            named - taken.count,
            count(named, "named dead letter"),
            verb.now()
        );
        return Err(Failure::NotFound(text).into());
    }
    Ok(None)
}

fn count_replies(replies: u64) -> String {
    match replies {
        1 => "1 is a reply and was".to_owned(),
        more => format!("{more} are replies and were"),
    }
}

async fn send(
    verb: Verb,
    request: &DeadLetterSelection,
    remote: &Remote,
) -> anyhow::Result<TakeAnswer> {
    match verb {
        Verb::Redrive => Ledger::of(remote).redrive(request).await,
        Verb::Discard => Ledger::of(remote).discard(request).await,
    }
}

#[cfg(test)]
mod tests;
