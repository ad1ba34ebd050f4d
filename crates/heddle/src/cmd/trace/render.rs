//! A trace as people read it: the event, then each consumer with its verdict and its attempts.

use std::fmt::Write as _;
use std::time::Duration;

use heddle_api::ledger::{Attempt, BadReply, ConsumerTrace, EventState, Trace, TracedEvent};
use heddle_api::refused_events::RefusedEvent;
use jiff::Timestamp;

use crate::output::{Table, age, count, harmless, moment, span};
use crate::terminal::{Tone, paint};

/// The whole trace.
pub(in crate::cmd) fn text(trace: &Trace, now: Timestamp, colour: bool) -> String {
    let events: Vec<String> = (trace.events.iter())
        .map(|event| event_text(event, now, colour))
        .collect();
    let mut text = events.join("\n");
    for refusal in &trace.refused {
        text.push_str(&format!("\n{}\n", harmless(&refused(refusal))));
    }
    for loss in &trace.losses {
        text.push_str(&format!("\n{}\n", harmless(loss)));
    }
    if let Some(older) = trace.older {
        text.push_str(&format!(
            "\nthere may be more: events before place {older} in the log were not looked at; --source finds all of one source\n"
        ));
    }
    text
}

/// One publish of it that was refused.
pub(super) fn refused(refusal: &RefusedEvent) -> String {
    format!(
        "it was refused at {} by {}, sent by {}: {} {}: {}",
        moment(refusal.at),
        refusal.door,
        refusal.who,
        refusal.status,
        refusal.code,
        refusal.message
    )
}

fn event_text(event: &TracedEvent, now: Timestamp, colour: bool) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let id = paint(colour, Tone::Strong, &harmless(&event.id));
    line(format!(
        "{id}  {} from {}",
        harmless(&event.type_),
        harmless(&event.source)
    ));
    line(format!(
        "  accepted {} at {}, place {} in the log, {} of data",
        moment(event.accepted_at),
        harmless(&event.entry),
        event.offset,
        count(event.data_bytes, "byte")
    ));
    if let Some(request_id) = &event.request_id {
        line(format!("  with X-Request-Id {}", harmless(request_id)));
    }
    if let Some(cause) = &event.cause {
        line(format!(
            "  a reply of {} to the event at place {}",
            harmless(&cause.consumer),
            cause.offset
        ));
    }
    line(format!("  {}", harmless(&event.summary)));
    if event.verdicts.is_empty() {
        line("  no trigger and no subscription could be reached from there".to_owned());
    }
    for verdict in &event.verdicts {
        text.push('\n');
        verdict_text(&mut text, event, verdict, now, colour);
    }
    text
}

fn verdict_text(
    text: &mut String,
    event: &TracedEvent,
    verdict: &ConsumerTrace,
    now: Timestamp,
    colour: bool,
) {
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let (word, tone) = state(verdict.state);
    let reason = match verdict.reason.as_str() {
        "" => String::new(),
        reason => format!(": {}", harmless(reason)),
    };
    let consumer = paint(colour, Tone::Strong, &harmless(&verdict.consumer));
    line(format!(
        "  {consumer}  {}{reason}",
        paint(colour, tone, word)
    ));
    if !verdict.via.is_empty() {
        line(format!("    via {}", harmless(&verdict.via.join(" > "))));
    }
    if let Some(at) = verdict.next_attempt_at {
        line(format!(
            "    next attempt at {}, {}",
            moment(at),
            ahead(at, now)
        ));
    }
    if let Some(at) = verdict.ended_at {
        let took = age(event.accepted_at, at);
        line(format!(
            "    ended {}, {} after it was accepted",
            moment(at),
            span(took)
        ));
    }
    if !verdict.attempts.is_empty() {
        let table = attempts(&verdict.attempts);
        for row in table.render(&table.widths(&[]), true, colour).lines() {
            line(format!("    {}", row.trim_end()));
        }
    }
    for reply in verdict
        .attempts
        .iter()
        .filter_map(|attempt| attempt.bad_reply.as_ref())
    {
        line(format!("    {}", harmless(&bad_reply(reply))));
    }
}

