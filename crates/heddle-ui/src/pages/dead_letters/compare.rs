//! A dead letter beside the last event of its type that its consumer took.

use heddle_api::ledger::DeadLetterDetail;
use heddle_api::search::{EventPage, FoundEvent, WholeEvent};
use maud::{Markup, html};

use super::PageLook;
use crate::ask::AnswerFault;
use crate::links::part;
use crate::pages::event::ExactEvent;
use crate::parts::difference::{self, EventDifference};
use crate::words;

/// What there is to compare it with.
enum Counterpart {
    Found(Box<WholeEvent>),
    /// There is none in what was looked at, down to this place of the log; `None` when all of it was.
    Missing(Option<u64>),
}

pub(super) async fn section(detail: &DeadLetterDetail, look: &PageLook) -> Markup {
    let found = counterpart(detail, look).await;
    html! {
        section.card #compared {
            h2 { "Compared with one that was delivered" }
            @match found {
                Err(fault) => p.notice { (fault) },
                Ok(Counterpart::Missing(None)) => p { "No retained event of this type was delivered to this consumer." },
                Ok(Counterpart::Missing(Some(next))) => p { "None of this type was delivered to this consumer since place " (words::number(next)) " of the log. Older ones were not looked at." },
                Ok(Counterpart::Found(whole)) => (beside(&whole, detail, look)),
            }
        }
    }
}

async fn counterpart(
    detail: &DeadLetterDetail,
    look: &PageLook,
) -> Result<Counterpart, AnswerFault> {
    let letter = &detail.summary;
    let query = format!(
        "type:{} consumer:{} state:delivered",
        sought(&letter.type_),
        sought(&letter.consumer)
    );
    let path = format!("/heddle/v1/events?limit=1&ask=compare&q={}", part(&query));
    let page: EventPage = look.ask.get(&path).await?;
    let Some(FoundEvent { offset, .. }) = page.items.first() else {
        return Ok(Counterpart::Missing(page.next));
    };
    let path = ExactEvent::path(*offset);
    Ok(Counterpart::Found(Box::new(look.ask.get(&path).await?)))
}

/// A text that a query takes for itself.
pub(crate) fn sought(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn beside(whole: &WholeEvent, detail: &DeadLetterDetail, look: &PageLook) -> Markup {
    let mut before = whole.event.clone();
    let mut now = detail.event.value();
    let hidden = whole.data_withheld || detail.data_hidden;
    if hidden {
        for event in [&mut before, &mut now]
            .into_iter()
            .filter_map(|event| event.as_object_mut())
        {
            event.retain(|name, _| name != "data" && name != "data_base64");
        }
    }
    let found = difference::between(&before, &now);
    let text = |name: &str| {
        whole
            .event
            .get(name)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
    };
    html! {
        p { "The last of type " strong { (detail.summary.type_) } " that " (detail.summary.consumer) " took: " a href=(look.links.trace(text("id"), Some(text("source")))) { (text("id")) } ", accepted " (words::since(whole.accepted_at, look.now)) "." }
        @if hidden { p.quiet { "Only attributes are compared: data is for those who may read what events carry." } }
        (table(&found))
    }
}

fn table(found: &EventDifference) -> Markup {
    html! {
        @if found.fields.is_empty() { p { "There is no difference in what is compared." } }
        @else {
            div.table { table {
                thead { tr { th scope="col" { "Field" } th scope="col" { "This dead letter" } th scope="col" { "There" } th scope="col" { "Here" } } }
                tbody { @for field in &found.fields {
                    tr data-row data-field=(field.path) data-change=(field.change.words()) {
                        th scope="row" { code { (field.path) } }
                        td { (field.change.words()) }
                        td data-label="There" { @if let Some(value) = &field.before { code { (value) } } @else { "–" } }
                        td data-label="Here" { @if let Some(value) = &field.now { code { (value) } } @else { "–" } }
                    }
                } }
            } }
            @if found.more > 0 { p.quiet { "And " (words::number(found.more as u64)) " more." } }
        }
    }
}
