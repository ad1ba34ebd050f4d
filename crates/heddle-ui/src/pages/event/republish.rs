//! Publishing an event again, as a new event: where it would come in, who would want it, as it is or edited.

use heddle_api::ledger::Trace;
use heddle_api::republish::{CAUSE, RepublishPreview, RepublishReach};
use maud::{Markup, html};

use super::whole::ExactEvent;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::act::{self, ActRequest};
use crate::parts::command::quoted;
use crate::parts::{command, content, verdict};
use crate::words;

/// Longer events are edited with an editor.
const EDITED_BYTES_MAX: usize = 200 << 10;
/// Consumers that are named.
const NAMED_MAX: usize = 50;

pub(crate) async fn page(look: &PageLook, place: &str) -> PageResult {
    let offset: u64 = place.parse().unwrap_or(u64::MAX);
    let exact = ExactEvent::ask(offset, look).await?;
    let places = places(&exact, look).await?;
    let wanted = look.visit.text("entry");
    let entry = wanted.or_else(|| places.first().cloned());
    let entry = entry.unwrap_or_else(|| exact.whole.entry.clone());
    let path = format!("{}/republish", ExactEvent::path(offset));
    let query = format!("?entry={}", part(&entry));
    let asked = format!("{path}{query}&dryRun=1");
    let preview: RepublishPreview = look.ask.query(&asked, &serde_json::json!({})).await?;
    let command = format!(
        "heddle events republish {offset} --entry {}",
        quoted(&entry)
    );
    let title = "Publish again as a new event";
    let body = html! {
        section.card {
            h1 { (title) }
            p.lead { strong { (preview.type_) } " from " (preview.source) ", " (words::bytes(preview.data_bytes)) " of data. The new event has an id of its own, and " code { (CAUSE) } " names this one, which stays as it is." }
            (choice(offset, &entry, &places, look))
            (reach(&preview, look))
            (copy(&path, &query, &preview, look))
            @if exact.text.len() <= EDITED_BYTES_MAX && !exact.whole.data_withheld && !exact.whole.data_masked { (edited(&exact, &path, &query, look)) }
            noscript { p.notice { "Nothing can be pressed here without a script. The command below does it." } }
            (command::behind_change(&command, &format!("{path}{query}"), "{}"))
        }
    };
    Ok(RenderedPage::new("event-republish", "events", title, body))
}

/// Where it can come in: where it did, and at brokers that it passed, as far as whoever looks may act there.
async fn places(
    exact: &ExactEvent,
    look: &PageLook,
) -> Result<Vec<String>, crate::ask::AnswerFault> {
    let event = &exact.whole.event;
    let text = |name: &str| {
        event
            .get(name)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
    };
    let path = format!(
        "/heddle/v1/trace?id={}&source={}",
        part(text("id")),
        part(text("source"))
    );
    let trace: Trace = look.ask.get(&path).await?;
    let mut places = vec![exact.whole.entry.clone()];
    let traced = trace
        .events
        .iter()
        .find(|event| event.offset == exact.whole.offset);
    let hops = traced
        .into_iter()
        .flat_map(|event| &event.verdicts)
        .flat_map(|trace| &trace.via);
    for hop in hops.filter(|hop| hop.starts_with("broker/")) {
        if !places.contains(hop) {
            places.push(hop.clone());
        }
    }
    places.retain(|place| look.visit.may_operate(Some(place)));
    Ok(places)
}

fn choice(offset: u64, entry: &str, places: &[String], look: &PageLook) -> Markup {
    let to = |place: &str| {
        let rest = format!("events/{offset}/republish?entry={}", part(place));
        look.links.page(&rest)
    };
    html! {
        @if places.len() > 1 {
            nav.choice.always aria-label="Where it comes in" {
                @for place in places { a href=(to(place)) data-dialog aria-current=[(place == entry).then_some("true")] { (place) } }
            }
        } @else { p { "It comes in at " (verdict::object(entry, &look.links)) "." } }
    }
}

fn reach(preview: &RepublishPreview, look: &PageLook) -> Markup {
    let row = |one: &RepublishReach| {
        let word = if one.wants { "healthy" } else { "unknown" };
        html! { li data-wants=(one.wants) data-verdict=(word) { (verdict::mark(word)) " " (verdict::object(&one.consumer, &look.links)) " " @if one.wants { "wants it" } @else { span.quiet { "does not: " (one.reason) } } } }
    };
    html! {
        p data-wanted=(preview.wanted) { (heddle_api::counted(preview.wanted, "consumer")) " would get it, " (words::number(preview.unwanted)) " would not." }
        ul.plain { @for one in preview.consumers.iter().take(NAMED_MAX) { (row(one)) } }
    }
}

fn outcomes(look: &PageLook) -> Markup {
    act::outcome(
        "begun",
        &html! {
            p.lead { "It came in as " strong data-slot="id" {} ", at place " span data-slot="offset" {} "." }
            div.acts {
                a.button data-slot-link="offset" href=(look.links.page("events/")) { "See its way" }
                (act::leave("Close", &look.links.page("events")))
            }
        },
    )
}

fn copy(path: &str, query: &str, preview: &RepublishPreview, look: &PageLook) -> Markup {
    let request = ActRequest::bare(format!("{path}{query}"));
    let inside = html! {
        div.acts {
            button.primary type="submit" { "Publish a copy for " (words::number(preview.wanted)) }
            (act::leave("Cancel", &look.links.place(preview.original)))
        }
    };
    html! { div { (act::form(&request, &inside, &outcomes(look), &look.links)) } }
}

fn edited(exact: &ExactEvent, path: &str, query: &str, look: &PageLook) -> Markup {
    let request = ActRequest::bare(format!("{path}{query}"));
    let inside = html! {
        label { "The event as it should be, in JSON"
            textarea data-document="application/cloudevents+json" spellcheck="false" autocomplete="off" { (content::indented(&exact.text)) }
        }
        p data-preview hidden role="status" { span data-slot="wanted" {} " consumers would get this, " span data-slot="unwanted" {} " would not." }
        div.acts {
            button.primary type="submit" { "Publish what is written here" }
            button type="submit" data-dry { "Who would get it?" }
        }
    };
    html! {
        details.content data-needs-script hidden {
            summary { "Edit it first" }
            div.inside { (act::form(&request, &inside, &outcomes(look), &look.links)) }
        }
    }
}
