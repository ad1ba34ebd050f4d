//! Sending events of the log again, to this trigger: which, what would happen, the question whether to, and how far it is.
//!
//! What is asked for is what was previewed: events that come afterwards are kept out by the place where the preview ended.

use heddle_api::dead_letters::{BulkOperation, BulkOperations};
use heddle_api::resend::{RESENT_MAX, ResendEdge, ResendPreview, ResendRequest};
use maud::{Markup, html};

use super::ShownTrigger;
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::pages::dead_letters::groups::subscriber_now;
use crate::pages::dead_letters::preview::estimate;
use crate::pages::{PageLook, PageResult};
use crate::parts::act::{self, ActRequest};
use crate::parts::command::{self, quoted};
use crate::parts::operations;
use crate::words;

const RESEND: &str = "/heddle/v1/events/resend";
const OPERATIONS: &str = "/heddle/v1/events/operations";
/// A page with something under way is looked at so often, in milliseconds.
const FRESH_MS: u64 = 1000;

/// Times that people ask for.
const TIMES: [(&str, &str); 4] = [
    ("15m", "15 minutes"),
    ("1h", "hour"),
    ("6h", "6 hours"),
    ("1d", "day"),
];

/// What of it stands on the page of the trigger.
pub(super) async fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
) -> Result<Markup, AnswerFault> {
    let own = own_operations(look, trigger).await?;
    if !trigger.may_operate(look) && own.operations.is_empty() {
        return Ok(html! {});
    }
    let to = resend_page(look, trigger);
    Ok(html! {
        section.card aria-labelledby="resend" {
            h2 #resend { "Send again" }
            @if operations::is_running(&own) { p #resending { "Events are being sent again: " a href=(to) { "how far it is" } "." } }
            @if trigger.may_operate(look) { p { a href=(to) { "Send stored events to it once more" } ": those of a time, or those that a search finds. They stay what they are, and nobody else gets them." } }
        }
    })
}

fn resend_page(look: &PageLook, trigger: &ShownTrigger) -> String {
    format!("{}/resend", trigger.page(look))
}

/// What is done for this trigger, as far as it is remembered.
async fn own_operations(
    look: &PageLook,
    trigger: &ShownTrigger,
) -> Result<BulkOperations, AnswerFault> {
    let mut all: BulkOperations = look.ask.get(OPERATIONS).await?;
    let consumer = consumer(trigger);
    let is_own = |one: &BulkOperation| one.consumer.as_deref() == Some(&*consumer);
    all.operations.retain(is_own);
    Ok(all)
}

fn consumer(trigger: &ShownTrigger) -> String {
    format!("trigger/{}", trigger.qualified())
}

pub(crate) async fn page(look: &PageLook, namespace: &str, name: &str) -> PageResult {
    let trigger = ShownTrigger::ask(look, namespace, name).await?;
    let own = own_operations(look, &trigger).await?;
    let query = look.visit.text("q");
    let query = query.filter(|_| trigger.may_operate(look));
    let previewed = match &query {
        Some(query) => Some(preview(look, &trigger, query).await),
        None => None,
    };
    // Somebody who reads a preview is not to have it change below the hand.
    let fresh = (operations::is_running(&own) && query.is_none()).then_some(FRESH_MS);
    let title = format!("Send again to {}", trigger.qualified());
    let asked = query.as_deref().unwrap_or_default();
    let body = html! {
        h1 data-fresh=[fresh] { "Send again to " a href=(trigger.page(look)) { (trigger.qualified()) } }
        @if trigger.may_operate(look) { (which(look, &trigger, asked)) }
        @else { p.notice { "You may look, and not send anything again here." } }
        @match &previewed {
            None => {},
            Some(Err(fault)) => p.notice role="alert" { (fault.message) },
            Some(Ok(preview)) => (told(preview, asked, look, &trigger)),
        }
        (operations::running(&own, look))
        (operations::ended(&own, look))
    };
    let page = RenderedPage::new("trigger-resend", "none", &title, body);
    Ok(page.behind("heddle events operations", OPERATIONS))
}

fn which(look: &PageLook, trigger: &ShownTrigger, asked: &str) -> Markup {
    let page = resend_page(look, trigger);
    html! {
        section.card {
            form.ask action=(page) method="get" {
                label for="query" { "Which" }
                input #query name="q" value=(asked) required maxlength="4096" autocomplete="off" spellcheck="false" placeholder="since:2h until:1h type:order.*";
                button.primary type="submit" { "Preview" }
            }
            p { "Those of the last "
                @for (index, (time, name)) in TIMES.into_iter().enumerate() {
                    @if index > 0 { ", " }
                    a href=(format!("{page}?q={}", part(&format!("since:{time}")))) { (name) }
                }
                "."
            }
            p.quiet { "Its filter as it is now decides which of them it gets." }
        }
    }
}

async fn preview(
    look: &PageLook,
    trigger: &ShownTrigger,
    query: &str,
) -> Result<ResendPreview, AnswerFault> {
    let question = ResendRequest {
        consumer: consumer(trigger),
        query: query.to_owned(),
        dry_run: true,
        ..ResendRequest::default()
    };
    look.ask.query(RESEND, &question).await
}

fn told(preview: &ResendPreview, query: &str, look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let meant = ResendRequest {
        consumer: consumer(trigger),
        query: query.to_owned(),
        from: Some(preview.from),
        before: Some(preview.before),
        dry_run: false,
    };
    let request = ActRequest {
        path: RESEND.to_owned(),
        body: serde_json::to_value(&meant).unwrap_or_default(),
    };
    let command = format!(
        "heddle events resend {} --to {} --from {} --before {}",
        quoted(query),
        quoted(&consumer(trigger)),
        preview.from,
        preview.before
    );
    let can = preview.count > 0 && !preview.more;
    html! {
        section.card #preview {
            h2 { "What would be sent again" }
            (effect(preview, look))
            @if can {
                (act::form(&request, &question(preview, look, trigger), &outcomes(look, trigger), &look.links))
                noscript { p.notice { "Nothing can be pressed here without a script. The command below does it." } }
                (command::behind_change(&command, RESEND, &request.body.to_string()))
            }
        }
    }
}

