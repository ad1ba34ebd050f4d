//! What would a change do? A manifest, and objects that would be gone, are tried on the newest stored events before anybody
//! applies them.
//!
//! ```text
//!   text ──documents──> objects ──POST what-if──> who would get which events more, and who fewer
//! ```
//! It is the question that `heddle apply --what-if` asks, but that objects are taken as they are written: what the server would
//! refuse or fill in is told by the command. The script sends what is typed as a body: manifests are too long for an address.

mod told;

use heddle_api::manifest::{self, Document};
use heddle_api::what_if::{ChangedObject, WhatIf, WhatIfRequest};
use maud::{Markup, html};
use serde_json::Value;

use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::{PageLinks, part};
use crate::parts::command;
use crate::words;

/// What is longer is no manifest for a page.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// What the script sends: both texts, with what JSON needs to escape them.
pub(crate) const BODY_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;
/// How many events may be chosen to be looked at.
const LASTS: [u64; 3] = [1_000, 10_000, 100_000];
/// A longer manifest does not go into an address: proxies cut those.
const LINKED_BYTES_MAX: usize = 4 << 10;
const PATH: &str = "/heddle/v1/what-if";

/// What somebody wants to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedChange {
    manifest: String,
    /// Objects that would be gone, one on a line.
    gone: String,
    last: Option<u64>,
    /// The name of the question.
    ask: Option<String>,
}

impl WantedChange {
    /// As the script sends it.
    pub(crate) fn read(body: &[u8]) -> Self {
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
        Self {
            manifest: text("manifest"),
            gone: text("gone"),
            last: text("last").parse().ok(),
            ask: sent["ask"].as_str().map(str::to_owned),
        }
    }

    fn last(&self) -> u64 {
        let [_, usual, most] = LASTS;
        self.last.unwrap_or(usual).min(most)
    }
}

