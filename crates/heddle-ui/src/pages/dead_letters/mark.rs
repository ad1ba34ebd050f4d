//! What is said about a group of dead letters: that its cause is known, or to be ignored, until when and why; and the end of
//! that. A page of its own, since a list that looks again by itself would take away what is being written.

use heddle_api::dead_letters::marks::{GroupMark, MarkKind, MarkReopened};
use heddle_api::dead_letters::{DeadLetterGroup, DeadLetterGroups};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::groups::why;
use super::{LIST, PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::command::quoted;
use crate::parts::send_form::{self, SendForm};
use crate::parts::verdict;
use crate::words;

const NAME: &str = "dead-letter-mark";

/// How long a mark may be asked for, in seconds.
const SPANS: [(&str, u32); 4] = [
    ("a week", 604_800),
    ("a day", 86_400),
    ("30 days", 2_592_000),
    ("90 days", 7_776_000),
];

/// What a group says beside its cause.
pub(super) fn badge(mark: &GroupMark) -> Markup {
    let words = mark.in_words();
    html! {
        span.quiet data-mark=(mark.kind.word()) data-holds=(mark.holds().to_string()) {
            @match mark.reopened {
                None => { "✓ " (words) }
                Some(MarkReopened::Recurred | MarkReopened::Expired) => { (verdict::mark("degraded")) " " (words) }
            }
        }
    }
}

/// The way to this page, of a group that can be marked.
pub(super) fn link(group: &DeadLetterGroup, look: &PageLook) -> Markup {
    let page = format!("dead-letters/mark?group={}", part(&group.key));
    let of = group.consumer.as_deref().unwrap_or_default();
    html! {
        @if group.key.starts_with("cause:") {
            a.button href=(look.links.page(&page)) aria-label=(format!("Mark {} of {of}", words::number(group.count))) { "Mark" }
        }
    }
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let key = look.visit.text("group").unwrap_or_default();
    let path = format!("{LIST}/groups?by=cause&group={}", part(&key));
    let found: DeadLetterGroups = look.ask.get(&path).await?;
    let title = "Mark a group";
    let body = match found.groups.first() {
        Some(group) => marked(group, look),
        None => html! {
            section.card { h1 { (title) } p { "No dead letter rests in this group any more." } p { a href=(look.links.page("dead-letters")) { "All dead letters" } } }
        },
    };
    let command = format!(
        "heddle dead-letters mark {} --note {}",
        quoted(&key),
        quoted("fixed in the next release")
    );
    Ok(RenderedPage::new(NAME, "dead-letters", title, body).behind(&command, &path))
}

fn marked(group: &DeadLetterGroup, look: &PageLook) -> Markup {
    let operates = look.visit.may_operate(group.consumer.as_deref());
    html! {
        section.card {
            h1 { (heddle_api::counted(group.count, "dead letter")) }
            p.lead { (why(group)) }
            p { @if let Some(consumer) = &group.consumer { (verdict::object(consumer, &look.links)) " " } "since " (words::since(group.first, look.now)) }
            @if let Some(mark) = &group.mark { (standing(group, mark, operates, look)) }
            @if operates { (form(group, look)) } @else { p.quiet { "An operator of its namespace may mark it." } }
        }
    }
}

fn path(group: &DeadLetterGroup) -> String {
    format!("{LIST}/groups/{}/mark", part(&group.key))
}

/// The mark that there is, and its end.
fn standing(group: &DeadLetterGroup, mark: &GroupMark, operates: bool, look: &PageLook) -> Markup {
    let (path, then) = (path(group), look.links.page("dead-letters"));
    let form = SendForm {
        method: "DELETE",
        path: &path,
        kind: send_form::JSON,
        body: &Value::Null,
        then: &then,
    };
    html! {
        div #marked.notice { p { (badge(mark)) }
            @if operates { (send_form::draw(&form, &html! { button type="submit" { "Take the mark away" } })) }
        }
    }
}

fn form(group: &DeadLetterGroup, look: &PageLook) -> Markup {
    let (path, then) = (path(group), look.links.page("dead-letters"));
    // What comes to rest behind the newest that was looked at opens it again.
    let body = json!({"as": MarkKind::Known.word(), "upTo": group.sample});
    let form = SendForm {
        method: "POST",
        path: &path,
        kind: send_form::JSON,
        body: &body,
        then: &then,
    };
    html! {
        p.quiet { "A mark hides nothing: the letters rest, and can be redriven or discarded. With one more than it allows for, or at its time, the group is open again." }
        (send_form::draw(&form, &html! {
            label { "What it is"
                select name="as" data-pointer="/as" {
                    option value="known" { "known: somebody sees to it" }
                    option value="ignored" { "ignored: nobody needs to" }
                }
            }
            label { "Why" input name="note" required maxlength="500" data-pointer="/note"; }
            label { "For"
                select name="until" data-as="from-now" data-now=(look.now) data-pointer="/until" {
                    @for (words, seconds) in SPANS { option value=(seconds) { (words) } }
                }
            }
            label { "More of them that are expected" input name="more" type="number" min="0" max="10000" value="0" data-as="json" data-pointer="/more"; }
            button.primary type="submit" { "Mark" }
        }))
    }
}
