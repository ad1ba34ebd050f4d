//! What is done with many dead letters, or with many events of the log: how far it is, how fast, for how long yet, and a way to
//! stop it.

use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};
use maud::{Markup, html};

use super::act::{self, ActRequest};
use crate::pages::PageLook;
use crate::words;

/// Of those that have ended.
const ENDED_MAX: usize = 10;

fn runs(operation: &BulkOperation) -> bool {
    operation.state == BulkState::Running
}

pub(crate) fn is_running(all: &BulkOperations) -> bool {
    all.operations.iter().any(runs)
}

/// Those under way.
pub(crate) fn running(all: &BulkOperations, look: &PageLook) -> Markup {
    html! {
        @if is_running(all) {
            section.card #running {
                h2 { "Under way" }
                ul.plain { @for one in all.operations.iter().filter(|one| runs(one)) { (under_way(one, look)) } }
            }
        }
    }
}

/// Those that have ended, as far as they are remembered.
pub(crate) fn ended(all: &BulkOperations, look: &PageLook) -> Markup {
    let ended: Vec<&BulkOperation> = all.operations.iter().filter(|one| !runs(one)).collect();
    html! {
        @if !ended.is_empty() {
            section.card #ended {
                h2 { "What was done with many of them" }
                ul.plain { @for one in ended.iter().take(ENDED_MAX) {
                    li data-operation=(one.id) data-state=(one.state.word()) {
                        (title(one)) ": " (match one.state { BulkState::Stopped => "stopped", _ => "done" })
                        @if let Some(by) = &one.stopped_by { " by " (by) }
                        @if let Some(at) = one.ended_at { " " (words::since(at, look.now)) }
                        ", " (words::number(one.count)) " of " (words::number(one.total)) " taken"
                        @if one.left > 0 { ", " (words::number(one.left)) " left" }
                        "."
                    }
                } }
            }
        }
    }
}

fn title(operation: &BulkOperation) -> Markup {
    let verb = match operation.act {
        BulkAct::Redrive => "Redrive",
        BulkAct::Discard => "Discard",
        BulkAct::Resend => "Sending again",
    };
    html! {
        (verb) " of " (words::number(operation.total))
        @if let Some(query) = &operation.query { " (" code { (query) } ")" }
        " by " strong { (operation.by) }
    }
}

fn under_way(operation: &BulkOperation, look: &PageLook) -> Markup {
    let list = match operation.act {
        BulkAct::Redrive | BulkAct::Discard => "/heddle/v1/dead-letters",
        BulkAct::Resend => "/heddle/v1/events",
    };
    let stop = ActRequest::bare(format!("{list}/operations/{}/stop", operation.id));
    let label = format!("{} of {}", operation.act.word(), operation.total);
    html! {
        li.operation data-operation=(operation.id) data-state="running" {
            p { (title(operation)) ", begun " (words::since(operation.started_at, look.now)) }
            progress max=(operation.total.max(1)) value=(operation.count + operation.left) aria-label=(label) {}
            div.bar {
                span { (words::number(operation.count)) " of " (words::number(operation.total)) (pace(operation)) }
                @if look.visit.may_operate(None) { (act::button(&stop, "Stop", &format!("Stop the {label}"), &look.links)) }
            }
            @if let Some(waits) = &operation.waits { p.notice { "Waits: " (waits) } }
        }
    }
}

fn pace(operation: &BulkOperation) -> String {
    let mut text = String::new();
    if operation.left > 0 {
        text.push_str(&format!(", {} left", words::number(operation.left)));
    }
    if let Some(rate) = operation.rate_per_s {
        text.push_str(&format!(", {rate:.0}/s"));
    }
    if let Some(eta) = operation.eta_s {
        text.push_str(&format!(", {} to go", words::seconds(eta as f64)));
    }
    text
}
