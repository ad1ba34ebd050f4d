//! `heddle events republish`: an event once more, as a new event that names the old one.

use heddle_api::republish::{RepublishPreview, RepublishedEvent};

use crate::client::ledger::{Ledger, RepublishAsked};
use crate::client::{ClientArgs, Remote};
use crate::failure::Failure;
use crate::files;
use crate::output::{ReportFormat, count, harmless};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(super) struct RepublishArgs {
    /// The place of the event in the log
    #[arg(value_name = "PLACE")]
    place: u64,

    /// Where it comes in, such as broker/team-a/default; by default where the original did
    #[arg(long, value_name = "PLACE")]
    entry: Option<String>,

    /// The event as it should be, in JSON, instead of a copy; `-` is standard input
    #[arg(long, value_name = "FILE")]
    event: Option<String>,

    /// Tell who would want it, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

pub(super) async fn run(
    args: &RepublishArgs,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let asked = RepublishAsked {
        place: args.place,
        entry: args.entry.clone(),
        event: args.event.as_deref().map(files::read_bytes).transpose()?,
    };
    let ledger = Ledger::of(remote);
    if args.dry_run {
        let preview = ledger.republish_preview(&asked).await?;
        return Ok(terminal.print(&args.output.render(&preview, previewed))?);
    }
    if !args.yes {
        let preview = ledger.republish_preview(&asked).await?;
        if terminal.has_person() {
            terminal.note(previewed(&preview).trim_end());
        }
        let what = format!(
            "publish event {} again, as a new event for {}",
            args.place,
            count(preview.wanted, "consumer")
        );
        match terminal.agrees(&format!("{what}?"))? {
            Some(true) => {}
            Some(false) => {
                terminal.note("nothing was changed");
                return Ok(());
            }
            None => {
                return Err(
                    Failure::Usage(format!("this would {what}; pass --yes to do it")).into(),
                );
            }
        }
    }
    let made = ledger.republish(&asked).await?;
    Ok(terminal.print(&args.output.render(&made, told))?)
}

fn previewed(preview: &RepublishPreview) -> String {
    let mut text = format!(
        "a new event of type {} from {} would come in at {}: {} would want it, {} would not\n",
        harmless(&preview.type_),
        harmless(&preview.source),
        preview.entry,
        preview.wanted,
        preview.unwanted
    );
    for one in &preview.consumers {
        let word = if one.wants { "wants it" } else { "does not" };
        text.push_str(&format!("  {}  {word}", one.consumer));
        if !one.reason.is_empty() {
            text.push_str(&format!(": {}", harmless(&one.reason)));
        }
        text.push('\n');
    }
    text
}

fn told(made: &RepublishedEvent) -> String {
    format!(
        "event {} was published again as {}, place {}\n",
        made.original,
        harmless(&made.id),
        made.offset
    )
}
