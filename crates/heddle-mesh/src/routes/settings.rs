//! What annotations say about a consumer.
//!
//! A value that makes no sense is reported and the default is used: a slip in an annotation must not stop events.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use heddle_api::pause::DeliveryPause;
use heddle_api::rate::{self, DeliveryRate};
use heddle_api::well_known::annotation;
use jiff::Timestamp;

use crate::path::delivery::retry_policy;

/// How events are handed over, beyond what `spec.delivery` can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Events are kept and not sent, for as long as this holds.
    pub pause: Option<DeliveryPause>,
    /// No more than so many are sent; the others wait.
    pub rate: Option<DeliveryRate>,
    /// An event is sent only after the one before it has ended.
    pub ordered: bool,
    /// How many deliveries may be under way at once.
    pub in_flight_max: Option<u32>,
    pub start: Start,
    /// How often dead letters are sent on their way again without being asked.
    pub auto_redrive: Option<u32>,
    /// How many bytes of the log its backlog may keep.
    pub backlog_bytes_max: Bound<u64>,
    /// How old its backlog may be.
    pub backlog_age_max: Bound<Duration>,
    /// Whether its subscriber is asked first.
    pub consent: Consent,
    /// How its subscriber is tried between events.
    pub subscriber_probe: Option<ProbeKind>,
}

/// How a subscriber is tried between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// It takes a connection.
    Tcp,
    /// It answers OPTIONS.
    Options,
    /// It accepts a synthetic event.
    Heartbeat,
}

impl ProbeKind {
    const ALL: [Self; 3] = [Self::Tcp, Self::Options, Self::Heartbeat];

    /// As the annotation says it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Options => "options",
            Self::Heartbeat => "heartbeat",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// Whether a subscriber is asked for its consent before anything is sent to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    #[default]
    NotAsked,
    Asked(Webhook),
    /// It is to be asked, and nobody knows in whose name. Sending without having asked would be the wrong default.
    Unreadable,
}

impl Consent {
    /// What it is asked for, if it is.
    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        match self {
            Self::Asked(webhook) => Some(webhook),
            Self::NotAsked | Self::Unreadable => None,
        }
    }
}

/// What a subscriber is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Webhook {
    /// The DNS name of whoever sends.
    pub origin: String,
    /// How many per minute would be welcome.
    pub rate: Option<u32>,
}

/// A bound that a consumer may have of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound<T> {
    /// The one that everybody has.
    #[default]
    Usual,
    /// None, whatever everybody has.
    None,
    Most(T),
}

impl<T> Bound<T> {
    /// The bound that holds, when everybody else has this one.
    pub fn or(self, usual: Option<T>) -> Option<T> {
        match self {
            Self::Usual => usual,
            Self::None => None,
            Self::Most(most) => Some(most),
        }
    }
}

/// Where a new consumer starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the next event.
    #[default]
    New,
    /// With the oldest event that is kept.
    Earliest,
    /// With the first event accepted at this time or later.
    Time(Timestamp),
    /// With this event.
    Event { source: String, id: String },
}

const IN_FLIGHT: RangeInclusive<u32> = 1..=1000;
const AUTO_REDRIVE: RangeInclusive<u32> = 0..=10;
const WEBHOOK_RATE: RangeInclusive<u32> = 1..=1_000_000;

