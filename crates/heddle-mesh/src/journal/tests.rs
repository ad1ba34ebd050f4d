//! Lines survive their bytes, and the state is what the lines say.

use std::time::Duration;

use jiff::Timestamp;

use super::positions::{Positions, Retry, Sink};
use super::*;
use crate::envelope::Envelope;
use crate::event::{Builder, Form};
use crate::path::delivery::retry_policy::CAP;
use heddle_api::attributes::Value;
use heddle_api::dead_letters::marks::MarkKind;
use heddle_api::dead_letters::{BulkAct, BulkState};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn attempted(offset: Offset, number: u32, status: u16) -> Attempted {
    Attempted {
        consumer: 1,
        offset,
        number,
        at: at(100),
        latency_us: 1500,
        status,
    }
}

pub(crate) fn payload(id: &str) -> bytes::Bytes {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [("type", "t"), ("source", "/s"), ("id", id)] {
        builder.push(name, Value::Text(value));
    }
    let envelope = Envelope {
        entry: "broker/ns/default".into(),
        hops_left: 9,
        cause: None,
        trace: None,
        request_id: None,
        event: builder.build(None),
    };
    [envelope.head(), envelope.event.bytes().to_vec()]
        .concat()
        .into()
}

fn dead(offset: Offset, name: u64) -> JournalRecord {
    JournalRecord::Dead(Box::new(Dead {
        attempted: attempted(offset, 3, 500),
        name,
        redrives: 0,
        accepted_at: at(1),
        reason: "the subscriber answered 500".to_owned(),
        answer: b"no".to_vec(),
        sink: true,
        given_up: false,
        record: payload("a"),
        reply: None,
    }))
}

/// A reply to an event that was delivered; without a name there was no room for it.
fn dead_reply(offset: Offset, name: u64, fault: ReplyFault) -> JournalRecord {
    JournalRecord::Dead(Box::new(Dead {
        attempted: attempted(offset, 1, 200),
        name,
        redrives: 0,
        accepted_at: at(1),
        reason: "the reply is no event".to_owned(),
        answer: b"{".to_vec(),
        sink: false,
        given_up: false,
        record: payload("a"),
        reply: Some(DeadReply {
            fault,
            content_type: "application/cloudevents+json".to_owned(),
        }),
    }))
}

fn discarded(offset: Offset, name: u64, reply: bool) -> JournalRecord {
    JournalRecord::Discarded {
        consumer: 1,
        offset,
        name,
        at: at(6),
        by: "ann".into(),
        reply,
    }
}

fn routed(from: Offset, backfill_to: Offset) -> JournalRecord {
    JournalRecord::Routed(Box::new(Routed {
        consumer: 1,
        key: "trigger/ns/t".to_owned(),
        uid: "u".to_owned(),
        generation: 2,
        from,
        backfill_to,
        fingerprint: 77,
        feeds: vec![(
            "broker/ns/default".to_owned(),
            vec!["subscription/ns/s".to_owned()],
        )],
        filters: "{}".to_owned(),
    }))
}

fn failed(offset: Offset, number: u32) -> JournalRecord {
    JournalRecord::Failed {
        attempted: attempted(offset, number, 503),
        error: "busy".into(),
        next_at: at(200),
        excused: false,
    }
}

fn excused(offset: Offset, number: u32) -> JournalRecord {
    JournalRecord::Failed {
        attempted: attempted(offset, number, 0),
        error: "no room".into(),
        next_at: at(200),
        excused: true,
    }
}

fn mark(scanned: Offset, matched: u64, floor: Offset) -> JournalRecord {
    JournalRecord::Checkpoint(Checkpoint {
        scanned,
        consumers: vec![ConsumerCheckpoint {
            consumer: 1,
            matched,
            floor,
            counted_to: 0,
        }],
    })
}

fn redriven(offset: Offset, name: u64) -> JournalRecord {
    JournalRecord::Redriven {
        consumer: 1,
        offset,
        name,
        at: at(300),
        by: "ann".into(),
    }
}

