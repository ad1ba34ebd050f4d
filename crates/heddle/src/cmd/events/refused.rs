//! `heddle events --refused`: which publishes were refused lately, of whom, where and why.

use heddle_api::refused_events::RefusedEvent;

use super::{EventsFormat, FindEventsArgs};
use crate::client::Remote;
use crate::client::ledger::Ledger;
use crate::failure::Failure;
use crate::output::{Table, harmless, json, moment};
use crate::terminal::Terminal;

/// Refusals in one answer, at most.
const REFUSED_MAX: u64 = 500;

pub(super) async fn list(
    args: &FindEventsArgs,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let id = match &args.query[..] {
        [] => None,
        [id] => Some(id.as_str()),
        _ => {
            let text = "of what was refused only an id can be asked for: one word";
            return Err(Failure::Usage(text.to_owned()).into());
        }
    };
    let limit = args.limit.min(REFUSED_MAX);
    let found = Ledger::of(remote).refused(id, limit).await?;
    match args.output {
        EventsFormat::Table => {
            terminal.print(&table(&found.items, terminal.colour_out))?;
            let shown = found.items.len() as u64;
            if let Some(total) = found.total.filter(|total| *total > shown && id.is_none()) {
                terminal.note(&format!(
                    "{total} were refused since the server began; the newest of each publisher are remembered"
                ));
            }
        }
        EventsFormat::Json => terminal.print(&json(&serde_json::to_value(&found)?))?,
        EventsFormat::Jsonl => {
            for event in &found.items {
                terminal.say(&serde_json::to_string(event)?)?;
            }
        }
        EventsFormat::Cloudevents => {
            let text = "what a refused event carried is kept nowhere; use -o json";
            return Err(Failure::Usage(text.to_owned()).into());
        }
    }
    Ok(())
}

fn table(events: &[RefusedEvent], colour: bool) -> String {
    if events.is_empty() {
        return "nothing was refused lately\n".to_owned();
    }
    let headers = ["REFUSED", "CODE", "AT", "WHO", "FROM", "ID", "WHY"];
    let headers = headers.map(str::to_owned).to_vec();
    let rows = events.iter().map(row).collect();
    let table = Table { headers, rows };
    table.render(&table.widths(&[]), true, colour)
}

fn row(event: &RefusedEvent) -> Vec<String> {
    let text = |text: &Option<String>| text.as_deref().map(harmless).unwrap_or_default();
    vec![
        moment(event.at),
        format!("{} {}", event.status, event.code),
        harmless(&event.door),
        harmless(&event.who),
        text(&event.address),
        text(&event.id),
        harmless(&event.message),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_line_with_whom_it_was_refused_and_why() {
        let event = RefusedEvent {
            door: "channel/kyma-integration/shop".to_owned(),
            who: "application/depot".to_owned(),
            address: Some("10.0.0.7".to_owned()),
            status: 403,
            code: "forbidden".to_owned(),
            message: "apply a\npolicy".to_owned(),
            id: Some("order-17".to_owned()),
            ..RefusedEvent::default()
        };
        let text = table(&[event], false);
        for part in [
            "403 forbidden",
            "channel/kyma-integration/shop",
            "application/depot",
            "10.0.0.7",
            "order-17",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(table(&[], false), "nothing was refused lately\n");
    }
}
