//! Why a trigger got nothing in a time: what came, by which terms it missed, and what would have let it pass.
//!
//! It reads the log, so it is asked for and not shown by itself.

use heddle_api::silence::{MissGroup, Silence};
use maud::{Markup, html};

use super::ShownTrigger;
use crate::links::part;
use crate::pages::PageLook;
use crate::parts::command;
use crate::parts::command::quoted;
use crate::words;

/// How far back people look: what is asked, and what it is called.
const TIMES: [(&str, &str); 4] = [
    ("15m", "15 minutes"),
    ("1h", "hour"),
    ("6h", "6 hours"),
    ("1d", "day"),
];

pub(super) async fn section(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let since = look.visit.text("silence");
    let found = match &since {
        Some(since) => {
            let consumer = format!("trigger/{}", trigger.qualified());
            let path = format!(
                "/heddle/v1/silence?ask=silence&consumer={}&since={}",
                part(&consumer),
                part(since)
            );
            Some(look.ask.get::<Silence>(&path).await)
        }
        None => None,
    };
    let asked = since.as_deref().unwrap_or_default();
    html! {
        section.card aria-labelledby="silence" {
            h2 #silence { "Silence" }
            p { "Why did nothing arrive in the last "
                @for (index, (time, name)) in TIMES.into_iter().enumerate() {
                    @if index > 0 { ", " }
                    a href=(format!("{}?silence={time}", trigger.page(look))) aria-current=[(time == asked).then_some("true")] { (name) }
                }
                "?"
            }
            @match &found {
                None => {},
                Some(Err(fault)) => p.notice role="alert" { (fault.message) },
                Some(Ok(silence)) => (told(silence, look)),
            }
            (command::line(&format!("heddle explain silence trigger {} --since {}", trigger.qualified(), quoted(if asked.is_empty() { "1h" } else { asked }))))
        }
    }
}

fn told(silence: &Silence, look: &PageLook) -> Markup {
    html! {
        ul.plain #silenced data-came=(silence.came) data-matched=(silence.matched) {
            @for line in silence.in_words() { li { (line) } }
        }
        @if !silence.misses.is_empty() {
            details open { summary { "By the terms that do not hold" }
                div.table { table {
                    thead { tr { th.number scope="col" { "Events" } th scope="col" { "Newest" } th scope="col" { "Terms that do not hold" } } }
                    tbody { @for group in &silence.misses { (row(group, look)) } }
                } }
            }
        }
    }
}

fn row(group: &MissGroup, look: &PageLook) -> Markup {
    html! {
        tr data-row {
            td.number data-label="Events" { (words::number(group.count)) }
            td data-label="Newest" { @if let Some(sample) = &group.sample { a href=(look.links.trace(&sample.id, Some(&sample.source))) { (words::shortened(&sample.id, 60)) } " " span.quiet { (sample.type_) } } }
            td data-label="Terms that do not hold" {
                @if group.terms.is_empty() { "others, too many to tell apart" }
                @else { @for (index, term) in group.terms.iter().enumerate() { @if index > 0 { "; " } code { (term) } } }
            }
        }
    }
}
