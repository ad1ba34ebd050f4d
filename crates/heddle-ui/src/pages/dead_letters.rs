//! Dead letters: what rests, why, and what can be done about it.
//!
//! ```text
//!   list      groups by cause, type or application; each of them; what is under way with many   (`groups`, `parts/operations`)
//!   preview   what redriving, discarding or trying would do, and the question whether to         (`preview`)
//!   mark      what is said about a group: that its cause is known, or to be ignored             (`mark`)
//!   letter    one of them whole, beside one of its type that was delivered                       (`letter`, `compare`)
//! ```
//! Whoever may not act sees the same without anything to press.

pub(crate) mod compare;
pub(crate) mod groups;
pub(crate) mod letter;
pub(crate) mod mark;
pub(crate) mod preview;
#[cfg(test)]
mod tests;

use heddle_api::dead_letters::{BulkOperations, DeadLetterGroups};
use heddle_api::ledger::{DeadLetter, DeadLetterPage};
use maud::{Markup, html};

use self::groups::GroupedBy;
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::choice::LetterChoice;
use crate::parts::{content, operations, verdict};
use crate::words;

pub(crate) const LIST: &str = "/heddle/v1/dead-letters";

/// Between two looks, in milliseconds: while something is under way, and otherwise; the script waits longer the longer nothing
/// happens.
const FRESH_MS: [u32; 2] = [1_000, 5_000];

pub(crate) async fn list(look: &PageLook) -> PageResult {
    let mut choice = LetterChoice::of(&look.visit);
    // Those are for acting.
    (choice.0.names, choice.0.all) = (Vec::new(), false);
    let by = GroupedBy::of(&look.visit);
    let after = look.visit.text("after");
    let path = listed_at(&choice, after.as_deref());
    let page: DeadLetterPage = look.ask.get(&path).await?;
    let grouped = joined(&[format!("by={}", by.word()), choice.query()]);
    let groups: DeadLetterGroups = look.ask.get(&format!("{LIST}/groups?{grouped}")).await?;
    let under_way: BulkOperations = look.ask.get(&format!("{LIST}/operations")).await?;
    let [busy, calm] = FRESH_MS;
    // What is under way ends, and is followed until it does.
    let (fresh, most) = match operations::is_running(&under_way) {
        true => (busy, Some(calm)),
        false => (calm, None),
    };
    let body = html! {
        h1 data-fresh=(fresh) data-fresh-most=[most] { "Dead letters" }
        p.lead { (summary(&page, &groups, look)) }
        (operations::running(&under_way, look))
        @if page.total == 0 && choice.is_nothing() { (nothing()) }
        @if page.total > 0 || !choice.is_nothing() { (narrow(&choice, by, look)) }
        @if !groups.groups.is_empty() { (groups::table(&groups, by, &choice, look)) }
        @if !page.items.is_empty() { (each(&page, &choice, look)) }
        @if let Some(next) = &page.next {
            @let query = joined(&[choice.query(), format!("by={}", by.word()), format!("after={}", part(next))]);
            p { a href=(look.links.page(&format!("dead-letters?{query}"))) { "Further ones" } }
        }
        (operations::ended(&under_way, look))
    };
    let command = format!("heddle dead-letters list{}", choice.arguments());
    let page = RenderedPage::new("dead-letters", "dead-letters", "Dead letters", body);
    Ok(page.behind(&command, &path))
}

/// Parts of a query that are not empty.
fn joined(parts: &[String]) -> String {
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join("&")
}

fn listed_at(choice: &LetterChoice, after: Option<&str>) -> String {
    let after = after.map(|after| format!("after={}", part(after)));
    match joined(&[choice.query(), after.unwrap_or_default()]) {
        query if query.is_empty() => LIST.to_owned(),
        query => format!("{LIST}?{query}"),
    }
}

fn summary(page: &DeadLetterPage, groups: &DeadLetterGroups, look: &PageLook) -> Markup {
    let oldest = groups.groups.iter().map(|group| group.first).min();
    html! {
        @match page.total { 0 => "Nothing rests here.", total => { (heddle_api::counted(total, "event")) " at rest" } }
        @if let Some(oldest) = oldest { ", the oldest " (words::since(oldest, look.now)) }
        @for (count, word) in [(groups.known, "known"), (groups.ignored, "ignored")] { @if count > 0 { ", " span data-marked=(word) { (words::number(count)) " " (word) } } }
    }
}