/// The page on which a manifest is tried; its text is left out where it is too long for an address.
pub(crate) fn link(links: &PageLinks, manifest: &str) -> String {
    match manifest.len() <= LINKED_BYTES_MAX {
        true => links.page(&format!("what-if?manifest={}", part(manifest))),
        false => links.page("what-if"),
    }
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let text = |key| look.visit.text(key).unwrap_or_default();
    let wanted = WantedChange {
        manifest: text("manifest"),
        gone: text("gone"),
        ..WantedChange::default()
    };
    let body = html! {
        h1 { "What would a change do?" }
        p { "A manifest is tried on the events that are stored: who would get more of them, and who fewer. Nothing is changed by it." }
        @if look.visit.may_operate(None) { (form(look, &wanted)) }
        @else { section.card.state { p { "Whoever may make a change may ask what it would do: that takes an operator of a namespace." } } }
        section #tried.card.state { p.quiet { "What would change is shown here." } }
        (command::behind_change("heddle apply -f change.yaml --what-if", PATH, r#"{"apply": [OBJECT, …], "delete": [{"kind": …, "namespace": …, "name": …}]}"#))
    };
    Ok(RenderedPage::new("what-if", "none", "What if", body))
}

fn form(look: &PageLook, wanted: &WantedChange) -> Markup {
    let kinds = WhatIfRequest::KINDS.join(", ");
    let lines = wanted.manifest.lines().count().clamp(8, 30);
    html! {
        section.card {
            noscript { p.notice { "Nothing can be tried here without a script. The command below does it." } }
            form hidden method="post" data-scripted data-on="submit" data-try=(look.links.page("what-if/try")) {
                label { "Manifest: YAML or JSON, as many documents as the change has"
                    textarea name="manifest" rows=(lines) maxlength=(TEXT_BYTES_MAX) spellcheck="false" autocomplete="off" { "\n" (wanted.manifest) }
                }
                label { "Gone: KIND/NAMESPACE/NAME, one on a line"
                    textarea name="gone" rows="2" maxlength=(TEXT_BYTES_MAX) spellcheck="false" autocomplete="off" placeholder="trigger/team-a/orders" { "\n" (wanted.gone) }
                }
                p.bar {
                    label { "over the newest " select name="last" { @for last in LASTS { option value=(last) selected[last == wanted.last()] { (words::number(last)) } } } " events" }
                    button.primary type="submit" { "Try it" }
                }
                p.quiet { "Compared are " (kinds) "." }
            }
        }
    }
}

/// What somebody wrote, as far as it can be asked about.
#[derive(Debug, Default)]
struct ReadChange {
    request: WhatIfRequest,
    /// What applied objects are called, and where they stand: `trigger/team-a/orders`, `document 2`.
    places: Vec<(String, String)>,
    /// What is not part of the question, and why.
    left_out: Vec<String>,
}

impl ReadChange {
    fn of(wanted: &WantedChange) -> Result<Self, String> {
        let mut read = Self::default();
        read.request.last = wanted.last();
        let longest = wanted.manifest.len().max(wanted.gone.len());
        if longest > TEXT_BYTES_MAX {
            return Err("this is too long for the page; ask with the command".to_owned());
        }
        let documents = match wanted.manifest.trim().is_empty() {
            true => Vec::new(),
            false => manifest::parse("the manifest", &wanted.manifest)
                .map_err(|fault| fault.to_string())?,
        };
        for document in documents {
            read.apply(document);
        }
        for (number, line) in wanted.gone.lines().enumerate() {
            if !line.trim().is_empty() {
                read.delete(number + 1, line.trim());
            }
        }
        Ok(read)
    }

    fn apply(&mut self, document: Document) {
        let (kind, name) = (document.kind(), document.name());
        let origin = &document.origin;
        if let Some(why) = not_compared(kind) {
            self.left_out.push(format!("{origin}: {kind} {name} {why}"));
            return;
        }
        let Some(namespace) = document.namespace() else {
            let text = format!("{origin}: {kind} {name} names no metadata.namespace");
            self.left_out.push(text);
            return;
        };
        let object = format!("{}/{namespace}/{name}", kind.to_lowercase());
        self.places.push((object, origin.clone()));
        self.request.apply.push(document.object);
    }

    fn delete(&mut self, number: usize, line: &str) {
        let parts: Vec<&str> = line.split('/').map(str::trim).collect();
        let [kind, namespace, name] = parts[..] else {
            let text = format!("gone, line {number}: {line:?} is not KIND/NAMESPACE/NAME");
            self.left_out.push(text);
            return;
        };
        let known = WhatIfRequest::KINDS.into_iter();
        let mut known = known.filter(|known| known.eq_ignore_ascii_case(kind));
        let Some(kind) = known.next() else {
            let why = not_compared(kind).unwrap_or_default();
            self.left_out
                .push(format!("gone, line {number}: {line} {why}"));
            return;
        };
        self.request.delete.push(ChangedObject {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
    }

    fn is_empty(&self) -> bool {
        self.request.apply.is_empty() && self.request.delete.is_empty()
    }

    /// A problem, with the document that it is about.
    fn placed(&self, problem: &str) -> String {
        let object = problem.split(": ").next().unwrap_or_default();
        let place = self.places.iter().find(|(known, _)| known == object);
        place.map_or_else(
            || problem.to_owned(),
            |(_, origin)| format!("{origin}: {problem}"),
        )
    }
}

/// Why a kind is no part of a comparison.
fn not_compared(kind: &str) -> Option<&'static str> {
    let is_in = |kinds: &[&str]| kinds.iter().any(|known| known.eq_ignore_ascii_case(kind));
    match (
        is_in(&WhatIfRequest::KINDS),
        is_in(&WhatIfRequest::INDIRECT),
    ) {
        (true, _) => None,
        (_, true) => Some(
            "is left out: heddle makes and removes links, brokers, policies and sources for it, and what those would do is not compared",
        ),
        _ => Some("decides nothing about events and is left out"),
    }
}

/// What a change would do, for the script.
pub(crate) async fn answer(look: &PageLook, wanted: &WantedChange) -> Markup {
    let read = match ReadChange::of(wanted) {
        Ok(read) => read,
        Err(fault) => return told::refused(&fault, &[]),
    };
    if read.is_empty() {
        let text = "There is nothing to try: write a manifest, or what would be gone.";
        return told::refused(text, &read.left_out);
    }
    let path = match &wanted.ask {
        Some(name) => format!("{PATH}?ask={}", part(name)),
        None => PATH.to_owned(),
    };
    let asked: Result<WhatIf, _> = look.ask.query(&path, &read.request).await;
    match asked {
        Ok(found) => told::section(&found, &read, look),
        Err(fault) => told::refused(&fault.message, &read.left_out),
    }
}

#[cfg(test)]
mod tests;