impl Settings {
    /// Reads annotations. `fault` is told about each that makes no sense.
    pub(super) fn read(
        annotations: Option<&BTreeMap<String, String>>,
        mut fault: impl FnMut(String),
    ) -> Self {
        let pause = DeliveryPause::read(annotations, &mut fault);
        let mut read = Reader {
            annotations,
            fault: &mut fault,
        };
        let order = |value: &str| match value {
            "ordered" => Some(true),
            "unordered" => Some(false),
            _ => None,
        };
        let order_wanted = "ordered or unordered";
        // Both are read, so that a fault in either is told.
        let kafka_order = read.one(annotation::KAFKA_DELIVERY_ORDER, order_wanted, order);
        let own_order = read.one(annotation::DELIVERY_ORDER, order_wanted, order);
        Self {
            pause,
            rate: read.one(annotation::RATE, rate::WANTED, DeliveryRate::parse),
            ordered: own_order.or(kafka_order).unwrap_or_default(),
            in_flight_max: read.number(annotation::MAX_IN_FLIGHT, IN_FLIGHT),
            start: read
                .one(
                    annotation::START,
                    "new, earliest, a time in RFC 3339 or event:SOURCE#ID",
                    start,
                )
                .unwrap_or_default(),
            auto_redrive: read.number(annotation::AUTO_REDRIVE, AUTO_REDRIVE),
            backlog_bytes_max: read.bound(
                annotation::BACKLOG_BYTES_MAX,
                "none or a number of bytes such as 500Mi",
                bytes,
            ),
            backlog_age_max: read.bound(
                annotation::BACKLOG_AGE_MAX,
                "none or an ISO 8601 duration such as PT24H",
                |value| {
                    retry_policy::duration(value)
                        .ok()
                        .filter(|age| !age.is_zero())
                },
            ),
            consent: read.consent(),
            subscriber_probe: read.one(
                annotation::SUBSCRIBER_PROBE,
                "tcp, options or heartbeat",
                ProbeKind::read,
            ),
        }
    }
}

struct Reader<'a> {
    annotations: Option<&'a BTreeMap<String, String>>,
    fault: &'a mut dyn FnMut(String),
}

impl Reader<'_> {
    fn one<T>(
        &mut self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.annotations?.get(name)?;
        let parsed = parse(value);
        if parsed.is_none() {
            (self.fault)(format!(
                "annotation {name} is {value:?}, wanted is {wanted}; it is not taken into account"
            ));
        }
        parsed
    }

    fn bound<T>(
        &mut self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Bound<T> {
        let bound = |value: &str| match value {
            "none" => Some(Bound::None),
            value => parse(value).map(Bound::Most),
        };
        self.one(name, wanted, bound).unwrap_or_default()
    }

    fn consent(&mut self) -> Consent {
        let rate = self.number(annotation::WEBHOOK_RATE, WEBHOOK_RATE);
        let name = annotation::WEBHOOK_ORIGIN;
        let Some(origin) = self.annotations.and_then(|all| all.get(name)) else {
            if rate.is_some() {
                let rate = annotation::WEBHOOK_RATE;
                (self.fault)(format!("annotation {rate} means nothing without {name}"));
            }
            return Consent::NotAsked;
        };
        if !is_dns_name(origin) {
            (self.fault)(format!(
                "annotation {name} is {origin:?}, wanted is a DNS name such as events.example.com; nothing is sent until then"
            ));
            return Consent::Unreadable;
        }
        Consent::Asked(Webhook {
            origin: origin.clone(),
            rate,
        })
    }

    fn number(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let wanted = format!("a number from {} to {}", range.start(), range.end());
        self.one(name, &wanted, |value| {
            value.parse().ok().filter(|number| range.contains(number))
        })
    }
}

pub(crate) fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A number of bytes as Kubernetes writes quantities.
fn bytes(value: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    let unit = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((value.strip_suffix(unit)?, *bytes)));
    let (digits, unit) = unit.unwrap_or((value, 1));
    // The standard parser also takes a sign.
    let number = digits
        .starts_with(|digit: char| digit.is_ascii_digit())
        .then(|| digits.parse::<u64>().ok())??;
    number.checked_mul(unit).filter(|bytes| *bytes > 0)
}