fn nothing() -> Markup {
    html! {
        section.card.state {
            p { (verdict::badge("healthy")) " Every event was delivered, is on its way, or ended by a rule." }
            p.quiet { "An event comes here when its attempts are used up, and rests until somebody redrives or discards it." }
        }
    }
}

/// By what they are put together, and which are shown at all.
fn narrow(choice: &LetterChoice, by: GroupedBy, look: &PageLook) -> Markup {
    let links = &look.links;
    let fields = choice.fields();
    let value = |key: &str| {
        fields
            .iter()
            .find(|(found, _)| *found == key)
            .map(|(_, value)| *value)
    };
    html! {
        div.bar {
            nav.choice.always aria-label="Put together by" {
                @for one in GroupedBy::ALL {
                    @let query = joined(&[format!("by={}", one.word()), choice.query()]);
                    a href=(links.page(&format!("dead-letters?{query}"))) aria-current=[(one == by).then_some("true")] { "by " (one.word()) }
                }
            }
            @if !fields.is_empty() {
                p { "Only those with " @for (key, value) in &fields { code { (key) " = " (value) } " " } a href=(links.page("dead-letters")) { "Show all" } }
            }
        }
        details #narrow {
            summary { "Show only some" }
            form.fields action=(links.page("dead-letters")) method="get" {
                @for (key, label, example) in [("namespace", "Namespace", "team-a"), ("consumer", "Consumer", "trigger/team-a/orders"), ("type", "Type", "order.created"), ("source", "Source", "shop"), ("id", "Id", "order-17")] {
                    label { (label) input name=(key) value=[value(key)] placeholder=(example) maxlength="1024" autocomplete="off" spellcheck="false"; }
                }
                input type="hidden" name="by" value=(by.word());
                button type="submit" { "Show" }
            }
        }
    }
}

/// One row for each, to be chosen by whoever may act.
fn each(page: &DeadLetterPage, choice: &LetterChoice, look: &PageLook) -> Markup {
    let operates = look.visit.may_operate(None);
    let preview = |act: &str| {
        let query = choice.all_shown().query();
        look.links
            .page(&format!("dead-letters/preview?act={act}&{query}"))
    };
    html! {
        section.card {
            form #letters method="get" action=(look.links.page("dead-letters/preview")) data-dialog {
                div.bar {
                    h2 { "Each of them" }
                    @if operates {
                        span.quiet data-chosen role="status" {}
                        button type="submit" name="act" value="redrive" { "Redrive selected…" }
                        button type="submit" name="act" value="discard" { "Discard selected…" }
                        a.button href=(preview("redrive")) data-dialog { "Redrive all " (words::number(page.total)) "…" }
                        a.button href=(preview("discard")) data-dialog { "Discard all " (words::number(page.total)) "…" }
                    }
                }
                (table(&page.items, operates, look))
            }
        }
    }
}

fn table(items: &[DeadLetter], operates: bool, look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        div.table { table {
            thead { tr {
                @if operates { th.tick scope="col" { input type="checkbox" data-all hidden aria-label="Select all that are listed"; } }
                th scope="col" { "Event" } th scope="col" { "Consumer" } th scope="col" { "Why" } th.number scope="col" { "Attempts" } th scope="col" { "Rests" }
            } }
            tbody { @for letter in items {
                tr data-row data-letter=(letter.name) {
                    @if operates { td.tick { input type="checkbox" name="name" value=(letter.name) aria-label=(format!("Select {}", letter.id)); } }
                    th scope="row" { a href=(links.dead_letter(&letter.name)) { (letter.id) } br; span.quiet { (letter.type_) " from " (letter.source) } @if letter.reply.is_some() { " " span.quiet { "(reply)" } } }
                    td data-label="Consumer" { (verdict::object(&letter.consumer, links)) }
                    td data-label="Why" { @if let Some(status) = letter.status { strong { (status) } " " } (content::visible(&letter.reason)) }
                    td.number data-label="Attempts" { (letter.attempts) }
                    td data-label="Rests" { (words::since(letter.dead_at, look.now)) }
                }
            } }
        } }
    }
}
