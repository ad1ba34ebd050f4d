//! How an explanation looks to people.

use heddle_api::bundle::{self, BundlePhase};
use heddle_api::bundle_revision::VersionSource;
use heddle_api::conditions::{Condition, Reason, Status};
use heddle_api::tombstone::Tombstone;
use heddle_api::{BundleRevision, registry};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{Evidence, Facts, Fate};
use crate::cmd::bundle::listing::{self, Reference};
use crate::output::{Table, age, count, harmless, moment, span};
use crate::terminal::{Tone, paint};

pub(super) fn text(facts: &Facts, now: Timestamp, colour: bool) -> String {
    let bundle = &facts.bundle;
    let phase = listing::phase(bundle);
    let mut page = Page::new(&facts.name, &format!("{phase:?}"), colour);
    let (reason, since) = listing::reason(bundle);
    let since = for_how_long(since, now);
    match (phase, reason) {
        (BundlePhase::Live, None) if facts.left_out.is_some() => {}
        (BundlePhase::Live, None) => page.line("offered", since.trim_start()),
        (BundlePhase::Live, Some(reason)) => page.line("reason", &format!("{reason}{since}")),
        (_, reason) => {
            let reason = reason.unwrap_or_else(|| "for an unknown reason".to_owned());
            page.line("withdrawn", &format!("{reason}{since}"));
        }
    }
    if let Some(why) = &facts.left_out {
        page.line("left out", why);
    }
    what_is_wrong(&mut page, facts);
    page.line("service", &bundle.spec.service_id);
    let image = listing::image(bundle);
    page.line(
        "image",
        &format!("{image} of registry {}", bundle.spec.registry),
    );
    page.line("bundle", &bundle.name_any());
    match &facts.revision {
        Some(revision) => page.line("version", &version(revision)),
        None => page.line("version", "none: no image of it could be used yet"),
    }
    let seen = bundle
        .status
        .as_ref()
        .and_then(|status| status.seen.as_ref());
    if let Some(why) = seen.and_then(|seen| seen.rejected.as_ref()) {
        page.line("rejected", &format!("the newest image: {why}"));
    }
    match facts.stale() {
        Some(stale) => {
            let at = stale.last_transition_time.as_ref().map(|time| time.0);
            let since = for_how_long(at, now);
            page.line("stale", &format!("yes{since}: {}", said(stale)));
        }
        None => page.line("stale", "no"),
    }
    registry_lines(&mut page, facts);
    let fate = Fate::of(facts, now);
    page.line("kept by", &fate.kept_by);
    page.line("deleted", &fate.deleted);
    let references = references(&facts.references, colour);
    let evidence = evidence(&facts.evidence(), now, colour);
    format!("{}\n{references}\n{evidence}", page.text)
}

/// What is remembered of a bundle that was swept.
pub(super) fn epitaph(stone: &Tombstone, now: Timestamp, colour: bool) -> String {
    let mut page = Page::new(&stone.name, "Gone", colour);
    let at = |at: Timestamp| format!("{}, {} ago", moment(at), span(age(at, now)));
    let withdrawn = at(stone.withdrawn_at.0);
    page.line("withdrawn", &format!("{:?}, at {withdrawn}", stone.reason));
    page.line("gone", &format!("at {}", at(stone.gone_at.0)));
    page.line("service", &stone.service_id);
    page.line(
        "image",
        &format!("{} of registry {}", stone.image, stone.registry),
    );
    page.text
}

/// A heading, and lines with a word before each.
struct Page {
    text: String,
}

impl Page {
    fn new(name: &str, state: &str, colour: bool) -> Self {
        let name = paint(colour, Tone::Strong, &harmless(name));
        Self {
            text: format!("{name}  {state}\n"),
        }
    }

