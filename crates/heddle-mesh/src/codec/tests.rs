//! The bytes of what the mesh keeps on disk stay what they are.
//!
//! They were made by another program, from the drawings in the headers and the order of the fields. What is pinned is read
//! back too. Snapshots are in `snapshots`.

mod snapshots;

use bytes::Bytes;
use heddle_api::attributes::Value;
use heddle_api::dead_letters::marks::MarkKind;
use heddle_api::dead_letters::{BulkAct, BulkState};
use jiff::Timestamp;

use crate::codec::Unreadable;
use crate::envelope::{Cause, Envelope, TraceContext};
use crate::event::{Builder, Event, Form};
use crate::journal::bulk::BulkEntry;
use crate::journal::mark::GroupMarkEntry;
use crate::journal::{
    self, Attempted, Checkpoint, ConsumerCheckpoint, Dead, DeadReply, JournalRecord, ReplyFault,
    Routed,
};

/// Compares bytes with those that are in the data directories of users.
#[track_caller]
fn pinned(what: &str, written: &[u8], expected: &str) {
    let written = hex(written);
    assert_eq!(
        written, expected,
        "{what} is written in other bytes than those that data directories hold. If that is meant: give the new form a \
        number of its own (a layout, or a kind of line), go on reading the old one, pin both here, and say in docs/upgrade.md \
        what becomes of a directory when somebody goes back to an older version"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn builder(form: Form) -> Builder {
    let mut builder = Builder::new(form);
    for (name, value) in [("type", "t"), ("source", "/s"), ("id", "1")] {
        builder.push(name, Value::Text(value));
    }
    builder
}

#[test]
fn an_event_stays_what_it_is() {
    let mut all = builder(Form::Binary);
    all.push("count", Value::Integer(-7));
    all.push("flag", Value::Boolean(true));
    let mut opaque = builder(Form::Structured);
    opaque.opaque();
    let events = [
        (
            all.build(Some(b"d!")),
            "010105003b00000000040100747970657400060200736f757263652f730002010069643101050200636f756e\
                742d3702040400666c6167747275656421",
        ),
        (
            opaque.build(None),
            "010603002400000000040100747970657400060200736f757263652f7300020100696431",
        ),
    ];
    for (event, bytes) in events {
        pinned("an event", event.bytes(), bytes);
        assert_eq!(Event::decode(event.bytes().clone()), Ok(event));
    }
}

/// The key by which the index of the log finds an event, and the group of a record of the journal.
#[test]
fn what_records_are_found_by_stays_what_it_is() {
    let key = crate::event::key_of("/s", "1");
    pinned(
        "the key of an event",
        &key.to_be_bytes(),
        "9ae6159c5bbbe0ac",
    );
    let bucket = journal::bucket_of(4096);
    pinned(
        "the key of a line",
        &bucket.to_be_bytes(),
        "0000000000000002",
    );
}

fn plain_envelope() -> Envelope {
    Envelope {
        entry: "broker/n/b".into(),
        hops_left: 255,
        cause: None,
        trace: None,
        request_id: None,
        event: builder(Form::Binary).build(None),
    }
}

#[test]
fn an_envelope_stays_what_it_is() {
    let plain = plain_envelope();
    let all = Envelope {
        entry: "channel/n/c".into(),
        hops_left: 9,
        cause: Some(Cause {
            offset: 7,
            consumer: "trigger/n/t".into(),
        }),
        trace: Some(TraceContext {
            parent: "00-p-01".into(),
            state: "k=v".into(),
        }),
        request_id: Some("r-1".into()),
        ..plain.clone()
    };
    let envelopes = [
        (plain, "01ff000a00000062726f6b65722f6e2f62"),
        (
            all,
            "0109070b0000006368616e6e656c2f6e2f6307000000000000000b000000747269676765722f6e2f74070000\
                0030302d702d3031030000006b3d7603000000722d31",
        ),
    ];
    for (envelope, bytes) in envelopes {
        let head = envelope.head();
        pinned("an envelope", &head, bytes);
        let record = Bytes::from([&head, &envelope.event.bytes()[..]].concat());
        assert_eq!(Envelope::decode(&record), Ok(envelope));
    }
}

const ATTEMPTED: Attempted = Attempted {
    consumer: 1,
    offset: 7,
    number: 2,
    at: Timestamp::constant(100, 0),
    latency_us: 1500,
    status: 503,
};

fn failed(excused: bool) -> JournalRecord {
    JournalRecord::Failed {
        attempted: ATTEMPTED,
        error: "busy".into(),
        next_at: at(200),
        excused,
    }
}

fn dead(sink: bool, given_up: bool, reply: Option<DeadReply>) -> JournalRecord {
    JournalRecord::Dead(Box::new(Dead {
        attempted: ATTEMPTED,
        name: 3,
        redrives: 2,
        accepted_at: at(99),
        reason: "why".to_owned(),
        answer: b"no".to_vec(),
        sink,
        given_up,
        record: Bytes::from_static(&[1, 2]),
        reply,
    }))
}

fn discarded(reply: bool) -> JournalRecord {
    JournalRecord::Discarded {
        consumer: 1,
        offset: 7,
        name: 3,
        at: at(6),
        by: "ann".into(),
        reply,
    }
}

fn routed() -> JournalRecord {
    JournalRecord::Routed(Box::new(Routed {
        consumer: 1,
        key: "trigger/n/t".to_owned(),
        uid: "u".to_owned(),
        generation: 2,
        from: 5,
        backfill_to: 9,
        fingerprint: 77,
        feeds: vec![("broker/n/b".to_owned(), vec!["subscription/n/s".to_owned()])],
        filters: "{}".to_owned(),
    }))
}

/// Every kind that is written: a new one does not compile until it is pinned.
fn kind(line: &JournalRecord) -> u8 {
    match line {
        JournalRecord::Routed(_) => 1,
        JournalRecord::Unrouted { .. } => 2,
        JournalRecord::Forgotten { .. } => 3,
        JournalRecord::Failed { excused: false, .. } => 4,
        JournalRecord::Delivered(_) => 5,
        JournalRecord::Dead(_) => 6,
        JournalRecord::Expired { .. } => 7,
        JournalRecord::Redriven { .. } => 8,
        JournalRecord::Discarded { reply: false, .. } => 9,
        JournalRecord::Sunk { .. } => 10,
        JournalRecord::Held { .. } => 11,
        JournalRecord::Checkpoint(_) => 12,
        JournalRecord::Removed { .. } => 13,
        JournalRecord::Failed { excused: true, .. } => 14,
        JournalRecord::Lost { .. } => 15,
        JournalRecord::Discarded { reply: true, .. } => 16,
        JournalRecord::Bulk(_) => 17,
        JournalRecord::Mark(_) => 18,
        JournalRecord::Resent { .. } => 19,
    }
}

fn lines() -> Vec<(JournalRecord, &'static str)> {
    let reply = DeadReply {
        fault: ReplyFault::TooLarge,
        content_type: "text/plain".to_owned(),
    };
    let (consumer, offset, name) = (1, 7, 3);
    vec![
        (
            routed(),
            "01010000000b000000747269676765722f6e2f74010000007502000000000000000500000000000000090000\
                00000000004d00000000000000020000007b7d010000000a00000062726f6b65722f6e2f6201000000100000\
                00737562736372697074696f6e2f6e2f73",
        ),
        (
            JournalRecord::Unrouted {
                consumer,
                at: 12,
                when: at(8),
            },
            "02010000000c0000000000000000127a0000000000",
        ),
        (
            JournalRecord::Forgotten {
                consumer,
                when: at(9),
            },
            "03010000004054890000000000",
        ),
        (
            failed(false),
            "040100000007000000000000000200000000e1f50500000000dc050000f701040000006275737900c2eb0b00\
                000000",
        ),
        (
            failed(true),
            "0e0100000007000000000000000200000000e1f50500000000dc050000f701040000006275737900c2eb0b00\
                000000",
        ),
        (
            JournalRecord::Delivered(ATTEMPTED),
            "050100000007000000000000000200000000e1f50500000000dc050000f701",
        ),
        (
            dead(true, false, None),
            "060100000007000000000000000200000000e1f50500000000dc050000f701030000000000000002000000c0\
                9ee6050000000003000000776879020000006e6f01020000000102",
        ),
        (
            dead(false, true, None),
            "060100000007000000000000000200000000e1f50500000000dc050000f701030000000000000002000000c0\
                9ee6050000000003000000776879020000006e6f02020000000102",
        ),
        (
            dead(false, false, Some(reply)),
            "060100000007000000000000000200000000e1f50500000000dc050000f701030000000000000002000000c0\
                9ee6050000000003000000776879020000006e6f04020000000102020a000000746578742f706c61696e",
        ),
        (
            JournalRecord::Expired {
                consumer,
                offset,
                at: at(5),
                reason: "late".into(),
            },
            "07010000000700000000000000404b4c0000000000040000006c617465",
        ),
        (
            JournalRecord::Redriven {
                consumer,
                offset,
                name,
                at: at(6),
                by: "ann".into(),
            },
            "08010000000700000000000000808d5b0000000000030000000000000003000000616e6e",
        ),
        (
            discarded(false),
            "09010000000700000000000000808d5b0000000000030000000000000003000000616e6e",
        ),
        (
            discarded(true),
            "10010000000700000000000000808d5b0000000000030000000000000003000000616e6e",
        ),
        (
            JournalRecord::Removed {
                consumer,
                offset,
                at: at(6),
                by: "ann".into(),
            },
            "0d010000000700000000000000808d5b000000000003000000616e6e",
        ),
        (
            JournalRecord::Sunk {
                consumer,
                offset,
                name,
                at: at(6),
                status: 502,
                error: "bad".into(),
            },
            "0a010000000700000000000000808d5b00000000000300000000000000f60103000000626164",
        ),
        (
            JournalRecord::Held {
                consumer,
                reason: "gone".into(),
            },
            "0b0100000004000000676f6e65",
        ),
        (
            JournalRecord::Lost {
                consumer,
                from: 5,
                to: 9,
                events: 2,
                at: at(6),
            },
            "0f010000000500000000000000808d5b000000000009000000000000000200000000000000",
        ),
        (
            JournalRecord::Checkpoint(Checkpoint {
                scanned: 12,
                consumers: vec![ConsumerCheckpoint {
                    consumer,
                    matched: 4,
                    floor: 9,
                    counted_to: 11,
                }],
            }),
            "0c0c000000000000000100000001000000040000000000000009000000000000000b00000000000000",
        ),
        (
            JournalRecord::Bulk(Box::new(bulk())),
            "1104000000000000000201404b4c000000000003000000616e6e808d5b000000000003000000626f620a0000\
             0000000000030000000000000001000000000000006300000000000000020000007b7d",
        ),
        (
            JournalRecord::Bulk(Box::new(resend(4))),
            "1104000000000000000301404b4c000000000003000000616e6e808d5b000000000003000000626f620a0000\
             0000000000030000000000000001000000000000006300000000000000020000007b7d2a00000000000000",
        ),
        (
            JournalRecord::Resent {
                consumer,
                offset,
                at: at(6),
                operation: 4,
                by: "ann".into(),
            },
            "13010000000700000000000000808d5b0000000000040000000000000003000000616e6e",
        ),
        (
            JournalRecord::Mark(Box::new(mark(Some(MarkKind::Known)))),
            "122200000063617573653a747269676765722f6e2f743a3030303030303030303030303030666601404b4c00\
                0000000003000000616e6e070000007365656e20746f808d5b00000000006300000000000000030000000000\
                0000",
        ),
        (
            JournalRecord::Mark(Box::new(mark(None))),
            "122200000063617573653a747269676765722f6e2f743a3030303030303030303030303030666600404b4c00\
                0000000003000000616e6e070000007365656e20746f808d5b00000000006300000000000000030000000000\
                0000",
        ),
    ]
}

fn mark(kind: Option<MarkKind>) -> GroupMarkEntry {
    GroupMarkEntry {
        key: "cause:trigger/n/t:00000000000000ff".to_owned(),
        kind,
        at: at(5),
        by: "ann".to_owned(),
        note: "seen to".to_owned(),
        until: at(6),
        up_to: 99,
        more: 3,
    }
}

fn bulk() -> BulkEntry {
    BulkEntry {
        id: 4,
        act: BulkAct::Discard,
        state: BulkState::Running,
        begun_at: at(5),
        by: "ann".to_owned(),
        at: at(6),
        stopped_by: "bob".to_owned(),
        total: 10,
        taken: 3,
        left: 1,
        up_to: 99,
        selection: "{}".to_owned(),
        place: 0,
    }
}

fn resend(id: u64) -> BulkEntry {
    BulkEntry {
        id,
        act: BulkAct::Resend,
        place: 42,
        ..bulk()
    }
}

#[test]
fn every_line_of_the_journal_stays_what_it_is() {
    let lines = lines();
    let mut kinds: Vec<u8> = lines.iter().map(|(line, _)| kind(line)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, (1..=19).collect::<Vec<u8>>(), "every kind is pinned");
    for (line, bytes) in lines {
        let record = journal::encode(std::slice::from_ref(&line)).remove(0);
        assert_eq!(record.payload[0], kind(&line));
        pinned(&format!("{line:?}"), &record.payload, bytes);
        assert_eq!(journal::decode(&record.payload), Ok(vec![line]));
    }
}

fn kind_last() -> u8 {
    let kinds = lines().into_iter().map(|(line, _)| kind(&line));
    kinds.max().unwrap()
}

/// A start refuses what a newer version wrote, and goes on over what is damaged: the two must not be mistaken for each other.
#[test]
fn numbers_of_a_newer_version_are_told_from_damage() {
    fn newer<T>(result: &Result<T, Unreadable>) -> bool {
        matches!(result, Err(Unreadable::Newer(_)))
    }
    let known = journal::encode(&[JournalRecord::Delivered(ATTEMPTED)])[0]
        .payload
        .clone();
    for kind in [kind_last() + 1, u8::MAX] {
        assert!(newer(&journal::decode(&[kind])), "{kind}");
        let behind = [known.as_slice(), &[kind, 1, 2]].concat();
        assert!(newer(&journal::decode(&behind)), "{kind}");
    }
    let damaged = Err(Unreadable::Damaged("a line without a kind"));
    assert_eq!(journal::decode(&[0]), damaged);
    assert!(!newer(&journal::decode(&known[..9])));
    let mut dead = journal::encode(&[dead(true, false, None)])[0]
        .payload
        .clone();
    // The bits stand before the length of two bytes, and these.
    let bits = dead.len() - 7;
    dead[bits] |= 8;
    assert!(newer(&journal::decode(&dead)));

    let envelope = plain_envelope();
    let head = envelope.head();
    let record = [&head, &envelope.event.bytes()[..]].concat();
    // Its layout, its flags, and the layout of the event.
    for (at, number) in [(0, 2), (2, 8), (head.len(), 2)] {
        let mut record = record.clone();
        record[at] = number;
        let record = Bytes::from(record);
        assert!(newer(&Envelope::decode(&record)), "{at}");
        assert!(newer(&crate::envelope::entry_and_event(&record)), "{at}");
    }
    let mut record = record;
    record[0] = 0;
    assert!(!newer(&Envelope::decode(&Bytes::from(record))));
}

/// Lines that are summed up are not read by a start: there it is the snapshot that stops an older version.
#[test]
fn a_new_kind_of_line_comes_with_a_new_layout_of_snapshots() {
    let numbers = (kind_last(), journal::snapshot::LAYOUT);
    assert_eq!(numbers, (19, 9), "raise both, and write both down here");
}
