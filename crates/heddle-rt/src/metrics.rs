//! Numbers for Prometheus: the one histogram, the map from labels to numbers, and the text that both become.
//!
//! Recording is on the path of events and requests. It is a few relaxed additions, without a lock and without an
//! allocation; text is made when somebody asks for it. What is counted, and under which names, is left to the crates above.
//!
//! ```text
//!   record ──> Histogram (atomics) ──snapshot──> HistogramSnapshot (plain numbers) ──write──> OpenMetrics text
//! ```

mod label_map;
mod latencies;
pub mod process;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use label_map::LabelMap;
pub use latencies::Latencies;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// How often something took how long, or came to how much.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One per bound, and one more for what is beyond.
    counts: Box<[AtomicU64]>,
    /// In parts of the unit, of which `parts` are one: additions of whole numbers lose nothing and need no lock.
    sum: AtomicU64,
    parts: u64,
}

impl Histogram {
    /// Of durations, with bounds in seconds.
    #[must_use]
    pub fn of_seconds(bounds: &'static [f64]) -> Self {
        Self::new(bounds, NANOS_PER_SECOND)
    }

    /// Of whole numbers.
    #[must_use]
    pub fn of_counts(bounds: &'static [f64]) -> Self {
        Self::new(bounds, 1)
    }

    fn new(bounds: &'static [f64], parts: u64) -> Self {
        debug_assert!(bounds.is_sorted(), "bounds grow");
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            parts,
        }
    }

    /// Something took so long. Only for histograms of seconds.
    pub fn observe(&self, took: Duration) {
        debug_assert_eq!(self.parts, NANOS_PER_SECOND, "made for durations");
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.add(took.as_secs_f64(), nanos);
    }

    /// Something came to so much. Only for histograms of counts.
    pub fn record(&self, count: u64) {
        debug_assert_eq!(self.parts, 1, "made for counts");
        #[expect(clippy::cast_precision_loss, reason = "bounds are far smaller")]
        self.add(count as f64, count);
    }

    fn add(&self, value: f64, parts: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(parts, Ordering::Relaxed);
    }

    /// The numbers as they are now. Those of a recording under way may be in it by half.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let sum = self.sum.load(Ordering::Relaxed);
        let counts = self.counts.iter();
        HistogramSnapshot {
            bounds: self.bounds,
            counts: counts.map(|count| count.load(Ordering::Relaxed)).collect(),
            #[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
            sum: match self.parts {
                NANOS_PER_SECOND => Duration::from_nanos(sum).as_secs_f64(),
                parts => sum as f64 / parts as f64,
            },
        }
    }

    /// Appends the samples, with these labels, or none, beside the bounds.
    pub fn write(&self, out: &mut String, name: &str, labels: &str) {
        self.snapshot().write(out, name, labels);
    }
}

/// What a histogram held at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramSnapshot {
    pub bounds: &'static [f64],
    /// One per bound, and one more for what is beyond; not cumulative.
    pub counts: Vec<u64>,
    pub sum: f64,
}

impl HistogramSnapshot {
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The value of `le` and how many did not exceed it, the last for all.
    pub fn cumulative(&self) -> impl Iterator<Item = (String, u64)> {
        let bounds = self.bounds.iter().map(ToString::to_string);
        let bounds = bounds.chain(["+Inf".to_owned()]);
        let mut total = 0;
        bounds.zip(&self.counts).map(move |(bound, count)| {
            total += count;
            (bound, total)
        })
    }

    fn write(&self, out: &mut String, name: &str, labels: &str) {
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, count) in self.cumulative() {
            writeln!(
                out,
                "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}"
            )
            .ok();
        }
        sample(out, &format!("{name}_sum"), labels, self.sum);
        sample(out, &format!("{name}_count"), labels, self.count());
    }
}

/// Appends what stands above the samples of a family: what it is about, and its type.
pub fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
}

/// Appends one sample. `labels` are written already, such as `code="200"`, or empty.
pub fn sample(out: &mut String, name: &str, labels: &str, value: impl Display) {
    if labels.is_empty() {
        writeln!(out, "{name} {value}").ok();
    } else {
        writeln!(out, "{name}{{{labels}}} {value}").ok();
    }
}

/// A label's value that somebody else chose, as it may stand between quotes.
#[must_use]
pub fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(value.replace('\n', "\\n"))
}
