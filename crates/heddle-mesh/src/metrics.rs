//! Numbers about events, for Prometheus.
//!
//! Counters that the path touches are plain atomics; what can be read from the consumers is read when somebody asks. Names
//! of consumers are labels of gauges only, and no more of them than [`CONSUMERS_MAX`]: the rest are summed up under one.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heddle_api::ledger::Account;
use jiff::Timestamp;

/// Consumers shown one by one.
const CONSUMERS_MAX: usize = 1000;

/// Upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];

/// How often something took how long.
#[derive(Debug, Default)]
struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, label: &str) {
        let mut total = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            writeln!(out, "{name}_bucket{{{label},le=\"{bound}\"}} {total}").ok();
        }
        total += self.counts[BOUNDS.len()].load(Ordering::Relaxed);
        writeln!(out, "{name}_bucket{{{label},le=\"+Inf\"}} {total}").ok();
        let sum = Duration::from_micros(self.sum_us.load(Ordering::Relaxed)).as_secs_f64();
        writeln!(out, "{name}_sum{{{label}}} {sum}").ok();
        writeln!(out, "{name}_count{{{label}}} {total}").ok();
    }
}

/// What the path counts as it goes.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By kind of door and class of answer.
    published: [[AtomicU64; 4]; 3],
    unmatched: AtomicU64,
    /// By class of answer; without one first.
    attempts: [AtomicU64; 6],
    dead: AtomicU64,
    source: Histogram,
    delivery: Histogram,
}

/// The doors, in the order of their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorKind {
    Application = 0,
    Broker = 1,
    Channel = 2,
}

