//! Health in numbers, for Prometheus: projections of what was published, and nothing else.
//!
//! Ways beyond the first thousand are summed up under one, with the worst of their numbers, so that an alarm still sounds.

use heddle_api::health::{HealthStatus, HeartbeatHealth, Planes};
use heddle_rt::metrics::{family, sample};

use super::Report;

/// Ways shown one by one.
const PAIRS_MAX: usize = 1000;
/// The labels of all others.
const OVERFLOW: &str = "app=\"_overflow\",ns=\"_overflow\"";

/// What a report says, in the text format of OpenMetrics and without its end mark.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    healths(&mut out, report);
    heartbeats(&mut out, report);
    controllers(&mut out, report);
    if let Some(used) = report.reading.log.used_ratio {
        let name = "heddle_quota_used_ratio";
        let help = "Of the room for events, the part that is used; at 1 events are refused.";
        family(&mut out, name, "gauge", help);
        sample(&mut out, name, "", used);
    }
    out
}

fn healths(out: &mut String, report: &Report) {
    let name = "heddle_health";
    let help = "How well something is: 3 healthy, 2 degraded, 1 unknown, 0 unhealthy. Without an application it is the mesh.";
    family(out, name, "gauge", help);
    let mut write = |labels: &str, health: HealthStatus, planes: &Planes| {
        sample(
            out,
            name,
            &format!("{labels},plane=\"all\""),
            health.level(),
        );
        for (plane, found) in planes.iter() {
            let labels = format!("{labels},plane=\"{}\"", plane.word());
            sample(out, name, &labels, found.health.level());
        }
    };
    let mesh = &report.mesh.verdict;
    write("app=\"\",ns=\"\"", mesh.health, &mesh.planes);
    for ((application, namespace), pair) in report.pairs.iter().take(PAIRS_MAX) {
        let verdict = &pair.verdict;
        write(
            &labels(application, namespace),
            verdict.health,
            &verdict.planes,
        );
    }
    let rest = report.pairs.values().skip(PAIRS_MAX);
    if let Some(worst) = rest.max_by_key(|pair| pair.verdict.health) {
        write(OVERFLOW, worst.verdict.health, &worst.verdict.planes);
    }
}

/// A number of a heartbeat.
type HeartbeatNumber = fn(&HeartbeatHealth) -> Option<f64>;

fn heartbeats(out: &mut String, report: &Report) {
    let gauges: [(&str, &str, HeartbeatNumber); 2] = [
        (
            "heddle_heartbeat_age_seconds",
            "How long ago a synthetic event arrived. Without an application it is the canary.",
            |beat| beat.age_seconds,
        ),
        (
            "heddle_heartbeat_e2e_seconds",
            "How long the last synthetic event took that arrived.",
            |beat| beat.end_to_end_seconds,
        ),
    ];
    for (name, help, of) in gauges {
        family(out, name, "gauge", help);
        if let Some(value) = report.mesh.heartbeat.as_ref().and_then(of) {
            sample(out, name, "app=\"\",ns=\"\"", value);
        }
        let beats = report.pairs.iter();
        let mut beats =
            beats.filter_map(|(pair, found)| Some((pair, of(found.heartbeat.as_ref()?)?)));
        for ((application, namespace), value) in beats.by_ref().take(PAIRS_MAX) {
            sample(out, name, &labels(application, namespace), value);
        }
        if let Some(worst) = beats.map(|(_, value)| value).reduce(f64::max) {
            sample(out, name, OVERFLOW, worst);
        }
    }
}

fn controllers(out: &mut String, report: &Report) {
    let name = "heddle_controller_lease_age_seconds";
    let help = "How long ago a controller was last seen at work.";
    family(out, name, "gauge", help);
    for pulse in &report.pulses {
        sample(out, name, &of(pulse.controller), pulse.age.as_secs_f64());
    }
    let name = "heddle_controller_queue_depth";
    family(out, name, "gauge", "Objects that wait for a controller.");
    for pulse in &report.pulses {
        sample(out, name, &of(pulse.controller), pulse.queued);
    }
    let name = "heddle_controller_queue_stalled_seconds";
    let help = "How long objects have waited while a controller took none.";
    family(out, name, "gauge", help);
    for pulse in &report.pulses {
        sample(
            out,
            name,
            &of(pulse.controller),
            pulse.waiting_for.as_secs_f64(),
        );
    }
    for (name, help, count) in [
        (
            "heddle_controller_rounds",
            "Objects that a controller has looked at.",
            (|pulse| pulse.rounds) as fn(&crate::PulseReading) -> u64,
        ),
        (
            "heddle_controller_failures",
            "Looks that failed and are repeated.",
            |pulse| pulse.failures,
        ),
    ] {
        family(out, name, "counter", help);
        for pulse in &report.pulses {
            let name = format!("{name}_total");
            sample(out, &name, &of(pulse.controller), count(pulse));
        }
    }
}

/// Names of objects need no escaping.
fn labels(application: &str, namespace: &str) -> String {
    format!("app=\"{application}\",ns=\"{namespace}\"")
}

fn of(controller: &str) -> String {
    format!("controller=\"{controller}\"")
}
