//! The report for programs. Members are added, and none is taken away or renamed.

use serde_json::{Value, json};

use super::{CheckResult, Outcome, Report};
use crate::SPECIFICATION;

pub(super) fn render(report: &Report) -> Value {
    let counts = report.counts();
    json!({
        "suite": env!("CARGO_PKG_NAME"),
        "specification": SPECIFICATION,
        "broker": report.address,
        "started": report.started.to_string(),
        "seconds": report.elapsed.as_secs_f64(),
        "passed": counts.kept,
        "failed": counts.broken,
        "skipped": counts.skipped(),
        "interruption": report.interruption,
        "leftovers": report.leftovers,
        "checks": report.results.iter().map(check).collect::<Vec<_>>(),
    })
}

fn check(result: &CheckResult) -> Value {
    let outcome = match result.outcome {
        Outcome::Kept => "passed",
        Outcome::Broken(_) => "failed",
        Outcome::NotApplicable(_) | Outcome::NotAsked(_) => "skipped",
    };
    json!({
        "name": result.rule.name,
        "group": result.rule.group,
        "promise": result.rule.promise,
        "section": result.rule.section,
        "outcome": outcome,
        "message": result.outcome.message(),
        "seconds": result.elapsed.as_secs_f64(),
    })
}
