//! What a span says: copied out of what the mesh tells, small enough to wait in a queue.
//!
//! Attributes have OpenTelemetry's names where there are any. Texts that strangers choose are cut at a bound. The address
//! of a subscriber is not among them, for it may hold what only the subscriber should know.

use heddle_mesh::observer::{Accepted, Attempted, Seen};
use heddle_mesh::{Span, hop};
use jiff::SignedDuration;

/// The longest text in a span; the rest is cut off.
const TEXT_BYTES_MAX: usize = 1024;

/// One span, ready to be written.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) span: Span,
    pub(super) parent: Option<u64>,
    pub(super) state: Box<str>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) began_ns: i128,
    pub(super) ended_ns: i128,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
    pub(super) error: Option<Box<str>>,
}

/// OpenTelemetry's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Somebody asked us.
    Server = 2,
    /// We asked somebody.
    Client = 3,
}

#[derive(Debug)]
pub(super) enum Attribute {
    Text(Box<str>),
    Number(u64),
    Flag(bool),
}

impl Record {
    pub(super) fn of_accepted(accepted: &Accepted<'_>) -> Self {
        let name = format!("{} {}", hop::SOURCE, accepted.entry);
        let mut record = Self::new(&accepted.seen, name, Kind::Server);
        record.text("messaging.operation.type", "receive");
        record.text("messaging.destination.name", accepted.entry);
        record
    }

    pub(super) fn of_attempted(attempted: &Attempted<'_>) -> Self {
        let hop = if attempted.sink {
            hop::DEAD_LETTER
        } else {
            hop::DELIVERY
        };
        let name = format!("{hop} {}", attempted.consumer);
        let mut record = Self::new(&attempted.seen, name, Kind::Client);
        record.text("messaging.operation.type", "send");
        record.text("messaging.destination.name", attempted.consumer);
        record.number("heddle.attempt", attempted.number.into());
        if attempted.sink {
            let sink = ("heddle.dead_letter_sink", Attribute::Flag(true));
            record.attributes.push(sink);
        }
        if attempted.status > 0 {
            record.number("http.response.status_code", attempted.status.into());
        }
        if let Some(error) = attempted.error {
            let sort = match attempted.status {
                0 => "_OTHER".to_owned(),
                status => status.to_string(),
            };
            record.text("error.type", &sort);
            record.error = Some(cut(error).into());
        }
        record
    }

    fn new(seen: &Seen<'_>, name: String, kind: Kind) -> Self {
        let ended_ns = seen.ended.as_nanosecond();
        let took = SignedDuration::try_from(seen.took).unwrap_or(SignedDuration::MAX);
        let mut record = Self {
            span: seen.span,
            parent: seen.parent,
            state: seen.state.into(),
            name,
            kind,
            began_ns: ended_ns.saturating_sub(took.as_nanos()).max(0),
            ended_ns: ended_ns.max(0),
            attributes: Vec::with_capacity(12),
            error: None,
        };
        record.text("messaging.system", "heddle");
        record.text("cloudevents.event_id", seen.event.id());
        record.text("cloudevents.event_source", seen.event.source());
        record.text("cloudevents.event_type", seen.event.type_());
        record.number("heddle.offset", seen.offset);
        record
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.attributes
            .push((name, Attribute::Text(cut(text).into())));
    }

    fn number(&mut self, name: &'static str, number: u64) {
        self.attributes.push((name, Attribute::Number(number)));
    }
}

/// The beginning of a text, in whole characters.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
