//! One dead letter, whole, with what can be done about it; beside one of its type that was delivered, if somebody asks.

use heddle_api::ledger::DeadLetterDetail;
use maud::{Markup, html};

use super::{LIST, PageLook, PageResult, compare};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::choice::LetterChoice;
use crate::parts::command::quoted;
use crate::parts::{content, verdict};
use crate::words;

pub(crate) async fn page(look: &PageLook, name: &str) -> PageResult {
    let path = format!("{LIST}/{}", part(name));
    let detail: DeadLetterDetail = look.ask.get(&path).await?;
    let (letter, links) = (&detail.summary, &look.links);
    let compared = match look.visit.text("compare") {
        Some(_) => compare::section(&detail, look).await,
        None => html! {},
    };
    let body = html! {
        p.crumbs { a href=(links.page("dead-letters")) { "Dead letters" } " › " (letter.name) }
        section.card {
            h1 { (letter.id) " " span.quiet { (letter.type_) } }
            p.lead { @if let Some(status) = letter.status { (status) ": " } (letter.reason) }
            (acts(&detail, look))
            dl.facts {
                dt { "Consumer" } dd { (verdict::object(&letter.consumer, links)) }
                dt { "Source" } dd { (letter.source) }
                dt { "Accepted" } dd { (words::time(letter.accepted_at)) " " span.quiet { (words::since(letter.accepted_at, look.now)) } }
                dt { "Given up" } dd { (words::time(letter.dead_at)) " after " (heddle_api::counted(u64::from(letter.attempts), "attempt")) }
                @if letter.redrives > 0 { dt { "Redriven" } dd { (heddle_api::counted(u64::from(letter.redrives), "time")) } }
                @if let Some(sink) = &letter.sink { dt { "Sink" } dd { (sink) } }
                dt { "Its way" } dd { a href=(links.trace(&letter.id, Some(&letter.source))) { "where it has been" } }
            }
        }
        (compared)
        section.card {
            (content::event(&detail.event))
            @if detail.data_hidden { (content::withheld()) }
            @if let Some(answer) = &detail.answer { (content::text(answer, "last answer")) }
        }
    };
    let command = format!("heddle dead-letters show {}", quoted(name));
    Ok(RenderedPage::new("dead-letter", "dead-letters", &letter.id, body).behind(&command, &path))
}

fn acts(detail: &DeadLetterDetail, look: &PageLook) -> Markup {
    let letter = &detail.summary;
    let mine = LetterChoice::named(&letter.name).query();
    let to = |act: &str| {
        look.links
            .page(&format!("dead-letters/preview?act={act}&{mine}"))
    };
    let compare = format!("{}?compare=1", look.links.dead_letter(&letter.name));
    let is_event = letter.reply.is_none();
    html! {
        div.acts {
            @if look.visit.may_operate(Some(&letter.consumer)) {
                @if is_event {
                    a.button href=(to("try")) data-dialog { "Try" }
                    a.button href=(to("redrive")) data-dialog { "Redrive…" }
                }
                a.button href=(to("discard")) data-dialog { "Discard…" }
            }
            @if is_event { a.button href=(compare) { "Compare with one that was delivered" } }
        }
    }
}
