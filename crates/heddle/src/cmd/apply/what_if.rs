//! `heddle apply --what-if` and `heddle delete --what-if`: which of the stored events consumers would have got more or fewer.
//!
//! The server checks each object and fills it in as it would when applying it (a dry run), and then says what all of them
//! together would have done. Nothing is stored. What other kinds would make heddle do is not told, and that is said.

use heddle_api::what_if::{ChangedConsumer, ChangedObject, WhatIf, WhatIfRequest};
use serde_json::Value;

use super::{Manner, Run};
use crate::client::Remote;
use crate::client::ledger::Ledger;
use crate::manifest::Document;
use crate::output::{Format, Table, count, harmless, json, yaml};
use crate::terminal::Terminal;
use crate::wire::World;

/// Whether it is known what an object does to events. If not, that is said.
pub(in crate::cmd) fn is_compared(kind: &str, name: &str, terminal: &mut Terminal) -> bool {
    if WhatIfRequest::KINDS.contains(&kind) {
        return true;
    }
    let object = format!("{} {}", harmless(kind), harmless(name));
    terminal.note(&match WhatIfRequest::INDIRECT.contains(&kind) {
        true => format!(
            "{object} is left out: heddle makes and removes links, brokers, policies and sources for it, and what those would do is not compared"
        ),
        false => format!("{object} decides nothing about events and is left out"),
    });
    false
}

/// Why there is nothing to ask.
fn nothing_compared() -> anyhow::Error {
    anyhow::anyhow!(
        "nothing in it can be compared; what {} would do can",
        WhatIfRequest::KINDS.join(", ")
    )
}

/// What it would do if objects were gone.
pub(in crate::cmd) async fn tell_of_deletions(
    delete: Vec<ChangedObject>,
    remote: &Remote,
    last: u64,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    if delete.is_empty() {
        return Err(nothing_compared());
    }
    let request = WhatIfRequest {
        apply: Vec::new(),
        delete,
        last,
    };
    let told = Ledger::of(remote).what_if(&request).await?;
    Ok(terminal.print(&text(&told, terminal.colour_out))?)
}

pub(super) async fn tell(
    documents: &[Document],
    remote: Remote,
    (manner, last): (Manner, u64),
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let output = manner.output;
    let manner = Manner {
        dry_run: true,
        // Whose fields they are matters when something is stored.
        force_conflicts: true,
        ..manner
    };
    let mut run = Run::begin(remote, manner, world).await?;
    let mut apply = Vec::new();
    for document in documents {
        if !is_compared(document.kind(), document.name(), terminal) {
            continue;
        }
        let applied = run.apply(document, terminal).await;
        apply.push(
            applied
                .map_err(|error| error.context(document.origin.clone()))?
                .after,
        );
    }
    if apply.is_empty() {
        return Err(nothing_compared());
    }
    let request = WhatIfRequest {
        apply: apply.into_iter().map(whole).collect(),
        delete: Vec::new(),
        last,
    };
    let told = Ledger::of(&run.remote).what_if(&request).await?;
    let text = match output {
        Format::Json => json(&serde_json::to_value(&told)?),
        Format::Yaml => yaml(&serde_json::to_value(&told)?),
        Format::Table | Format::Wide | Format::Name => text(&told, terminal.colour_out),
    };
    Ok(terminal.print(&text)?)
}

