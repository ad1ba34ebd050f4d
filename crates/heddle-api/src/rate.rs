//! A rate: no more than so many events of a consumer are sent in a span of time, because somebody said so in its annotations.
//!
//! ```text
//!   heddle.dev/rate: 100/s       or 0.5/s, 30/min, 200/h
//! ```
//! What is too much waits; how events are spaced is for whoever sends them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::well_known::annotation;

/// What can be said, for people.
pub const WANTED: &str =
    "a number of events per second, minute or hour, from 1/h to 10000/s, such as 100/s or 30/min";

/// The shortest and the longest time between two events: 10,000 in a second, 1 in an hour.
const APART_MIN: Duration = Duration::from_micros(100);
const APART_MAX: Duration = Duration::from_secs(3600);

/// Digits behind the point of a number, and before it.
const DECIMALS_MAX: usize = 3;
const DIGITS_MAX: usize = 9;

/// The spans that a rate may be about.
const UNITS: [(&str, Duration); 3] = [
    ("s", Duration::from_secs(1)),
    ("min", Duration::from_secs(60)),
    ("h", Duration::from_secs(3600)),
];

/// So many events in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// How many, in thousandths.
    thousandths: u64,
    /// An index of [`UNITS`].
    unit: usize,
}

impl DeliveryRate {
    /// Reads `100/s`; `None` if it is no rate, or a slower or faster one than can be asked for.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, word) = text.trim().split_once('/')?;
        let unit = UNITS.iter().position(|(known, _)| *known == word)?;
        let rate = Self {
            thousandths: thousandths(number)?,
            unit,
        };
        let within = APART_MIN..=APART_MAX;
        (rate.thousandths > 0 && within.contains(&rate.apart())).then_some(rate)
    }

    /// What the annotations of an object ask for, if it can be read.
    #[must_use]
    pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Option<Self> {
        Self::parse(annotations?.get(annotation::RATE)?)
    }

    /// From one event to the next.
    #[must_use]
    pub fn apart(&self) -> Duration {
        let span = UNITS[self.unit].1.as_nanos() * 1000;
        let apart = span.div_ceil(u128::from(self.thousandths.max(1)));
        Duration::from_nanos(u64::try_from(apart).unwrap_or(u64::MAX))
    }

    /// How long so many events take.
    #[must_use]
    pub fn time_for(&self, events: u64) -> Duration {
        Duration::try_from_secs_f64(self.apart().as_secs_f64() * events as f64)
            .unwrap_or(Duration::MAX)
    }

    /// The merge patch that asks for a rate, or for none.
    #[must_use]
    pub fn patch(rate: Option<Self>) -> Value {
        let text = rate.map(|rate| rate.to_string());
        json!({"metadata": {"annotations": {(annotation::RATE): text}}})
    }
}

/// As it is written, without zeros that say nothing.
impl fmt::Display for DeliveryRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.thousandths / 1000, self.thousandths % 1000);
        write!(f, "{whole}")?;
        if rest > 0 {
            write!(f, ".{}", format!("{rest:03}").trim_end_matches('0'))?;
        }
        write!(f, "/{}", UNITS[self.unit].0)
    }
}

/// A decimal number in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text, None),
    };
    // The standard parser also takes a sign.
    let digits = |text: &str, max: usize| {
        (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(whole, DIGITS_MAX) || rest.is_some_and(|rest| !digits(rest, DECIMALS_MAX)) {
        return None;
    }
    let rest = format!("{:0<1$}", rest.unwrap_or_default(), DECIMALS_MAX);
    Some(whole.parse::<u64>().ok()? * 1000 + rest.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_in_a_span() {
        for (text, apart_us, shown) in [
            ("100/s", 10_000, "100/s"),
            ("0.5/s", 2_000_000, "0.5/s"),
            (" 2.50/s ", 400_000, "2.5/s"),
            ("30/min", 2_000_000, "30/min"),
            ("0.125/min", 480_000_000, "0.125/min"),
            ("1/h", 3_600_000_000_u64, "1/h"),
            ("10000/s", 100, "10000/s"),
        ] {
            let rate = DeliveryRate::parse(text).unwrap();
            assert_eq!(rate.apart(), Duration::from_micros(apart_us), "{text}");
            assert_eq!(rate.to_string(), shown);
            assert_eq!(DeliveryRate::parse(shown), Some(rate));
        }
        let third = DeliveryRate::parse("3/s").unwrap();
        assert_eq!(
            third.apart(),
            Duration::from_nanos(333_333_334),
            "never more"
        );
    }

    #[test]
    fn what_is_no_rate_is_none() {
        for text in [
            "",
            "/",
            "/s",
            "100",
            "100/",
            "s",
            "-1/s",
            "+1/s",
            "1e3/s",
            "0/s",
            "0.0/s",
            "0.5/h",
            "10001/s",
            "1./s",
            ".5/s",
            "0.1234/s",
            "1 /s",
            "1/sec",
            "1/S",
            "1/s/s",
            "٣/s",
            "9999999999/s",
            "many/s",
        ] {
            assert_eq!(DeliveryRate::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_waits_costs_time() {
        let rate = DeliveryRate::parse("100/s").unwrap();
        assert_eq!(rate.time_for(0), Duration::ZERO);
        assert_eq!(rate.time_for(1500), Duration::from_secs(15));
        let slow = DeliveryRate::parse("1/h").unwrap();
        assert!(slow.time_for(u64::MAX) > Duration::from_secs(1 << 60));
    }

    #[test]
    fn what_is_patched_is_read() {
        let rate = DeliveryRate::parse("30/min");
        let patch = DeliveryRate::patch(rate);
        let text = patch["metadata"]["annotations"][annotation::RATE].as_str();
        let annotations = BTreeMap::from([(annotation::RATE.to_owned(), text.unwrap().to_owned())]);
        assert_eq!(DeliveryRate::read(Some(&annotations)), rate);
        assert!(DeliveryRate::patch(None)["metadata"]["annotations"][annotation::RATE].is_null());
    }
}