fn effect(preview: &ResendPreview, look: &PageLook) -> Markup {
    let left = [
        (preview.filtered, "not wanted by its filter as it is now"),
        (preview.pending, "on their way already"),
        (
            preview.dead_letters,
            "at rest; redrive the dead letters instead",
        ),
        (
            preview.withheld,
            "never led here, and only who may read their data may send them",
        ),
    ];
    html! {
        p.lead data-count=(preview.count) data-bytes=(preview.bytes) {
            @if preview.count == 0 { "None of these events is to be sent again." }
            @else { (heddle_api::counted(preview.count, "event")) ", " (words::bytes(preview.bytes)) " of data, to " (consumer_words(preview)) }
        }
        @if let (Some(oldest), Some(newest)) = (&preview.oldest, &preview.newest) {
            dl.facts { dt { "Oldest" } dd { (edge(oldest, look)) } dt { "Newest" } dd { (edge(newest, look)) } }
        }
        @if left.iter().any(|(count, _)| *count > 0) {
            ul.plain #left { @for (count, why) in left { @if count > 0 { li { (words::number(count)) " left: " (why) } } } }
        }
        @if preview.more { p.notice { "There are more than are sent again at once, which is " (words::number(RESENT_MAX)) ", or more of the log than is looked through. Ask for less time; everything from place " (preview.from) " on was looked at." } }
        @if preview.count > 0 {
            @if preview.ordered { p.notice { "It keeps an order: fresh events with the same key wait for those that are sent again." } }
            p.quiet { "Takes " (estimate(preview.estimate_s)) ". What comes from now on is not meant. Everybody sees how far it is, it goes on after a restart, and it can be stopped." }
        }
    }
}

fn consumer_words(preview: &ResendPreview) -> Markup {
    html! { "a subscriber that is " @match preview.verdict { Some(now) => (subscriber_now(now)), None => "unknown" } "." }
}

fn edge(edge: &ResendEdge, look: &PageLook) -> Markup {
    html! { a href=(look.links.place(edge.offset)) { (words::shortened(&edge.id, 60)) } " of type " (edge.type_) ", " (words::since(edge.accepted_at, look.now)) }
}

fn question(preview: &ResendPreview, look: &PageLook, trigger: &ShownTrigger) -> Markup {
    html! {
        div.acts {
            button.primary type="submit" { "Send " (words::number(preview.count)) " again" }
            (act::leave("Cancel", &resend_page(look, trigger)))
        }
    }
}

fn outcomes(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    act::outcome(
        "begun",
        &html! {
            p.lead { "Begun, with " span data-slot="total" {} " of them." }
            div.acts { a.button href=(resend_page(look, trigger)) { "See how far it is" } }
        },
    )
}
