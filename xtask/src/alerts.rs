//! The alert rules and the unit tests that promtool runs of them: each fires where it should and is silent where it should be, and
//! Prometheus makes of recorded series what heddle makes of them (`recorded`).
//!
//! The rules are the product's (`heddle_api::health::alerts`); what makes each of them fire, and what does not, stands here.

mod recorded;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use heddle_api::health::alerts::{ALERTS, rules};

/// An alert, series that make it fire, and series that do not: in promtool's notation, by minutes.
type Sample = (&'static str, &'static [Series], &'static [Series]);
/// A series and its values.
type Series = (&'static str, &'static str);

/// Where the server is said to be.
const BASE: &str = "https://heddle.example";

/// When everything is long decided, whatever a rule waits for.
const AT: &str = "70m";

const PAIR_DATA: &str = r#"heddle_health{app="shop",ns="team-a",plane="data"}"#;
const PAIR_CONTROL: &str = r#"heddle_health{app="shop",ns="team-a",plane="control"}"#;
const PAIR_USER: &str = r#"heddle_health{app="shop",ns="team-a",plane="user"}"#;
const MESH: &str = r#"heddle_health{app="",ns="",plane="all"}"#;
const DEAD: &str = r#"heddle_dead_letters{app="shop",kind="trigger",ns="team-a",trigger="orders"}"#;
const OLDEST: &str =
    r#"heddle_oldest_pending_seconds{kind="trigger",ns="team-a",trigger="orders"}"#;
const UNACCOUNTED: &str = r#"heddle_unaccounted{kind="trigger",ns="team-a",trigger="orders"}"#;
const AGE: &str = r#"heddle_controller_lease_age_seconds{controller="heddle-broker"}"#;
const STALLED: &str = r#"heddle_controller_queue_stalled_seconds{controller="heddle-broker"}"#;
const FAILURES: &str = r#"heddle_controller_failures_total{controller="heddle-broker"}"#;
const TAKEN: &str = r#"heddle_published_total{api="application",app="shop",code="2xx",ns=""}"#;
const FAILED: &str = r#"heddle_published_total{api="application",app="shop",code="5xx",ns=""}"#;
const IN_TIME: &str = r#"heddle_delivery_delay_seconds_bucket{le="30"}"#;
/// The same as newer versions of Prometheus name it.
const IN_TIME_3: &str = r#"heddle_delivery_delay_seconds_bucket{le="30.0"}"#;
const DELIVERED: &str = "heddle_delivery_delay_seconds_count";

const SAMPLES: &[Sample] = &[
    (
        "HeddleAbsent",
        &[("up", "0x80")],
        &[("heddle_api_store_serving", "1x80")],
    ),
    (
        "HeddleMeshUnhealthy",
        &[(MESH, "0x80")],
        &[(MESH, "1x80"), (PAIR_DATA, "0x80")],
    ),
    (
        "HeddleInvariantViolated",
        &[(UNACCOUNTED, "1x80")],
        &[(UNACCOUNTED, "0x80")],
    ),
    (
        "HeddleLogRefuses",
        &[("heddle_log_serving", "0x80")],
        &[("heddle_log_serving", "1x80")],
    ),
    (
        "HeddleStoreRefuses",
        &[("heddle_api_store_serving", "0x80")],
        &[("heddle_api_store_serving", "1x80")],
    ),
    (
        "HeddleQuota95",
        &[("heddle_quota_used_ratio", "0.96x80")],
        &[("heddle_quota_used_ratio", "0.95x80")],
    ),
    (
        "HeddlePublishErrorsFast",
        &[(TAKEN, "0+98x80"), (FAILED, "0+2x80")],
        &[(TAKEN, "0+99x80"), (FAILED, "0+1x80")],
    ),
    (
        "HeddlePublishErrorsSlow",
        &[(TAKEN, "0+993x80"), (FAILED, "0+7x80")],
        &[(TAKEN, "0+995x80"), (FAILED, "0+5x80")],
    ),
    (
        "HeddleDeliveryDelayFast",
        &[(IN_TIME, "0+85x80"), (DELIVERED, "0+100x80")],
        // What went wrong an hour ago and is well now wakes nobody.
        &[
            (IN_TIME_3, "0+10x55 560+100x25"),
            (DELIVERED, "0+100x55 5600+100x25"),
        ],
    ),
    (
        "HeddleDeliveryDelaySlow",
        &[(IN_TIME_3, "0+93x80"), (DELIVERED, "0+100x80")],
        &[(IN_TIME, "0+95x80"), (DELIVERED, "0+100x80")],
    ),
    (
        "HeddleHeartbeatMissing",
        &[(PAIR_DATA, "0x80")],
        &[(PAIR_DATA, "1x80"), (PAIR_USER, "0x80")],
    ),
    (
        "HeddleFlowNotReady",
        &[(PAIR_CONTROL, "0x80")],
        &[(PAIR_CONTROL, "3x80"), (PAIR_DATA, "0x80")],
    ),
    (
        "HeddleControllerStalled",
        &[(AGE, "16x80")],
        &[(AGE, "5x80"), (STALLED, "15x80")],
    ),
    (
        "HeddleControllerFailing",
        &[(FAILURES, "0+60x80")],
        &[(FAILURES, "0+1x80")],
    ),
    (
        "HeddleSubscriberFailing",
        &[(PAIR_USER, "0x80")],
        &[(PAIR_USER, "2x80"), (PAIR_DATA, "0x80")],
    ),
    (
        "HeddleSmokeFailed",
        &[("heddle_smoke_failed_in_a_row", "2x80")],
        &[("heddle_smoke_failed_in_a_row", "1x80")],
    ),
    (
        "HeddleDeadLettersGrowing",
        &[(DEAD, "0+1x80")],
        &[(DEAD, "7x80")],
    ),
    (
        "HeddleBacklogAge",
        &[(OLDEST, "301x80")],
        &[(OLDEST, "300x80")],
    ),
    (
        "HeddleQuota80",
        &[("heddle_quota_used_ratio", "0.81x80")],
        &[("heddle_quota_used_ratio", "0.8x80")],
    ),
    (
        "HeddleLogDamaged",
        &[("heddle_log_damaged", "1x80")],
        &[
            ("heddle_log_damaged", "0x80"),
            ("heddle_journal_lost_records", "0x80"),
        ],
    ),
];

/// Writes `rules.yml` and `tests.yml` into a folder.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore writes where it is told to; no fault is injected here"
)]
pub(crate) fn write(out: &Path) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for (name, text) in [("rules.yml", rules(Some(BASE))), ("tests.yml", tests()?)] {
        let file = out.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// What promtool is to find out.
fn tests() -> Result<String> {
    let mut text = String::from("rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n");
    for alert in ALERTS {
        let Some((_, fires, silent)) = SAMPLES.iter().find(|(name, ..)| *name == alert.name) else {
            bail!("there is no sample for the alert {}", alert.name);
        };
        for (series, expected) in [(fires, true), (silent, false)] {
            writeln!(text, "- interval: 1m\n  input_series:")?;
            for (name, values) in *series {
                writeln!(text, "  - series: '{name}'\n    values: '{values}'")?;
            }
            // Of an alert that fires, how many there are is what counts; its words have a test of their own.
            let count = if expected { "1" } else { "0" };
            let samples = if expected {
                format!("\n    exp_samples: [{{labels: '{{}}', value: {count}}}]")
            } else {
                String::new()
            };
            let firing = format!(
                "count(ALERTS{{alertname=\"{}\",alertstate=\"firing\"}})",
                alert.name
            );
            writeln!(
                text,
                "  promql_expr_test:\n  - expr: '{firing}'\n    eval_time: {AT}{samples}"
            )?;
        }
    }
    recorded::tests(&mut text)?;
    Ok(text)
}
