//! Who changed what, the newest first. For administrators; the filter is in the address.

use heddle_api::audit::{AuditEntry, AuditLine, AuditOutcome, AuditPage, AuditQuery};
use http::StatusCode;
use maud::{Markup, html};

use super::event::quoted;
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::objects;
use crate::parts::verdict;
use crate::words;

const QUESTION: &str = "/heddle/v1/audit";
/// Rows on one page.
const ROWS: usize = 50;
/// Lines in an exported file: more are for the command line, which keeps nothing in memory.
const EXPORTED_MAX: usize = 100_000;

/// A field of the filter: its key, which the question has too, what stands before it, and what could be in it.
const FIELDS: [(&str, &str, &str); 6] = [
    ("since", "Since", "1h"),
    ("until", "Until", "2026-05-01"),
    ("user", "User", "ada"),
    ("verb", "Verb", "patch"),
    ("object", "Object", "trigger/team-a/*"),
    ("namespace", "Namespace", "team-a"),
];

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let chosen: Vec<(&str, String)> = AuditQuery::KEYS
        .into_iter()
        .filter_map(|key| look.visit.text(key).map(|value| (key, value)))
        .collect();
    let pairs: Vec<String> = chosen
        .iter()
        .map(|(key, value)| format!("{key}={}", part(value)))
        .collect();
    let narrowed = pairs.join("&");
    let mut path = format!("{QUESTION}?{narrowed}");
    if let Some(after) = look.visit.text("after") {
        path = joined(&path, &format!("after={}", part(&after)));
    }
    let path = joined(&path, &format!("limit={ROWS}"));
    let found: Result<AuditPage, AnswerFault> = look.ask.get(&path).await;
    let (found, fault) = match found {
        // A filter that cannot be read is mended where it is written.
        Err(fault) if fault.status == StatusCode::BAD_REQUEST => {
            (AuditPage::default(), Some(fault.to_string()))
        }
        found => (found?, None),
    };
    let body = html! {
        h1 { "Changes" }
        p.lead { "Who changed what, by whatever door, and what became of it." }
        (filter(&chosen, look))
        @match fault {
            Some(fault) => p.notice role="alert" { (fault) },
            None => (listed(&found, &narrowed, look)),
        }
    };
    let flags: String = chosen
        .iter()
        .map(|(key, value)| format!(" --{key} {}", quoted(value)))
        .collect();
    let command = format!("heddle audit{flags}");
    Ok(RenderedPage::new("audit", "audit", "Changes", body).behind(&command, &path))
}

/// One more parameter.
fn joined(path: &str, pair: &str) -> String {
    match path.ends_with('?') {
        true => format!("{path}{pair}"),
        false => format!("{path}&{pair}"),
    }
}

fn filter(chosen: &[(&str, String)], look: &PageLook) -> Markup {
    let value = |key: &str| {
        let found = chosen.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.as_str())
    };
    html! {
        form.card.filters action=(look.links.page("audit")) method="get" {
            @for (key, name, example) in FIELDS {
                label { span { (name) } input name=(key) value=[value(key)] placeholder=(example) maxlength="256" autocomplete="off" spellcheck="false"; }
            }
            label { span { "Outcome" }
                select name="outcome" {
                    option value="" { "any" }
                    @for outcome in AuditOutcome::ALL {
                        option value=(outcome.name()) selected[value("outcome") == Some(outcome.name())] { (outcome.name()) }
                    }
                }
            }
            button.primary type="submit" { "Show" }
            @if !chosen.is_empty() { a href=(look.links.page("audit")) { "Show all" } }
        }
    }
}

