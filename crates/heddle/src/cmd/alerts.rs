//! `heddle alerts`: which alerts fire, without a Prometheus.
//!
//! The server evaluates the rules that `heddle export alerts` prints; this puts what it found into lines.

use heddle_api::health::alerts::told::{AlertList, ToldAlert};

use crate::client::ledger::Ledger;
use crate::client::{ClientArgs, Remote};
use crate::output::{ReportFormat, Table, harmless};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle alerts                               what somebody should look at, the most urgent first
  heddle alerts -o json                       with labels, values and the codes they may be about
  heddle health inventory LogFull             what a code means, and what to do
  heddle export alerts                        the same rules for a Prometheus";

/// Show which alerts fire
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How to show them
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let list = Ledger::of(&remote).alerts().await?;
    let colour = terminal.colour_out;
    let text = args.output.render(&list, |list| text(list, colour));
    Ok(terminal.print(&text)?)
}

fn text(list: &AlertList, colour: bool) -> String {
    let Some(looked_at) = list.looked_at else {
        return "nobody has looked yet; ask again in a moment\n".to_owned();
    };
    if list.items.is_empty() {
        return format!("no alert holds, as of {looked_at:.0}\n");
    }
    let headers = ["STATE", "SEVERITY", "ALERT", "SINCE", "SUMMARY"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: list.items.iter().map(row).collect(),
    };
    let mut text = table.page(colour);
    if list.left_out > 0 {
        text.push_str(&format!(
            "\n{} series were too many to look at\n",
            list.left_out
        ));
    }
    text
}

fn row(alert: &ToldAlert) -> Vec<String> {
    vec![
        alert.state.name().to_owned(),
        harmless(&alert.severity),
        harmless(&alert.name),
        format!("{:.0}", alert.since),
        harmless(&alert.summary),
    ]
}

#[cfg(test)]
mod tests {
    use heddle_api::health::alerts::told::AlertState;

    use super::*;

    #[test]
    fn each_alert_is_a_line_with_what_it_says() {
        let alert = ToldAlert {
            name: "HeddleBacklogAge".to_owned(),
            state: AlertState::Firing,
            severity: "warning".to_owned(),
            since: "2026-05-01T12:00:00Z".parse().unwrap(),
            value: Some(754.0),
            labels: [("ns".to_owned(), "team-a".to_owned())].into(),
            summary: "the oldest event of team-a/\u{1b}[31morders waits for 12 min".to_owned(),
            codes: vec!["BacklogOld".to_owned()],
            page: "dead-letters".to_owned(),
        };
        let mut list = AlertList {
            looked_at: Some("2026-05-01T12:30:00Z".parse().unwrap()),
            items: vec![alert],
            left_out: 0,
        };
        let shown = text(&list, false);
        let line = shown.lines().nth(1).unwrap();
        for word in [
            "firing",
            "warning",
            "HeddleBacklogAge",
            "2026-05-01T12:00:00Z",
            "waits for 12 min",
        ] {
            assert!(line.contains(word), "{shown}");
        }
        assert!(!shown.contains('\u{1b}'), "{shown}");
        list.items.clear();
        assert_eq!(
            text(&list, false),
            "no alert holds, as of 2026-05-01T12:30:00Z\n"
        );
        assert!(text(&AlertList::default(), false).starts_with("nobody has looked yet"));
    }
}
