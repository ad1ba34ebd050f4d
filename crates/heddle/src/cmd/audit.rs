//! `heddle audit`: who changed what, the newest first, or as it happens.

use std::time::Duration;

use heddle_api::audit::{AUDIT_PAGE_MAX, AuditLine, AuditPage};

use crate::client::ledger::{AuditLinesAsked, Ledger};
use crate::client::{ClientArgs, Remote};
use crate::output::{Table, count, harmless, json, moment};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle audit                               the newest changes
  heddle audit --since 1h --user ada         of somebody, within the last hour
  heddle audit --object trigger/team-a/orders
                                             who changed this, and how it ended
  heddle audit -n team-a --verb delete       what was deleted in a namespace
  heddle audit --outcome refused             what was tried and not allowed
  heddle audit -f                            as it happens, until Ctrl-C
  heddle audit --since 90d --limit 1000000 -o jsonl > audit.jsonl
                                             everything that is kept, a line each, to be kept elsewhere

`*` in --user and --object stands for anything. The log is kept for 90 days, and up to 1 GiB. A number in front of an
outcome says how many of the same were counted together, as refusals of strangers are when there are many.
Administrators see all of it; those of a namespace see what was changed there.";

/// How often the server is asked for what is new.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// Show who changed what
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Only changes since, such as 15m, 2h, 3d or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only changes before
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// Only changes by somebody, in their name or on their behalf
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Only changes of one kind, such as create, patch, delete, redrive, provision or login
    #[arg(long, value_name = "VERB")]
    verb: Option<String>,

    /// Only changes of this object, such as trigger/team-a/orders, or of this name
    #[arg(long, value_name = "OBJECT")]
    object: Option<String>,

    /// Only changes in this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// Only what ended so: done, refused, failed or interrupted
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// At most so many, the newest first
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,

    /// Only lines older than this one: the `next` of an earlier answer
    #[arg(long, value_name = "NUMBER", conflicts_with = "follow")]
    after: Option<u64>,

    /// Go on with what comes, oldest first
    #[arg(short, long)]
    follow: bool,

    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: AuditFormat,

    #[command(flatten)]
    client: ClientArgs,
}

/// `-o` of what lists changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum AuditFormat {
    /// For people
    #[default]
    Table,
    /// Everything, for machines
    Json,
    /// A change per line
    Jsonl,
}

impl Args {
    fn asked(&self) -> AuditLinesAsked {
        let given = [
            ("since", &self.since),
            ("until", &self.until),
            ("user", &self.user),
            ("verb", &self.verb),
            ("object", &self.object),
            ("namespace", &self.namespace),
            ("outcome", &self.outcome),
        ];
        let wanted = given
            .into_iter()
            .filter_map(|(key, value)| value.clone().map(|value| (key, value)));
        AuditLinesAsked {
            wanted: wanted.collect(),
            limit: self.limit.min(AUDIT_PAGE_MAX),
            after: self.after,
            newer: None,
        }
    }
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let ledger = Ledger::of(&remote);
    let mut asked = args.asked();
    if args.output == AuditFormat::Jsonl && !args.follow {
        return export(&ledger, asked, args.limit, terminal).await;
    }
    let first = listed(&ledger, &mut asked, args.limit).await?;
    warn(&first, terminal);
    if !args.follow {
        return show(&first, args.output, terminal);
    }
    let mut newest = first.newest;
    print_in_order(first.items, args.output, terminal)?;
    loop {
        world.clock.sleep(FOLLOW_EVERY).await;
        let mut asked = AuditLinesAsked {
            newer: Some(newest),
            limit: AUDIT_PAGE_MAX,
            ..args.asked()
        };
        let page = listed(&ledger, &mut asked, u64::MAX).await?;
        newest = page.newest.max(newest);
        print_in_order(page.items, args.output, terminal)?;
    }
}

/// Line by line as answers come: all that is kept may be more than fits into memory.
async fn export(
    ledger: &Ledger<'_>,
    mut asked: AuditLinesAsked,
    limit: u64,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let mut left = limit;
    loop {
        asked.limit = left.min(AUDIT_PAGE_MAX);
        let page = ledger.audit(&asked).await?;
        if left == limit {
            warn(&page, terminal);
        }
        terminal.print(&lines(&page.items)?)?;
        left -= (page.items.len() as u64).min(left);
        asked.after = page.next;
        if page.next.is_none() || left == 0 {
            return Ok(());
        }
    }
}

