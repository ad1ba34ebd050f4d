//! Dead letters by what they have in common, those with the most first, with what can be done about them.

use heddle_api::dead_letters::{DeadLetterGroup, DeadLetterGroups, SubscriberNow};
use maud::{Markup, html};

use super::{PageLook, mark};
use crate::parts::choice::LetterChoice;
use crate::parts::{content, verdict};
use crate::visit::Visit;
use crate::words;

/// What they are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupedBy {
    Cause,
    Type,
    Application,
}

impl GroupedBy {
    pub(super) const ALL: [Self; 3] = [Self::Cause, Self::Type, Self::Application];

    /// As the address has it; what is no such word is the cause.
    pub(super) fn of(visit: &Visit) -> Self {
        let asked = visit.text("by").unwrap_or_default();
        let found = Self::ALL.into_iter().find(|one| one.word() == asked);
        found.unwrap_or(Self::Cause)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Cause => "cause",
            Self::Type => "type",
            Self::Application => "application",
        }
    }
}

/// How a subscriber is, as a verdict has it.
fn verdict_of(now: SubscriberNow) -> &'static str {
    match now {
        SubscriberNow::Healthy => "healthy",
        SubscriberNow::Paused => "degraded",
        SubscriberNow::Failing | SubscriberNow::Gone => "unhealthy",
        SubscriberNow::Unknown => "unknown",
    }
}

/// How a subscriber is at the moment, by shape and word.
pub(crate) fn subscriber_now(now: SubscriberNow) -> Markup {
    let word = verdict_of(now);
    let said = match now {
        SubscriberNow::Healthy => "answers well",
        SubscriberNow::Failing => "fails",
        SubscriberNow::Paused => "is paused",
        SubscriberNow::Gone => "is gone",
        SubscriberNow::Unknown => "not tried yet",
    };
    html! { span.verdict data-verdict=(word) data-now=(now.word()) { (verdict::mark(word)) (said) } }
}

pub(super) fn table(
    groups: &DeadLetterGroups,
    by: GroupedBy,
    choice: &LetterChoice,
    look: &PageLook,
) -> Markup {
    let operates = look.visit.may_operate(None);
    html! {
        section.card #groups {
            h2 { "By " (by.word()) }
            div.table { table {
                thead { tr {
                    th.number scope="col" { "Events" }
                    th scope="col" { "Consumer" } th scope="col" { "Why" } th scope="col" { "Types" } th scope="col" { "When" } th scope="col" { "Subscriber now" }
                    @if operates { th scope="col" { "What to do" } }
                } }
                tbody { @for group in &groups.groups { (row(group, by, choice, look)) } }
            } }
            @if groups.hidden > 0 { p.quiet { (heddle_api::counted(groups.hidden, "smaller group")) " not shown. Show only some of them to see more." } }
        }
    }
}

fn row(group: &DeadLetterGroup, by: GroupedBy, choice: &LetterChoice, look: &PageLook) -> Markup {
    let links = &look.links;
    let mine = choice.of_group(&group.key);
    let narrowed = format!("dead-letters?by={}&{}", by.word(), mine.query());
    html! {
        tr data-row data-group=(group.key) {
            td.number data-label="Events" { strong { (words::number(group.count)) } }
            td data-label="Consumer" { @match &group.consumer { Some(consumer) => (verdict::object(consumer, links)), None => span.quiet { "several" } } @if let Some(application) = &group.application { " " span.quiet { "from " (application) } } }
            td data-label="Why" {
                a data-open href=(links.page(&narrowed)) { (why(group)) }
                @if group.replies { " " span.quiet { "(replies)" } }
                " " a.quiet href=(links.dead_letter(&group.sample)) { "newest" }
                @if let Some(mark) = &group.mark { br; (mark::badge(mark)) }
            }
            td data-label="Types" { (group.types.join(", ")) }
            td data-label="When" { (words::since(group.first, look.now)) @if group.count > 1 { " to " (words::since(group.last, look.now)) } }
            td data-label="Subscriber now" { @if let Some(now) = group.subscriber_now { (subscriber_now(now)) } }
            @if look.visit.may_operate(None) { td.acts { @if look.visit.may_operate(group.consumer.as_deref()) { (acts(group, &mine, look)) } } }
        }
    }
}

/// What they have in common, as far as they have.
pub(super) fn why(group: &DeadLetterGroup) -> Markup {
    html! {
        @if let Some(status) = group.status { strong { (status) } " " }
        @match &group.reason {
            Some(reason) if !reason.is_empty() => (content::visible(reason)),
            Some(_) => "no reason was given",
            None => "several causes",
        }
    }
}

fn acts(group: &DeadLetterGroup, mine: &LetterChoice, look: &PageLook) -> Markup {
    let query = mine.query();
    let to = |act: &str| {
        look.links
            .page(&format!("dead-letters/preview?act={act}&{query}"))
    };
    let count = words::number(group.count);
    let of = group.consumer.as_deref().unwrap_or(&group.key);
    html! {
        @if !group.replies {
            a.button href=(to("try")) data-dialog aria-label=(format!("Try one of {count} of {of}")) { "Try one" }
            a.button href=(to("redrive")) data-dialog aria-label=(format!("Redrive {count} of {of}")) { "Redrive " (count) "…" }
        }
        (mark::link(group, look))
        a.button href=(to("discard")) data-dialog aria-label=(format!("Discard {count} of {of}")) { "Discard " (count) "…" }
    }
}
