//! Keeping events back for a while, and letting them go.

use heddle_api::ledger::Account;
use heddle_api::pause::DeliveryPause;
use heddle_api::well_known::annotation;
use maud::{Markup, html};
use std::collections::BTreeMap;

use super::super::event::quoted;
use super::ShownTrigger;
use crate::pages::PageLook;
use crate::parts::send_form::{self, SendForm};
use crate::parts::verdict;
use crate::words;

/// How long a pause may be asked for with one click, in seconds.
const SPANS: [(&str, u32); 4] = [
    ("15 minutes", 900),
    ("1 hour", 3600),
    ("8 hours", 28_800),
    ("1 day", 86_400),
];

pub(super) fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
    account: Option<&Account>,
) -> Markup {
    let annotations = trigger.object["metadata"]["annotations"].as_object();
    let annotations: BTreeMap<String, String> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let asked = DeliveryPause::read(Some(&annotations), |_| ());
    let holds = asked.filter(|pause| pause.holds_at(look.now));
    match holds {
        Some(pause) => paused(look, trigger, &pause, account),
        None if trigger.may_operate(look) => running(look, trigger),
        None => html! {},
    }
}

fn paused(
    look: &PageLook,
    trigger: &ShownTrigger,
    pause: &DeliveryPause,
    account: Option<&Account>,
) -> Markup {
    let then = trigger.page(look);
    let body = DeliveryPause::end_patch();
    let form = SendForm {
        method: "PATCH",
        path: &trigger.path,
        kind: send_form::MERGE_PATCH,
        body: &body,
        then: &then,
    };
    html! {
        section #paused.card aria-labelledby="pause" {
            h2 #pause { (verdict::mark("degraded")) " Paused" }
            dl.facts {
                dt { "By" } dd { @match &pause.by { Some(by) => (by), None => "somebody who left no name" } }
                dt { "Until" } dd { @match pause.until { Some(until) => { time datetime=(until) { (until.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }, None => "somebody resumes it" } }
                @if let Some(reason) = &pause.reason { dt { "Why" } dd { (reason) } }
                @if let Some(account) = account {
                    dt { "Waiting" }
                    dd { strong { (words::number(account.pending)) } @if let Some(at) = account.oldest_pending_at { ", the oldest came " (words::since(at, look.now)) } }
                }
            }
            p.quiet { "Events are accepted and kept as always; none is lost." }
            @if trigger.may_operate(look) { (send_form::draw(&form, &html! { button.primary type="submit" { "Resume" } })) }
            (crate::parts::command::line(&format!("heddle trigger resume {}", trigger.qualified())))
        }
    }
}

fn running(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let by = look.visit.access().map(|access| access.user.clone());
    let then = trigger.page(look);
    let mut body = DeliveryPause {
        by,
        ..DeliveryPause::default()
    }
    .patch();
    let pointer = |name: &str| format!("/metadata/annotations/{}", name.replace('/', "~1"));
    body["metadata"]["resourceVersion"] = trigger.object["metadata"]["resourceVersion"].clone();
    let form = SendForm {
        method: "PATCH",
        path: &trigger.path,
        kind: send_form::MERGE_PATCH,
        body: &body,
        then: &then,
    };
    let command = format!(
        "heddle trigger pause {} --for 1h --reason {}",
        trigger.qualified(),
        quoted("the pool is being mended")
    );
    html! {
        details #pausing.card {
            summary { "Pause" }
            p.quiet { "Its events are accepted and kept, and nothing is sent until it is resumed." }
            (send_form::draw(&form, &html! {
                label { "Why" input name="reason" maxlength="200" data-pointer=(pointer(annotation::PAUSED_REASON)); }
                label { "How long"
                    select name="until" data-as="from-now" data-now=(look.now) data-pointer=(pointer(annotation::PAUSED_UNTIL)) {
                        option value="" { "until somebody resumes it" }
                        @for (words, seconds) in SPANS { option value=(seconds) { (words) } }
                    }
                }
                button.primary type="submit" { "Pause" }
            }))
            (crate::parts::command::line(&command))
        }
    }
}
