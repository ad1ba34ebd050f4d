//! What is done with many dead letters: how far it is, how fast, for how long yet, and a way to stop it.

use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};
use maud::{Markup, html};

use super::{LIST, PageLook};
use crate::parts::act::{self, ActRequest};
use crate::words;

/// Of those that have ended.
const ENDED_MAX: usize = 10;

fn runs(operation: &BulkOperation) -> bool {
    operation.state == BulkState::Running
}

pub(super) fn is_running(all: &BulkOperations) -> bool {
    all.operations.iter().any(runs)
}

/// Those under way.
pub(super) fn running(all: &BulkOperations, look: &PageLook) -> Markup {
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
pub(super) fn ended(all: &BulkOperations, look: &PageLook) -> Markup {
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
    };
    html! { (verb) " of " (words::number(operation.total)) " by " strong { (operation.by) } }
}

fn under_way(operation: &BulkOperation, look: &PageLook) -> Markup {
    let stop = ActRequest::bare(format!("{LIST}/operations/{}/stop", operation.id));
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
