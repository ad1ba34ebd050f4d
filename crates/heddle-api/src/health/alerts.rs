//! When somebody should be told: one table, from which the rules for Prometheus and the pages of help are made, and which is
//! evaluated where there is no Prometheus (`watch`).
//!
//! An alert names the codes of the [`catalogue`] that it may be about; what they mean, what people notice and
//! what to do stands there, once.

mod evaluate;
pub mod notices;
mod promql;
mod series;
pub mod told;
pub mod watch;

use std::fmt::Write as _;

use super::catalogue::{self, HealthFault};

/// How soon somebody must look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// At once.
    Critical,
    /// During the day.
    Warning,
}

impl Urgency {
    /// The `severity` of the rule.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert {
    pub name: &'static str,
    /// In the language of Prometheus.
    pub expression: &'static str,
    /// For how long it must hold.
    pub hold: &'static str,
    pub urgency: Urgency,
    /// What is said, with Prometheus' own placeholders.
    pub summary: &'static str,
    /// What it may be about.
    pub codes: &'static [&'static str],
    /// Where to look first, below `/ui/`, with the same placeholders.
    pub page: &'static str,
}

/// The page of an application in a namespace, of what has both as labels.
const PAIR: &str = "applications/{{ $labels.app }}?ns={{ $labels.ns }}";
/// The page of a consumer, of what is told of each.
const CONSUMER: &str = "objects/{{ $labels.kind }}/{{ $labels.ns }}/{{ $labels.trigger }}";
/// The page of the mesh.
const MESH: &str = "";

impl Alert {
    /// The entries of the catalogue that it may be about.
    pub fn faults(&self) -> impl Iterator<Item = &'static HealthFault> + use<> {
        self.codes.iter().filter_map(|code| catalogue::find(code))
    }

    /// The summary with words for the placeholders.
    #[must_use]
    pub fn said(&self) -> String {
        let (mut said, mut rest) = (String::new(), self.summary);
        while let Some((before, behind)) = rest.split_once("{{ $") {
            let (name, after) = behind.split_once("}}").unwrap_or((behind, ""));
            let name = name.split([' ', '|']).next().unwrap_or_default();
            said.push_str(before);
            said.push_str(&name.trim_start_matches("labels.").to_uppercase());
            rest = after;
        }
        said + rest
    }
}

const fn alert(
    name: &'static str,
    urgency: Urgency,
    hold: &'static str,
    expression: &'static str,
    summary: &'static str,
    codes: &'static [&'static str],
    page: &'static str,
) -> Alert {
    Alert {
        name,
        expression,
        hold,
        urgency,
        summary,
        codes,
        page,
    }
}