/// One of every kind.
fn every_line() -> Vec<JournalRecord> {
    vec![
        routed(5, 9),
        failed(6, 1),
        JournalRecord::Delivered(attempted(7, 1, 202)),
        dead(8, 1),
        JournalRecord::Expired {
            consumer: 1,
            offset: 9,
            at: at(5),
            reason: "late".into(),
        },
        redriven(8, 1),
        discarded(8, 1, false),
        dead_reply(7, 2, ReplyFault::Refused),
        dead_reply(7, Dead::UNKEPT, ReplyFault::TooLarge),
        discarded(7, 2, true),
        JournalRecord::Removed {
            consumer: 1,
            offset: 10,
            at: at(7),
            by: "the deprovisioning of i-1".into(),
        },
        JournalRecord::Sunk {
            consumer: 1,
            offset: 8,
            name: 1,
            at: at(7),
            status: 0,
            error: "refused".into(),
        },
        JournalRecord::Held {
            consumer: 1,
            reason: "gone".into(),
        },
        JournalRecord::Unrouted {
            consumer: 1,
            at: 12,
            when: at(8),
        },
        JournalRecord::Forgotten {
            consumer: 1,
            when: at(9),
        },
        mark(12, 4, 9),
        JournalRecord::Bulk(Box::new(bulk::BulkEntry {
            id: 3,
            act: BulkAct::Redrive,
            state: BulkState::Stopped,
            begun_at: at(1),
            by: "ann".to_owned(),
            at: at(2),
            stopped_by: "bob".to_owned(),
            total: 9,
            taken: 4,
            left: 1,
            up_to: 12,
            selection: "{}".to_owned(),
            place: 0,
        })),
        JournalRecord::Mark(Box::new(mark::GroupMarkEntry {
            key: "cause:trigger/n/t:ff".to_owned(),
            kind: Some(MarkKind::Known),
            at: at(3),
            by: "ann".to_owned(),
            note: "seen to".to_owned(),
            until: at(4),
            up_to: 12,
            more: 1,
        })),
    ]
}

#[test]
fn every_line_survives_its_bytes() {
    for line in every_line() {
        let records = encode(std::slice::from_ref(&line));
        assert_eq!(decode(&records[0].payload), Ok(vec![line]));
    }
}

#[test]
fn lines_about_one_event_share_a_record_and_the_mark_comes_last() {
    let lines = vec![
        mark(9000, 1, 1),
        failed(5000, 1),
        routed(1, 1),
        failed(6, 1),
        failed(7, 1),
    ];
    let records = encode(&lines);
    let keys: Vec<u64> = records.iter().map(|record| record.key).collect();
    assert_eq!(keys, [bucket_of(6), bucket_of(5000), 0]);
    assert_eq!(
        decode(&records[2].payload),
        Ok(vec![mark(9000, 1, 1), routed(1, 1)])
    );
}

#[test]
fn no_cut_off_record_is_read_as_something_else() {
    let whole = encode(&every_line()).remove(0).payload;
    let lines = decode(&whole).unwrap().len();
    for length in 1..whole.len() {
        if let Ok(found) = decode(&whole[..length]) {
            assert!(found.len() < lines, "{length} bytes");
        }
    }
}

fn fold(lines: &[JournalRecord]) -> Positions {
    let mut positions = Positions::default();
    for (index, line) in lines.iter().enumerate() {
        positions.apply(index as Offset + 1, line);
    }
    positions
}

#[test]
fn an_event_ends_in_one_way_and_the_tally_says_so() {
    let positions = fold(&[
        routed(1, 1),
        failed(2, 1),
        mark(10, 4, 3),
        JournalRecord::Delivered(attempted(2, 2, 200)),
        JournalRecord::Delivered(attempted(4, 1, 200)),
        dead(5, 1),
    ]);
    let position = &positions.consumers[&1];
    assert_eq!(
        (
            position.tally.delivered,
            position.tally.dead,
            position.tally.pending()
        ),
        (2, 1, 1)
    );
    assert!(position.retrying.is_empty());
    assert_eq!(
        position.ended.iter().copied().collect::<Vec<_>>(),
        [4, 5],
        "what ended above the floor"
    );
    assert_eq!(positions.dead[&1].id, "a");
    assert_eq!(positions.dead[&1].sink, Sink::Waiting);
}

#[test]
fn a_reply_rests_and_leaves_the_account_alone() {
    let mut lines = vec![
        routed(1, 1),
        mark(10, 2, 3),
        JournalRecord::Delivered(attempted(4, 1, 200)),
        dead_reply(4, 1, ReplyFault::NotAnEvent),
        JournalRecord::Delivered(attempted(5, 1, 200)),
        dead_reply(5, Dead::UNKEPT, ReplyFault::TooLarge),
    ];
    let expected = fold(&lines[..3]).consumers[&1].tally;
    let positions = fold(&lines);
    let tally = positions.consumers[&1].tally;
    assert_eq!((tally.delivered, tally.dead, tally.pending()), (2, 0, 0));
    assert_eq!(positions.dead.len(), 1, "one had room");
    assert_eq!(positions.dead[&1].reply, Some(ReplyFault::NotAnEvent));
    lines.push(discarded(4, 1, true));
    // A line whose dead letter was lost says no more than that.
    lines.push(discarded(4, 9, true));
    let positions = fold(&lines);
    let tally = positions.consumers[&1].tally;
    assert_eq!((tally.removed, tally.delivered), (expected.removed, 2));
    assert!(positions.dead.is_empty());
    assert_eq!((positions.strays, positions.dead_name_last), (0, 1));
}

