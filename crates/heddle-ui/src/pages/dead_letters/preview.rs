//! What redriving, discarding or trying dead letters would do, and the question whether to: a page of its own, which the
//! script shows as a dialog.
//!
//! What is asked for is what was previewed: letters that come to rest afterwards are kept out by the name of the last.

use heddle_api::dead_letters::{
    AT_ONCE_MAX, BulkAct, DeadLetterPreview, NOT_CURED_BY_REPEATING, PreviewedConsumer,
};
use heddle_api::ledger::{DeadLetter, DeadLetterDetail, DeadLetterPage};
use maud::{Markup, html};

use super::groups::subscriber_now;
use super::{LIST, PageLook, PageResult, joined};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::act::{self, ActRequest};
use crate::parts::choice::LetterChoice;
use crate::parts::{command, verdict};
use crate::words;

const NAME: &str = "dead-letter-preview";
/// Letters that are looked at to find one that can be tried.
const CANDIDATES_MAX: usize = 50;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let choice = LetterChoice::of(&look.visit);
    if choice.is_nothing() {
        return Ok(nothing_chosen(look));
    }
    match look.visit.text("act").as_deref() {
        Some("try") => try_one(&choice, look).await,
        Some("discard") => take(BulkAct::Discard, &choice, look).await,
        _ => take(BulkAct::Redrive, &choice, look).await,
    }
}

fn nothing_chosen(look: &PageLook) -> RenderedPage {
    let body = html! {
        section.card {
            h1 { "Nothing is selected" }
            p { "Tick the rows that are meant, or choose a group, or all that are shown." }
            div.acts { (back(look)) }
        }
    };
    RenderedPage::new(NAME, "dead-letters", "Nothing is selected", body)
}

fn back(look: &PageLook) -> Markup {
    act::leave("Cancel", &look.links.page("dead-letters"))
}

async fn preview(
    act: BulkAct,
    choice: &LetterChoice,
    look: &PageLook,
) -> Result<DeadLetterPreview, AnswerFault> {
    let mut question = choice.0.clone();
    question.dry_run = true;
    let path = format!("{LIST}/{}", act.word());
    look.ask.query(&path, &question).await
}

async fn take(act: BulkAct, choice: &LetterChoice, look: &PageLook) -> PageResult {
    let preview = preview(act, choice, look).await?;
    let verb = match act {
        BulkAct::Discard => "Discard",
        BulkAct::Redrive | BulkAct::Resend => "Redrive",
    };
    let letters = heddle_api::counted(preview.count, "dead letter");
    let title = format!("{verb} {letters}");
    let mut meant = choice.0.clone();
    meant.up_to.clone_from(&preview.up_to);
    let request = ActRequest::of(&format!("{LIST}/{}", act.word()), &meant);
    let command = format!("heddle dead-letters {}{}", act.word(), choice.arguments());
    let body = html! {
        section.card {
            h1 { (title) }
            (effect(act, &preview, look))
            @if preview.count > 0 {
                (act::form(&request, &question(act, verb, &preview, choice, look), &outcomes(act, look), &look.links))
                noscript { p.notice { "Nothing can be pressed here without a script. The command below does it." } }
            } @else { div.acts { (back(look)) } }
            (command::behind_change(&command, &request.path, &request.body.to_string()))
        }
    };
    Ok(RenderedPage::new(NAME, "dead-letters", &title, body))
}

/// What would happen.
fn effect(act: BulkAct, preview: &DeadLetterPreview, look: &PageLook) -> Markup {
    let events = heddle_api::counted(preview.count, "event");
    html! {
        p.lead data-count=(preview.count) data-bytes=(preview.bytes) {
            @match (preview.count, act) {
                (0, _) => "There is nothing to take: what was meant no longer rests, or cannot be sent again.",
                (_, BulkAct::Redrive | BulkAct::Resend) => { "To go on their way again: " (events) ", " (words::bytes(preview.bytes)) "." }
                (_, BulkAct::Discard) => { "To be thrown away for good: " (events) ", " (words::bytes(preview.bytes)) ". Your name is kept with it." }
            }
        }
        @if !preview.consumers.is_empty() { (consumers(act, &preview.consumers, look)) }
        @if preview.hints.iter().any(|hint| hint == NOT_CURED_BY_REPEATING) {
            p.notice data-hint=(NOT_CURED_BY_REPEATING) { "Some were refused with a status that repeating does not cure, such as 400, 401, 403 or 413. The same answer is likely until the subscriber has changed." }
        }
        @if preview.replies > 0 {
            p.notice { (heddle_api::counted(preview.replies, "letter")) (if preview.replies == 1 { " is a reply and stays where it is" } else { " are replies and stay where they are" }) ": a reply cannot be sent again." }
        }
        @if preview.count > 0 {
            p.quiet { "Takes " (estimate(preview.estimate_s)) ". What comes to rest from now on is not taken."
                @if preview.count > AT_ONCE_MAX { " So many become an operation: everybody sees how far it is, it goes on after a restart, and it can be stopped." }
            }
        }
    }
}

