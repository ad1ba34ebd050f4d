//! What the language says, and that nothing written in it makes it stumble.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::text::FoldedText;
use super::{EventQuery, IndexedWord, QUERY_BYTES_MAX, Sought};
use crate::attributes::{Attributes, Value};
use crate::ledger::EventState;

struct Sample {
    attributes: BTreeMap<&'static str, &'static str>,
    data: Option<&'static str>,
}

fn sample(data: &'static str) -> Sample {
    Sample {
        attributes: [
            ("id", "ord-1"),
            ("type", "order.created"),
            ("source", "/shop"),
            ("subject", "a b"),
            ("tenant", "blue"),
            ("size", "9007199254740993"),
        ]
        .into(),
        data: Some(data),
    }
}

impl Attributes for Sample {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        self.text(name).map(Value::Text)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).copied()
    }
}

impl Sought for Sample {
    fn offset(&self) -> u64 {
        4711
    }
    fn accepted_at(&self) -> Timestamp {
        "2026-05-01T12:00:00Z".parse().unwrap()
    }
    fn entry(&self) -> &'static str {
        "broker/team-a/default"
    }
    fn request_id(&self) -> Option<&str> {
        Some("req-9")
    }
    fn trace_id(&self) -> Option<&str> {
        Some("4bf92f3577b34da6a3ce929d0e0e4736")
    }
    fn cause(&self) -> Option<u64> {
        Some(4001)
    }
    fn data(&self) -> Option<&[u8]> {
        self.data.map(str::as_bytes)
    }
    fn any_attribute(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        self.attributes.values().any(|text| is_it(text))
    }
}

fn now() -> Timestamp {
    "2026-05-01T12:30:00Z".parse().unwrap()
}

fn read(text: &str) -> EventQuery {
    EventQuery::parse(text, now()).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

const DATA: &str = r#"{"total": 120, "big": 9007199254740993, "customer": {"name": "Ada L", "tags": ["x", "y"]},
    "items": [{"sku": "a-1", "n": 2}, {"sku": "b-2", "n": 5}], "paid": true, "note": null, "price": 1.5}"#;

#[test]
fn terms_hold_of_what_they_say() {
    let event = sample(DATA);
    for query in [
        "",
        "id:ord-1",
        "type:order.*",
        "type:*created",
        "type:or*er*ed",
        "source:/shop",
        "cause:4001",
        "-cause:4711",
        "source=/shop",
        "subject:\"a b\"",
        "-subject:ab",
        "subject!=ab",
        "entry:broker/team-a/*",
        "place:4711",
        "request:req-9",
        "trace:4bf92f*",
        "ext.tenant:blue",
        "ext.size>9007199254740992",
        "since:1h",
        "since:2026-05-01 until:2026-05-02",
        "until:2026-05-01T12:00:01Z",
        "data.total>100",
        "data.total>=120 data.total<=120",
        "data.big:9007199254740993",
        "data.customer.name:\"Ada L\"",
        "data.customer.name:Ada*",
        "data.customer.tags:y",
        "data.items.sku:b-2",
        "data.items.1.sku:b-2",
        "data.items.n>4",
        "data.paid:true",
        "data.note:null",
        "data.price>1.4",
        "data.price!=2",
        "data.customer:*",
        "-data.missing:*",
        "text:\"ada l\"",
        "text:ORDER.",
        "cesql:\"type LIKE 'order.%'\"",
        "ord-1",
        "4711",
        "req-9",
        "ADA",
        "\"Ada L\"",
        "-nowhere",
    ] {
        assert!(read(query).matches(&event), "{query}");
    }
    for query in [
        "id:ord",
        "-id:ord-1",
        "type:\"order.*\"",
        "type:order.*ed.x",
        "ext.tenant:green",
        "ext.none:*",
        "ext.size>9007199254740993",
        "since:1m",
        "until:1h",
        "data.total>120",
        "data.total:\"120\"",
        "data.big:9007199254740992",
        "data.items.0.sku:b-2",
        "data.items.sku:c",
        "data.customer:Ada",
        "data.total.deeper:*",
        "data.customer.name>5",
        "text:adal",
        "nowhere",
        "-ADA",
        "place:4712",
    ] {
        assert!(!read(query).matches(&event), "{query}");
    }
    assert!(!read("data.total:*").matches(&sample("{\"total\": 1} and more")));
    assert!(!read("data.total:*").matches(&sample("total")));
}