    fn line(&mut self, word: &str, text: &str) {
        let line = format!("  {word:10} {}", harmless(text));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn for_how_long(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(String::new, |at| format!(" for {}", span(age(at, now))))
}

fn said(condition: &Condition) -> &str {
    let reason = condition.reason.as_deref();
    condition.message.as_deref().or(reason).unwrap_or_default()
}

/// In the words of the controller, and what it means wherever it is met.
fn what_is_wrong(page: &mut Page, facts: &Facts) {
    let Some(status) = &facts.bundle.status else {
        return;
    };
    for type_ in [
        bundle::condition::OFFERED,
        bundle::condition::REVISION_ACCEPTED,
    ] {
        let found = status.conditions.find(type_.name);
        let Some(condition) = found.filter(|condition| condition.status != Status::True) else {
            continue;
        };
        let message = condition.message.as_deref().unwrap_or_default();
        let reason = condition.reason.as_deref().unwrap_or_default();
        for text in [message, meaning(type_.reasons, reason)] {
            if !text.is_empty() {
                page.line("", text);
            }
        }
    }
}

fn meaning(reasons: &'static [Reason], word: &str) -> &'static str {
    let found = reasons.iter().find(|reason| reason.name == word);
    found.map_or("", |reason| reason.meaning)
}

fn version(revision: &BundleRevision) -> String {
    let spec = &revision.spec;
    let version = spec.bundle_version.as_deref().unwrap_or("none given");
    let source = match spec.version_source {
        Some(VersionSource::Description) => " (by its description)",
        Some(VersionSource::Label) => " (by a label of its image)",
        Some(VersionSource::Tag) => " (by its tag)",
        None => "",
    };
    let (name, digest) = (revision.name_any(), &spec.manifest_digest);
    format!("{version}{source}, {name}, {digest}")
}

fn registry_lines(page: &mut Page, facts: &Facts) {
    let Some(found) = &facts.registry else {
        return page.line("registry", "gone");
    };
    let status = found.status.clone().unwrap_or_default();
    let name = found.name_any();
    let reachable = status.conditions.find(registry::condition::REACHABLE.name);
    if let Some(condition) = reachable.filter(|condition| condition.status != Status::True) {
        let reason = condition.reason.as_deref().unwrap_or_default();
        let text = format!("{name} cannot be read: {reason}: {}", said(condition));
        page.line("registry", &text);
    }
    if let Some(suspicion) = &status.suspicion {
        let bundles = count(u64::try_from(suspicion.count).unwrap_or_default(), "bundle");
        let (readings, needed) = (suspicion.readings, found.spec.mass_removal.confirmations);
        let text = format!(
            "{bundles} of registry {name} disappeared at once, in {readings} of the {needed} readings that it takes to be \
             believed; `heddle registry approve {name}` believes it now"
        );
        page.line("suspicion", &text);
    }
}

fn references(references: &[Reference], colour: bool) -> String {
    if references.is_empty() {
        return "Nothing refers to it.\n".to_owned();
    }
    let row = |reference: &Reference| {
        vec![
            harmless(&reference.namespace),
            reference.kind.to_owned(),
            harmless(&reference.id),
            harmless(reference.version.as_deref().unwrap_or("<none>")),
        ]
    };
    let headers = ["NAMESPACE", "KIND", "ID", "VERSION"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: references.iter().map(row).collect(),
    };
    table.page(colour)
}

fn evidence(evidence: &[Evidence], now: Timestamp, colour: bool) -> String {
    if evidence.is_empty() {
        return "No reading of its registry is on record.\n".to_owned();
    }
    let row = |entry: &Evidence| {
        let ago = entry.at.map(|at| format!("{} ago", span(age(at, now))));
        let message = match entry.message.as_str() {
            "" => "<none>",
            message => message,
        };
        vec![
            harmless(&entry.run),
            ago.unwrap_or_else(|| "<none>".to_owned()),
            entry.verdict.to_owned(),
            message.to_owned(),
        ]
    };
    let headers = ["READING", "BEGAN", "EVIDENCE", "MESSAGE"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: evidence.iter().map(row).collect(),
    };
    table.page(colour)
}
