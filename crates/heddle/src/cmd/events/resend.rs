//! `heddle events resend`: stored events once more, to one trigger or subscription, as they are.

use heddle_api::dead_letters::SubscriberNow;
use heddle_api::resend::{ResendEdge, ResendPreview, ResendRequest};

use crate::client::ClientArgs;
use crate::client::ledger::{BulkOf, Ledger};
use crate::cmd::CommandContext;
use crate::cmd::operations::{self, FollowedOperation};
use crate::failure::Failure;
use crate::output::{ReportFormat, count, harmless, moment};

const EXAMPLES: &str = "\
Examples:
  heddle events resend since:2h --to trigger/team-a/orders --dry-run
                                             what would be sent, and what would be left
  heddle events resend since:2h until:1h type:order.* --to trigger/team-a/orders --yes
  heddle events resend --from 4711 --before 5000 --to trigger/team-a/orders
                                             a range of places in the log
  heddle events operations                   how far it is
  heddle events stop 7                       and no further

The trigger gets the events as they are, with the same ids; nobody else gets them. Its filter as it is now decides which of them.
Those that are on their way already, or rest as dead letters, are left alone. What became of an event before stays on record.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResendArgs {
    /// Which events, as `heddle events` takes it: since:2h until:1h type:order.*
    #[arg(value_name = "QUERY")]
    query: Vec<String>,

    /// Who gets them, such as trigger/team-a/orders
    #[arg(long, value_name = "CONSUMER")]
    to: String,

    /// Only events from this place in the log on
    #[arg(long, value_name = "PLACE")]
    from: Option<u64>,

    /// Only events before this place in the log
    #[arg(long, value_name = "PLACE")]
    before: Option<u64>,

    /// Tell what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Do not wait for all to be sent; `heddle events operations` shows how far it is
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

pub(super) async fn run(args: &ResendArgs, ctx: CommandContext<'_>) -> anyhow::Result<()> {
    let mut request = ResendRequest {
        consumer: args.to.clone(),
        query: args.query.join(" "),
        from: args.from,
        before: args.before,
        dry_run: false,
    };
    let ledger = Ledger::of(ctx.remote);
    if args.dry_run {
        let preview = ledger.resend_preview(&request).await?;
        return Ok(ctx
            .terminal
            .print(&args.output.render(&preview, previewed))?);
    }
    if !args.yes {
        let preview = ledger.resend_preview(&request).await?;
        if ctx.terminal.has_person() {
            ctx.terminal.note(previewed(&preview).trim_end());
        }
        let what = format!(
            "send {} again to {}",
            count(preview.count, "event"),
            harmless(&preview.consumer)
        );
        match ctx.terminal.agrees(&format!("{what}?"))? {
            Some(true) => {}
            Some(false) => {
                ctx.terminal.note("nothing was changed");
                return Ok(());
            }
            None => {
                return Err(
                    Failure::Usage(format!("this would {what}; pass --yes to do it")).into(),
                );
            }
        }
        // What came meanwhile was not agreed to.
        (request.from, request.before) = (Some(preview.from), Some(preview.before));
    }
    let begun = ledger.resend(&request).await?;
    let how = FollowedOperation {
        of: BulkOf::Events,
        detach: args.detach,
        output: args.output,
    };
    operations::follow(begun, how, ctx).await
}

fn previewed(preview: &ResendPreview) -> String {
    let [least, most] = preview.estimate_s;
    let mut text = format!(
        "this would send {} again to {}, {} bytes of data, in about {least} to {most} s; its subscriber is {}\n",
        count(preview.count, "event"),
        harmless(&preview.consumer),
        preview.bytes,
        preview.verdict.map_or("unknown", SubscriberNow::word),
    );
    for (name, edge) in [("oldest", &preview.oldest), ("newest", &preview.newest)] {
        if let Some(edge) = edge {
            text.push_str(&edge_text(name, edge));
        }
    }
    let left = [
        (preview.filtered, "not wanted by its filter as it is now"),
        (preview.pending, "on their way already"),
        (
            preview.dead_letters,
            "at rest: redrive the dead letters instead",
        ),
        (
            preview.withheld,
            "never led there, and only who may read their data may send them",
        ),
    ];
    for (left, why) in left.into_iter().filter(|(left, _)| *left > 0) {
        text.push_str(&format!("  {left} left: {why}\n"));
    }
    if preview.ordered {
        text.push_str("  it keeps an order: fresh events with the same key wait\n");
    }
    if preview.more {
        text.push_str(&format!(
            "  there are more than are sent again at once: ask for less; everything from place {} on was looked at\n",
            preview.from
        ));
    }
    text
}

fn edge_text(name: &str, edge: &ResendEdge) -> String {
    format!(
        "  {name}  place {}, {}, {} {}\n",
        edge.offset,
        moment(edge.accepted_at),
        harmless(&edge.type_),
        harmless(&edge.id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_tells_what_goes_and_why_the_rest_is_left() {
        let preview = ResendPreview {
            consumer: "trigger/team-a/orders".to_owned(),
            count: 12,
            bytes: 3400,
            filtered: 5,
            dead_letters: 2,
            from: 7,
            more: true,
            estimate_s: [1, 4],
            ..ResendPreview::default()
        };
        let told = previewed(&preview);
        assert!(
            told.starts_with(
                "this would send 12 events again to trigger/team-a/orders, 3400 bytes"
            )
        );
        assert!(told.contains("5 left: not wanted"), "{told}");
        assert!(told.contains("2 left: at rest"), "{told}");
        assert!(!told.contains("on their way already"), "{told}");
        assert!(told.contains("from place 7 on"), "{told}");
    }
}
