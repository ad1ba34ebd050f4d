//! Dead letters: what rests, why, and one of them whole.

use heddle_api::dead_letters::{DeadLetterGroup, DeadLetterGroups};
use heddle_api::ledger::{DeadLetter, DeadLetterDetail, DeadLetterPage};
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::{content, verdict};
use crate::words;

const LIST: &str = "/heddle/v1/dead-letters";
/// What can be chosen by, besides the page: the names are those of the question.
const CHOSEN_BY: [(&str, &str); 4] = [
    ("namespace", "-n"),
    ("consumer", "--consumer"),
    ("type", "--type"),
    ("source", "--source"),
];

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let chosen: Vec<(&str, &str, String)> = CHOSEN_BY
        .into_iter()
        .filter_map(|(key, flag)| look.visit.text(key).map(|value| (key, flag, value)))
        .collect();
    let mut pairs: Vec<String> = chosen
        .iter()
        .map(|(key, _, value)| format!("{key}={}", part(value)))
        .collect();
    let narrowed = pairs.join("&");
    pairs.extend(
        look.visit
            .text("after")
            .map(|after| format!("after={}", part(&after))),
    );
    let path = match pairs.is_empty() {
        true => LIST.to_owned(),
        false => format!("{LIST}?{}", pairs.join("&")),
    };
    let page: DeadLetterPage = look.ask.get(&path).await?;
    let groups = match narrowed.is_empty() {
        true => format!("{LIST}/groups"),
        false => format!("{LIST}/groups?{narrowed}"),
    };
    let groups: DeadLetterGroups = look.ask.get(&groups).await?;
    let flags: String = chosen
        .iter()
        .map(|(_, flag, value)| format!(" {flag} {}", quoted(value)))
        .collect();
    let body = html! {
        h1 { "Dead letters" }
        p.lead { @match page.total { 0 => "Nothing rests here.", total => { (heddle_api::counted(total, "event")) " at rest" } } }
        @if page.total == 0 {
            section.card.state {
                p { (verdict::badge("healthy")) " Every event was delivered, is on its way, or ended by a rule." }
                p.quiet { "An event comes here when its attempts are used up, and rests until somebody redrives or discards it." }
            }
        }
        @if !chosen.is_empty() {
            p { "Only those with " @for (key, _, value) in &chosen { code { (key) " = " (value) } " " } a href=(look.links.page("dead-letters")) { "Show all" } }
        }
        @if !groups.groups.is_empty() { h2 { "By cause" } (by_cause(&groups.groups, look)) h2 { "Each of them" } }
        @if !page.items.is_empty() { (table(&page.items, look)) }
        @if let Some(next) = &page.next {
            @let narrowed = if narrowed.is_empty() { String::new() } else { format!("{narrowed}&") };
            p { a href=(look.links.page(&format!("dead-letters?{narrowed}after={}", part(next)))) { "Further ones" } }
        }
    };
    let command = format!("heddle dead-letters list{flags}");
    Ok(
        RenderedPage::new("dead-letters", "dead-letters", "Dead letters", body)
            .behind(&command, &path),
    )
}

fn by_cause(groups: &[DeadLetterGroup], look: &PageLook) -> Markup {
    html! {
        section.card { div.table { table {
            thead { tr { th.number scope="col" { "Events" } th scope="col" { "Consumer" } th scope="col" { "Why" } th scope="col" { "Types" } th scope="col" { "Since" } } }
            tbody { @for group in groups {
                tr data-row data-group=(group.key) {
                    td.number data-label="Events" { strong { (words::number(group.count)) } }
                    td data-label="Consumer" { @if let Some(consumer) = &group.consumer { (verdict::object(consumer, &look.links)) } }
                    td data-label="Why" { a href=(look.links.dead_letter(&group.sample)) { @if let Some(status) = group.status { strong { (status) } " " } (group.reason.as_deref().unwrap_or("no reason was given")) } }
                    td data-label="Types" { (group.types.join(", ")) }
                    td data-label="Since" { (words::since(group.first, look.now)) }
                }
            } }
        } } }
    }
}

fn table(items: &[DeadLetter], look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        section.card { div.table { table {
            thead { tr { th scope="col" { "Event" } th scope="col" { "Consumer" } th scope="col" { "Why" } th.number scope="col" { "Attempts" } th scope="col" { "Rests" } } }
            tbody { @for letter in items {
                tr data-row data-letter=(letter.name) {
                    th scope="row" { a href=(links.dead_letter(&letter.name)) { (letter.id) } br; span.quiet { (letter.type_) " from " (letter.source) } @if letter.reply.is_some() { " " span.quiet { "(reply)" } } }
                    td data-label="Consumer" { (verdict::object(&letter.consumer, links)) }
                    td data-label="Why" { @if let Some(status) = letter.status { strong { (status) } " " } (letter.reason) }
                    td.number data-label="Attempts" { (letter.attempts) }
                    td data-label="Rests" { (words::since(letter.dead_at, look.now)) }
                }
            } }
        } } }
    }
}

pub(crate) async fn one(look: &PageLook, name: &str) -> PageResult {
    let path = format!("{LIST}/{}", part(name));
    let detail: DeadLetterDetail = look.ask.get(&path).await?;
    let (letter, links) = (&detail.summary, &look.links);
    let body = html! {
        p.crumbs { a href=(links.page("dead-letters")) { "Dead letters" } " › " (letter.name) }
        section.card {
            h1 { (letter.id) " " span.quiet { (letter.type_) } }
            p.lead { @if let Some(status) = letter.status { (status) ": " } (letter.reason) }
            dl.facts {
                dt { "Consumer" } dd { (verdict::object(&letter.consumer, links)) }
                dt { "Source" } dd { (letter.source) }
                dt { "Accepted" } dd { (words::time(letter.accepted_at)) " " span.quiet { (words::since(letter.accepted_at, look.now)) } }
                dt { "Given up" } dd { (words::time(letter.dead_at)) " after " (heddle_api::counted(u64::from(letter.attempts), "attempt")) }
                @if letter.redrives > 0 { dt { "Redriven" } dd { (heddle_api::counted(u64::from(letter.redrives), "time")) } }
                @if let Some(sink) = &letter.sink { dt { "Sink" } dd { (sink) } }
                dt { "Its way" } dd { a href=(links.trace(&letter.id, Some(&letter.source))) { "where it has been" } }
            }
            (event(&detail.event))
            @if let Some(answer) = &detail.answer { (content::text(answer, "last answer")) }
        }
    };
    let command = format!("heddle dead-letters show {}", quoted(name));
    Ok(RenderedPage::new("dead-letter", "dead-letters", &letter.id, body).behind(&command, &path))
}

/// Attributes as a list, data below it.
pub(crate) fn event(event: &serde_json::Value) -> Markup {
    let attributes = event.as_object();
    let is_data = |name: &&String| matches!(name.as_str(), "data" | "data_base64");
    html! {
        h2 { "Attributes" }
        dl.facts.attributes {
            @for (name, value) in attributes.into_iter().flatten().filter(|(name, _)| !is_data(name)) {
                dt { (name) } dd { @match value.as_str() { Some(text) => (text), None => (value) } }
            }
        }
        @if let Some(data) = event.get("data") { @match data.as_str() { Some(text) => (content::text(text, "data")), None => (content::json(data, "data")) } }
        @if let Some(encoded) = event.get("data_base64").and_then(|data| data.as_str()) { (content::base64(encoded)) }
    }
}
