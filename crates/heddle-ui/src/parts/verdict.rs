//! How well something is, by shape, word and colour: nobody has to tell red from green.

use heddle_api::health::{PlaneHealth, Verdict};
use heddle_api::ledger::EventState;
use maud::{Markup, html};

use crate::draw::timeline;
use crate::links::PageLinks;

/// The words that a verdict can be.
const WORDS: [&str; 4] = ["healthy", "degraded", "unhealthy", "unknown"];

/// One of the four words; what else comes is not known here.
pub(crate) fn known(word: &str) -> &'static str {
    let found = WORDS.into_iter().find(|known| *known == word);
    found.unwrap_or("unknown")
}

/// The shape: a disc, a triangle, a square, a ring.
pub(crate) fn mark(verdict: &str) -> Markup {
    html! {
        svg.mark viewBox="0 0 12 12" aria-hidden="true" {
            @match known(verdict) {
                "healthy" => circle cx="6" cy="6" r="5" {},
                "degraded" => path d="M6 .6 11.6 11H.4z" {},
                "unhealthy" => rect x="1" y="1" width="10" height="10" rx="1" {},
                _ => circle.ring cx="6" cy="6" r="4" {},
            }
        }
    }
}

/// The shape for the state of an event at a consumer, by its name in answers.
pub(crate) fn state_mark(state: &str) -> Markup {
    let known = EventState::ALL.into_iter().find(|one| one.name() == state);
    let word = known.map_or("unknown", timeline::verdict);
    html! { span data-verdict=(word) { (mark(word)) } }
}

/// Shape and word.
pub(crate) fn badge(verdict: &str) -> Markup {
    html! { span.verdict data-verdict=(known(verdict)) { (mark(verdict)) (known(verdict)) } }
}

/// Whether a condition holds, in the same shapes.
pub(crate) fn of_status(status: &str) -> &'static str {
    match status {
        "True" => "healthy",
        "False" => "unhealthy",
        _ => "unknown",
    }
}

/// An object that a verdict names, with the way to it.
pub(crate) fn object(object: &str, links: &PageLinks) -> Markup {
    html! {
        @match links.object(object) {
            Some(link) => a.object href=(link) { (object) },
            None => span.object { (object) },
        }
    }
}

/// What is known of the culprit: hop, object, evidence, remedy, and the way to what the code means.
pub(crate) fn particulars(verdict: &Verdict, links: &PageLinks) -> Markup {
    let plane = PlaneHealth {
        reason: verdict.reason.clone(),
        remedy: verdict.remedy.clone(),
        hop: verdict.hop.clone(),
        object: verdict.object.clone(),
        evidence: verdict.evidence.clone(),
        ..PlaneHealth::default()
    };
    of_plane(&plane, links)
}

/// The same of one plane.
pub(crate) fn of_plane(plane: &PlaneHealth, links: &PageLinks) -> Markup {
    html! {
        dl.facts {
            @if let Some(hop) = &plane.hop { dt { "Hop" } dd { (hop) } }
            @if let Some(culprit) = &plane.object { dt { "Object" } dd { (object(culprit, links)) } }
            @if let Some(evidence) = &plane.evidence { dt { "Evidence" } dd { (evidence) } }
            @if !plane.remedy.is_empty() { dt { "Remedy" } dd { (plane.remedy) } }
            @if !plane.reason.is_empty() {
                dt { "Code" }
                dd { a href=(links.help(&plane.reason)) { (plane.reason) } }
            }
        }
    }
}
