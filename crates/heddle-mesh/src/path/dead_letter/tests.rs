//! There is room for so many dead letters, and a long text takes no more than a short one.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::picker::Picker;
use super::{ALL_MAX, CONSUMER_MAX, DeadLetters, SHARE_MIN};
use crate::journal::positions::{DeadLetterEntry, Sink};
use crate::journal::{Attempted, Dead};
use heddle_api::dead_letters::FailureClass;
use heddle_api::ledger::DeadLetterSelection;

fn rest(consumer: u32) -> DeadLetterEntry {
    DeadLetterEntry {
        consumer,
        offset: 1,
        journal: 1,
        at: Timestamp::UNIX_EPOCH,
        accepted_at: Timestamp::UNIX_EPOCH,
        reason: String::new(),
        status: 500,
        attempts: 1,
        redrives: 0,
        sink: Sink::None,
        left: false,
        entry: String::new(),
        source: String::new(),
        id: String::new(),
        type_: String::new(),
        reply: None,
        bytes: 0,
        class: FailureClass::Answer,
        cause: String::new(),
    }
}

/// So many of each consumer.
fn letters(counts: &[(u32, u64)]) -> DeadLetters {
    let each = counts.iter();
    let rests = each.flat_map(|(consumer, count)| (0..*count).map(|_| rest(*consumer)));
    let rests: BTreeMap<u64, DeadLetterEntry> = (1..).zip(rests).collect();
    let last = rests.len() as u64;
    DeadLetters::restored(rests, last)
}

#[test]
fn a_consumer_with_too_many_waits_until_one_has_left() {
    let mut letters = letters(&[(1, CONSUMER_MAX), (2, CONSUMER_MAX - 1)]);
    assert!(letters.full(1).is_some_and(|why| why.contains("redrive")));
    assert_eq!((letters.full(2), letters.full(3)), (None, None));
    letters.leave(1);
    assert_eq!(letters.full(1), None, "one on its way makes room");
    letters.forget(1);
    letters.forget(CONSUMER_MAX + 1);
    assert_eq!(letters.counts[&1], CONSUMER_MAX - 1, "it had left already");
    assert_eq!(letters.counts[&2], CONSUMER_MAX - 2);
}

#[test]
fn when_there_are_too_many_in_all_only_those_with_many_wait() {
    let mut counts: Vec<(u32, u64)> = (1..=12).map(|id| (id, CONSUMER_MAX - 1)).collect();
    counts.extend([(13, SHARE_MIN), (14, SHARE_MIN - 1)]);
    assert!(counts.iter().map(|(_, count)| count).sum::<u64>() > ALL_MAX);
    let letters = letters(&counts);
    assert!(letters.full(1).is_some() && letters.full(13).is_some());
    assert_eq!(letters.full(14), None);
}

#[test]
fn what_whoever_publishes_can_make_long_is_kept_short_and_found_all_the_same() {
    let long = "i".repeat(32 << 10);
    let record = crate::journal::tests::payload(&long);
    let mut letters = DeadLetters::default();
    letters.rest(Dead {
        attempted: Attempted {
            consumer: 1,
            offset: 1,
            number: 1,
            at: Timestamp::UNIX_EPOCH,
            latency_us: 0,
            status: 500,
        },
        name: 1,
        redrives: 0,
        accepted_at: Timestamp::UNIX_EPOCH,
        reason: long.clone(),
        answer: Vec::new(),
        sink: false,
        given_up: false,
        record,
        reply: None,
    });
    let rest = letters.get(1).unwrap();
    for text in [&rest.reason, &rest.id] {
        assert!(text.len() < 200, "{}", text.len());
    }
    let wanted = |id: String| DeadLetterSelection {
        id: Some(id),
        ..DeadLetterSelection::default()
    };
    let picks = |id| Picker::new(&wanted(id), None).picks(1, rest, "trigger/ns/t");
    assert!(picks(long.clone()));
    assert!(!picks(format!("{long}x")));
}