/// Without what only the server's bookkeeping needs.
fn whole(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

fn text(told: &WhatIf, colour: bool) -> String {
    let mut text = match (told.examined, &told.from, &told.to) {
        (0, ..) => "no stored event to try it on\n".to_owned(),
        (examined, Some(from), Some(to)) => {
            format!(
                "of the newest {}, accepted from {from:.0} to {to:.0}:\n",
                count(examined, "event")
            )
        }
        (examined, ..) => format!("of the newest {}:\n", count(examined, "event")),
    };
    for problem in &told.problems {
        text.push_str(&format!("not in force: {}\n", harmless(problem)));
    }
    if told.consumers.is_empty() {
        return text + "nobody would get others than now\n";
    }
    let headers = ["CONSUMER", "BEFORE", "AFTER", "GAINED", "LOST", "NOTE"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: told.consumers.iter().map(row).collect(),
    };
    text + &table.page(colour)
}

fn row(consumer: &ChangedConsumer) -> Vec<String> {
    let note = match (consumer.created, consumer.deleted) {
        (true, _) => "created".to_owned(),
        (_, true) => "deleted".to_owned(),
        _ => example(consumer),
    };
    vec![
        harmless(&consumer.consumer),
        consumer.before.to_string(),
        consumer.after.to_string(),
        consumer.gained.to_string(),
        consumer.lost.to_string(),
        note,
    ]
}

fn example(consumer: &ChangedConsumer) -> String {
    let gained = consumer
        .gained_events
        .first()
        .map(|event| ("gained", event));
    let lost = consumer.lost_events.first().map(|event| ("lost", event));
    let shown = gained.or(lost);
    shown.map_or_else(String::new, |(word, event)| {
        format!(
            "{word} {} of type {}",
            harmless(&event.id),
            harmless(&event.type_)
        )
    })
}

#[cfg(test)]
mod tests {
    use heddle_api::ledger::ExplainedEvent;

    use super::*;
    use crate::client::stand_in::StandIn;
    use crate::cmd::testing::Screen;

    #[tokio::test]
    async fn what_is_deleted_is_asked_for_and_what_is_not_compared_is_said() {
        let server = StandIn::start().await;
        let told = serde_json::to_value(WhatIf::default()).unwrap();
        server.answers("POST /heddle/v1/what-if", 200, &told);
        let screen = Screen::default();
        let mut terminal = screen.terminal();
        for (kind, words) in [
            ("EventFlow", "is not compared"),
            ("ConfigMap", "decides nothing about events"),
        ] {
            assert!(!is_compared(kind, "x", &mut terminal));
            assert!(screen.err().contains(words), "{kind}: {}", screen.err());
        }
        assert!(is_compared("Broker", "x", &mut terminal));
        let gone = ChangedObject {
            kind: "Broker".to_owned(),
            namespace: "team-a".to_owned(),
            name: "x".to_owned(),
        };
        let remote = server.remote();
        tell_of_deletions(vec![gone], &remote, 7, &mut terminal)
            .await
            .unwrap();
        let asked = server.asked()[0].json();
        assert_eq!(
            (&asked["delete"][0]["kind"], &asked["last"]),
            (&"Broker".into(), &7.into())
        );
        assert!(screen.out().contains("nobody would get others"));
        let refused = tell_of_deletions(Vec::new(), &remote, 7, &mut terminal).await;
        assert!(refused.unwrap_err().to_string().contains("Channel"));
    }

    #[test]
    fn who_would_get_what_is_a_table() {
        let event = ExplainedEvent {
            offset: 7,
            source: "shop".to_owned(),
            id: "ord-7".to_owned(),
            type_: "order.paid".to_owned(),
            reason: String::new(),
        };
        let mut told = WhatIf {
            examined: 10,
            from: "2026-01-01T00:00:00Z".parse().ok(),
            to: "2026-01-01T01:00:00Z".parse().ok(),
            consumers: vec![
                ChangedConsumer {
                    consumer: "trigger/team-a/orders".to_owned(),
                    before: 4,
                    after: 3,
                    gained: 1,
                    lost: 2,
                    gained_events: vec![event],
                    ..ChangedConsumer::default()
                },
                ChangedConsumer {
                    consumer: "trigger/team-a/new".to_owned(),
                    created: true,
                    after: 10,
                    gained: 10,
                    ..ChangedConsumer::default()
                },
            ],
            problems: vec!["trigger/team-a/x: its filter cannot be read".to_owned()],
        };
        insta::assert_snapshot!(text(&told, false), @r"
        of the newest 10 events, accepted from 2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z:
        not in force: trigger/team-a/x: its filter cannot be read
        CONSUMER                BEFORE   AFTER   GAINED   LOST   NOTE
        trigger/team-a/orders   4        3       1        2      gained ord-7 of type order.paid
        trigger/team-a/new      0        10      10       0      created
        ");
        told = WhatIf::default();
        assert_eq!(
            text(&told, false),
            "no stored event to try it on\nnobody would get others than now\n"
        );
    }
}
