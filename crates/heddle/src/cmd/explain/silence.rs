//! `heddle explain silence`: why did nothing arrive between two moments?
//!
//! The server says what came, by which terms it missed and what would have let it pass; this puts it into lines.

use heddle_api::silence::{MissGroup, Silence};

use super::qualified;
use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, harmless};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle explain silence trigger team-a/orders
                                             why nothing came in the last hour
  heddle explain silence trigger team-a/orders --since 2026-05-01T14:00:00Z --until 2026-05-01T15:00:00Z
  heddle explain silence subscription kyma-integration/shop-team-a --since 2d -o json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct SilenceArgs {
    /// What got nothing
    #[arg(value_enum, value_name = "KIND")]
    kind: SilentKind,

    /// NAMESPACE/NAME, or NAME with -n
    #[arg(value_name = "NAME")]
    name: String,

    /// Namespace of a name without one; the default is the one of the context
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// From when on, such as 15m, 2h, 3d or 2026-05-01T12:00:00Z
    #[arg(long, default_value = "1h", value_name = "TIME")]
    since: String,

    /// Until when; the default is now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// What has a filter, or a way that events take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SilentKind {
    Trigger,
    Subscription,
}

impl SilentKind {
    fn word(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Subscription => "subscription",
        }
    }
}

pub(super) async fn explain(
    args: &SilenceArgs,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let namespace = args.namespace.as_deref();
    let default = namespace.unwrap_or(&remote.namespace);
    let name = qualified(&args.name, namespace, default)?;
    let consumer = format!("{}/{name}", args.kind.word());
    let silence = Ledger::of(remote)
        .silence(&consumer, &args.since, args.until.as_deref())
        .await?;
    let colour = terminal.colour_out;
    let text = args
        .output
        .render(&silence, |silence| text(silence, colour));
    Ok(terminal.print(&text)?)
}

fn text(silence: &Silence, colour: bool) -> String {
    let (since, until) = (silence.since, silence.until);
    let consumer = harmless(&silence.consumer);
    let mut text = format!("{consumer} from {since:.0} to {until:.0}\n");
    for line in silence.in_words() {
        text.push_str(&format!("  {}\n", harmless(&line)));
    }
    if silence.misses.is_empty() {
        return text;
    }
    let headers = ["EVENTS", "NEWEST", "TERMS THAT DO NOT HOLD"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: silence.misses.iter().map(row).collect(),
    };
    text.push('\n');
    text + &table.page(colour)
}

fn row(group: &MissGroup) -> Vec<String> {
    let sample = group.sample.as_ref().map(|sample| sample.id.clone());
    let terms = match group.terms.is_empty() {
        true => "others, too many to tell apart".to_owned(),
        false => group.terms.join("; "),
    };
    vec![
        group.count.to_string(),
        harmless(&sample.unwrap_or_default()),
        harmless(&terms),
    ]
}

#[cfg(test)]
mod tests {
    use heddle_api::ledger::ExplainedEvent;
    use heddle_api::silence::FilterEdit;

    use super::*;

    #[test]
    fn the_answer_reads_from_the_most_likely_to_the_rest() {
        let silence = Silence {
            consumer: "trigger/team-a/orders".to_owned(),
            since: "2026-05-01T12:00:00Z".parse().unwrap(),
            until: "2026-05-01T14:00:00Z".parse().unwrap(),
            came: 100,
            edits: vec![FilterEdit {
                attribute: "type".to_owned(),
                dialect: "exact".to_owned(),
                asked: "order.craeted".to_owned(),
                instead: "order.created".to_owned(),
                matches: 93,
            }],
            misses: vec![MissGroup {
                terms: vec!["type is \"order.craeted\"".to_owned()],
                count: 100,
                sample: Some(ExplainedEvent {
                    offset: 7,
                    source: "shop".to_owned(),
                    id: "ord-7".to_owned(),
                    type_: "order.created".to_owned(),
                    reason: String::new(),
                }),
            }],
            ..Silence::default()
        };
        insta::assert_snapshot!(text(&silence, false), @r#"
        trigger/team-a/orders from 2026-05-01T12:00:00Z to 2026-05-01T14:00:00Z
          100 events reached it, and its filter let none pass
          it would have been 93 events if type were "order.created" instead of "order.craeted"

        EVENTS   NEWEST   TERMS THAT DO NOT HOLD
        100      ord-7    type is "order.craeted"
        "#);
    }
}