#[test]
fn the_numbers_of_faults_stay_what_they_are_on_disk() {
    let codes: Vec<u8> = ReplyFault::ALL.iter().map(|fault| *fault as u8).collect();
    assert_eq!(codes, [1, 2, 3, 4, 5]);
    let line = dead_reply(7, 2, ReplyFault::Undecodable);
    let payload = encode(std::slice::from_ref(&line)).remove(0).payload;
    let text = "application/cloudevents+json";
    let end = [&[3][..], &28_u32.to_le_bytes(), text.as_bytes()].concat();
    assert!(payload.ends_with(&end), "{payload:?}");
}

#[test]
fn a_snapshot_of_the_fifth_layout_knows_no_replies() {
    let mut snapshot = Snapshot {
        journal_next: 13,
        positions: fold(&[
            routed(1, 1),
            dead(5, 1),
            dead_reply(6, 2, ReplyFault::Refused),
        ]),
    };
    snapshot.positions.log_lost_below = 7;
    assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot.clone()));
    snapshot.positions.log_lost_below = 0;
    snapshot.positions.dead.remove(&2);
    let mut bytes = snapshot.encode();
    without_groups(&mut bytes, 1);
    forget_group(snapshot.positions.dead.get_mut(&1).unwrap());
    bytes.truncate(bytes.len() - size_of::<u64>());
    // Records, an offset and a count are behind the last dead letter.
    let reply = bytes.len() - 3 * size_of::<u64>() - 1;
    assert_eq!(bytes.remove(reply), 0);
    bytes[8..12].copy_from_slice(&5_u32.to_le_bytes());
    let sum = crate::log::checksum(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(Snapshot::decode(&bytes), Ok(snapshot));
}

#[test]
fn a_redriven_dead_letter_keeps_its_record_until_it_has_ended() {
    let mut lines = vec![routed(1, 1), mark(10, 1, 10), dead(5, 1), redriven(5, 1)];
    let positions = fold(&lines);
    assert!(positions.dead[&1].left);
    assert_eq!(positions.consumers[&1].tally.pending(), 1);
    assert_eq!(positions.consumers[&1].retrying[&5].redriven, Some(1));
    lines.push(failed(5, 1));
    assert_eq!(
        fold(&lines).consumers[&1].retrying[&5].redriven,
        Some(1),
        "also over a failed attempt"
    );
    lines.push(JournalRecord::Delivered(attempted(5, 2, 200)));
    let positions = fold(&lines);
    assert!(positions.dead.is_empty());
    assert_eq!(positions.consumers[&1].tally.pending(), 0);
}

#[test]
fn a_forgotten_place_counts_its_backlog_as_removed() {
    let lines = [
        routed(1, 1),
        failed(3, 1),
        mark(10, 4, 3),
        JournalRecord::Unrouted {
            consumer: 1,
            at: 10,
            when: at(1),
        },
    ];
    let mut positions = fold(&lines);
    positions.apply(
        9,
        &JournalRecord::Forgotten {
            consumer: 1,
            when: at(2),
        },
    );
    assert!(positions.consumers.is_empty());
    let mut positions = fold(&[&lines[..], &[dead(3, 1)]].concat());
    positions.apply(
        9,
        &JournalRecord::Forgotten {
            consumer: 1,
            when: at(2),
        },
    );
    let position = &positions.consumers[&1];
    assert_eq!(
        (
            position.tally.removed,
            position.tally.pending(),
            position.tally.dead
        ),
        (3, 0, 1),
        "its dead letters stay"
    );
}

#[test]
fn a_revision_decides_from_its_offset_until_the_consumer_left() {
    let left = JournalRecord::Unrouted {
        consumer: 1,
        at: 9,
        when: at(1),
    };
    let positions = fold(&[routed(5, 5), left.clone()]);
    let position = &positions.consumers[&1];
    assert!(position.revision_at(4).is_none());
    assert!(position.revision_at(8).is_some());
    assert!(position.revision_at(9).is_none());
    let positions = fold(&[routed(5, 5), left, routed(9, 12)]);
    let position = &positions.consumers[&1];
    assert_eq!(position.counted_to, Some(9), "it reads the gap itself");
    assert!(position.revision_at(8).is_some() && position.revision_at(9).is_some());
}

#[test]
fn a_snapshot_is_the_state_and_damage_to_it_is_noticed() {
    let snapshot = Snapshot {
        journal_next: 13,
        positions: fold(&[
            routed(1, 1),
            failed(2, 1),
            mark(10, 4, 3),
            dead(5, 1),
            JournalRecord::Held {
                consumer: 1,
                reason: "gone".into(),
            },
        ]),
    };
    let bytes = snapshot.encode();
    assert_eq!(Snapshot::decode(&bytes), Ok(snapshot));
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        assert!(Snapshot::decode(&damaged).is_err(), "byte {position}");
    }
}

