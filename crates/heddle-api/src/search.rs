//! Which events somebody looks for: the text of the find box, which is the argument of `heddle events`.
//!
//! ```text
//!   type:order.* -source:/test data.total>100 state:retrying,dead since:1h
//!   │            │             │              │                   └ accepted within the last hour
//!   │            │             │              └ of one and the same consumer, as all of consumer: and state: are
//!   │            │             └ in JSON data; items of arrays are tried one by one
//!   │            └ must not hold
//!   └ `*` stands for anything; in quotes it stands for itself
//! ```
//! All terms must hold. Reading never fails silently: a word that could be a misspelled field is refused, with its place and
//! what to write instead. Deciding takes time in proportion to the event, whatever was asked for.

mod answer;
mod data;
mod parse;
#[cfg(test)]
mod tests;
mod text;

use jiff::Timestamp;

pub use self::answer::{
    EventPage, EventStreamEnd, FoundEvent, LookedAt, StreamedEvents, TailRate, WholeEvent,
};
pub use self::parse::moment;
pub use self::text::TextPattern;

use self::data::DataTerm;
use self::text::{AttributeTerm, FoldedText};
use crate::attributes::Attributes;
use crate::cesql::Expression;
use crate::ledger::EventState;
use crate::republish::CAUSE;

/// The longest query.
pub const QUERY_BYTES_MAX: usize = 16 << 10;
/// How many terms a query may have.
pub const QUERY_TERMS_MAX: usize = 64;

/// What is looked for. Everything in it must hold.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    terms: Vec<EventTerm>,
    consumers: Vec<ConsumerTerm>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// A text that is no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at character {}", .position + 1)]
pub struct QueryFault {
    /// The character it is about, counted from 0.
    pub position: usize,
    /// What is wrong and what to write instead.
    pub message: String,
}

#[derive(Clone, Debug)]
struct EventTerm {
    negated: bool,
    wanted: WantedOfEvent,
}

#[derive(Clone, Debug)]
enum WantedOfEvent {
    Attribute(AttributeTerm),
    Entry(TextPattern),
    Request(TextPattern),
    Trace(TextPattern),
    Place(u64),
    /// The place of the event that it is a reply to, or that was published again as it.
    Cause(u64),
    Data(DataTerm),
    Text(FoldedText),
    Word(BareWord),
    Cesql(Box<Expression>),
}

/// A word without a field: what somebody has at hand, be it an id or something that they remember.
#[derive(Clone, Debug)]
struct BareWord {
    text: Box<str>,
    folded: FoldedText,
    place: Option<u64>,
}

/// What must hold of one consumer. All of them together speak of the same one.
#[derive(Clone, Debug)]
struct ConsumerTerm {
    negated: bool,
    wanted: WantedOfConsumer,
}

#[derive(Clone, Debug)]
enum WantedOfConsumer {
    Name(TextPattern),
    States(Vec<EventState>),
}

/// An event as it is searched.
pub trait Sought: Attributes {
    /// Its place in the log.
    fn offset(&self) -> u64;
    fn accepted_at(&self) -> Timestamp;
    fn entry(&self) -> &str;
    fn request_id(&self) -> Option<&str>;
    fn trace_id(&self) -> Option<&str>;
    /// The place of the event that this is a reply to.
    fn cause(&self) -> Option<u64>;
    /// The data, if there is any and whoever looks may see it.
    fn data(&self) -> Option<&[u8]>;
    /// Whether any attribute is such a text.
    fn any_attribute(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool;
}

/// Something that a part of a log can be known not to contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndexedWord {
    Id,
    Source,
    Type,
    Subject,
    Entry,
    Request,
    Trace,
}