fn consumers(act: BulkAct, consumers: &[PreviewedConsumer], look: &PageLook) -> Markup {
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Consumer" } th.number scope="col" { "Events" } th scope="col" { "Subscriber now" } @if act == BulkAct::Redrive { th scope="col" { "Order" } } } }
            tbody { @for one in consumers {
                tr data-consumer=(one.consumer) {
                    th scope="row" { (verdict::object(&one.consumer, &look.links)) }
                    td.number data-label="Events" { (words::number(one.count)) }
                    td data-label="Subscriber now" { (subscriber_now(one.verdict)) }
                    @if act == BulkAct::Redrive { td data-label="Order" { (order(one)) } }
                }
            } }
        } }
    }
}

fn order(one: &PreviewedConsumer) -> String {
    match (one.ordered, one.overtakes) {
        (false, _) => "keeps none".to_owned(),
        (true, 0) => "kept; nothing waits".to_owned(),
        (true, waiting) => format!(
            "kept by key; goes before up to {} that {}",
            words::number(waiting),
            if waiting == 1 { "waits" } else { "wait" }
        ),
    }
}

pub(crate) fn estimate([least, most]: [u64; 2]) -> String {
    match (least, most) {
        (_, 0 | 1) => "about a second".to_owned(),
        (least, most) if least == most => format!("about {}", words::seconds(least as f64)),
        (least, most) => format!(
            "{} to {}",
            words::seconds(least as f64),
            words::seconds(most as f64)
        ),
    }
}

fn question(
    act: BulkAct,
    verb: &str,
    preview: &DeadLetterPreview,
    choice: &LetterChoice,
    look: &PageLook,
) -> Markup {
    let count = preview.count;
    let try_first = look
        .links
        .page(&format!("dead-letters/preview?act=try&{}", choice.query()));
    html! {
        @if act == BulkAct::Discard {
            label { "To discard them, type their number: " strong { (count) }
                input name="typed" required pattern=(count) title=(format!("Type {count}")) inputmode="numeric" autocomplete="off" maxlength="20";
            }
        }
        div.acts {
            button.primary.danger[act == BulkAct::Discard] type="submit" { (verb) " " (words::number(count)) }
            @if act == BulkAct::Redrive { a.button href=(try_first) data-dialog { "Try one first" } }
            (back(look))
        }
    }
}

fn outcomes(act: BulkAct, look: &PageLook) -> Markup {
    let done = match act {
        BulkAct::Redrive | BulkAct::Resend => html! {
            p.lead { span data-slot="count" {} " on their way again." }
            p { "What fails again comes to rest again, and is shown here." }
        },
        BulkAct::Discard => html! { p.lead { span data-slot="count" {} " thrown away." } },
    };
    let close = || html! { div.acts { (act::leave("Close", &look.links.page("dead-letters"))) } };
    html! {
        (act::outcome("done", &html! { (done) (close()) }))
        (act::outcome("begun", &html! {
            p.lead { "Begun, with " span data-slot="total" {} " of them." }
            p { "How far it is stands on the page of dead letters, for everybody who may see it, and there it can be stopped. This window may be closed." }
            (close())
        }))
    }
}

/// The first that can be sent again.
async fn candidate(
    choice: &LetterChoice,
    look: &PageLook,
) -> Result<Option<DeadLetter>, AnswerFault> {
    if let Some(name) = choice.0.names.first() {
        let path = format!("{LIST}/{}", part(name));
        let found: Option<DeadLetterDetail> = look.ask.find(&path).await?;
        return Ok(found.map(|detail| detail.summary));
    }
    let mut narrowed = choice.clone();
    narrowed.0.all = false;
    let query = joined(&[narrowed.query(), format!("limit={CANDIDATES_MAX}")]);
    let page: DeadLetterPage = look.ask.get(&format!("{LIST}?{query}")).await?;
    Ok(page.items.into_iter().find(|letter| letter.reply.is_none()))
}

