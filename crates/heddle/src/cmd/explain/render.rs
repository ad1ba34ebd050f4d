//! An explanation as people read it.

use std::time::Duration;

use heddle_api::conditions::Status;
use heddle_api::delivery::reason::SIGNING_KEY_UNREADABLE;
use heddle_api::filter::Filter;
use heddle_api::ledger::{Account, ExplainedEvent};
use heddle_api::span;

use super::Report;
use crate::output::{Table, count, harmless};
use crate::terminal::{Tone, paint};

pub(super) fn text(report: &Report, colour: bool) -> String {
    let proposal = &report.proposal;
    let (entry, explanation) = (proposal.entry(), &report.explanation);
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    if let Some(name) = &proposal.existing {
        line(&paint(colour, Tone::Strong, &format!("trigger/{name}")));
        facts(report, &mut |name, value| {
            line(&format!("  {name:9} {}", harmless(value)))
        });
        line("");
    }
    let filters: Vec<String> = proposal.filters.iter().map(filter_text).collect();
    let filters = if filters.is_empty() {
        "no filter".to_owned()
    } else {
        filters.join(" and ")
    };
    line(&format!("{} on {entry}", harmless(&filters)));
    let so_far = explanation
        .looked_back_to
        .map_or_else(String::new, |place| {
            format!(", as far as was looked: back to place {place} in the log")
        });
    if explanation.examined == 0 {
        line(&format!("no stored event has reached {entry}{so_far}"));
        return text;
    }
    let matched = paint(colour, Tone::Strong, &explanation.matched.to_string());
    line(&format!(
        "would have matched {matched} of the newest {}{so_far}",
        count(explanation.examined, "event")
    ));
    if let Some(difference) = &explanation.difference {
        line(&format!(
            "against the filter in force: {} gained, {} lost",
            difference.gained, difference.lost
        ));
    }
    for (title, events) in [
        ("newest matches", &explanation.matches),
        ("newest misses", &explanation.misses),
    ] {
        if !events.is_empty() {
            text.push_str(&format!("\n{title}\n"));
            text.push_str(&events_text(events, colour));
        }
    }
    text
}

/// What is known about an existing trigger besides its filter.
fn facts(report: &Report, fact: &mut impl FnMut(&str, &str)) {
    match &report.proposal.ready {
        None => fact("ready", "no controller has looked at it yet"),
        Some(ready) if ready.status == Status::True => fact("ready", "yes"),
        Some(ready) => {
            let words = [ready.reason.as_deref(), ready.message.as_deref()];
            fact(
                "ready",
                &format!(
                    "no: {}",
                    words.into_iter().flatten().collect::<Vec<_>>().join(": ")
                ),
            );
        }
    }
    let Some(account) = &report.account else {
        fact("account", "none; it is not part of the routes");
        return;
    };
    fact("account", &account_text(account));
    if let Some(held) = &account.held {
        fact("held", held);
    }
    if let Some(rate) = &account.rate {
        fact("rate", &rate_text(rate, account));
    }
    fact("signed", &signed_text(report, account));
    for forecast in &account.forecasts {
        fact("expected", &forecast.in_words());
    }
    if !account.schedule.is_empty() {
        fact("schedule", &account.schedule);
    }
    fact(
        "goes to",
        account
            .destination
            .as_deref()
            .unwrap_or("nowhere; the subscriber has no address"),
    );
}

/// Whether and how what is sent to it is signed.
fn signed_text(report: &Report, account: &Account) -> String {
    let ready = report.proposal.ready.as_ref();
    let reason = ready.and_then(|ready| ready.reason.as_deref());
    match &account.signing {
        Some(signing) => signing.in_words(),
        None if reason == Some(SIGNING_KEY_UNREADABLE.name) => {
            "it is to be, and there is no key to do it with: nothing is sent".to_owned()
        }
        None => "no".to_owned(),
    }
}

/// What it is sent at most, and what that costs.
fn rate_text(rate: &str, account: &Account) -> String {
    let delay = account.rate_delay_s.unwrap_or_default();
    let delay = Duration::try_from_secs_f64(delay).unwrap_or_default();
    match account.pending {
        0 => format!("{rate} at most"),
        pending => format!(
            "{rate} at most; the {pending} that wait take {}",
            span(delay)
        ),
    }
}

fn account_text(account: &Account) -> String {
    let again = match account.sent_again {
        0 => String::new(),
        again => format!(" and {again} sent again"),
    };
    let mut text = format!(
        "matched {}{again}: delivered {}, dead-lettered {}, expired {}, removed {}, pending {}",
        account.matched,
        account.delivered,
        account.dead_lettered,
        account.expired,
        account.removed,
        account.pending
    );
    if account.pending > 0 {
        text.push_str(&format!(
            " ({} in flight, {} retrying)",
            account.in_flight, account.retrying
        ));
    }
    if account.difference() != 0 {
        text.push_str(&format!("; {} unaccounted for", account.difference()));
    }
    text
}

/// A filter as one would write it on the command line; what is nested stays JSON.
fn filter_text(filter: &Filter) -> String {
    let maps = [
        ("", &filter.exact),
        ("prefix ", &filter.prefix),
        ("suffix ", &filter.suffix),
    ];
    let mut terms: Vec<String> = Vec::new();
    for (dialect, map) in maps {
        terms.extend(
            map.iter()
                .map(|(name, value)| format!("{dialect}{name}={value}")),
        );
    }
    terms.extend(filter.cesql.clone());
    if filter.not.is_some() || !filter.all.is_empty() || !filter.any.is_empty() || terms.is_empty()
    {
        return serde_json::to_string(filter).expect("a filter has string keys only");
    }
    terms.join(" and ")
}

fn events_text(events: &[ExplainedEvent], colour: bool) -> String {
    let headers = ["  PLACE", "ID", "TYPE", "SOURCE", "REASON"];
    let row = |event: &ExplainedEvent| {
        vec![
            format!("  {}", event.offset),
            harmless(&event.id),
            harmless(&event.type_),
            harmless(&event.source),
            harmless(&event.reason),
        ]
    };
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows: events.iter().map(row).collect(),
    };
    table.render(&table.widths(&[]), true, colour)
}