/// Takes out what the seventh layout added, with so many dead letters whose subscriber said `no`: of each a number, a class and
/// a text; and what is done with many, of which there is a number and a count. The eighth added a count of marks, the ninth two numbers of the one consumer.
fn without_groups(bytes: &mut Vec<u8>, dead: u64) {
    let each = size_of::<u32>() + 1 + size_of::<u32>() + "no".len();
    let each = each * usize::try_from(dead).unwrap();
    bytes.truncate(bytes.len() - each - 5 * size_of::<u64>());
}

/// What older layouts do not say of a dead letter is made up from its reason.
fn forget_group(rest: &mut positions::DeadLetterEntry) {
    (rest.bytes, rest.cause) = (0, "the subscriber answered #".to_owned());
}

/// Takes out what the fourth layout added for one consumer with so many dead letters.
fn without_losses(bytes: &mut Vec<u8>, dead: u64) {
    without_groups(bytes, dead);
    // Records, an offset and a count, and an offset of the sixth layout; none of which there are.
    bytes.truncate(bytes.len() - 4 * size_of::<u64>());
    // Its dead letters; none expired, removed or lost; no offset, no text; and the dead letters of all.
    let tail = [
        &dead.to_le_bytes()[..],
        &[0; 4 * 8 + 4],
        &dead.to_le_bytes(),
    ]
    .concat();
    let found = bytes.windows(tail.len()).rposition(|part| part == tail);
    let start = found.expect("the end of a position") + size_of::<u64>();
    bytes.drain(start..start + 2 * size_of::<u64>());
}

#[test]
fn a_snapshot_of_the_first_layout_is_read_without_what_it_did_not_have() {
    let mut snapshot = Snapshot {
        journal_next: 13,
        positions: fold(&[routed(1, 1), dead(5, 1)]),
    };
    let entry = "broker/ns/default";
    assert_eq!(snapshot.positions.dead[&1].entry, entry);
    let mut bytes = snapshot.encode();
    without_losses(&mut bytes, 1);
    // The entry of the last dead letter, and that it is no reply, are the last things there are.
    bytes.truncate(bytes.len() - entry.len() - size_of::<u32>() - 1);
    bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
    let sum = crate::log::checksum(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let rest = snapshot.positions.dead.get_mut(&1).unwrap();
    rest.entry.clear();
    forget_group(rest);
    assert_eq!(Snapshot::decode(&bytes), Ok(snapshot));
    bytes[8..12].copy_from_slice(&0_u32.to_le_bytes());
    assert!(Snapshot::decode(&bytes).is_err());
}

#[test]
fn attempts_that_are_excused_are_counted_apart_also_by_snapshots() {
    let lines = [
        routed(1, 1),
        failed(2, 1),
        excused(2, 2),
        excused(2, 3),
        failed(2, 4),
    ];
    let snapshot = Snapshot {
        journal_next: 13,
        positions: fold(&lines),
    };
    let retry = snapshot.positions.consumers[&1].retrying[&2];
    assert_eq!((retry.attempts, retry.excused), (4, 2));
    assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot));
}

#[test]
fn a_snapshot_of_the_second_layout_excuses_nothing() {
    let mut snapshot = Snapshot {
        journal_next: 13,
        positions: fold(&[routed(1, 1), excused(2, 1)]),
    };
    let mut bytes = snapshot.encode();
    without_losses(&mut bytes, 0);
    // Behind it are a time, and an offset, five numbers, a text and a count, all of them zero.
    let end = bytes.len() - 8 - 5 * 8 - 4 - 8 - 8;
    assert_eq!(bytes[end - 4..end], 1_u32.to_le_bytes());
    bytes.drain(end - 4..end + 8);
    bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let sum = crate::log::checksum(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    let position = snapshot.positions.consumers.get_mut(&1).unwrap();
    let retry = position.retrying.get_mut(&2).unwrap();
    retry.excused = 0;
    // How long it was to wait is not known either: no longer than usual.
    retry.tried_at = retry.next_at - CAP;
    assert_eq!(Snapshot::decode(&bytes), Ok(snapshot));
}

#[test]
fn a_retry_waits_no_longer_than_was_asked_for_whatever_the_clock_says() {
    let retry = Retry {
        attempts: 1,
        excused: 0,
        tried_at: at(100),
        next_at: at(130),
        redriven: None,
        resent: false,
    };
    let waits = [(100, 30), (120, 10), (130, 0), (1000, 0), (-86_400, 30)];
    for (now, seconds) in waits {
        assert_eq!(
            retry.wait(at(now)),
            Duration::from_secs(seconds),
            "at {now}"
        );
    }
}

#[test]
fn lines_about_nobody_are_counted() {
    assert_eq!(fold(&[failed(1, 1), redriven(1, 9)]).strays, 2);
}
