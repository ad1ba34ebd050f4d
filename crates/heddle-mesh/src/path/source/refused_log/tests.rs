//! What is remembered of a refusal, for how many, and whose.

use std::net::IpAddr;

use heddle_api::refusals;

use super::*;

fn parts<'a>(headers: &'a HeaderMap) -> RefusedParts<'a> {
    RefusedParts {
        at: Timestamp::UNIX_EPOCH,
        door: "channel/kyma-integration/shop",
        who: "application/depot",
        headers,
        peer: None,
    }
}

fn binary() -> HeaderMap {
    let names = [
        ("ce-id", "order-17"),
        ("ce-source", "/shop"),
        ("ce-type", "order.created"),
        ("content-length", "12"),
    ];
    let header = |(name, value): (&'static str, &'static str)| {
        (
            http::HeaderName::from_static(name),
            http::HeaderValue::from_static(value),
        )
    };
    names.map(header).into_iter().collect()
}

#[test]
fn every_code_is_remembered_with_the_event_it_was_said_of() {
    for known in refusals::ALL {
        let status = StatusCode::from_u16(known.status).unwrap();
        let refusal = PublishError::new(status, known.code, known.meaning);
        let event = remembered(parts(&binary()), refusal.told(), refusal.seen());
        assert_eq!((event.status, &*event.code), (known.status, known.code));
        assert_eq!(event.message, cut(known.meaning));
        assert_eq!(event.id.as_deref(), Some("order-17"));
        assert_eq!(event.source.as_deref(), Some("/shop"));
        assert_eq!(event.type_.as_deref(), Some("order.created"));
        assert_eq!(event.bytes, Some(12));
        assert_eq!(event.who, "application/depot");
        assert_eq!(event.door, "channel/kyma-integration/shop");
    }
}

#[test]
fn a_body_tells_the_names_and_never_the_data() {
    let one = br#"{"specversion":"1.0","id":"a","source":"/s","type":"t","data":{"secret":1}}"#;
    let batch = [&b"["[..], one, b",", br#"{"id":"b","type":7}"#, b"]"].concat();
    let refusal = |mode, index, body: &[u8]| {
        let mut refusal = PublishError::new(StatusCode::BAD_REQUEST, refusals::JSON_INVALID, "x");
        refusal = refusal.at(index).seen_in(mode, body);
        remembered(parts(&HeaderMap::new()), refusal.told(), refusal.seen())
    };
    let found = refusal(Mode::Structured, None, one);
    assert_eq!(
        (found.id.as_deref(), found.source.as_deref()),
        (Some("a"), Some("/s"))
    );
    assert_eq!(found.bytes, Some(one.len() as u64));
    assert!(!format!("{found:?}").contains("secret"));
    let found = refusal(Mode::Batched, Some(1), &batch);
    assert_eq!((found.id.as_deref(), found.type_), (Some("b"), None));
    assert_eq!(
        refusal(Mode::Batched, None, &batch).id.as_deref(),
        Some("a")
    );
    // The body of binary mode is data, and what cannot be read has no names.
    assert_eq!(refusal(Mode::Binary, None, one).id, None);
    assert_eq!(refusal(Mode::Structured, None, b"{\"id\":").id, None);
    let long = format!(
        "{{\"id\":\"a\",\"data\":\"{}\"}}",
        "x".repeat(NAMED_BYTES_MAX)
    );
    assert_eq!(refusal(Mode::Structured, None, long.as_bytes()).id, None);
}

#[test]
fn long_texts_are_cut() {
    let long = "x".repeat(TEXT_CHARS_MAX * 2);
    let refusal = PublishError::new(StatusCode::BAD_REQUEST, refusals::LOOP, long.as_str());
    let found = remembered(parts(&HeaderMap::new()), refusal.told(), refusal.seen());
    assert_eq!(found.message.chars().count(), TEXT_CHARS_MAX);
    assert_eq!(
        cut("ü".repeat(TEXT_CHARS_MAX + 1).as_str()).chars().count(),
        TEXT_CHARS_MAX
    );
}

fn at(last: u8) -> Holder {
    Holder::at(IpAddr::from([10, 0, 0, last]))
}

fn called(id: &str) -> RefusedEvent {
    RefusedEvent {
        id: Some(id.to_owned()),
        ..RefusedEvent::default()
    }
}

#[test]
fn a_flood_of_one_forgets_its_own_refusals_and_no_others() {
    let log = RefusedLog::default();
    log.add(at(1), called("rare"));
    for number in 0..10 * REFUSED_MAX {
        log.add(at(2), called(&number.to_string()));
    }
    let all = log.newest(usize::MAX, |_| true);
    assert_eq!(all.len(), REFUSED_OF_ONE_MAX + 1);
    assert_eq!(all.last(), Some(&called("rare")));
    assert_eq!(all[0], called(&(10 * REFUSED_MAX - 1).to_string()));
    assert_eq!(log.total(), 10 * REFUSED_MAX as u64 + 1);
}

#[test]
fn of_very_many_publishers_the_oldest_refusals_go() {
    let log = RefusedLog::default();
    let publishers: u8 = 100;
    for number in 0..2 * REFUSED_MAX {
        let publisher = u8::try_from(number % usize::from(publishers)).unwrap();
        log.add(at(publisher), called(&number.to_string()));
    }
    let all = log.newest(usize::MAX, |_| true);
    assert_eq!(all.len(), REFUSED_MAX);
    let oldest = called(&REFUSED_MAX.to_string());
    assert_eq!(all.last(), Some(&oldest));
    // Of whoever has none left nothing is kept.
    let log = RefusedLog::default();
    log.add(at(200), called("first"));
    for number in 0..REFUSED_MAX {
        let holder = Holder::Identity(number.to_string().into());
        log.add(holder, called("other"));
    }
    assert!(log.newest(1, |event| *event == called("first")).is_empty());
    let kept = log.kept.lock();
    assert_eq!(kept.by_holder.len(), REFUSED_MAX);
    assert_eq!(kept.by_number.len(), REFUSED_MAX);
}

#[test]
fn whoever_proved_who_they_are_has_a_share_wherever_they_come_from() {
    let application = Who::Application("depot".into());
    let (holder, who) = publisher(&application, None);
    assert_eq!(holder, Holder::Identity("application/depot".into()));
    assert_eq!(who, "application/depot");
    assert_eq!(publisher(&Who::Anonymous, None).1, "anonymous");
}