/// Every alert, the most urgent first.
pub const ALERTS: &[Alert] = &[
    alert(
        "HeddleAbsent",
        Urgency::Critical,
        "1m",
        "absent(heddle_api_store_serving)",
        "heddle is not running, or cannot be scraped",
        &["ControllerStalled"],
        MESH,
    ),
    alert(
        "HeddleMeshUnhealthy",
        Urgency::Critical,
        "1m",
        "heddle_health{app=\"\",plane=\"all\"} == 0",
        "the mesh is unhealthy: `heddle health` names what is broken",
        &[
            "CanaryFailing",
            "LogBroken",
            "LogFull",
            "StoreBroken",
            "MatchingBehind",
            "EdgeCertificateExpired",
            "EdgeCertificateUntrusted",
            "EdgeRefuses",
            "EdgeTimedOut",
            "EdgeUnreachable",
        ],
        MESH,
    ),
    alert(
        "HeddleInvariantViolated",
        Urgency::Critical,
        "1m",
        "heddle_unaccounted > 0",
        "{{ $value }} events of {{ $labels.kind }} {{ $labels.ns }}/{{ $labels.trigger }} are not accounted for",
        &["BalanceViolated"],
        CONSUMER,
    ),
    alert(
        "HeddleLogRefuses",
        Urgency::Critical,
        "1m",
        "heddle_log_serving == 0",
        "events are refused: the disk is full or has failed",
        &["LogBroken", "LogFull", "JournalStalled"],
        "checks",
    ),
    alert(
        "HeddleStoreRefuses",
        Urgency::Critical,
        "1m",
        "heddle_api_store_serving == 0",
        "nothing can be declared or changed: the store takes no writes",
        &["StoreBroken"],
        "checks",
    ),
    alert(
        "HeddleQuota95",
        Urgency::Critical,
        "1m",
        "heddle_quota_used_ratio > 0.95",
        "{{ $value | humanizePercentage }} of the room for events is used",
        &["LogFilling", "LogFull"],
        "checks",
    ),
    alert(
        "HeddlePublishErrorsFast",
        Urgency::Critical,
        "2m",
        "sum(rate(heddle_published_total{code=\"5xx\"}[5m])) / sum(rate(heddle_published_total[5m])) > 0.0144 and sum(rate(heddle_published_total{code=\"5xx\"}[1h])) / sum(rate(heddle_published_total[1h])) > 0.0144",
        "{{ $value | humanizePercentage }} of what is published fails; at this pace a month's budget of 0.1 % is gone in two days",
        &["LogFull", "LogBroken", "SourceRefuses"],
        MESH,
    ),
    alert(
        "HeddleDeliveryDelayFast",
        Urgency::Critical,
        "2m",
        "1 - sum(rate(heddle_delivery_delay_seconds_bucket{le=~\"30|30[.]0\"}[5m])) / sum(rate(heddle_delivery_delay_seconds_count[5m])) > 0.144 and 1 - sum(rate(heddle_delivery_delay_seconds_bucket{le=~\"30|30[.]0\"}[1h])) / sum(rate(heddle_delivery_delay_seconds_count[1h])) > 0.144",
        "{{ $value | humanizePercentage }} of what is delivered comes later than 30 seconds; at this pace a month's budget of 1 % is gone in two days",
        &["BacklogOld", "SubscriberFailing", "DispatchStalled"],
        MESH,
    ),
    alert(
        "HeddleHeartbeatMissing",
        Urgency::Critical,
        "1m",
        "heddle_health{app!=\"\",plane=\"data\"} == 0",
        "events of {{ $labels.app }} do not arrive in {{ $labels.ns }}",
        &[
            "HeartbeatMissing",
            "SourceRefuses",
            "ChannelNotWritten",
            "LinkBroken",
            "BrokerNotRouting",
            "DispatchStalled",
            "DeliveryFailing",
        ],
        PAIR,
    ),
    alert(
        "HeddlePublishErrorsSlow",
        Urgency::Warning,
        "15m",
        "sum(rate(heddle_published_total{code=\"5xx\"}[30m])) / sum(rate(heddle_published_total[30m])) > 0.006 and sum(rate(heddle_published_total{code=\"5xx\"}[6h])) / sum(rate(heddle_published_total[6h])) > 0.006",
        "{{ $value | humanizePercentage }} of what is published fails; at this pace a month's budget of 0.1 % is gone in five days",
        &["LogFull", "LogBroken", "SourceRefuses"],
        MESH,
    ),
    alert(
        "HeddleDeliveryDelaySlow",
        Urgency::Warning,
        "15m",
        "1 - sum(rate(heddle_delivery_delay_seconds_bucket{le=~\"30|30[.]0\"}[30m])) / sum(rate(heddle_delivery_delay_seconds_count[30m])) > 0.06 and 1 - sum(rate(heddle_delivery_delay_seconds_bucket{le=~\"30|30[.]0\"}[6h])) / sum(rate(heddle_delivery_delay_seconds_count[6h])) > 0.06",
        "{{ $value | humanizePercentage }} of what is delivered comes later than 30 seconds; at this pace a month's budget of 1 % is gone in five days",
        &["BacklogOld", "SubscriberFailing", "DispatchStalled"],
        MESH,
    ),
    alert(
        "HeddleFlowNotReady",
        Urgency::Warning,
        "5m",
        "heddle_health{app!=\"\",plane=\"control\"} == 0",
        "something on the way of {{ $labels.app }} into {{ $labels.ns }} is missing or not ready",
        &[
            "ApplicationNotReady",
            "SourceNotReady",
            "ChannelNotReady",
            "MappingNotReady",
            "InstanceFailed",
            "FlowNotReady",
            "LinkNotReady",
            "BrokerNotReady",
            "AdmissionFailing",
        ],
        PAIR,
    ),
    alert(
        "HeddleControllerStalled",
        Urgency::Warning,
        "1m",
        "heddle_controller_lease_age_seconds > 15 or heddle_controller_queue_stalled_seconds > 15",
        "controller {{ $labels.controller }} is not at work",
        &["ControllerStalled"],
        "checks",
    ),
    alert(
        "HeddleControllerFailing",
        Urgency::Warning,
        "10m",
        "rate(heddle_controller_failures_total[5m]) > 0.1",
        "controller {{ $labels.controller }} keeps failing",
        &["ControllerFailing"],
        "checks",
    ),
    alert(
        "HeddleSubscriberFailing",
        Urgency::Warning,
        "5m",
        "heddle_health{app!=\"\",plane=\"user\"} == 0",
        "a subscriber in {{ $labels.ns }} does not take the events of {{ $labels.app }}",
        &[
            "SubscriberFailing",
            "SubscriberUnreachable",
            "TriggerNotReady",
        ],
        PAIR,
    ),
    alert(
        "HeddleSmokeFailed",
        Urgency::Warning,
        "1m",
        "heddle_smoke_failed_in_a_row >= 2",
        "{{ $value }} smoke tests in a row have failed: `heddle smoke` shows the step",
        &[
            "SourceRefuses",
            "CanaryFailing",
            "AdmissionFailing",
            "ControllerStalled",
        ],
        MESH,
    ),
    alert(
        "HeddleDeadLettersGrowing",
        Urgency::Warning,
        "5m",
        "delta(heddle_dead_letters[15m]) > 0",
        "dead letters of {{ $labels.ns }}/{{ $labels.trigger }} grow",
        &["DeadLetters", "SubscriberFailing"],
        "dead-letters",
    ),
    alert(
        "HeddleBacklogAge",
        Urgency::Warning,
        "5m",
        "heddle_oldest_pending_seconds > 300",
        "the oldest event of {{ $labels.ns }}/{{ $labels.trigger }} waits for {{ $value | humanizeDuration }}",
        &["BacklogOld"],
        CONSUMER,
    ),
    alert(
        "HeddleQuota80",
        Urgency::Warning,
        "15m",
        "heddle_quota_used_ratio > 0.8",
        "{{ $value | humanizePercentage }} of the room for events is used",
        &["LogFilling"],
        "checks",
    ),
    alert(
        "HeddleLogDamaged",
        Urgency::Warning,
        "0m",
        "heddle_log_damaged > 0 or heddle_journal_lost_records > 0",
        "{{ $value }} records on disk are damaged; `heddle doctor` names them",
        &["LogDamaged"],
        "checks",
    ),
];

