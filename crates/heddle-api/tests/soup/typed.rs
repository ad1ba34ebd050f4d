//! Promises about what people type, which hold for any text whatsoever: for tests and for fuzzing alike.
//!
//! Whatever comes is understood, or is refused at one of its characters with the reason.

use heddle_api::attributes::{Attributes, Value};
use heddle_api::filter::check;
use heddle_api::filter::text::{by_example, parse, print};
use heddle_api::ledger::EventState;
use heddle_api::search::{EventQuery, IndexedWord, Sought};
use jiff::Timestamp;

const ID: &str = "ord-1";
const TYPE: &str = "order.created";
const SOURCE: &str = "/shop";
const SUBJECT: &str = "a b";
const ENTRY: &str = "broker/team-a/default";
const REQUEST: &str = "req-9";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PLACE: u64 = 4711;
const DATA: &[u8] =
    br#"{"total": 120, "customer": {"name": "Ada"}, "items": [{"price": 1.5}, null], "paid": true}"#;
const CONSUMER: &str = "trigger/team-a/orders";

/// An event that has all that can be asked for.
struct FoundSample;

impl Attributes for FoundSample {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        self.text(name).map(Value::Text)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match name {
            "id" => Some(ID),
            "type" => Some(TYPE),
            "source" => Some(SOURCE),
            "subject" => Some(SUBJECT),
            "size" => Some("9007199254740993"),
            _ => None,
        }
    }
}

impl Sought for FoundSample {
    fn offset(&self) -> u64 {
        PLACE
    }

    fn accepted_at(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn entry(&self) -> &str {
        ENTRY
    }

    fn request_id(&self) -> Option<&str> {
        Some(REQUEST)
    }

    fn trace_id(&self) -> Option<&str> {
        Some(TRACE)
    }

    fn cause(&self) -> Option<u64> {
        Some(PLACE - 1)
    }

    fn data(&self) -> Option<&[u8]> {
        Some(DATA)
    }

    fn any_attribute(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        [ID, TYPE, SOURCE, SUBJECT].into_iter().any(is_it)
    }
}

/// Taken for a question for events. Gives whether it is one.
///
/// What the question requires of an event, an event that it finds has: parts of a log that do not have it are not looked at.
pub(crate) fn find_query(text: &str) -> bool {
    let query = match EventQuery::parse(text, Timestamp::UNIX_EPOCH) {
        Ok(query) => query,
        Err(fault) => {
            refused_within(text, fault.position, &fault.message);
            return false;
        }
    };
    let event = FoundSample;
    if query.matches(&event) {
        for (kind, word) in query.required_words() {
            let has = match kind {
                IndexedWord::Id => ID,
                IndexedWord::Source => SOURCE,
                IndexedWord::Type => TYPE,
                IndexedWord::Subject => SUBJECT,
                IndexedWord::Entry => ENTRY,
                IndexedWord::Request => REQUEST,
                IndexedWord::Trace => TRACE,
            };
            assert_eq!(has, word, "{text:?}");
        }
        assert!(query.place().is_none_or(|place| place == PLACE), "{text:?}");
        let at = event.accepted_at();
        assert!(query.since().is_none_or(|since| since <= at), "{text:?}");
        assert!(query.until().is_none_or(|until| at < until), "{text:?}");
    }
    for state in EventState::ALL {
        let found = query.matches_consumer(CONSUMER, state);
        assert!(!found || query.may_be_consumer(CONSUMER), "{text:?}");
    }
    true
}

/// Taken for the filters of a trigger. Gives whether it is.
///
/// What is understood is admitted, and is the same when it is written down and read again.
pub(crate) fn filter_text(text: &str) -> bool {
    let filters = match parse(text) {
        Ok(filters) => filters,
        Err(fault) => {
            refused_within(text, fault.position, &fault.message);
            return false;
        }
    };
    assert!(check(&filters).is_empty(), "{text:?}");
    assert_eq!(parse(&print(&filters)), Ok(filters), "{text:?}");
    if let Some(more) = by_example(text, "type", TYPE) {
        assert!(parse(&more).is_ok(), "{text:?} and then {more:?}");
    }
    true
}

fn refused_within(text: &str, position: usize, message: &str) {
    assert!(position <= text.chars().count(), "{text:?} at {position}");
    assert!(!message.is_empty(), "{text:?}");
}
