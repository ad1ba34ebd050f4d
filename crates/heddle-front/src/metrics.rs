//! Numbers about requests and operations, for Prometheus.
//!
//! Operations are counted when a platform is told that they ended: what a platform waited for is what it was told.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::catalog::{Catalog, Census};
use crate::lifecycle::{Provisioned, Report};

/// Upper bounds in seconds: a request takes milliseconds or waits for seconds.
const REQUEST_BOUNDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0,
];
/// An operation takes seconds or hours.
const OPERATION_BOUNDS: &[f64] = &[
    0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];
/// Operations that are known to be counted already; platforms rarely ask about older ones again.
const COUNTED_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    requests: BTreeMap<(&'static str, u16), u64>,
    durations: BTreeMap<&'static str, Histogram>,
    operations: BTreeMap<(&'static str, &'static str), Histogram>,
    out_of_sync: BTreeMap<&'static str, u64>,
    counted: HashSet<String>,
    counted_in_order: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Histogram {
    /// One more than bounds: the last is for everything above.
    counts: Vec<u64>,
    sum: Duration,
}

impl Histogram {
    fn observe(&mut self, bounds: &[f64], took: Duration) {
        self.counts.resize(bounds.len() + 1, 0);
        let seconds = took.as_secs_f64();
        self.counts[bounds.partition_point(|bound| *bound < seconds)] += 1;
        self.sum += took;
    }

    fn write(&self, out: &mut String, name: &str, labels: &str, bounds: &[f64]) {
        let mut total = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            total += count;
            writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {total}").ok();
        }
        total += self.counts.last().copied().unwrap_or_default();
        writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}").ok();
        writeln!(out, "{name}_sum{{{labels}}} {}", self.sum.as_secs_f64()).ok();
        writeln!(out, "{name}_count{{{labels}}} {total}").ok();
    }
}

impl Metrics {
    pub(crate) fn answered(&self, route: &'static str, code: u16, took: Duration) {
        let mut numbers = self.numbers.lock();
        *numbers.requests.entry((route, code)).or_default() += 1;
        numbers
            .durations
            .entry(route)
            .or_default()
            .observe(REQUEST_BOUNDS, took);
    }

    /// The platform was told how the last operation on `object` stands.
    pub(crate) fn told<K: Provisioned>(&self, object: &K, report: &Report) {
        let (Some(asked), Some(progress)) = (object.requested(), object.progress()) else {
            return;
        };
        let Some(finished) = progress
            .finished_at
            .as_ref()
            .filter(|_| report.state != Report::IN_PROGRESS)
        else {
            return;
        };
        let took = finished.0.duration_since(asked.accepted_at.0);
        let took = Duration::try_from(took).unwrap_or_default();
        self.ended(
            &asked.id,
            crate::verbs::word(asked.kind),
            report.state,
            took,
        );
    }

    pub(crate) fn ended(&self, id: &str, kind: &'static str, state: &'static str, took: Duration) {
        let mut numbers = self.numbers.lock();
        if !numbers.counted.insert(id.to_owned()) {
            return;
        }
        numbers.counted_in_order.push_back(id.to_owned());
        if numbers.counted_in_order.len() > COUNTED_MAX
            && let Some(oldest) = numbers.counted_in_order.pop_front()
        {
            numbers.counted.remove(&oldest);
        }
        numbers
            .operations
            .entry((kind, state))
            .or_default()
            .observe(OPERATION_BOUNDS, took);
    }

    /// A platform asked for what our catalog does not have.
    pub(crate) fn out_of_sync(&self, code: &'static str) {
        *self.numbers.lock().out_of_sync.entry(code).or_default() += 1;
    }