fn start(value: &str) -> Option<Start> {
    match value {
        "new" => Some(Start::New),
        "earliest" => Some(Start::Earliest),
        _ => match value.strip_prefix("event:") {
            // A source may have a fragment of its own, so the last # counts.
            Some(event) => {
                let (source, id) = event.rsplit_once('#')?;
                (!source.is_empty() && !id.is_empty()).then(|| Start::Event {
                    source: source.to_owned(),
                    id: id.to_owned(),
                })
            }
            None => value.parse().ok().map(Start::Time),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, expected) in [
            ("1", Some(1)),
            ("500Mi", Some(500 << 20)),
            ("2Gi", Some(2 << 30)),
            ("3k", Some(3000)),
            ("1T", Some(1_000_000_000_000)),
            ("0", None),
            ("0Gi", None),
            ("-1", None),
            ("+1", None),
            ("1.5Gi", None),
            ("Gi", None),
            ("", None),
            ("5 Mi", None),
            ("99999999999Ti", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }

    fn read(annotations: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let annotations = annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut faults = Vec::new();
        let settings = Settings::read(Some(&annotations), |fault| faults.push(fault));
        (settings, faults)
    }

    #[test]
    fn a_bound_is_the_usual_one_another_or_none() {
        let (settings, faults) = read(&[
            (annotation::BACKLOG_BYTES_MAX, "2Gi"),
            (annotation::BACKLOG_AGE_MAX, "PT1H"),
        ]);
        assert_eq!(settings.backlog_bytes_max.or(Some(1)), Some(2 << 30));
        let hour = Duration::from_secs(3600);
        assert_eq!(settings.backlog_age_max.or(None), Some(hour));
        assert!(faults.is_empty(), "{faults:?}");
        let (settings, _) = read(&[(annotation::BACKLOG_BYTES_MAX, "none")]);
        assert_eq!(settings.backlog_bytes_max.or(Some(1)), None);
        assert_eq!(settings.backlog_age_max.or(Some(hour)), Some(hour));
    }

    #[test]
    fn a_bound_that_makes_no_sense_is_told_and_the_usual_one_holds() {
        let (settings, faults) = read(&[
            (annotation::BACKLOG_BYTES_MAX, "much"),
            (annotation::BACKLOG_AGE_MAX, "PT0S"),
        ]);
        assert_eq!(settings, Settings::default());
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("500Mi"), "{faults:?}");
    }

    #[test]
    fn a_subscriber_is_tried_in_one_of_three_ways_or_not_at_all() {
        for (value, expected, faults_count) in [
            ("tcp", Some(ProbeKind::Tcp), 0),
            ("options", Some(ProbeKind::Options), 0),
            ("heartbeat", Some(ProbeKind::Heartbeat), 0),
            ("http", None, 1),
            ("", None, 1),
        ] {
            let (settings, faults) = read(&[(annotation::SUBSCRIBER_PROBE, value)]);
            assert_eq!(settings.subscriber_probe, expected, "{value:?}");
            assert_eq!(faults.len(), faults_count, "{faults:?}");
        }
        assert_eq!(read(&[]).0.subscriber_probe, None);
    }

    #[test]
    fn a_subscriber_is_asked_in_a_name_or_not_at_all() {
        let asked = |origin: &str, rate| {
            Consent::Asked(Webhook {
                origin: origin.to_owned(),
                rate,
            })
        };
        let (name, rate) = (annotation::WEBHOOK_ORIGIN, annotation::WEBHOOK_RATE);
        for (annotations, expected, faults_count) in [
            (vec![], Consent::NotAsked, 0),
            (vec![(name, "mesh.example")], asked("mesh.example", None), 0),
            (
                vec![(name, "mesh"), (rate, "60")],
                asked("mesh", Some(60)),
                0,
            ),
            (vec![(name, "mesh"), (rate, "0")], asked("mesh", None), 1),
            (vec![(rate, "60")], Consent::NotAsked, 1),
            (vec![(name, "https://mesh.example")], Consent::Unreadable, 1),
            (vec![(name, "")], Consent::Unreadable, 1),
            (vec![(name, "*")], Consent::Unreadable, 1),
            (vec![(name, "-mesh.example")], Consent::Unreadable, 1),
            (vec![(name, "mesh..example")], Consent::Unreadable, 1),
        ] {
            let (settings, faults) = read(&annotations);
            assert_eq!(settings.consent, expected, "{annotations:?}");
            assert_eq!(faults.len(), faults_count, "{faults:?}");
        }
    }
}
