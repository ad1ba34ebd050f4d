//! Publishes that were refused lately: of whom, where, which event, and what would help. What they carried is kept nowhere.

use heddle_api::refusals;
use heddle_api::refused_events::{RefusedEvent, RefusedEvents};
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::verdict;
use crate::words;

/// Rows on the page.
const ROWS: usize = 100;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let id = look.visit.text("id");
    let mut path = format!("/heddle/v1/events/refused?limit={ROWS}");
    let mut command = "heddle events --refused".to_owned();
    if let Some(id) = &id {
        path.push_str(&format!("&id={}", part(id)));
        command.push_str(&format!(" {}", quoted(id)));
    }
    let found: RefusedEvents = look.ask.get(&path).await?;
    let body = html! {
        div.bar { h1 { "Refused events" } a href=(look.links.page("events")) { "Events" } }
        p.quiet { "What publishers were told lately, the newest first. It is remembered until the server ends, and of each publisher the newest only." }
        section.card {
            form.ask action=(look.links.page("refused")) method="get" {
                label for="id" { "Id of the event" }
                input #id name="id" value=(id.as_deref().unwrap_or_default()) maxlength="1024" autocomplete="off" spellcheck="false";
                button.primary type="submit" { "Find" }
            }
        }
        @if found.items.is_empty() { section.card.state { p { "Nothing was refused lately." } } }
        @else { section.card { (table(&found.items, look)) } }
        @if let Some(total) = found.total { p.quiet { (words::number(total)) " in all since the server began." } }
    };
    Ok(
        RenderedPage::new("refused-events", "events", "Refused events", body)
            .behind(&command, &path),
    )
}

/// Beside the trace of an event with the same id.
pub(super) fn beside(refused: &[RefusedEvent], look: &PageLook) -> Markup {
    html! {
        section.card aria-label="Refused" {
            h2 { "Refused" }
            (table(refused, look))
        }
    }
}

fn table(refused: &[RefusedEvent], look: &PageLook) -> Markup {
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Refused" } th scope="col" { "Event" } th scope="col" { "Published at" } th scope="col" { "By" } th scope="col" { "Why" } th scope="col" { "What helps" } } }
            tbody { @for event in refused { (row(event, look)) } }
        } }
    }
}

fn row(event: &RefusedEvent, look: &PageLook) -> Markup {
    let helps = refusals::ALL.iter().find(|known| known.code == event.code);
    html! {
        tr data-row data-refused=(event.code) {
            th scope="row" { (verdict::mark("unhealthy")) " " (event.code) br; span.quiet { (event.status) " " (words::since(event.at, look.now)) } }
            td data-label="Event" {
                @match &event.id { Some(id) => a href=(look.links.trace(id, None)) { (id) }, None => "–" }
                @if let Some(type_) = &event.type_ { br; span.quiet { (type_) } }
                @if let Some(bytes) = event.bytes { br; span.quiet { (words::bytes(bytes)) } }
            }
            td data-label="Published at" { @if event.door.starts_with('/') { (event.door) } @else { (verdict::object(&event.door, &look.links)) } }
            td data-label="By" { (event.who) @if let Some(address) = &event.address { br; span.quiet { (address) } } }
            td data-label="Why" { (event.message) @if let Some(attribute) = &event.attribute { " " span.quiet { "(" (attribute) ")" } } }
            td data-label="What helps" { @match helps { Some(known) => (plain(known.remedy)), None => "–" } }
        }
    }
}

/// Text as it is written for the reference, without its marks.
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('[') {
        let (words, after) = behind.split_once("](").unwrap_or((behind, ""));
        plain.push_str(before);
        plain.push_str(words);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_is_told_without_marks() {
        let told = plain("send `the` token of [a publisher](../operating/publishers.md), now");
        assert_eq!(told, "send the token of a publisher, now");
        for known in refusals::ALL {
            let told = plain(known.remedy);
            assert!(!told.is_empty() && !told.contains("]("), "{told}");
        }
    }
}
