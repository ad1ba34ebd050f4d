//! The types of events that were seen: who sends them, who wants them, what they carry.

use heddle_api::types::{SeenType, SeenTypes};
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::{content, verdict};
use crate::words;

/// Consumers that are named for each type.
const CONSUMERS_MAX: usize = 5;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let last = look
        .visit
        .text("last")
        .and_then(|last| last.parse::<u64>().ok());
    let namespace = look.visit.text("namespace");
    let mut path = format!("/heddle/v1/types?last={}", last.unwrap_or(10_000));
    let mut command = format!("heddle types --last {}", last.unwrap_or(10_000));
    if let Some(namespace) = &namespace {
        path.push_str(&format!("&namespace={}", part(namespace)));
        command.push_str(&format!(" -n {}", quoted(namespace)));
    }
    let types: SeenTypes = look.ask.get(&path).await?;
    let unwanted = types.items.iter().filter(|seen| is_unwanted(seen)).count();
    let body = html! {
        h1 { "Types of events" @if let Some(namespace) = &namespace { " that reach " (namespace) } }
        p.lead {
            @match types.items.len() {
                0 => "No event was seen yet.",
                count => { (heddle_api::counted(count as u64, "type")) " among the newest " (heddle_api::counted(types.examined, "event")) @if unwanted > 0 { "; nobody wants " (unwanted) " of them" } "." }
            }
        }
        @if let Some(place) = types.looked_back_to { p.quiet { "Nothing before place " (words::number(place)) " of the log was looked at." } }
        @if types.left_out > 0 { p.quiet { "There are more types than are shown: " (words::number(types.left_out)) " or more are left out." } }
        @if !types.items.is_empty() { (table(&types.items, look)) }
        p { a href=(look.links.page("subscribe")) { "Subscribe to some of them" } }
    };
    Ok(RenderedPage::new("types", "events", "Types", body).behind(&command, &path))
}

fn is_unwanted(seen: &SeenType) -> bool {
    seen.consumers.is_empty() && seen.more_consumers == 0
}

fn table(items: &[SeenType], look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        section.card { div.table { table {
            thead { tr { th scope="col" { "Type" } th scope="col" { "Source" } th.number scope="col" { "Seen" } th.number scope="col" { "Rate" } th scope="col" { "Last" } th scope="col" { "Who wants it" } th scope="col" { "Data" } } }
            tbody { @for seen in items {
                tr data-row data-type=(seen.type_) {
                    th scope="row" { a href=(links.page(&format!("events?q={}", part(&query(seen))))) { (seen.type_) } }
                    td data-label="Source" { (seen.source) br; span.quiet { (verdict::object(&seen.entry, links)) } }
                    td.number data-label="Seen" { (words::number(seen.count)) }
                    td.number data-label="Rate" { @match seen.rate_per_s { Some(rate) => (per_time(rate)), None => "–" } }
                    td data-label="Last" { a href=(links.place(seen.sample)) title="The newest of them" { (words::since(seen.last_seen, look.now)) } }
                    td data-label="Who wants it" { (wanted_by(seen, look)) }
                    td data-label="Data" { (carried(seen, look)) }
                }
            } }
        } } }
    }
}

/// Rare ones by the hour: nothing is said of them by a second.
fn per_time(rate: f64) -> String {
    match rate {
        rate if rate >= 1.0 => format!("{rate:.0}/s"),
        rate if rate * 60.0 >= 1.0 => format!("{:.0}/min", rate * 60.0),
        rate => format!("{:.1}/h", rate * 3600.0),
    }
}

/// The question that finds events of this type.
fn query(seen: &SeenType) -> String {
    let text = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    format!("type:{} source:{}", text(&seen.type_), text(&seen.source))
}

fn wanted_by(seen: &SeenType, look: &PageLook) -> Markup {
    let more = seen.consumers.len().saturating_sub(CONSUMERS_MAX) as u64 + seen.more_consumers;
    html! {
        @if is_unwanted(seen) { span data-verdict="degraded" { (verdict::mark("degraded")) " nobody" } }
        @for (index, consumer) in seen.consumers.iter().take(CONSUMERS_MAX).enumerate() {
            @if index > 0 { br; }
            (verdict::object(consumer, &look.links))
        }
        @if more > 0 { br; span.quiet { "and " (words::number(more)) " more" } }
    }
}

fn carried(seen: &SeenType, look: &PageLook) -> Markup {
    let filters = heddle_api::filter::text::by_example("", "type", &seen.type_);
    html! {
        @if let Some(schema) = &seen.schema {
            details { summary { "schema of " (heddle_api::counted(seen.schema_of, "event")) } (content::json(schema, "JSON schema")) }
        }
        a href=(look.links.page(&format!("publish?sample={}", seen.sample))) { "test event" }
        @if let Some(filters) = filters { " · " a href=(look.links.page(&format!("subscribe?filters={}", part(&filters)))) { "subscribe" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_told_in_a_unit_in_which_it_is_a_number() {
        assert_eq!(per_time(12.4), "12/s");
        assert_eq!(per_time(0.5), "30/min");
        assert_eq!(per_time(0.001), "3.6/h");
    }
}
