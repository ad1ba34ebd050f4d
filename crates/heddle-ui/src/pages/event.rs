//! One event: where it came in, what each consumer made of it, and what happens next.

use heddle_api::ledger::{ConsumerTrace, Trace, TracedEvent};
use heddle_api::span;
use http::StatusCode;
use maud::{Markup, html};

use super::{PageLook, PageResult};
use crate::draw::timeline;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::verdict;
use crate::words;

/// Events with the same id on one page.
const EVENTS_MAX: usize = 20;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let Some(id) = look.visit.text("id") else {
        return super::events::page(look).await;
    };
    let source = look.visit.text("source");
    let mut path = format!("/heddle/v1/trace?id={}", part(&id));
    if let Some(source) = &source {
        path.push_str(&format!("&source={}", part(source)));
    }
    let trace: Trace = look.ask.get(&path).await?;
    let mut command = format!("heddle trace {}", quoted(&id));
    if let Some(source) = &source {
        command.push_str(&format!(" --source {}", quoted(source)));
    }
    let body = html! {
        @if trace.events.is_empty() { (unknown(&id, &trace)) }
        @for event in trace.events.iter().rev().take(EVENTS_MAX) { (one(event, look)) }
        @if trace.events.len() > EVENTS_MAX { p.quiet { "The newest " (EVENTS_MAX) " of " (trace.events.len()) " events with this id." } }
    };
    let page = RenderedPage::new("event", "events", &id, body).behind(&command, &path);
    Ok(match trace.events.is_empty() {
        true => page.with_status(StatusCode::NOT_FOUND),
        false => page,
    })
}

/// As a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn unknown(id: &str, trace: &Trace) -> Markup {
    html! {
        section.card.state {
            h1 { "No retained event has the id " code { (id) } }
            @match trace.older {
                Some(older) => p { "Looked through the newest events, from place " (words::number(older)) " on. Older ones were not looked at: with its source an event is found wherever it is." },
                None => p { "It was refused, never sent, or retention has let it go." },
            }
            @for loss in &trace.losses { p.notice { (loss) } }
        }
    }
}

fn one(event: &TracedEvent, look: &PageLook) -> Markup {
    let links = &look.links;
    let done = event.summary == "done";
    let wanted: Vec<&ConsumerTrace> = event
        .verdicts
        .iter()
        .filter(|trace| timeline::is_wanted(trace))
        .collect();
    let unwanted: Vec<&ConsumerTrace> = event
        .verdicts
        .iter()
        .filter(|trace| !timeline::is_wanted(trace))
        .collect();
    html! {
        section.card data-offset=(event.offset) aria-label=(format!("Event {}", event.id)) {
            h1 { (event.id) " " span.quiet { (event.type_) } }
            p.lead { @if done { "It has ended everywhere." } @else { (event.summary) } }
            dl.facts {
                dt { "Source" } dd { (event.source) }
                dt { "Accepted" } dd { (words::time(event.accepted_at)) " " span.quiet { (words::since(event.accepted_at, look.now)) } " at " (verdict::object(&event.entry, links)) }
                dt { "Place" } dd { (words::number(event.offset)) }
                dt { "Data" } dd { (words::bytes(event.data_bytes)) }
                @if let Some(request) = &event.request_id { dt { "Request id" } dd { (request) } }
                @if let Some(cause) = &event.cause { dt { "Caused by" } dd { "the reply of " (verdict::object(&cause.consumer, links)) " to the event at place " (words::number(cause.offset)) } }
            }
            @if !wanted.is_empty() { div.picture { (timeline::draw(event)) } }
            @if event.verdicts.is_empty() { p.notice { "No trigger and no subscription could have received it." } }
            @for trace in &wanted { (way(trace, look)) }
            @if !unwanted.is_empty() {
                details { summary { "Not wanted by " (heddle_api::counted(unwanted.len() as u64, "consumer")) }
                    ul.plain { @for trace in unwanted { li { (verdict::object(&trace.consumer, links)) " " span.quiet { (trace.reason) } } } }
                }
            }
        }
    }
}

fn way(trace: &ConsumerTrace, look: &PageLook) -> Markup {
    let word = timeline::verdict(trace.state);
    html! {
        section.way data-verdict=(word) data-consumer=(trace.consumer) {
            h2 { (verdict::mark(word)) " " (verdict::object(&trace.consumer, &look.links)) " " span.quiet { (timeline::state(trace.state)) } }
            @if !trace.reason.is_empty() { p { (trace.reason) } }
            @if !trace.via.is_empty() { p.quiet { "By way of " @for (index, hop) in trace.via.iter().enumerate() { @if index > 0 { " › " } (verdict::object(hop, &look.links)) } } }
            @if let Some(next) = trace.next_attempt_at {
                @let wait = std::time::Duration::try_from(next.duration_since(look.now)).unwrap_or_default();
                p { "Next attempt in " (span(wait)) " " span.quiet { (words::time(next)) } }
            }
            @if !trace.attempts.is_empty() {
                details { summary { (heddle_api::counted(trace.attempts.len() as u64, "attempt")) }
                    div.table { table {
                        thead { tr { th scope="col" { "Attempt" } th scope="col" { "At" } th scope="col" { "Answer" } th scope="col" { "Took" } th scope="col" { "What was said" } } }
                        tbody { @for attempt in &trace.attempts {
                            tr data-row {
                                th scope="row" { (attempt.number) @if attempt.to_dead_letter_sink { " (dead-letter sink)" } }
                                td data-label="At" { (words::time(attempt.at)) }
                                td data-label="Answer" { @match attempt.status { Some(status) => (status), None => "none" } }
                                td data-label="Took" { (words::seconds(attempt.latency_ms / 1000.0)) }
                                td data-label="What was said" { @if let Some(error) = &attempt.error { (error) } @if let Some(reply) = &attempt.bad_reply { " reply: " (reply.reason) } }
                            }
                        } }
                    } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_that_can_be_pasted() {
        assert_eq!(quoted("ord-77121"), "ord-77121");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("x'; rm -rf /"), "'x'\\''; rm -rf /'");
        assert_eq!(quoted("$(id)"), "'$(id)'");
        assert_eq!(quoted("--help"), "'--help'");
        assert_eq!(quoted(""), "''");
    }
}
