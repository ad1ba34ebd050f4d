//! Verdicts for people.

use std::time::Duration;

use heddle_api::health::{
    ApplicationHealth, HealthStatus, HeartbeatHealth, MeshHealth, NamespaceHealth, Planes, Verdict,
    state,
};

use crate::output::{Table, harmless, span};
use crate::terminal::{Tone, paint};

/// The mesh, and a line for each application.
pub(super) fn overview(mesh: &MeshHealth, colour: bool) -> String {
    let mut text = headline("mesh", &mesh.verdict, colour);
    text.push_str(&heartbeat_line(mesh.heartbeat.as_ref()));
    let items = mesh.application_list.as_deref().unwrap_or_default();
    if items.is_empty() {
        return text;
    }
    text.push('\n');
    let rows = items.iter().map(|item| {
        let verdict = &item.eventing.verdict;
        vec![
            item.name.clone(),
            word(verdict.health, false),
            state_word(item.eventing.state).to_owned(),
            told(verdict).to_owned(),
            verdict.object.clone().unwrap_or_default(),
        ]
    });
    let headers = ["APPLICATION", "HEALTH", "STATE", "REASON", "OBJECT"];
    text.push_str(&table(&headers, rows).page(colour));
    text
}

/// One application, and a line for each namespace.
pub(super) fn application(health: &ApplicationHealth, colour: bool) -> String {
    let eventing = &health.eventing;
    let name = format!("application {}", health.name);
    let mut text = headline(&name, &eventing.verdict, colour);
    text.push_str(&planes(&eventing.verdict.planes, colour));
    if eventing.namespaces.is_empty() {
        return text;
    }
    text.push('\n');
    let rows = eventing.namespaces.iter().map(|namespace| {
        let verdict = &namespace.verdict;
        let age = namespace
            .heartbeat
            .as_ref()
            .and_then(|beat| beat.age_seconds);
        vec![
            namespace.name.clone(),
            word(verdict.health, false),
            state_word(namespace.state).to_owned(),
            age.map_or_else(String::new, |age| format!("{} ago", seconds(age))),
            told(verdict).to_owned(),
            verdict.object.clone().unwrap_or_default(),
        ]
    });
    let headers = [
        "NAMESPACE",
        "HEALTH",
        "STATE",
        "HEARTBEAT",
        "REASON",
        "OBJECT",
    ];
    text.push_str(&table(&headers, rows).page(colour));
    if eventing.namespaces_left_out > 0 {
        text.push_str(&format!(
            "and {} more, none of them worse\n",
            eventing.namespaces_left_out
        ));
    }
    text
}

/// One application in one namespace, plane by plane.
pub(super) fn pair(application: &str, health: &NamespaceHealth, colour: bool) -> String {
    let name = format!("application {application} in {}", health.name);
    let mut text = headline(&name, &health.verdict, colour);
    text.push_str(&format!(
        "  state      {} {}\n",
        health.state,
        state_word(health.state)
    ));
    text.push_str(&heartbeat_line(health.heartbeat.as_ref()));
    text.push_str(&planes(&health.verdict.planes, colour));
    text
}

pub(super) fn table(headers: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        headers: headers.iter().map(|&header| header.to_owned()).collect(),
        rows: rows.collect(),
    }
}

fn headline(name: &str, verdict: &Verdict, colour: bool) -> String {
    let health = word(verdict.health, colour);
    let since = verdict.since;
    let message = harmless(&verdict.message);
    let mut text = format!("{name} is {health} since {since}: {message}\n");
    let mut line = |label: &str, what: Option<&str>| {
        if let Some(what) = what.filter(|what| !what.is_empty()) {
            text.push_str(&format!("  {label:<9}  {}\n", harmless(what)));
        }
    };
    if verdict.health != HealthStatus::Healthy {
        line("reason", Some(&verdict.reason));
        line("hop", verdict.hop.as_deref());
        line("object", verdict.object.as_deref());
        line("evidence", verdict.evidence.as_deref());
        line("remedy", Some(&verdict.remedy));
    }
    text
}

fn heartbeat_line(heartbeat: Option<&HeartbeatHealth>) -> String {
    let Some(beat) = heartbeat else {
        return String::new();
    };
    let what = match (beat.age_seconds, beat.end_to_end_seconds) {
        (Some(age), Some(took)) => format!("{} ago, took {}", seconds(age), seconds(took)),
        _ => "none arrived yet".to_owned(),
    };
    format!(
        "  heartbeat  {what}, every {}\n",
        seconds(beat.interval_seconds)
    )
}

fn planes(planes: &Planes, colour: bool) -> String {
    let mut text = String::new();
    for (plane, found) in planes.iter() {
        let health = word(found.health, colour);
        let message = harmless(&found.message);
        let name = plane.word();
        text.push_str(&format!("  {name:<12}  {health}: {message}\n"));
        if found.health == HealthStatus::Healthy {
            continue;
        }
        let seen = [&found.object, &found.evidence];
        let seen: Vec<String> = seen
            .into_iter()
            .flatten()
            .map(|one| harmless(one))
            .collect();
        for (label, what) in [
            ("seen", seen.join(": ")),
            ("remedy", harmless(&found.remedy)),
        ] {
            if !what.is_empty() {
                text.push_str(&format!("  {:<12}  {label}: {what}\n", ""));
            }
        }
    }
    text
}

/// Why, unless there is nothing to explain.
fn told(verdict: &Verdict) -> &str {
    match verdict.health {
        HealthStatus::Healthy => "",
        _ => &verdict.reason,
    }
}

fn word(health: HealthStatus, colour: bool) -> String {
    let tone = match health {
        HealthStatus::Healthy => Tone::Good,
        HealthStatus::Degraded | HealthStatus::Unknown => Tone::Strong,
        HealthStatus::Unhealthy => Tone::Bad,
    };
    paint(colour, tone, &format!("{health:?}"))
}

fn state_word(reached: u8) -> &'static str {
    match reached {
        state::BOUND => "bound",
        state::ENABLED => "enabled",
        state::TRIGGERED => "triggered",
        _ => "created",
    }
}

fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default())
}