const DOORS: [&str; 3] = ["application", "broker", "channel"];
const ANSWERS: [&str; 4] = ["2xx", "4xx", "429", "5xx"];
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl Metrics {
    pub(crate) fn published(&self, door: DoorKind, status: u16, events: u64, took: Duration) {
        let answer = match status {
            200..=299 => 0,
            429 => 2,
            500.. => 3,
            _ => 1,
        };
        self.published[door as usize][answer].fetch_add(events, Ordering::Relaxed);
        self.source.observe(took);
    }

    pub(crate) fn unmatched(&self) {
        self.unmatched.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn attempted(&self, latency: Duration) {
        self.delivery.observe(latency);
    }

    pub(crate) fn delivered(&self, status: u16) {
        self.failed(status);
    }

    pub(crate) fn failed(&self, status: u16) {
        let class = usize::from(status / 100).min(CLASSES.len() - 1);
        self.attempts[class].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dead_lettered(&self) {
        self.dead.fetch_add(1, Ordering::Relaxed);
    }

    /// The text that Prometheus reads, without the end mark.
    pub(crate) fn text(&self, accounts: &heddle_api::ledger::Accounts, now: Timestamp) -> String {
        let mut out = String::new();
        family(
            &mut out,
            "heddle_published",
            "counter",
            "Events by door and class of answer.",
        );
        for (door, answers) in DOORS.iter().zip(&self.published) {
            for (answer, count) in ANSWERS.iter().zip(answers) {
                let count = count.load(Ordering::Relaxed);
                line(
                    &mut out,
                    "heddle_published_total",
                    &format!("api=\"{door}\",code=\"{answer}\""),
                    count,
                );
            }
        }
        family(
            &mut out,
            "heddle_unmatched",
            "counter",
            "Events that nobody wanted.",
        );
        writeln!(
            out,
            "heddle_unmatched_total {}",
            self.unmatched.load(Ordering::Relaxed)
        )
        .ok();
        family(
            &mut out,
            "heddle_attempts",
            "counter",
            "Attempts to deliver by class of answer.",
        );
        for (class, count) in CLASSES.iter().zip(&self.attempts) {
            line(
                &mut out,
                "heddle_attempts_total",
                &format!("code=\"{class}\""),
                count.load(Ordering::Relaxed),
            );
        }
        family(
            &mut out,
            "heddle_hop_seconds",
            "histogram",
            "How long an event took at a hop.",
        );
        self.source
            .write(&mut out, "heddle_hop_seconds", "hop=\"source\"");
        self.delivery
            .write(&mut out, "heddle_hop_seconds", "hop=\"delivery\"");
        let log = &accounts.log;
        for (name, help, value) in [
            ("heddle_log_bytes", "Bytes of the event log.", log.bytes),
            (
                "heddle_log_events",
                "Events in the log.",
                log.next - log.first.min(log.next),
            ),
            (
                "heddle_log_damaged",
                "Records that are damaged and kept aside.",
                log.damaged,
            ),
            (
                "heddle_log_unmatched_events",
                "Events that are safe and not matched yet.",
                log.next.saturating_sub(accounts.matched_up_to),
            ),
        ] {
            family(&mut out, name, "gauge", help);
            writeln!(out, "{name} {value}").ok();
        }
        consumers(&mut out, &accounts.consumers, now);
        out
    }
}

/// A number of an account.
type Of = fn(&Account) -> u64;

fn consumers(out: &mut String, accounts: &[Account], now: Timestamp) {
    let counters: [(&str, &str, Of); 4] = [
        (
            "heddle_matched",
            "Events a consumer's filter let pass.",
            |account| account.matched,
        ),
        ("heddle_delivered", "Events delivered.", |account| {
            account.delivered
        }),
        (
            "heddle_expired",
            "Events ended by a declared policy.",
            |account| account.expired,
        ),
        (
            "heddle_removed",
            "Events ended by a named person.",
            |account| account.removed,
        ),
    ];
    for (name, help, of) in counters {
        family(out, name, "counter", help);
        each(
            out,
            &format!("{name}_total"),
            accounts,
            of,
            u64::saturating_add,
        );
    }
    let gauges: [(&str, &str, Of); 5] = [
        (
            "heddle_pending",
            "Events that wait, are under way or are tried again.",
            |account| account.pending,
        ),
        ("heddle_in_flight", "Attempts under way.", |account| {
            account.in_flight
        }),
        (
            "heddle_retrying",
            "Events with a failed attempt.",
            |account| account.retrying,
        ),
        ("heddle_dead_letters", "Events at rest.", |account| {
            account.dead_letters
        }),
        (
            "heddle_unaccounted",
            "Events that no account explains; anything but 0 is a fault.",
            |account| u64::try_from(account.difference().unsigned_abs()).unwrap_or(u64::MAX),
        ),
    ];
    for (name, help, of) in gauges {
        family(out, name, "gauge", help);
        each(out, name, accounts, of, u64::saturating_add);
    }
    let name = "heddle_oldest_pending_seconds";
    family(
        out,
        name,
        "gauge",
        "Age of the oldest event that has not ended.",
    );
    let age = |account: &Account| {
        let since = account.oldest_pending_at.unwrap_or(now);
        u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0)
    };
    each(out, name, accounts, age, u64::max);
}

/// One line for each consumer; what goes beyond the bound is put together by `with`.
fn each(
    out: &mut String,
    name: &str,
    accounts: &[Account],
    of: impl Fn(&Account) -> u64,
    with: impl Fn(u64, u64) -> u64,
) {
    let (shown, rest) = accounts.split_at(accounts.len().min(CONSUMERS_MAX));
    for account in shown {
        let mut parts = account.consumer.splitn(3, '/');
        let (kind, namespace, consumer) = (parts.next(), parts.next(), parts.next());
        let labels = format!(
            "kind=\"{}\",ns=\"{}\",trigger=\"{}\"",
            kind.unwrap_or_default(),
            namespace.unwrap_or_default(),
            consumer.unwrap_or_default()
        );
        line(out, name, &labels, of(account));
    }
    if let Some(rest) = rest.iter().map(of).reduce(with) {
        line(out, name, "kind=\"\",ns=\"\",trigger=\"_overflow\"", rest);
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}").ok();
}

fn line(out: &mut String, name: &str, labels: &str, value: u64) {
    writeln!(out, "{name}{{{labels}}} {value}").ok();
}
