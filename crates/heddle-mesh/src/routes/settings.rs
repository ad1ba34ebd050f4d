//! What annotations say about a consumer.
//!
//! A value that makes no sense is reported and the default is used: a slip in an annotation must not stop events.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use heddle_api::well_known::annotation;
use jiff::Timestamp;

/// How events are handed over, beyond what `spec.delivery` can say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Events are kept and not sent.
    pub paused: bool,
    /// An event is sent only after the one before it has ended.
    pub ordered: bool,
    /// How many deliveries may be under way at once.
    pub in_flight_max: Option<u32>,
    pub start: Start,
    /// How often dead letters are sent on their way again without being asked.
    pub auto_redrive: Option<u32>,
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

impl Settings {
    /// Reads annotations. `fault` is told about each that makes no sense.
    pub(super) fn read(
        annotations: Option<&BTreeMap<String, String>>,
        mut fault: impl FnMut(String),
    ) -> Self {
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
            paused: read
                .one(annotation::PAUSED, "true or false", |value| {
                    value.parse().ok()
                })
                .unwrap_or_default(),
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

    fn number(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let wanted = format!("a number from {} to {}", range.start(), range.end());
        self.one(name, &wanted, |value| {
            value.parse().ok().filter(|number| range.contains(number))
        })
    }
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