#[test]
fn consumer_and_state_speak_of_the_same_consumer() {
    let query = read("consumer:trigger/team-a/* state:retrying,dead");
    assert!(query.asks_consumers() && query.may_be_consumer("trigger/team-a/x"));
    assert!(query.matches_consumer("trigger/team-a/x", EventState::DeadLettered));
    assert!(!query.matches_consumer("trigger/team-a/x", EventState::Delivered));
    assert!(!query.matches_consumer("trigger/team-b/x", EventState::DeadLettered));
    let reached = read("consumer:trigger/team-a/x");
    assert!(reached.matches_consumer("trigger/team-a/x", EventState::Pending));
    assert!(!reached.matches_consumer("trigger/team-a/x", EventState::Filtered));
    assert!(read("state:filtered").matches_consumer("t", EventState::Filtered));
}

#[test]
fn a_state_is_named_as_bodies_have_it() {
    for state in EventState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        assert!(read(&format!("state:{}", state.name())).matches_consumer("t", state));
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_and_a_remedy() {
    for (query, position, remedy) in [
        ("tpye:x", 0, "quotes"),
        ("a tpye:x", 2, "type"),
        ("ü type:", 7, "type:order.*"),
        ("type:\"x", 5, "closing quote"),
        ("state:retrying,deed", 15, "deadLettered"),
        ("since:tomorrow", 6, "15m"),
        ("-since:1h", 1, "until:"),
        ("place:x", 6, "number"),
        ("ext.A:x", 4, "lower-case"),
        ("data.a..b:x", 5, "dot"),
        ("type>5", 4, "type:"),
        ("-", 0, "word"),
        ("cesql:\"type LIKE\"", 16, ""),
        ("text:\"a\"b", 8, "space"),
        (r#"text:"\a""#, 6, r"\\"),
    ] {
        let fault = EventQuery::parse(query, now()).expect_err(query);
        assert_eq!(fault.position, position, "{query}: {fault}");
        assert!(fault.message.contains(remedy), "{query}: {fault}");
    }
    let long = "x ".repeat(9000);
    assert!(EventQuery::parse(&long, now()).is_err());
    assert!(EventQuery::parse(&"x ".repeat(65), now()).is_err());
}

#[test]
fn what_every_match_must_have_is_known_beforehand() {
    let query = read("id:1 type:a* source:/s -subject:x request:r \"x\"");
    let words = query.required_words();
    let expected = [
        (IndexedWord::Id, "1"),
        (IndexedWord::Source, "/s"),
        (IndexedWord::Request, "r"),
    ];
    assert_eq!(words, expected);
    assert_eq!(read("urn:a:b").bare_word(), Some("urn:a:b"));
    assert_eq!(read("http://x/y").bare_word(), Some("http://x/y"));
    assert_eq!(read("a b").bare_word(), None);
    assert!(read("data.a:1").asks_for_data() && !read("a").asks_for_data());
}

/// Every text of up to five of these pieces is read or refused at a character that it has, and what was read decides.
#[test]
fn nothing_that_can_be_written_makes_it_stumble() {
    let pieces = [
        "type", ":", "=", "!", "<", ">", "\"", "\\", "-", "*", " ", "data.", "ext.", "a", "ü",
        "since", "cesql", "state", ",", ".", "5h", "'",
    ];
    let event = sample(DATA);
    let mut pick = 1_u64;
    for _ in 0..60_000 {
        let mut text = String::new();
        for _ in 0..5 {
            pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let index = usize::try_from(pick >> 33).unwrap() % pieces.len();
            text.push_str(pieces[index]);
        }
        match EventQuery::parse(&text, now()) {
            Ok(query) => drop(query.matches(&event)),
            Err(fault) => assert!(fault.position <= text.chars().count(), "{text}"),
        }
    }
}

/// The same as trying each place, and a text that almost fits everywhere takes no longer than any other: trying each place
/// would be 10^12 comparisons here.
#[test]
fn a_text_is_found_wherever_it_is_in_no_more_time_than_it_takes_to_read() {
    let mut pick = 1_u64;
    let mut text = |letters: &[&str], length: usize| -> String {
        let mut letter = || {
            pick = pick.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            letters[usize::try_from(pick >> 33).unwrap() % letters.len()]
        };
        (0..length).map(|_| letter()).collect()
    };
    for round in 0..20_000 {
        let whole = text(&["a", "A", "b", "\u{e9}"], round % 20);
        let wanted = text(&["a", "b", "B", "\u{e9}"], round % 5);
        let expected = whole
            .to_ascii_lowercase()
            .contains(&wanted.to_ascii_lowercase());
        let found = FoldedText::new(&wanted).is_within(whole.as_bytes());
        assert_eq!(found, expected, "{wanted:?} in {whole:?}");
    }
    let wanted = FoldedText::new(&format!("{}b", "a".repeat(QUERY_BYTES_MAX - 8)));
    let whole = vec![b'A'; 64 << 20];
    assert!(!wanted.is_within(&whole));
}
