//! Everything that one code may mean: a section for the alert, the health code and the check of that name, and one for the
//! conditions that give it as their reason. Pure; several things may be called the same, and all of them are shown.

use std::collections::BTreeSet;

use heddle_api::checks::{self, DoctorCheck};
use heddle_api::conditions::{self, ConditionType, Reason};
use heddle_api::health::alerts::{self, Alert};
use heddle_api::health::catalogue::{self, HealthFault};
use heddle_api::{ConditionSet, ResourceKind};
use maud::{Markup, html};

use crate::links::PageLinks;
use crate::objects;
use crate::parts::verdict;
use crate::words::capital;

/// What is called so, the most particular first.
pub(crate) fn of(code: &str, links: &PageLinks) -> Vec<Markup> {
    let reasons = reasons(code);
    let entries = [
        alerts::find(code).map(|alert| of_alert(alert, links)),
        catalogue::find(code).map(of_fault),
        checks::find(code).map(of_check),
        (!reasons.is_empty()).then(|| of_reasons(code, &reasons)),
    ];
    entries.into_iter().flatten().collect()
}

/// Whether anything is called so.
pub(crate) fn is_known(code: &str) -> bool {
    alerts::find(code).is_some()
        || catalogue::find(code).is_some()
        || checks::find(code).is_some()
        || !reasons(code).is_empty()
}

/// The reasons of all conditions, each once.
pub(crate) fn reason_names() -> BTreeSet<&'static str> {
    let declared = ResourceKind::ALL
        .iter()
        .flat_map(|kind| of_kind(*kind).iter())
        .flat_map(|condition| condition.reasons);
    let declared = declared.chain([&conditions::NOT_YET_OBSERVED]);
    declared.map(|reason| reason.name).collect()
}

fn of_kind(kind: ResourceKind) -> ConditionSet {
    objects::of(kind).conditions
}

/// A reason where it is given: of one that every condition may give, no place is named.
#[derive(Debug)]
struct ReasonEntry {
    place: Option<(ResourceKind, &'static ConditionType)>,
    reason: &'static Reason,
}

fn reasons(code: &str) -> Vec<ReasonEntry> {
    if code == conditions::NOT_YET_OBSERVED.name {
        return vec![ReasonEntry {
            place: None,
            reason: &conditions::NOT_YET_OBSERVED,
        }];
    }
    let mut found = Vec::new();
    for kind in ResourceKind::ALL {
        for condition in of_kind(*kind).iter() {
            let named = condition.reasons.iter();
            let named = named.filter(|reason| reason.name == code);
            found.extend(named.map(|reason| ReasonEntry {
                place: Some((*kind, condition)),
                reason,
            }));
        }
    }
    found
}

fn of_alert(alert: &Alert, links: &PageLinks) -> Markup {
    let mut looks = Vec::new();
    for command in alert.faults().flat_map(|fault| fault.diagnosis) {
        if !looks.contains(command) {
            looks.push(*command);
        }
    }
    html! {
        section.card data-code=(alert.name) {
            h1 { (alert.name) " " span.quiet { "alert" } }
            p.lead { (capital(&alert.said())) }
            dl.facts {
                dt { "Severity" } dd { (alert.urgency.word()) }
                dt { "Fires" } dd { @if alert.hold == "0m" { "at once when " } @else { "when for " (alert.hold) " " } code { (alert.expression) } }
            }
            h2 { "What it may be, and what helps" }
            dl.facts {
                @for fault in alert.faults() {
                    dt { a href=(links.help(fault.code)) { (fault.code) } }
                    dd { (fault.meaning) " " strong { (capital(fault.remedy)) "." } }
                }
            }
            h2 { "To see more" }
            (commands(&looks))
        }
    }
}

fn of_fault(fault: &HealthFault) -> Markup {
    html! {
        section.card data-code=(fault.code) {
            h1 { (verdict::mark(fault.health.word())) " " (fault.code) }
            p.lead { (fault.meaning) }
            dl.facts {
                @for (label, text) in fault.facts() { dt { (capital(label)) } dd { (text) } }
            }
            @if !fault.diagnosis.is_empty() {
                h2 { "To see more" }
                (commands(fault.diagnosis))
            }
        }
    }
}

fn of_check(check: &DoctorCheck) -> Markup {
    html! {
        section.card data-code=(check.id) {
            h1 { (check.id) " " span.quiet { (check.category.word()) } }
            p.lead { (check.holds) }
            p { "When it does not hold: " (check.otherwise) }
            (commands(&["heddle doctor"]))
        }
    }
}

fn of_reasons(code: &str, reasons: &[ReasonEntry]) -> Markup {
    html! {
        section.card data-code=(code) {
            h1 { (code) " " span.quiet { "reason of a condition" } }
            @for entry in reasons {
                @match entry.place {
                    None => p.lead { (entry.reason.meaning) },
                    Some((kind, condition)) => {
                        h2 { (kind.name()) ": " (condition.name) }
                        p.lead { (entry.reason.meaning) }
                        p.quiet { "When it holds: " (condition.meaning) }
                        (commands(&[&objects::of(kind).command(Some("NS"), "NAME")]))
                    }
                }
            }
        }
    }
}

fn commands(commands: &[&str]) -> Markup {
    html! {
        ul.plain {
            @for command in commands {
                li { span.copyable { code { span.prompt aria-hidden="true" { "$ " } (command) } button.plain.copy type="button" hidden data-copy=(command) { "Copy" } } }
            }
        }
    }
}