    pub(crate) fn text(&self, census: &Census, catalog: &Catalog) -> String {
        let numbers = self.numbers.lock();
        let mut out = String::new();
        out.push_str("# HELP heddle_osb_requests Requests of platforms, by what was asked and how it was answered.\n");
        out.push_str("# TYPE heddle_osb_requests counter\n");
        for ((route, code), count) in &numbers.requests {
            writeln!(
                out,
                "heddle_osb_requests_total{{route=\"{route}\",code=\"{code}\"}} {count}"
            )
            .ok();
        }
        out.push_str(
            "# HELP heddle_osb_request_duration_seconds Time until a platform was answered.\n",
        );
        out.push_str("# TYPE heddle_osb_request_duration_seconds histogram\n");
        for (route, histogram) in &numbers.durations {
            let labels = format!("route=\"{route}\"");
            histogram.write(
                &mut out,
                "heddle_osb_request_duration_seconds",
                &labels,
                REQUEST_BOUNDS,
            );
        }
        out.push_str("# HELP heddle_osb_operation_duration_seconds Time from accepting an operation to its end.\n");
        out.push_str("# TYPE heddle_osb_operation_duration_seconds histogram\n");
        for ((kind, state), histogram) in &numbers.operations {
            let labels = format!("kind=\"{kind}\",state=\"{state}\"");
            histogram.write(
                &mut out,
                "heddle_osb_operation_duration_seconds",
                &labels,
                OPERATION_BOUNDS,
            );
        }
        out.push_str("# HELP heddle_out_of_sync Requests for what our catalog does not have, or has no longer.\n");
        out.push_str("# TYPE heddle_out_of_sync counter\n");
        for (code, count) in &numbers.out_of_sync {
            writeln!(out, "heddle_out_of_sync_total{{code=\"{code}\"}} {count}").ok();
        }
        drop(numbers);
        if census.is_listed() {
            write_census(&mut out, census, catalog);
        }
        out
    }
}

/// Instances of bundles. What revision an instance has is known only as long as the revision is.
fn write_census(out: &mut String, census: &Census, catalog: &Catalog) {
    out.push_str("# HELP heddle_awaiting_catalog Instances that wait for a registry which may have what they ask for.\n");
    out.push_str("# TYPE heddle_awaiting_catalog gauge\n");
    writeln!(out, "heddle_awaiting_catalog {}", census.awaiting()).ok();
    let mut instances: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for (revision, count) in census.pinned() {
        let Some(offering) = catalog.revisions.get(&revision) else {
            continue;
        };
        let label = |key: &str| escaped(offering.metadata.get(key).and_then(Value::as_str));
        let labels = [
            label("registry"),
            escaped(Some(&offering.name)),
            label("bundleVersion"),
        ];
        *instances.entry(labels).or_default() += count;
    }
    out.push_str(
        "# HELP heddle_instances Instances of bundles, by the version they are pinned to.\n",
    );
    out.push_str("# TYPE heddle_instances gauge\n");
    for ([registry, bundle, version], count) in instances {
        writeln!(
            out,
            "heddle_instances{{registry=\"{registry}\",bundle=\"{bundle}\",bundle_version=\"{version}\"}} {count}"
        )
        .ok();
    }
}

/// A label's value, which authors of bundles may have chosen.
fn escaped(value: Option<&str>) -> String {
    let value = value.unwrap_or_default();
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_counted_once_however_often_it_is_asked_about() {
        let metrics = Metrics::default();
        for _ in 0..3 {
            metrics.ended(
                "provision-1",
                "provision",
                "succeeded",
                Duration::from_secs(2),
            );
        }
        metrics.ended(
            "provision-2",
            "provision",
            "succeeded",
            Duration::from_secs(4000),
        );
        metrics.answered("catalog", 200, Duration::from_millis(2));
        metrics.out_of_sync("ServiceUnknown");
        let text = metrics.text(&Census::default(), &Catalog::default());
        for line in [
            r#"heddle_osb_requests_total{route="catalog",code="200"} 1"#,
            r#"heddle_out_of_sync_total{code="ServiceUnknown"} 1"#,
            r#"heddle_osb_operation_duration_seconds_bucket{kind="provision",state="succeeded",le="2.5"} 1"#,
            r#"heddle_osb_operation_duration_seconds_bucket{kind="provision",state="succeeded",le="3600"} 1"#,
            r#"heddle_osb_operation_duration_seconds_bucket{kind="provision",state="succeeded",le="+Inf"} 2"#,
            r#"heddle_osb_operation_duration_seconds_sum{kind="provision",state="succeeded"} 4002"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
