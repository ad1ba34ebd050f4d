//! One event: where it came in, what each consumer made of it, what happens next, what it has, and what came of it.
//!
//! Beside the time line stands the event itself (`whole`); where it comes from and what it caused is a tree (`family`); who may
//! act can publish it again as a new event (`republish`). While something is under way the page looks again by itself.

mod family;
pub(crate) mod republish;
mod whole;

use heddle_api::ledger::{ConsumerTrace, EventState, Trace, TracedEvent};
use heddle_api::span;
use http::StatusCode;
use maud::{Markup, html};

pub(crate) use self::whole::ExactEvent;
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::timeline;
use crate::frame::RenderedPage;
use crate::links::part;
pub(crate) use crate::parts::command::quoted;
use crate::parts::verdict;
use crate::words;

/// Events with the same id on one page, and those of which all is shown.
const EVENTS_MAX: usize = 20;
const WHOLE_MAX: usize = 5;
/// Between two looks, in milliseconds: while it is under way and its consumers have news, and afterwards.
const FRESH_MS: [u32; 2] = [1_000, 30_000];

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
    let mut shown = Vec::new();
    for (index, event) in trace.events.iter().rev().take(EVENTS_MAX).enumerate() {
        shown.push(one(event, index < WHOLE_MAX, look).await);
    }
    let body = html! {
        @if trace.events.is_empty() { (unknown(&id, &trace)) }
        @if !trace.refused.is_empty() { (super::refused::beside(&trace.refused, look)) }
        @for event in &shown { (event) }
        @if trace.events.len() > EVENTS_MAX { p.quiet { "The newest " (EVENTS_MAX) " of " (trace.events.len()) " events with this id." } }
    };
    let page = RenderedPage::new("event", "events", &id, body).behind(&command, &path);
    Ok(match trace.events.is_empty() {
        true => page.with_status(StatusCode::NOT_FOUND),
        false => page,
    })
}

/// The page of the event at a place of the log.
pub(crate) async fn at(place: &str, look: &PageLook) -> Result<String, AnswerFault> {
    let exact = ExactEvent::ask(place.parse().unwrap_or(u64::MAX), look).await?;
    let text = |name: &str| exact.whole.event.get(name).and_then(|value| value.as_str());
    Ok(look
        .links
        .trace(text("id").unwrap_or_default(), text("source")))
}

fn unknown(id: &str, trace: &Trace) -> Markup {
    html! {
        section.card.state {
            h1 { "No retained event has the id " code { (id) } }
            @match trace.older {
                Some(older) => p { "Looked through the newest events, from place " (words::number(older)) " on. Older ones were not looked at: with its source an event is found wherever it is." },
                None if !trace.refused.is_empty() => p { "It was refused." },
                None => p { "It was refused long ago, never sent, or retention has let it go." },
            }
            @for loss in &trace.losses { p.notice { (loss) } }
        }
    }
}

/// Whether something will still happen to it by itself.
fn is_under_way(event: &TracedEvent) -> bool {
    let moves = |trace: &ConsumerTrace| {
        matches!(
            trace.state,
            EventState::Pending
                | EventState::Delivering
                | EventState::Retrying
                | EventState::Waiting
        )
    };
    event.verdicts.iter().any(moves)
}

async fn one(event: &TracedEvent, with_all: bool, look: &PageLook) -> Markup {
    let (wanted, unwanted): (Vec<&ConsumerTrace>, Vec<&ConsumerTrace>) = event
        .verdicts
        .iter()
        .partition(|trace| timeline::is_wanted(trace));
    let whole = match with_all {
        true => Some(ExactEvent::ask(event.offset, look).await),
        false => None,
    };
    let caused = match look.visit.text("caused") {
        Some(_) => Some(family::children(event, look).await),
        None => None,
    };
    let [busy, calm] = FRESH_MS;
    // What takes a look through the log is not done again and again.
    let fresh = match (is_under_way(event), caused.is_some()) {
        (_, true) => None,
        (true, false) => Some(busy),
        (false, false) => Some(calm),
    };
    html! {
        section.card data-offset=(event.offset) aria-label=(format!("Event {}", event.id)) data-fresh=[fresh] {
            (head(event, look))
            (acts(event, look))
            @if !wanted.is_empty() { div.picture { (timeline::draw(event)) } }
            @if event.verdicts.is_empty() { p.notice { "No trigger and no subscription could have received it." } }
            div.beside {
                div { @for trace in &wanted { (way(event, trace, look)) }
                    @if !unwanted.is_empty() {
                        details { summary { "Not wanted by " (heddle_api::counted(unwanted.len() as u64, "consumer")) }
                            ul.plain { @for trace in &unwanted { li { (verdict::object(&trace.consumer, &look.links)) " " span.quiet { (trace.reason) } } } }
                        }
                    }
                    (family::ancestors(event, look).await)
                    @if let Some(caused) = &caused { (caused) }
                }
                div { @match &whole { Some(Ok(exact)) => (whole::shown(exact, &look.links)), Some(Err(fault)) => p.notice { (fault) }, None => {} } }
            }
        }
    }
}

