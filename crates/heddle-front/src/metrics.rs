//! Numbers about requests and operations, for Prometheus.
//!
//! Operations are counted when a platform is told that they ended: what a platform waited for is what it was told.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use heddle_rt::metrics::{Histogram, escaped, family, sample};
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

impl Metrics {
    pub(crate) fn answered(&self, route: &'static str, code: u16, took: Duration) {
        let mut numbers = self.numbers.lock();
        *numbers.requests.entry((route, code)).or_default() += 1;
        let histogram = || Histogram::of_seconds(REQUEST_BOUNDS);
        let durations = numbers.durations.entry(route);
        durations.or_insert_with(histogram).observe(took);
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
        let histogram = || Histogram::of_seconds(OPERATION_BOUNDS);
        let operations = numbers.operations.entry((kind, state));
        operations.or_insert_with(histogram).observe(took);
    }

    /// A platform asked for what our catalog does not have.
    pub(crate) fn out_of_sync(&self, code: &'static str) {
        *self.numbers.lock().out_of_sync.entry(code).or_default() += 1;
    }

    pub(crate) fn text(&self, census: &Census, catalog: &Catalog) -> String {
        let numbers = self.numbers.lock();
        let mut out = String::new();
        let name = "heddle_osb_requests";
        let help = "Requests of platforms, by what was asked and how it was answered.";
        family(&mut out, name, "counter", help);
        for ((route, code), count) in &numbers.requests {
            let labels = format!("route=\"{route}\",code=\"{code}\"");
            sample(&mut out, &format!("{name}_total"), &labels, count);
        }
        let name = "heddle_osb_request_duration_seconds";
        let help = "Time until a platform was answered.";
        family(&mut out, name, "histogram", help);
        for (route, histogram) in &numbers.durations {
            histogram.write(&mut out, name, &format!("route=\"{route}\""));
        }
        let name = "heddle_osb_operation_duration_seconds";
        let help = "Time from accepting an operation to its end.";
        family(&mut out, name, "histogram", help);
        for ((kind, state), histogram) in &numbers.operations {
            let labels = format!("kind=\"{kind}\",state=\"{state}\"");
            histogram.write(&mut out, name, &labels);
        }
        let name = "heddle_out_of_sync";
        let help = "Requests for what our catalog does not have, or has no longer.";
        family(&mut out, name, "counter", help);
        for (code, count) in &numbers.out_of_sync {
            let labels = format!("code=\"{code}\"");
            sample(&mut out, &format!("{name}_total"), &labels, count);
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
    let name = "heddle_awaiting_catalog";
    let help = "Instances that wait for a registry which may have what they ask for.";
    family(out, name, "gauge", help);
    sample(out, name, "", census.awaiting());
    let mut instances: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for (revision, count) in census.pinned() {
        let Some(offering) = catalog.revisions.get(&revision) else {
            continue;
        };
        // Authors of bundles chose these.
        let label = |key: &str| {
            let value = offering.metadata.get(key).and_then(Value::as_str);
            escaped(value.unwrap_or_default()).into_owned()
        };
        let labels = [
            label("registry"),
            escaped(&offering.name).into_owned(),
            label("bundleVersion"),
        ];
        *instances.entry(labels).or_default() += count;
    }
    let name = "heddle_instances";
    let help = "Instances of bundles, by the version they are pinned to.";
    family(out, name, "gauge", help);
    for ([registry, bundle, version], count) in instances {
        let labels =
            format!("registry=\"{registry}\",bundle=\"{bundle}\",bundle_version=\"{version}\"");
        sample(out, name, &labels, count);
    }
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

    #[test]
    fn the_text_is_what_dashboards_know() {
        let metrics = Metrics::default();
        metrics.answered("catalog", 200, Duration::from_millis(2));
        metrics.out_of_sync("ServiceUnknown");
        let expected = "\
# HELP heddle_osb_requests Requests of platforms, by what was asked and how it was answered.
# TYPE heddle_osb_requests counter
heddle_osb_requests_total{route=\"catalog\",code=\"200\"} 1
# HELP heddle_osb_request_duration_seconds Time until a platform was answered.
# TYPE heddle_osb_request_duration_seconds histogram
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.001\"} 0
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.0025\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.005\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.01\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.025\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.05\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.1\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"0.25\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"1\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"2.5\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"10\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"30\"} 1
heddle_osb_request_duration_seconds_bucket{route=\"catalog\",le=\"+Inf\"} 1
heddle_osb_request_duration_seconds_sum{route=\"catalog\"} 0.002
heddle_osb_request_duration_seconds_count{route=\"catalog\"} 1
# HELP heddle_osb_operation_duration_seconds Time from accepting an operation to its end.
# TYPE heddle_osb_operation_duration_seconds histogram
# HELP heddle_out_of_sync Requests for what our catalog does not have, or has no longer.
# TYPE heddle_out_of_sync counter
heddle_out_of_sync_total{code=\"ServiceUnknown\"} 1
";
        let text = metrics.text(&Census::default(), &Catalog::default());
        assert_eq!(text, expected);
    }
}
