//! How many events may be sent in a span of time: what holds, what that costs in delay, and another rate, with what would
//! change before it does.

use heddle_api::ledger::Account;
use heddle_api::rate::{self, DeliveryRate};
use heddle_api::well_known::annotation;
use heddle_api::{counted, span};
use maud::{Markup, html};
use serde_json::Value;

use super::super::event::quoted;
use super::ShownTrigger;
use crate::pages::PageLook;
use crate::parts::command;
use crate::parts::send_form::{self, SendForm};
use crate::words;

/// The word for having none, in the form as on the command line.
const NONE: &str = "none";

/// What holds now, among the figures of a trigger.
pub(super) fn figure(account: &Account) -> Markup {
    html! {
        @if let Some(rate) = &account.rate {
            li #paced { strong { (rate) } " at most"
                @if let Some(delay) = account.rate_delay_s.filter(|_| account.pending > 0) { ", at which what waits takes " (words::seconds(delay)) }
            }
        }
    }
}

pub(super) fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
    account: Option<&Account>,
) -> Markup {
    if !trigger.may_operate(look) {
        return html! {};
    }
    let former = asked(trigger);
    let wanted = look.visit.any_text("rate");
    let shown = wanted.as_deref().or(former).unwrap_or(NONE);
    html! {
        details #rating.card open[wanted.is_some()] {
            summary { "Rate" }
            p.quiet { "No more than so many events are sent, evenly spaced; the others wait, and none is lost." }
            form method="get" action=(trigger.page(look)) {
                p.bar {
                    label { "At most " input name="rate" value=(shown) size="10" maxlength="20" autocomplete="off" spellcheck="false"; }
                    button type="submit" { "Look what would change" }
                }
                p.quiet { "Such as " code { "100/s" } ", " code { "0.5/s" } ", " code { "30/min" } " or " code { (NONE) } "." }
            }
            @if let Some(wanted) = wanted { (change(look, trigger, wanted.trim(), account)) }
        }
    }
}

/// What the manifest says, whether it can be read or not.
fn asked(trigger: &ShownTrigger) -> Option<&str> {
    trigger.object["metadata"]["annotations"][annotation::RATE].as_str()
}

fn change(
    look: &PageLook,
    trigger: &ShownTrigger,
    wanted: &str,
    account: Option<&Account>,
) -> Markup {
    let rate = DeliveryRate::parse(wanted);
    if rate.is_none() && !wanted.is_empty() && wanted != NONE {
        return html! { p.notice.fault role="alert" { "This is no rate: wanted is " (rate::WANTED) ", or " (NONE) "." } };
    }
    let text = rate.map(|rate| rate.to_string());
    let former = asked(trigger);
    if text.as_deref() == former {
        return html! { p.quiet { "This is what the trigger asks for." } };
    }
    let word = text.as_deref().unwrap_or(NONE);
    let command = format!(
        "heddle trigger rate {} {}",
        trigger.qualified(),
        quoted(word)
    );
    let body = patch(trigger, rate);
    let then = trigger.page(look);
    let form = SendForm {
        method: "PATCH",
        path: &trigger.path,
        kind: send_form::MERGE_PATCH,
        body: &body,
        then: &then,
    };
    html! {
        section.way #rated {
            h2 { "What would change" }
            pre.difference tabindex="0" aria-label="Difference of the manifest" {
                "  metadata:\n    annotations:\n"
                @if let Some(former) = former { del { "-     " (annotation::RATE) ": " (former) } "\n" }
                @if let Some(text) = &text { ins { "+     " (annotation::RATE) ": " (text) } "\n" }
            }
            p { (cost(rate, account.map_or(0, |account| account.pending))) }
            (send_form::draw(&form, &html! { button.primary type="submit" { "Apply" } }))
            (command::line(&command))
        }
    }
}

/// What it costs in delay.
fn cost(rate: Option<DeliveryRate>, pending: u64) -> String {
    match (rate, pending) {
        (None, _) => "What waits is sent as fast as its subscriber takes it.".to_owned(),
        (Some(rate), 0) => {
            let apart = span(rate.apart());
            format!(
                "Nothing waits now. An event that comes with others waits {apart} for each of those before it."
            )
        }
        (Some(rate), pending) => {
            let (events, delay) = (counted(pending, "event"), span(rate.time_for(pending)));
            format!(
                "{events} wait now; at {rate} the last of them is sent after {delay}, and later ones come behind it."
            )
        }
    }
}

/// Against the object as it was looked at: what somebody else did meanwhile is not overwritten.
fn patch(trigger: &ShownTrigger, rate: Option<DeliveryRate>) -> Value {
    let mut patch = DeliveryRate::patch(rate);
    patch["metadata"]["resourceVersion"] = trigger.object["metadata"]["resourceVersion"].clone();
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_rate_costs_is_told_before_it_holds() {
        let rate = DeliveryRate::parse("10/s");
        assert!(
            cost(rate, 1200)
                .contains("1200 events wait now; at 10/s the last of them is sent after 2 min")
        );
        assert!(cost(rate, 0).contains("waits 100 ms for each"));
        assert!(cost(None, 1200).contains("as fast as"));
    }

    #[test]
    fn a_change_is_against_what_was_looked_at() {
        let trigger = ShownTrigger {
            namespace: "team-a".to_owned(),
            name: "orders".to_owned(),
            object: json!({"metadata": {"resourceVersion": "17", "annotations": {"heddle.dev/rate": "fast"}}}),
            path: String::new(),
        };
        assert_eq!(asked(&trigger), Some("fast"));
        let patch = patch(&trigger, DeliveryRate::parse("5/s"));
        assert_eq!(patch["metadata"]["resourceVersion"], "17");
        assert_eq!(patch["metadata"]["annotations"]["heddle.dev/rate"], "5/s");
    }
}