fn ahead(at: Timestamp, now: Timestamp) -> String {
    match age(now, at) {
        Duration::ZERO => "now".to_owned(),
        wait => format!("in {}", span(wait)),
    }
}

fn attempts(attempts: &[Attempt]) -> Table {
    let headers = ["ATTEMPT", "AT", "ANSWER", "TOOK", "ERROR"];
    let row = |attempt: &Attempt| {
        let to = if attempt.to_dead_letter_sink {
            " (dead-letter sink)"
        } else {
            ""
        };
        vec![
            format!("{}{to}", attempt.number),
            moment(attempt.at),
            attempt
                .status
                .map_or_else(|| "none".to_owned(), |status| status.to_string()),
            latency(attempt),
            harmless(attempt.error.as_deref().unwrap_or_default()),
        ]
    };
    Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: attempts.iter().map(row).collect(),
    }
}

/// What became of a reply that could not go on.
fn bad_reply(reply: &BadReply) -> String {
    let kept = match (&reply.dead_letter, &reply.discarded_by) {
        (_, Some(by)) => format!("thrown away by {by}"),
        (Some(name), None) => format!("kept as dead letter {name}"),
        (None, None) => "not kept, for too many are".to_owned(),
    };
    format!("its reply could not go on: {} ({kept})", reply.reason)
}

fn latency(attempt: &Attempt) -> String {
    // Whatever a server sends must not end the command.
    let latency = Duration::try_from_secs_f64(attempt.latency_ms / 1000.0);
    span(latency.unwrap_or_default())
}

fn state(state: EventState) -> (&'static str, Tone) {
    match state {
        EventState::Filtered => ("filtered", Tone::Quiet),
        EventState::Pending => ("pending", Tone::Strong),
        EventState::Delivering => ("delivering", Tone::Strong),
        EventState::Retrying => ("retrying", Tone::Bad),
        EventState::Waiting => ("waiting", Tone::Strong),
        EventState::Delivered => ("delivered", Tone::Good),
        EventState::DeadLettered => ("dead-lettered", Tone::Bad),
        EventState::Expired => ("expired", Tone::Bad),
        EventState::Removed => ("removed", Tone::Bad),
    }
}

/// Everything that has happened, a line each. A line never changes, so what is new is what was not there before.
pub(super) fn steps(trace: &Trace) -> Vec<String> {
    let mut steps = Vec::new();
    for event in &trace.events {
        steps.push(format!(
            "{} accepted at {}, place {}",
            moment(event.accepted_at),
            event.entry,
            event.offset
        ));
        for verdict in &event.verdicts {
            verdict_steps(event.offset, verdict, &mut steps);
        }
    }
    steps.iter().map(|step| harmless(step)).collect()
}

fn verdict_steps(offset: u64, verdict: &ConsumerTrace, steps: &mut Vec<String>) {
    let consumer = &verdict.consumer;
    for attempt in &verdict.attempts {
        let answer = match (attempt.status, &attempt.error) {
            (Some(status), _) => status.to_string(),
            (None, Some(error)) => error.clone(),
            (None, None) => "no answer".to_owned(),
        };
        steps.push(format!(
            "{} {consumer} attempt {}: {answer} after {}",
            moment(attempt.at),
            attempt.number,
            latency(attempt)
        ));
        if let Some(reply) = &attempt.bad_reply {
            steps.push(format!(
                "{} {consumer} {}",
                moment(attempt.at),
                bad_reply(reply)
            ));
        }
    }
    let mut step = match verdict.ended_at {
        Some(at) => format!("{} {consumer} ", moment(at)),
        None => format!("place {offset}: {consumer} "),
    };
    step.push_str(state(verdict.state).0);
    if !verdict.reason.is_empty() {
        write!(step, ": {}", verdict.reason).expect("a string takes everything");
    }
    steps.push(step);
}