/// So many lines, in as many answers as that takes.
async fn listed(
    ledger: &Ledger<'_>,
    asked: &mut AuditLinesAsked,
    limit: u64,
) -> anyhow::Result<AuditPage> {
    let mut whole: Option<AuditPage> = None;
    loop {
        let have = whole.as_ref().map_or(0, |whole| whole.items.len() as u64);
        asked.limit = (limit - have).min(AUDIT_PAGE_MAX);
        let page = ledger.audit(asked).await?;
        asked.after = page.next;
        let whole = whole.get_or_insert_with(|| AuditPage {
            items: Vec::new(),
            ..page.clone()
        });
        whole.next = page.next;
        whole.items.extend(page.items);
        if whole.next.is_none() || whole.items.len() as u64 >= limit {
            return Ok(std::mem::take(whole));
        }
    }
}

/// Says what is missing, and whether anything can be changed at all.
fn warn(page: &AuditPage, terminal: &mut Terminal) {
    if page.damaged > 0 {
        let lines = count(page.damaged, "line");
        terminal.note(&format!("{lines} of the audit log cannot be read any more"));
    }
    for damage in &page.damage {
        terminal.note(&harmless(damage));
    }
    if let Some(fault) = &page.fault {
        terminal.note(&format!("changes are refused: {}", harmless(fault)));
    }
}

fn show(page: &AuditPage, format: AuditFormat, terminal: &mut Terminal) -> anyhow::Result<()> {
    match format {
        AuditFormat::Json => terminal.print(&json(&serde_json::to_value(page)?))?,
        AuditFormat::Jsonl => terminal.print(&lines(&page.items)?)?,
        AuditFormat::Table => {
            terminal.print(&table(&page.items, terminal.colour_out))?;
            if let Some(next) = page.next {
                terminal.note(&format!("there may be older ones: --after {next}"));
            }
        }
    }
    Ok(())
}

fn print_in_order(
    mut items: Vec<AuditLine>,
    format: AuditFormat,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    items.reverse();
    let text = match format {
        AuditFormat::Table => items
            .iter()
            .map(|line| format!("{}\n", row(line).join("  ").trim_end()))
            .collect(),
        AuditFormat::Json | AuditFormat::Jsonl => lines(&items)?,
    };
    Ok(terminal.print(&text)?)
}

fn lines(items: &[AuditLine]) -> anyhow::Result<String> {
    let mut text = String::new();
    for line in items {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    Ok(text)
}

fn table(items: &[AuditLine], colour: bool) -> String {
    if items.is_empty() {
        return "no such change is kept\n".to_owned();
    }
    let headers = ["AT", "USER", "FROM", "VERB", "OBJECT", "OUTCOME"];
    let headers = headers.map(str::to_owned).to_vec();
    let rows = items.iter().map(row).collect();
    let table = Table { headers, rows };
    table.render(&table.widths(&[]), true, colour)
}

fn row(line: &AuditLine) -> Vec<String> {
    let entry = &line.entry;
    vec![
        moment(line.at),
        who(line),
        harmless(entry.address.as_deref().unwrap_or("-")),
        harmless(&entry.verb),
        about(line),
        outcome(line),
    ]
}

/// Who it was, through whom and for whom.
fn who(line: &AuditLine) -> String {
    let entry = &line.entry;
    let mut text = harmless(entry.user.as_deref().unwrap_or("-"));
    if let Some(behalf) = &entry.on_behalf_of {
        text.push_str(&format!(" for {}", harmless(behalf)));
    }
    if let Some(impersonator) = &entry.impersonator {
        text.push_str(&format!(" by {}", harmless(impersonator)));
    }
    text
}

fn about(line: &AuditLine) -> String {
    match line.entry.object() {
        object if object.is_empty() => harmless(&line.entry.request),
        object => harmless(&object),
    }
}

fn outcome(line: &AuditLine) -> String {
    let entry = &line.entry;
    let mut text = match entry.count {
        1 => String::new(),
        count => format!("{count} × "),
    };
    text.push_str(entry.outcome.name());
    if let Some(status) = entry.status {
        text.push_str(&format!(" {status}"));
    }
    if let Some(reason) = &entry.reason {
        text.push_str(&format!(" {}", harmless(reason)));
    }
    text
}

#[cfg(test)]
mod tests;