impl EventQuery {
    /// Reads a query. Times that are given as durations are before `now`.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryFault> {
        parse::parse(text, now)
    }

    /// Everything with this id.
    #[must_use]
    pub fn by_id(id: &str) -> Self {
        let is = TextPattern::exactly(id);
        let wanted = WantedOfEvent::Attribute(AttributeTerm::is("id", is));
        Self {
            terms: vec![EventTerm {
                negated: false,
                wanted,
            }],
            ..Self::default()
        }
    }

    /// Whether the event is one of those, as far as its consumers have no say.
    #[must_use]
    pub fn matches(&self, event: &dyn Sought) -> bool {
        let at = event.accepted_at();
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && (self.terms.iter()).all(|term| term.wanted.holds(event) != term.negated)
    }

    /// Whether what became of an event at one consumer is asked about.
    #[must_use]
    pub fn asks_consumers(&self) -> bool {
        !self.consumers.is_empty()
    }

    /// Whether this is the consumer, and that what became of the event there. A consumer that did not want an event counts
    /// only for those who ask for its state.
    #[must_use]
    pub fn matches_consumer(&self, consumer: &str, state: EventState) -> bool {
        let by_state = |term: &ConsumerTerm| matches!(term.wanted, WantedOfConsumer::States(_));
        let filtered = state == EventState::Filtered && !self.consumers.iter().any(by_state);
        !filtered
            && self.consumers.iter().all(|term| {
                let holds = match &term.wanted {
                    WantedOfConsumer::Name(is) => is.matches(consumer),
                    WantedOfConsumer::States(states) => states.contains(&state),
                };
                holds != term.negated
            })
    }

    /// Whether a consumer of this name can be the one that is asked about.
    #[must_use]
    pub fn may_be_consumer(&self, consumer: &str) -> bool {
        self.consumers.iter().all(|term| match &term.wanted {
            WantedOfConsumer::Name(is) => is.matches(consumer) != term.negated,
            WantedOfConsumer::States(_) => true,
        })
    }

    /// Whether only somebody who may read data may ask this. A bare word is looked for in what they may see.
    #[must_use]
    pub fn asks_for_data(&self) -> bool {
        use WantedOfEvent::{Data, Text};
        let terms = self.terms.iter();
        let mut wanted = terms.map(|term| &term.wanted);
        wanted.any(|wanted| matches!(wanted, Data(_) | Text(_)))
    }

    /// When the events were accepted, at the earliest.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// Before when they were.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.until
    }

    /// Looks at nothing that was accepted before a time.
    pub fn restrict_since(&mut self, since: Timestamp) {
        self.since = Some(self.since.map_or(since, |known| known.max(since)));
    }

    /// The words that every such event has. Where one of them is missing, nothing needs to be looked at.
    #[must_use]
    pub fn required_words(&self) -> Vec<(IndexedWord, &str)> {
        let terms = self.terms.iter().filter(|term| !term.negated);
        terms
            .filter_map(|term| match &term.wanted {
                WantedOfEvent::Attribute(term) => term.indexed(),
                WantedOfEvent::Entry(is) => Some((IndexedWord::Entry, is.exact()?)),
                WantedOfEvent::Request(is) => Some((IndexedWord::Request, is.exact()?)),
                WantedOfEvent::Trace(is) => Some((IndexedWord::Trace, is.exact()?)),
                _ => None,
            })
            .collect()
    }

    /// The one place in the log that is asked for, if it is.
    #[must_use]
    pub fn place(&self) -> Option<u64> {
        let terms = self.terms.iter().filter(|term| !term.negated);
        let mut places = terms.filter_map(|term| match term.wanted {
            WantedOfEvent::Place(place) => Some(place),
            _ => None,
        });
        places.next()
    }

    /// The bare word that the query is, if it is nothing else: perhaps the name of the one event that is meant.
    #[must_use]
    pub fn bare_word(&self) -> Option<&str> {
        match (&*self.terms, &*self.consumers) {
            (
                [
                    EventTerm {
                        negated: false,
                        wanted: WantedOfEvent::Word(word),
                    },
                ],
                [],
            ) => Some(&word.text),
            _ => None,
        }
    }
}

impl WantedOfEvent {
    fn holds(&self, event: &dyn Sought) -> bool {
        match self {
            Self::Attribute(term) => term.holds(event),
            Self::Entry(is) => is.matches(event.entry()),
            Self::Request(is) => event.request_id().is_some_and(|id| is.matches(id)),
            Self::Trace(is) => event.trace_id().is_some_and(|id| is.matches(id)),
            Self::Place(place) => event.offset() == *place,
            Self::Cause(place) => {
                let named = event.text(CAUSE).and_then(|text| text.parse().ok());
                event.cause() == Some(*place) || named == Some(*place)
            }
            Self::Data(term) => event.data().is_some_and(|data| term.holds(data)),
            Self::Text(folded) => has_text(event, folded),
            Self::Word(word) => word.holds(event),
            Self::Cesql(expression) => expression.passes(event),
        }
    }
}

impl BareWord {
    fn holds(&self, event: &dyn Sought) -> bool {
        event.text("id") == Some(&*self.text)
            || self.place == Some(event.offset())
            || event.request_id() == Some(&*self.text)
            || event.trace_id() == Some(&*self.text)
            || has_text(event, &self.folded)
    }
}

fn has_text(event: &dyn Sought, folded: &FoldedText) -> bool {
    event.any_attribute(&mut |text| folded.is_within(text.as_bytes()))
        || event.data().is_some_and(|data| folded.is_within(data))
}
