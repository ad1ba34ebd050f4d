//! Events: found by what is in them, newest first.

use heddle_api::ledger::EventState;
use heddle_api::search::{EventPage, FoundEvent};
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::verdict;
use crate::words;

/// Rows on one page.
const ROWS: usize = 50;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let (query, before) = (look.visit.text("q"), look.visit.text("before"));
    let mut path = format!("/heddle/v1/events?limit={ROWS}");
    for (key, value) in [("q", &query), ("before", &before)] {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", part(value)));
        }
    }
    let found: Result<EventPage, AnswerFault> = look.ask.get(&path).await;
    let fault = match &found {
        // A query that cannot be read is mended where it is written.
        Err(fault) if fault.status == http::StatusCode::BAD_REQUEST => Some(fault.to_string()),
        _ => None,
    };
    let found = match fault {
        Some(_) => EventPage::default(),
        None => found?,
    };
    let asked = query.as_deref().unwrap_or_default();
    let body = html! {
        div.bar { h1 { "Events" } a href=(look.links.page("types")) { "Types" } a href=(look.links.page("publish")) { "Test event" } a href=(look.links.page("subscribe")) { "New subscriber" } }
        section.card {
            form.ask action=(look.links.page("events")) method="get" {
                label for="query" { "Find" }
                input #query name="q" value=(asked) maxlength="4096" autocomplete="off" spellcheck="false" placeholder="type:order.* data.total>100 state:retrying";
                button.primary type="submit" { "Find" }
            }
            @if let Some(fault) = &fault { p.notice role="alert" { (fault) } }
            p.quiet { "A word alone is an id, a place, a request id or a trace id. Others: " code { "type: source: subject: consumer: state: since: data.FIELD text: cesql:" } }
        }
        @if fault.is_none() { (listed(&found, asked, look)) }
    };
    let command = match asked {
        "" => "heddle events".to_owned(),
        asked => format!("heddle events {}", quoted(asked)),
    };
    Ok(RenderedPage::new("events", "events", "Events", body).behind(&command, &path))
}

fn listed(found: &EventPage, asked: &str, look: &PageLook) -> Markup {
    let looked = found.looked_at.to.saturating_sub(found.looked_at.from);
    let before = look.visit.text("before");
    html! {
        @if found.items.is_empty() {
            section.card.state { p { @if found.looked_at.is_told() && found.looked_at.of == 0 { "No event is kept yet." } @else { "Nothing was found in what was looked at." } } }
        }
        (streams(found, asked))
        (table(&found.items, look))
        p.quiet {
            @if found.looked_at.is_told() { "Looked at " (words::number(looked)) " of " (heddle_api::counted(found.looked_at.of, "place")) " of the log." }
            @if before.is_some() { " " a href=(look.links.page(&format!("events?q={}", part(asked)))) { "The newest" } }
        }
        @if let Some(next) = found.next {
            p { a href=(look.links.page(&format!("events?q={}&before={next}", part(asked)))) { "Older ones" } }
        }
    }
}

/// What needs a script: events as they come in, and a search that goes on to the end. The sentences are filled in there.
fn streams(found: &EventPage, asked: &str) -> Markup {
    html! {
        div.bar data-streams data-needs-script hidden data-q=(asked) data-before=[found.next]
            data-say-rate="Shows {shown} of {matched}/s that match; {accepted}/s come in."
            data-say-looked="Looked at {looked} of {of} places of the log so far."
            data-say-end="Looked at {looked} of {of} places of the log; that was all."
            data-say-full="Found {found} and stopped: more than anybody reads. Ask for fewer, or use the command."
            data-say-lost="The server does not answer. What is shown stays; begin again when it does." {
            button type="button" data-stream="live" { "Show what comes in" }
            @if found.next.is_some() { button type="button" data-stream="search" { "Search on to the end" } }
            button type="button" hidden data-stream="pause" data-on="Go on" data-off="Pause" { "Pause" }
            button type="button" hidden data-stream="stop" { "Stop" }
            span.quiet data-told role="status" {}
        }
    }
}

fn table(items: &[FoundEvent], look: &PageLook) -> Markup {
    html! {
        section.card hidden[items.is_empty()] { div.table { table {
            thead { tr { th scope="col" { "Event" } th scope="col" { "Type" } th scope="col" { "Source" } th scope="col" { "What became of it" } th.number scope="col" { "Data" } th scope="col" { "Accepted" } } }
            tbody data-rows { @for event in items {
                tr data-row data-offset=(event.offset) {
                    th scope="row" { a href=(look.links.trace(&event.id, Some(&event.source))) { (event.id) } @if let Some(subject) = &event.subject { br; span.quiet { (subject) } } }
                    td data-label="Type" { (event.type_) }
                    td data-label="Source" { (event.source) }
                    td data-label="What became of it" { @for (state, count) in &event.states { (verdict::state_mark(state)) " " (count) " " (state) " " } }
                    td.number data-label="Data" { (words::bytes(event.data_bytes)) }
                    td data-label="Accepted" { (words::since(event.accepted_at, look.now)) }
                }
            } }
        } }
        (blank_row()) }
    }
}

/// A row for the script, and the shapes of states.
fn blank_row() -> Markup {
    html! {
        template data-row-of="events" {
            tr data-row {
                th scope="row" { a href="" { span data-slot="id" {} } br; span.quiet data-slot="subject" {} }
                td data-label="Type" data-slot="type" {}
                td data-label="Source" data-slot="source" {}
                td data-label="What became of it" data-states {}
                td.number data-label="Data" { span data-slot="dataBytes" {} " B" }
                td data-label="Accepted" { time data-ago data-slot="acceptedAt" {} }
            }
            @for state in EventState::ALL { span data-mark=(state.name()) { (verdict::state_mark(state.name())) } }
        }
    }
}
