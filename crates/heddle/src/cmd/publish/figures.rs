//! What came of many publishes: counts, rate and latencies, in constant memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::many::Outcome;
use crate::failure::Failure;
use crate::output::{count, span};

/// How many different refusals are told apart; the codes are few, and a proxy could invent more.
const REFUSALS_MAX: usize = 16;

/// Counts so far.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    pub(super) unanswered: u64,
    pub(super) took: Duration,
    /// By status and code: how many, and the words of the first.
    refusals: BTreeMap<String, (u64, String)>,
    first_unanswered: Option<String>,
    latencies: Histogram,
}

impl Figures {
    pub(super) fn add(&mut self, outcome: Outcome, latency: Duration) {
        match outcome {
            Outcome::Accepted => {
                self.accepted += 1;
                self.latencies.add(latency);
            }
            Outcome::Refused(key, failure) => {
                self.refused += 1;
                if self.refusals.contains_key(&key) || self.refusals.len() < REFUSALS_MAX {
                    let words = || (0, failure.to_string());
                    self.refusals.entry(key).or_insert_with(words).0 += 1;
                }
            }
            Outcome::Unanswered(error) => {
                self.unanswered += 1;
                self.first_unanswered
                    .get_or_insert_with(|| format!("{error:#}"));
            }
        }
    }

    pub(super) fn sent(&self) -> u64 {
        self.answered() + self.unanswered
    }

    pub(super) fn answered(&self) -> u64 {
        self.accepted + self.refused
    }

    pub(super) fn progress(&self, total: u64, elapsed: Duration) -> String {
        let mut line = format!(
            "{} of {total} sent in {}, {:.0}/s",
            self.sent(),
            span(elapsed),
            per_second(self.sent(), elapsed)
        );
        for (number, word) in [(self.refused, "refused"), (self.unanswered, "unanswered")] {
            if number > 0 {
                write!(line, ", {number} {word}").expect("a string takes everything");
            }
        }
        line
    }

    pub(super) fn to_json(&self) -> Value {
        let milliseconds = |quantile| self.latencies.quantile(quantile).as_secs_f64() * 1000.0;
        json!({
            "sent": self.sent(),
            "accepted": self.accepted,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "seconds": self.took.as_secs_f64(),
            "acceptedPerSecond": per_second(self.accepted, self.took),
            "latencyMs": {"p50": milliseconds(0.5), "p99": milliseconds(0.99), "max": milliseconds(1.0)},
            "refusals": self.refusals.iter().map(|(key, (number, words))| json!({
                "what": key, "count": number, "first": words,
            })).collect::<Vec<_>>(),
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "sent {}, accepted {}, refused {}, unanswered {}\n",
            self.sent(),
            self.accepted,
            self.refused,
            self.unanswered
        );
        let quantile = |quantile| span(self.latencies.quantile(quantile));
        let rate = per_second(self.accepted, self.took);
        let lines = [
            format!("{rate:.0} accepted/s over {}", span(self.took)),
            format!(
                "latency p50 {}, p99 {}, max {}",
                quantile(0.5),
                quantile(0.99),
                quantile(1.0)
            ),
        ];
        for line in lines.iter().filter(|_| self.accepted > 0) {
            writeln!(text, "{line}").expect("a string takes everything");
        }
        for (key, (number, words)) in &self.refusals {
            writeln!(
                text,
                "{key}: {}, the first: {words}",
                count(*number, "time")
            )
            .expect("a string takes everything");
        }
        if let Some(first) = &self.first_unanswered {
            writeln!(
                text,
                "no answer: {}, the first: {first}",
                count(self.unanswered, "time")
            )
            .expect("a string takes everything");
        }
        text
    }

    /// Whether not all was well.
    pub(super) fn verdict(&self) -> Option<Failure> {
        let lost = self.sent() - self.accepted;
        let text = format!(
            "{lost} of {} were not accepted",
            count(self.sent(), "request")
        );
        match (self.refused, self.unanswered) {
            (0, 0) => None,
            (0, _) => Some(Failure::Unreachable(text)),
            _ => Some(Failure::Rejected(text)),
        }
    }
}

fn per_second(number: u64, elapsed: Duration) -> f64 {
    number as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Each power of two of microseconds is cut into this many buckets: three digits in a hundred at worst.
const CUTS: u64 = 32;
const CUT_BITS: u32 = CUTS.ilog2();

/// Latencies by the microsecond at first, then ever more coarsely, like what they are read for.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        // Enough for every u64 of microseconds.
        let buckets = vec![0; ((u64::BITS - CUT_BITS + 1) as usize) * CUTS as usize];
        Self {
            buckets,
            total: 0,
            max: Duration::ZERO,
        }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(micros)] += 1;
        self.total += 1;
        self.max = self.max.max(latency);
    }

    /// The least latency that this share of all did not exceed, rounded up to its bucket's end.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, number) in self.buckets.iter().enumerate() {
            seen += number;
            if seen >= rank {
                return Duration::from_micros(end_of(index)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket_of(micros: u64) -> usize {
    let exponent = micros.max(1).ilog2().saturating_sub(CUT_BITS);
    // Below the first cut every microsecond has a bucket; then each power of two has CUTS.
    let within = (micros >> exponent) as usize;
    if exponent == 0 {
        within
    } else {
        exponent as usize * CUTS as usize + within
    }
}

/// The largest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    let (bucket, cuts) = (bucket as u64, CUTS);
    if bucket < 2 * cuts {
        return bucket;
    }
    let exponent = bucket / cuts - 1;
    let within = bucket - exponent * cuts;
    (within << exponent) | ((1 << exponent) - 1)
}