/// The alert of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Alert> {
    ALERTS.iter().find(|alert| alert.name == name)
}

/// The rules as Prometheus reads them. With the address under which people reach the server they lead to its pages.
#[must_use]
pub fn rules(base: Option<&str>) -> String {
    let mut text = String::from("groups:\n- name: heddle\n  rules:\n");
    for alert in ALERTS {
        let lines = [
            ("alert", quoted(alert.name)),
            ("expr", quoted(alert.expression)),
            ("for", quoted(alert.hold)),
        ];
        for (index, (key, value)) in lines.iter().enumerate() {
            let lead = if index == 0 { "  - " } else { "    " };
            writeln!(text, "{lead}{key}: {value}").ok();
        }
        writeln!(
            text,
            "    labels:\n      severity: {}",
            alert.urgency.word()
        )
        .ok();
        writeln!(text, "    annotations:").ok();
        for (key, value) in annotations(alert, base) {
            writeln!(text, "      {key}: {}", quoted(&value)).ok();
        }
    }
    text
}

/// What whoever is told of an alert reads with it.
fn annotations(alert: &Alert, base: Option<&str>) -> Vec<(&'static str, String)> {
    let first = alert.codes.first().unwrap_or(&"");
    let mut all = vec![
        ("summary", alert.summary.to_owned()),
        ("codes", alert.codes.join(", ")),
        ("runbook", format!("heddle health inventory {first}")),
    ];
    if let Some(base) = base.map(|base| base.trim_end_matches('/')) {
        all.push(("runbook_url", format!("{base}/ui/help/{}", alert.name)));
        all.push(("page", format!("{base}/ui/{}", alert.page)));
    }
    all
}

/// Text between single quotes, as YAML has it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