fn head(event: &TracedEvent, look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        h1 { (event.id) " " span.quiet { (event.type_) } }
        p.lead { @if event.summary == "done" { "It has ended everywhere." } @else { (event.summary) } }
        dl.facts {
            dt { "Source" } dd { (event.source) }
            dt { "Accepted" } dd { (words::time(event.accepted_at)) " " span.quiet { (words::since(event.accepted_at, look.now)) } " at " (verdict::object(&event.entry, links)) }
            dt { "Place" } dd { (words::number(event.offset)) }
            dt { "Data" } dd { (words::bytes(event.data_bytes)) }
            @if let Some(request) = &event.request_id { dt { "Request id" } dd { (request) } }
            @if let Some(cause) = &event.cause { dt { "Caused by" } dd { "the reply of " (verdict::object(&cause.consumer, links)) " to " a href=(links.place(cause.offset)) { "the event at place " (words::number(cause.offset)) } } }
        }
    }
}

fn acts(event: &TracedEvent, look: &PageLook) -> Markup {
    let passed = event.verdicts.iter().flat_map(|trace| &trace.via);
    let mut places = std::iter::once(&event.entry).chain(passed);
    let may = places.any(|place| look.visit.may_operate(Some(place)));
    let again = format!("events/{}/republish", event.offset);
    let caused = format!(
        "{}&caused=1",
        look.links.trace(&event.id, Some(&event.source))
    );
    html! {
        div.acts {
            @if may { a.button href=(look.links.page(&again)) data-dialog { "Publish again…" } }
            a.button href=(caused) { "Find what it caused" }
        }
    }
}

fn way(event: &TracedEvent, trace: &ConsumerTrace, look: &PageLook) -> Markup {
    let word = timeline::verdict(trace.state);
    let rests = format!(
        "dead-letters?consumer={}&id={}",
        part(&trace.consumer),
        part(&event.id)
    );
    html! {
        section.way data-verdict=(word) data-consumer=(trace.consumer) data-state=(trace.state.name()) {
            h2 { (verdict::mark(word)) " " (verdict::object(&trace.consumer, &look.links)) " " span.quiet { (timeline::state(trace.state)) } }
            @if !trace.reason.is_empty() { p { (trace.reason) } }
            @if trace.state == EventState::DeadLettered { p { a href=(look.links.page(&rests)) { "See the dead letter" } } }
            @if !trace.via.is_empty() { p.quiet { "By way of " @for (index, hop) in trace.via.iter().enumerate() { @if index > 0 { " › " } (verdict::object(hop, &look.links)) } } }
            @if let Some(next) = trace.next_attempt_at {
                @let wait = std::time::Duration::try_from(next.duration_since(look.now)).unwrap_or_default();
                p { "Next attempt in " (span(wait)) " " span.quiet { (words::time(next)) } }
            }
            @if !trace.attempts.is_empty() { (attempts(trace, look)) }
        }
    }
}

fn attempts(trace: &ConsumerTrace, look: &PageLook) -> Markup {
    html! {
        details { summary { (heddle_api::counted(trace.attempts.len() as u64, "attempt")) }
            div.table { table {
                thead { tr { th scope="col" { "Attempt" } th scope="col" { "At" } th scope="col" { "Answer" } th scope="col" { "Took" } th scope="col" { "What was said" } } }
                tbody { @for attempt in &trace.attempts {
                    tr data-row {
                        th scope="row" { (attempt.number) @if attempt.to_dead_letter_sink { " (dead-letter sink)" } }
                        td data-label="At" { (words::time(attempt.at)) }
                        td data-label="Answer" { @match attempt.status { Some(status) => (status), None => "none" } }
                        td data-label="Took" { (words::seconds(attempt.latency_ms / 1000.0)) }
                        td data-label="What was said" {
                            @if let Some(error) = &attempt.error { (error) }
                            @if let Some(reply) = &attempt.bad_reply { " reply: " (reply.reason) @if let Some(name) = &reply.dead_letter { " " a href=(look.links.dead_letter(name)) { "see it" } } }
                        }
                    }
                } }
            } }
        }
    }
}
