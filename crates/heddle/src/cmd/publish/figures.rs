//! What came of many publishes: counts, rate and latencies, in constant memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use heddle_rt::metrics::Latencies;
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
    latencies: Latencies,
}

impl Figures {
    pub(super) fn add(&mut self, outcome: Outcome, latency: Duration) {
        match outcome {
            Outcome::Accepted => {
                self.accepted += 1;
                self.latencies.record(latency);
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
        let milliseconds = |share| self.latencies.percentile(share).as_secs_f64() * 1000.0;
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
        let percentile = |share| span(self.latencies.percentile(share));
        let rate = per_second(self.accepted, self.took);
        let lines = [
            format!("{rate:.0} accepted/s over {}", span(self.took)),
            format!(
                "latency p50 {}, p99 {}, max {}",
                percentile(0.5),
                percentile(0.99),
                percentile(1.0)
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
