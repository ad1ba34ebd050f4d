//! Dead letters as people read them.

use heddle_api::ledger::{DeadLetter, DeadLetterDetail, DeadLetterPage};
use heddle_api::raw_json::{RawJson, indented};
use jiff::Timestamp;

use crate::output::{Table, age, count, harmless, moment, span, yaml};
use crate::terminal::{Tone, paint};

/// One line each.
pub(super) fn table(page: &DeadLetterPage, now: Timestamp, colour: bool) -> String {
    let headers = [
        "NAME", "CONSUMER", "TYPE", "ID", "ATTEMPTS", "REDRIVES", "AGE", "REASON",
    ];
    let row = |letter: &DeadLetter| {
        vec![
            harmless(&letter.name),
            harmless(&letter.consumer),
            harmless(&letter.type_),
            harmless(&letter.id),
            letter.attempts.to_string(),
            letter.redrives.to_string(),
            span(age(letter.dead_at, now)),
            harmless(&reason(letter)),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: page.items.iter().map(row).collect(),
    };
    table.page(colour)
}

/// Why it rests. A reply is told from an event by it.
fn reason(letter: &DeadLetter) -> String {
    match &letter.reply {
        Some(_) => format!("(a reply) {}", letter.reason),
        None => letter.reason.clone(),
    }
}

/// Everything about one, the event last.
pub(super) fn detail(detail: &DeadLetterDetail, colour: bool) -> String {
    let letter = &detail.summary;
    let mut text = format!("{}\n", paint(colour, Tone::Strong, &harmless(&letter.name)));
    let mut line = |name: &str, value: &str| {
        text.push_str(&format!("  {name:10} {}\n", harmless(value)));
    };
    line("consumer", &letter.consumer);
    if let Some(reply) = &letter.reply {
        let what = format!(
            "{}; the event below was delivered, and this is what came back for it",
            reply.fault
        );
        line("reply", &what);
        if !reply.content_type.is_empty() {
            line("of type", &reply.content_type);
        }
    }
    line(
        "event",
        &format!(
            "{} from {}, place {} in the log",
            letter.id, letter.source, letter.offset
        ),
    );
    line("type", &letter.type_);
    line("accepted", &moment(letter.accepted_at));
    line("dead since", &moment(letter.dead_at));
    line("reason", &letter.reason);
    let answer = letter
        .status
        .map_or_else(|| "none".to_owned(), |status| status.to_string());
    line("answer", &answer);
    line(
        "tried",
        &format!(
            "{}, redriven {}",
            count(letter.attempts.into(), "time"),
            count(letter.redrives.into(), "time")
        ),
    );
    if let Some(sink) = &letter.sink {
        line("sink", sink);
    }
    if let Some(answer) = &detail.answer {
        line("said", answer);
    }
    text.push('\n');
    text.push_str(&block(&detail.event.indented()));
    text
}

/// The same for machines, with the numbers of the event as they were written.
pub(super) fn detail_as_json(detail: &DeadLetterDetail) -> String {
    let text = serde_json::to_string(detail).expect("reports have string keys only");
    format!("{}\n", indented(&text))
}

/// Likewise. An event with numbers that reading would change is in it as JSON, which YAML has room for.
pub(super) fn detail_as_yaml(detail: &DeadLetterDetail) -> String {
    let is_plain = detail.event.has_plain_numbers();
    let event = match is_plain {
        true => detail.event.clone(),
        false => RawJson::default(),
    };
    let shown = DeadLetterDetail {
        event,
        ..detail.clone()
    };
    let mut value = serde_json::to_value(shown).expect("reports have string keys only");
    if is_plain {
        return yaml(&value);
    }
    if let Some(members) = value.as_object_mut() {
        members.remove("event");
    }
    let text = yaml(&value);
    let event = detail.event.indented();
    let event: Vec<&str> = event.lines().map(str::trim).collect();
    format!("{}\nevent: {}\n", text.trim_end(), event.join(" "))
}

/// JSON escapes what could move a cursor, except for the few controls above ASCII.
fn block(event: &str) -> String {
    event
        .lines()
        .map(|line| format!("  {}\n", harmless(line)))
        .collect()
}
