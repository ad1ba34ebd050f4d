//! Events: found by what is in them, newest first. What a single word names is found wherever in the log it is.

#[cfg(test)]
mod tests;

use heddle_api::ledger::EventState;
use heddle_api::search::{EventPage, FoundEvent, WholeEvent};
use maud::{Markup, html};

use super::event::{ExactEvent, quoted};
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
    let mut found = match fault {
        Some(_) => EventPage::default(),
        None => found?,
    };
    let further = further_back(&found, look).await?;
    found.items.extend(further);
    let asked = query.as_deref().unwrap_or_default();
    let body = html! {
        div.bar { h1 { "Events" } a href=(look.links.page("types")) { "Types" } a href=(look.links.delays("trigger", asked)) { "Delays" } a href=(look.links.page("refused")) { "Refused" } a href=(look.links.page("publish")) { "Test event" } a href=(look.links.page("subscribe")) { "New subscriber" } }
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

/// What is called by the word that was asked for, and lies further back than the search has come.
async fn further_back(found: &EventPage, look: &PageLook) -> Result<Vec<FoundEvent>, AnswerFault> {
    let is_listed = |place: &u64| found.items.iter().any(|item| item.offset == *place);
    let mut further = Vec::new();
    for place in found.direct.iter().filter(|place| !is_listed(place)) {
        let whole: Option<WholeEvent> = look.ask.find(&ExactEvent::path(*place)).await?;
        further.extend(whole.map(row));
    }
    Ok(further)
}

fn row(whole: WholeEvent) -> FoundEvent {
    let text = |name: &str| whole.event.get(name)?.as_str().map(str::to_owned);
    FoundEvent {
        source: text("source").unwrap_or_default(),
        type_: text("type").unwrap_or_default(),
        id: text("id").unwrap_or_default(),
        subject: text("subject"),
        offset: whole.offset,
        accepted_at: whole.accepted_at,
        entry: whole.entry,
        data_bytes: whole.data_bytes,
        // Its own page says what became of it.
        ..FoundEvent::default()
    }
}

fn listed(found: &EventPage, asked: &str, look: &PageLook) -> Markup {
    let looked = found.looked_at.to.saturating_sub(found.looked_at.from);
    let before = look.visit.text("before");
    let number = |key: &str| look.visit.text(key)?.parse::<u64>().ok();
    // Whoever opened a number wants to know that this is what it counts.
    let seen = number("seen").unwrap_or(0) + found.items.len() as u64;
    let counted = number("of").filter(|_| !asked.is_empty());
    let rest = counted.map(|counted| format!("&of={counted}&seen={seen}"));
    html! {
        @if let Some(counted) = counted { (behind_number(counted, seen, found.next.is_some())) }
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
            p { a href=(look.links.page(&format!("events?q={}&before={next}{}", part(asked), rest.unwrap_or_default()))) { "Older ones" } }
        }
    }
}

/// How a list compares with the number that led to it.
fn behind_number(counted: u64, seen: u64, is_more: bool) -> Markup {
    let missing = counted.saturating_sub(seen);
    html! {
        p.quiet #counted data-counted=(counted) data-listed=(seen) {
            @if is_more { (words::number(seen)) " of the " (words::number(counted)) " that were counted, so far." }
            @else if missing > 0 { (words::number(missing)) " of the " (words::number(counted)) " that were counted are older than what the log keeps, or became something else since." }
            @else { "All " (words::number(counted)) " that were counted." }
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
