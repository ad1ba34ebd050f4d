//! One event, what each term says about it, and its attributes: a click on one makes it part of the filter.

use heddle_api::filter::text;
use heddle_api::ledger::TermTruth;
use maud::{Markup, html};
use serde_json::Value;

use super::ShownTrigger;
use super::playground::TriedFilter;
use crate::ask::AnswerFault;
use crate::pages::PageLook;
use crate::parts::verdict;
use crate::words;

/// What of a value is shown.
const VALUE_CHARS_MAX: usize = 200;

pub(super) async fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
    tried: &TriedFilter,
    offset: u64,
    terms: Result<Vec<TermTruth>, AnswerFault>,
) -> Markup {
    let found: Result<Value, AnswerFault> =
        look.ask.get(&format!("/heddle/v1/events/{offset}")).await;
    html! {
        section.way #sample data-offset=(offset) {
            h2 { "On one event " span.quiet { "at place " (words::number(offset)) } }
            @match terms {
                Err(fault) => p.notice { (fault.message) },
                Ok(terms) => (truths(&terms)),
            }
            @match found {
                Err(fault) => p.notice { (fault.message) },
                Ok(found) => (attributes(look, trigger, tried, offset, &found["event"])),
            }
        }
    }
}

fn truths(terms: &[TermTruth]) -> Markup {
    html! {
        @if terms.is_empty() { p { "Without a filter every event is wanted." } }
        ul.conditions #terms {
            @for truth in terms {
                @let word = if truth.holds { "healthy" } else { "unhealthy" };
                li data-verdict=(word) data-holds=(truth.holds) {
                    (verdict::mark(word)) " " code { (truth.term) } " " strong { @if truth.holds { "holds" } @else { "does not hold" } }
                    @if let Some(reason) = &truth.reason { p { (reason) } }
                }
            }
        }
    }
}

/// Attributes as filters see them. Those that no filter can ask for are shown and not offered.
fn attributes(
    look: &PageLook,
    trigger: &ShownTrigger,
    tried: &TriedFilter,
    offset: u64,
    event: &Value,
) -> Markup {
    let attributes = event.as_object().into_iter().flatten();
    let attributes =
        attributes.filter(|(name, _)| !matches!(name.as_str(), "data" | "data_base64"));
    html! {
        p.quiet { "Click an attribute to ask for it:" }
        dl.facts.attributes {
            @for (name, value) in attributes {
                @let text = match value { Value::String(text) => text.clone(), other => other.to_string() };
                dt { (name) }
                dd {
                    @match text::by_example(&tried.text, name, &text) {
                        Some(filters) => a href=(trigger.page(look) + &tried.query(&filters, Some(offset))) data-filters=(filters) { (words::shortened(&text, VALUE_CHARS_MAX)) },
                        None => (words::shortened(&text, VALUE_CHARS_MAX)),
                    }
                }
            }
        }
    }
}
