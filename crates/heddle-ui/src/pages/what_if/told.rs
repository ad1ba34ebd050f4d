//! Who would get which events more and fewer, as a section that the script puts below the form.

use heddle_api::counted;
use heddle_api::ledger::ExplainedEvent;
use heddle_api::what_if::{ChangedConsumer, WhatIf};
use jiff::SignedDuration;
use maud::{Markup, html};

use super::ReadChange;
use crate::pages::PageLook;
use crate::parts::verdict;
use crate::words;

/// Of a shorter time, what comes in an hour is a guess.
const RATED_SECONDS_MIN: f64 = 1.0;

/// Nothing was compared.
pub(super) fn refused(why: &str, left_out: &[String]) -> Markup {
    html! {
        section #tried.card.state data-settled { p.notice role="alert" { (why) } (listed("Left out", left_out)) }
    }
}

pub(super) fn section(found: &WhatIf, read: &ReadChange, look: &PageLook) -> Markup {
    let problems: Vec<String> = (found.problems.iter())
        .map(|problem| read.placed(problem))
        .collect();
    html! {
        section #tried.card data-settled data-examined=(found.examined) {
            p.lead {
                @match (found.examined, found.from, found.to) {
                    (0, ..) => "There is no stored event to try it on.",
                    (examined, Some(from), Some(to)) => { "Of the newest " strong { (counted(examined, "event")) } ", accepted from " (words::time(from)) " to " (words::time(to)) ":" }
                    (examined, ..) => { "Of the newest " strong { (counted(examined, "event")) } ":" }
                }
            }
            (listed("What would not be in force", &problems))
            (listed("Left out", &read.left_out))
            @if found.consumers.is_empty() { p { "Nobody would get others than now." } }
            @else { (consumers(found, look)) }
        }
    }
}

fn listed(title: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h2 { (title) }
            ul.plain { @for line in lines { li { (line) } } }
        }
    }
}

fn consumers(found: &WhatIf, look: &PageLook) -> Markup {
    let seconds = seconds(found);
    html! {
        div.table { table #changed {
            thead { tr {
                th scope="col" { "Consumer" }
                @for name in ["Now", "Then", "Gained", "Lost"] { th.number scope="col" { (name) } }
                @if seconds.is_some() { th.number scope="col" { "In an hour, now" } th.number scope="col" { "then" } }
            } }
            tbody { @for one in &found.consumers {
                tr data-row data-consumer=(one.consumer) {
                    th scope="row" { (verdict::object(&one.consumer, &look.links)) @if one.created { " " span.quiet { "new" } } @if one.deleted { " " span.quiet { "gone" } } }
                    td.number data-label="Now" { (words::number(one.before)) }
                    td.number data-label="Then" { (words::number(one.after)) }
                    td.number data-label="Gained" { (words::number(one.gained)) }
                    td.number data-label="Lost" { (words::number(one.lost)) }
                    @if let Some(seconds) = seconds {
                        td.number data-label="In an hour, now" { (hourly(one.before, seconds)) }
                        td.number data-label="then" { (hourly(one.after, seconds)) }
                    }
                }
            } }
        } }
        @for one in &found.consumers { (examples(one, look)) }
    }
}

/// How much time the events are of.
fn seconds(found: &WhatIf) -> Option<f64> {
    let span: SignedDuration = found.to?.duration_since(found.from?);
    let seconds = span.as_secs_f64();
    (seconds >= RATED_SECONDS_MIN).then_some(seconds)
}

fn hourly(count: u64, seconds: f64) -> String {
    let hourly = count as f64 * 3600.0 / seconds;
    match count {
        0 => "0".to_owned(),
        _ if hourly < 10.0 => format!("{hourly:.1}"),
        _ => words::number(hourly.round() as u64),
    }
}

fn examples(one: &ChangedConsumer, look: &PageLook) -> Markup {
    html! {
        @for (word, count, events) in [("gain", one.gained, &one.gained_events), ("lose", one.lost, &one.lost_events)] {
            @if !events.is_empty() {
                details open { summary { (one.consumer) " would " (word) " " (counted(count, "event")) }
                    ul.plain { @for event in events { (example(event, look)) } }
                }
            }
        }
    }
}

fn example(event: &ExplainedEvent, look: &PageLook) -> Markup {
    html! {
        li data-row data-offset=(event.offset) {
            a href=(look.links.trace(&event.id, Some(&event.source))) { (words::shortened(&event.id, 60)) } " " (event.type_) " " span.quiet { "from " (event.source) }
        }
    }
}
