//! Counters of the API server and its store, as Prometheus text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heddle_rt::metrics::{Histogram, HistogramSnapshot, LabelMap, family, sample};
use heddle_store::{Health, Stats, Store};
use http::StatusCode;

/// Upper bounds in seconds: an in-process read to a stalled disk.
const BOUNDS: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_6, 0.003_2, 0.006_4, 0.012_8, 0.025_6,
    0.051_2, 0.102_4, 0.204_8, 0.409_6, 0.819_2, 1.638_4,
];

/// What requests add up to. There are only as many labels as there are verbs, kinds and codes.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By verb and code, then by resource.
    requests: LabelMap<(&'static str, u16), LabelMap<Box<str>, AtomicU64>>,
    /// By verb.
    seconds: LabelMap<&'static str, RequestSeconds>,
}

#[derive(Debug)]
struct RequestSeconds(Histogram);

impl Default for RequestSeconds {
    fn default() -> Self {
        Self(Histogram::of_seconds(&BOUNDS))
    }
}

impl Metrics {
    pub(crate) fn request(
        &self,
        verb: &'static str,
        resource: &str,
        code: StatusCode,
        took: Duration,
    ) {
        // Who has no credentials does not decide what is counted.
        let resource = if code == StatusCode::NOT_FOUND || code == StatusCode::UNAUTHORIZED {
            "unknown"
        } else {
            resource
        };
        let key = (verb, code.as_u16());
        self.requests.update(
            &key,
            |_| key,
            |resources| {
                resources.update(
                    resource,
                    |_| resource.into(),
                    |count| {
                        count.fetch_add(1, Ordering::Relaxed);
                    },
                );
            },
        );
        self.seconds
            .update(verb, |_| verb, |seconds| seconds.0.observe(took));
    }

    /// A complete exposition. What was never counted has no family, and a kind whose last object is gone has no line.
    pub(crate) fn render(&self, store: &Store) -> String {
        let mut out = String::new();
        self.write_requests(&mut out);
        let counts = store.counts();
        let name = "heddle_api_objects";
        if !counts.is_empty() {
            family(&mut out, name, "gauge", "Stored objects by resource.");
        }
        for (resource, count) in counts {
            sample(&mut out, name, &format!("resource=\"{resource}\""), count);
        }
        let serving = matches!(store.health(), Health::Serving);
        write_store(&mut out, &store.stats(), serving);
        out.push_str("# EOF\n");
        out
    }

    fn write_requests(&self, out: &mut String) {
        let requests = self.requests.sorted();
        let name = "heddle_api_requests";
        if !requests.is_empty() {
            let help = "Requests by verb, resource and status code.";
            family(out, name, "counter", help);
        }
        for ((verb, code), resources) in requests {
            for (resource, count) in resources.sorted() {
                let labels = format!("verb=\"{verb}\",resource=\"{resource}\",code=\"{code}\"");
                let count = count.load(Ordering::Relaxed);
                sample(out, &format!("{name}_total"), &labels, count);
            }
        }
        let seconds = self.seconds.sorted();
        let name = "heddle_api_request_seconds";
        if !seconds.is_empty() {
            let help = "Time to answer, watches up to their start.";
            family(out, name, "histogram", help);
        }
        for (verb, seconds) in seconds {
            write_seconds(out, name, verb, &seconds.0.snapshot());
        }
    }
}

/// The sum first and the bound before the verb, as this family has always been written.
fn write_seconds(out: &mut String, name: &str, verb: &str, seconds: &HistogramSnapshot) {
    let labels = format!("verb=\"{verb}\"");
    sample(out, &format!("{name}_sum"), &labels, seconds.sum);
    sample(out, &format!("{name}_count"), &labels, seconds.count());
    for (bound, count) in seconds.cumulative() {
        writeln!(out, "{name}_bucket{{le=\"{bound}\",{labels}}} {count}").ok();
    }
}

fn write_store(out: &mut String, stats: &Stats, serving: bool) {
    for (name, help, count) in [
        (
            "heddle_api_commits",
            "Groups of writes made durable since start.",
            stats.commits_count,
        ),
        (
            "heddle_api_commit_writes",
            "Writes made durable since start.",
            stats.group_writes.sum as u64,
        ),
    ] {
        family(out, name, "counter", help);
        sample(out, &format!("{name}_total"), "", count);
    }
    for (name, help, value) in [
        (
            "heddle_api_watchers",
            "Open watches, the server's own included.",
            stats.watchers_count,
        ),
        (
            "heddle_api_history_bytes",
            "Memory held by the watch history.",
            stats.history_bytes,
        ),
        (
            "heddle_api_store_serving",
            "1 while writes are acknowledged.",
            usize::from(serving),
        ),
    ] {
        family(out, name, "gauge", help);
        sample(out, name, "", value);
    }
}

#[cfg(test)]
mod tests;
