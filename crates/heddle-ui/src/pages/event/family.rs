//! Where an event comes from and what came of it: the chain of what it answers, and what answers it or was published again
//! from it.

use heddle_api::ledger::TracedEvent;
use heddle_api::search::{EventPage, FoundEvent, WholeEvent};
use maud::{Markup, html};

use super::PageLook;
use super::whole::ExactEvent;
use crate::parts::verdict;
use crate::words;

/// Steps back that are shown.
const ANCESTORS_MAX: usize = 8;
/// Events that came of it.
const CHILDREN_MAX: usize = 50;

/// Where it comes from, the first cause first; nothing for an event that came from outside.
pub(super) async fn ancestors(event: &TracedEvent, look: &PageLook) -> Markup {
    let mut chain: Vec<WholeEvent> = Vec::new();
    let mut next = event.cause.as_ref().map(|cause| cause.offset);
    while let Some(offset) = next.take().filter(|_| chain.len() < ANCESTORS_MAX) {
        let found = look.ask.find::<WholeEvent>(&ExactEvent::path(offset)).await;
        let Ok(Some(whole)) = found else { break };
        next = whole.cause.as_ref().map(|cause| cause.offset);
        chain.push(whole);
    }
    let Some(cause) = &event.cause else {
        return html! {};
    };
    html! {
        div.family {
            h2 { "Where it comes from" }
            ol.tree {
                @if next.is_some() { li { "…" } }
                @for whole in chain.iter().rev() {
                    li { (named(whole.offset, text(whole, "id"), text(whole, "type"), look)) @if let Some(cause) = &whole.cause { " " span.quiet { "a reply of " (verdict::object(&cause.consumer, &look.links)) } } }
                }
                @if chain.is_empty() { li { "The event at place " (words::number(cause.offset)) ", which is no longer retained" } }
                li aria-current="true" { strong { (event.id) } " " span.quiet { "the reply of " (verdict::object(&cause.consumer, &look.links)) } }
            }
        }
    }
}

fn text<'a>(whole: &'a WholeEvent, name: &str) -> &'a str {
    whole
        .event
        .get(name)
        .and_then(|value| value.as_str())
        .unwrap_or_default()
}

fn named(offset: u64, id: &str, type_: &str, look: &PageLook) -> Markup {
    html! { a href=(look.links.place(offset)) { (id) } " " span.quiet { (type_) ", place " (words::number(offset)) } }
}

/// What came of it. That takes a look through the log, so it is made when somebody asks.
pub(super) async fn children(event: &TracedEvent, look: &PageLook) -> Markup {
    let from = event.offset + 1;
    let path = format!(
        "/heddle/v1/events?limit={CHILDREN_MAX}&from={from}&ask=family&q=cause:{}",
        event.offset
    );
    let found = look.ask.get::<EventPage>(&path).await;
    html! {
        div.family #caused {
            h2 { "What it caused" }
            @match &found {
                Err(fault) => p.notice { (fault) },
                Ok(page) => {
                    ol.tree { @for child in page.items.iter().rev() { (one(child, look)) } }
                    @if page.items.is_empty() { p { "No retained event is a reply to it or was published again from it." } }
                    @if let Some(next) = page.next { p.quiet { "Only events from place " (words::number(next)) " on were looked at." } }
                }
            }
        }
    }
}

fn one(child: &FoundEvent, look: &PageLook) -> Markup {
    html! {
        li data-offset=(child.offset) {
            (named(child.offset, &child.id, &child.type_, look)) " "
            @for (state, count) in &child.states { (verdict::state_mark(state)) " " (count) " " (state) " " }
        }
    }
}