fn listed(found: &AuditPage, narrowed: &str, look: &PageLook) -> Markup {
    let links = &look.links;
    let exported = joined(
        &format!("{QUESTION}?{narrowed}"),
        &format!("limit={EXPORTED_MAX}&format=jsonl"),
    );
    html! {
        @if let Some(fault) = &found.fault {
            p.notice role="alert" { strong { "Changes are refused: " } (fault) "." }
        }
        @if found.damaged > 0 {
            section.notice role="alert" {
                p { (heddle_api::counted(found.damaged, "line")) " cannot be read any more; the others are kept." }
                @if !found.damage.is_empty() { ul { @for damage in &found.damage { li { (damage) } } } }
            }
        }
        @if found.items.is_empty() {
            section.card.state { p { "No such change is kept." } }
        } @else { (table(&found.items, look)) }
        p.bar {
            @if let Some(next) = found.next {
                a href=(links.page(&joined(&format!("audit?{narrowed}"), &format!("after={next}")))) { "Older ones" }
            }
            a href=(links.server(&exported)) download="heddle-audit.jsonl" data-file { "Export as JSON lines" }
            @if let Some(oldest) = found.oldest_at {
                span.quiet { "The oldest line that is kept is from " (words::since(oldest, look.now)) "." }
            }
        }
    }
}

fn table(items: &[AuditLine], look: &PageLook) -> Markup {
    html! {
        section.card { div.table { table {
            thead { tr { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } th scope="col" { "Object" } th scope="col" { "Outcome" } th scope="col" { "From" } } }
            tbody { @for line in items { (row(line, look)) } }
        } } }
    }
}

fn row(line: &AuditLine, look: &PageLook) -> Markup {
    let entry = &line.entry;
    html! {
        tr data-row data-line=(line.number) {
            th scope="row" data-label="When" { (words::since(line.at, look.now)) br; span.quiet { (line.at.strftime("%F %T").to_string()) } }
            td data-label="Who" { (who(line)) }
            td data-label="What" { (entry.verb) }
            td data-label="Object" { (object(entry, look)) }
            td data-label="Outcome" { (outcome(line)) }
            td data-label="From" {
                (entry.address.as_deref().unwrap_or("–"))
                @if let Some(agent) = &entry.user_agent { br; span.quiet { (agent) } }
            }
        }
    }
}

/// What it is about, with the way there if there is a page of it.
fn object(entry: &AuditEntry, look: &PageLook) -> Markup {
    let object = entry.object();
    let (kind, name) = (entry.kind.as_deref(), entry.name.as_deref());
    let is_whole = |kind: &str| {
        objects::kind(kind).is_some_and(|path| path.namespaced == entry.namespace.is_some())
    };
    let link = match (kind, name) {
        (Some("deadletter"), Some(name)) => Some(look.links.dead_letter(name)),
        (Some(kind), Some(_)) if is_whole(kind) => look.links.object(&object),
        _ => None,
    };
    html! {
        @match link {
            Some(link) => a.object href=(link) { (object) },
            None if object.is_empty() => span.quiet { (entry.request) },
            None => span.object { (object) },
        }
    }
}

fn who(line: &AuditLine) -> Markup {
    let entry = &line.entry;
    html! {
        @match &entry.user { Some(user) => strong { (user) }, None => span.quiet { "nobody known" } }
        @if let Some(role) = &entry.role { " " span.quiet { (role) } }
        @if let Some(impersonator) = &entry.impersonator { br; span.quiet { "by " (impersonator) } }
        @if let Some(behalf) = &entry.on_behalf_of { br; span.quiet { "for " (behalf) } }
    }
}

/// A shape, a word, the status and the reason.
fn outcome(line: &AuditLine) -> Markup {
    let entry = &line.entry;
    let tone = match entry.outcome {
        AuditOutcome::Done => "healthy",
        AuditOutcome::Refused => "degraded",
        AuditOutcome::Failed => "unhealthy",
        AuditOutcome::Interrupted => "unknown",
    };
    html! {
        span.verdict data-verdict=(tone) { (verdict::mark(tone)) (entry.outcome.name()) }
        @if entry.count > 1 { " " span.quiet { (words::number(entry.count)) " times" } }
        @if entry.status.is_some() || entry.reason.is_some() {
            br; span.quiet {
                @if let Some(status) = entry.status { (status) " " }
                @if let Some(reason) = &entry.reason { (reason) }
            }
        }
    }
}
