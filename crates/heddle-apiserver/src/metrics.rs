//! Counters of the API server and its store, as Prometheus text.

use std::time::Duration;

use heddle_store::{Health, Store};
use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: String,
    resource: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verb {
    verb: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    resource: String,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    seconds: Family<Verb, Histogram>,
    objects: Family<Kind, Gauge>,
    commits: Counter,
    commit_writes: Counter,
    watchers: Gauge,
    history_bytes: Gauge,
    serving: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("heddle_api"),
            requests: Family::default(),
            // 50 microseconds to about 1.6 s: an in-process read to a stalled disk.
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.000_05, 2.0, 16))
            }),
            objects: Family::default(),
            commits: Counter::default(),
            commit_writes: Counter::default(),
            watchers: Gauge::default(),
            history_bytes: Gauge::default(),
            serving: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "requests",
            "Requests by verb, resource and status code",
            metrics.requests.clone(),
        );
        registry.register(
            "request_seconds",
            "Time to answer, watches up to their start",
            metrics.seconds.clone(),
        );
        registry.register(
            "objects",
            "Stored objects by resource",
            metrics.objects.clone(),
        );
        registry.register(
            "commits",
            "Groups of writes made durable since start",
            metrics.commits.clone(),
        );
        registry.register(
            "commit_writes",
            "Writes made durable since start",
            metrics.commit_writes.clone(),
        );
        registry.register(
            "watchers",
            "Open watches, the server's own included",
            metrics.watchers.clone(),
        );
        registry.register(
            "history_bytes",
            "Memory held by the watch history",
            metrics.history_bytes.clone(),
        );
        registry.register(
            "store_serving",
            "1 while writes are acknowledged",
            metrics.serving.clone(),
        );
        metrics
    }

    pub(crate) fn request(&self, verb: &str, resource: &str, code: StatusCode, took: Duration) {
        // Who has no credentials does not decide what is counted.
        let resource = if code == StatusCode::NOT_FOUND || code == StatusCode::UNAUTHORIZED {
            "unknown"
        } else {
            resource
        };
        let label = Request {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            code: code.as_u16(),
        };
        self.requests.get_or_create(&label).inc();
        self.seconds
            .get_or_create(&Verb {
                verb: verb.to_owned(),
            })
            .observe(took.as_secs_f64());
    }

    pub(crate) fn render(&self, store: &Store) -> String {
        let stats = store.stats();
        // A kind whose last object is gone must not keep showing it.
        self.objects.clear();
        for (resource, count) in store.counts() {
            let label = Kind {
                resource: resource.to_string(),
            };
            self.objects
                .get_or_create(&label)
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        advance(&self.commits, stats.commits_count);
        advance(&self.commit_writes, stats.group_writes.sum as u64);
        self.watchers.set(clamp(stats.watchers_count));
        self.history_bytes.set(clamp(stats.history_bytes));
        self.serving
            .set(i64::from(matches!(store.health(), Health::Serving)));
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// The store counts for itself; the counter follows.
fn advance(counter: &Counter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}

fn clamp(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
