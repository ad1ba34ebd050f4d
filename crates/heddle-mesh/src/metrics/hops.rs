//! How long events take: at each hop, and in all.
//!
//! ```text
//!   request ─────────────────> answer                              source
//!        append ──> safe                                           channel
//!                   safe ──> matched                               broker
//!                   safe ──────────> first attempt begins          trigger, with waiting for its turn
//!                                    attempt ──> answer            delivery, each attempt
//!                   safe ───────────────────────> delivered        delay
//! ```
//! What begins when an event became safe is measured by the wall clock, because that moment is on record and outlives the
//! process; a clock that is set back makes such times zero, never negative. Heartbeats are in none of them.

use std::time::Duration;

use heddle_rt::metrics::Histogram;
use jiff::Timestamp;

use super::family;
use crate::hop;

/// Upper bounds of a hop, in seconds.
const HOP_BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];
/// Upper bounds of the whole way: retries may take hours. One of them is what the alerts count as late.
const DELAY_BOUNDS: [f64; 12] = [
    0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 7200.0,
];

#[derive(Debug)]
pub(super) struct Hops {
    source: Histogram,
    channel: Histogram,
    broker: Histogram,
    trigger: Histogram,
    delivery: Histogram,
    delay: Histogram,
}

impl Default for Hops {
    fn default() -> Self {
        let hop = || Histogram::of_seconds(&HOP_BOUNDS);
        Self {
            source: hop(),
            channel: hop(),
            broker: hop(),
            trigger: hop(),
            delivery: hop(),
            delay: Histogram::of_seconds(&DELAY_BOUNDS),
        }
    }
}

impl Hops {
    pub(super) fn published(&self, took: Duration) {
        self.source.observe(took);
    }

    pub(super) fn appended(&self, took: Duration) {
        self.channel.observe(took);
    }

    pub(super) fn matched(&self, safe_at: Timestamp, now: Timestamp) {
        self.broker.observe(since(safe_at, now));
    }

    pub(super) fn begun(&self, safe_at: Timestamp, now: Timestamp) {
        self.trigger.observe(since(safe_at, now));
    }

    pub(super) fn attempted(&self, took: Duration) {
        self.delivery.observe(took);
    }

    pub(super) fn delivered(&self, safe_at: Timestamp, now: Timestamp) {
        self.delay.observe(since(safe_at, now));
    }

    pub(super) fn write(&self, out: &mut String) {
        let name = "heddle_hop_seconds";
        family(out, name, "histogram", "How long an event took at a hop.");
        for (hop, times) in [
            (hop::SOURCE, &self.source),
            (hop::CHANNEL, &self.channel),
            (hop::BROKER, &self.broker),
            (hop::TRIGGER, &self.trigger),
            (hop::DELIVERY, &self.delivery),
        ] {
            times.write(out, name, &format!("hop=\"{hop}\""));
        }
        let name = "heddle_delivery_delay_seconds";
        let help = "From an event being safe to its delivery, retries included.";
        family(out, name, "histogram", help);
        self.delay.write(out, name, "");
    }
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}