async fn try_one(choice: &LetterChoice, look: &PageLook) -> PageResult {
    let Some(letter) = candidate(choice, look).await? else {
        let body = html! {
            section.card { h1 { "There is nothing to try" } p { "What was meant no longer rests, or cannot be sent again." } div.acts { (back(look)) } }
        };
        return Ok(RenderedPage::new(
            NAME,
            "dead-letters",
            "There is nothing to try",
            body,
        ));
    };
    let all = preview(BulkAct::Redrive, choice, look).await?;
    let request = ActRequest::bare(format!("{LIST}/{}/try", part(&letter.name)));
    let rest = rest(choice, all.count.saturating_sub(1), look);
    let asking = html! {
        div.acts { button.primary type="submit" { "Try this one" } (back(look)) }
    };
    let title = format!(
        "Try one of {}",
        heddle_api::counted(all.count, "dead letter")
    );
    let command = format!("heddle dead-letters try {}", letter.name);
    let body = html! {
        section.card {
            h1 { (title) }
            p.lead { strong { (letter.id) } " of type " (letter.type_) " goes to the subscriber of " (verdict::object(&letter.consumer, &look.links)) " once more." }
            p { "Last time: " @if let Some(status) = letter.status { strong { (status) } " " } (letter.reason) }
            p.quiet { "The answer is shown here. Whatever it is, it counts as that of any redrive." }
            (act::form(&request, &asking, &tried(&rest, look), &look.links))
            noscript { p.notice { "Nothing can be pressed here without a script. The command below does it." } }
            (command::behind_change(&command, &request.path, "{}"))
        }
    };
    Ok(RenderedPage::new(NAME, "dead-letters", &title, body))
}

/// What can be done with the others once one has been tried.
fn rest(choice: &LetterChoice, count: u64, look: &PageLook) -> Markup {
    let query = choice.query();
    let to = look
        .links
        .page(&format!("dead-letters/preview?act=redrive&{query}"));
    html! {
        div.acts {
            @if count > 0 { a.button href=(to) data-dialog { "Redrive the other " (words::number(count)) "…" } }
            (act::leave("Close", &look.links.page("dead-letters")))
        }
    }
}

fn tried(rest: &Markup, look: &PageLook) -> Markup {
    let answered = html! {
        span data-with="status" { "It answered " strong data-slot="status" {} "." } " "
        span data-with="latencyMs" { "That took " span data-slot="latencyMs" {} " ms." }
    };
    let said = html! {
        p data-with="error" { "Why: " span data-slot="error" {} }
        pre.answered data-with="answer" data-slot="answer" tabindex="0" aria-label="What it said" {}
    };
    let sentence = |verdict: &'static str, words: &str| html! { p.lead data-verdict=(verdict) { (verdict::mark(verdict)) " " (words) } };
    let under_way = html! { div.acts { (act::leave("Close", &look.links.page("dead-letters"))) } };
    html! {
        (act::outcome("delivered", &html! { (sentence("healthy", "The subscriber took it.")) p { (answered) } (rest) }))
        (act::outcome("failed", &html! { (sentence("degraded", "The subscriber did not take it. It will be tried again, as its delivery says.")) p { (answered) } (said) (rest) }))
        (act::outcome("deadLettered", &html! { (sentence("unhealthy", "The subscriber did not take it, and it rests again.")) p { (answered) " " span data-with="restsAs" { "It is now called " span data-slot="restsAs" {} "." } } (said) (rest) }))
        (act::outcome("underWay", &html! { (sentence("unknown", "There was no answer within half a minute. It is on its way all the same.")) (under_way) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_takes_is_said_as_a_span() {
        assert_eq!(estimate([0, 0]), "about a second");
        assert_eq!(estimate([1, 1]), "about a second");
        assert_eq!(estimate([1, 4]), "1.0 s to 4.0 s");
        assert!(estimate([90, 360]).contains(" to "));
    }

    #[test]
    fn what_is_overtaken_is_said_only_where_an_order_is_kept() {
        let one = |ordered, overtakes| PreviewedConsumer {
            consumer: "trigger/a/b".to_owned(),
            count: 3,
            verdict: heddle_api::dead_letters::SubscriberNow::Healthy,
            ordered,
            overtakes,
        };
        assert_eq!(order(&one(false, 5)), "keeps none");
        assert_eq!(order(&one(true, 0)), "kept; nothing waits");
        assert!(order(&one(true, 14)).ends_with("up to 14 that wait"));
    }
}
