//! The bytes of a snapshot, and those of every layout before it, which are still read.

use std::collections::{BTreeMap, BTreeSet};

use super::{at, pinned};
use crate::journal::bulk::BulkEntries;
use crate::journal::mark::GroupMarks;
use crate::journal::positions::{
    Counters, DeadLetterEntry, Position, Positions, Retry, Revision, Sink,
};
use crate::journal::{ReplyFault, Snapshot};
use crate::path::delivery::retry_policy::CAP;
use heddle_api::dead_letters::FailureClass;
use heddle_api::dead_letters::marks::MarkKind;

/// By layout, from the first on.
const LAYOUTS: [&str; 9] = [
    include_str!("snapshots/layout-1.hex"),
    include_str!("snapshots/layout-2.hex"),
    include_str!("snapshots/layout-3.hex"),
    include_str!("snapshots/layout-4.hex"),
    include_str!("snapshots/layout-5.hex"),
    include_str!("snapshots/layout-6.hex"),
    include_str!("snapshots/layout-7.hex"),
    include_str!("snapshots/layout-8.hex"),
    include_str!("snapshots/layout-9.hex"),
];

/// What a snapshot of that layout says.
fn snapshot(layout: usize) -> Snapshot {
    Snapshot {
        journal_next: 13,
        positions: Positions {
            scanned: 12,
            consumers: BTreeMap::from([(1, position(layout))]),
            dead: BTreeMap::from([(1, event(layout)), (2, reply(layout))]),
            dead_name_last: 2,
            consumer_last: 1,
            strays: 1,
            lost_records: if layout >= 4 { 1 } else { 0 },
            losses: Vec::from_iter((layout >= 4).then_some(5..6)),
            unknown_from: (layout >= 4).then_some(3),
            log_lost_below: if layout >= 6 { 7 } else { 0 },
            bulks: bulks(layout),
            marks: marks(layout),
        },
    }
}

fn position(layout: usize) -> Position {
    // Before the fifth layout nobody wrote down when the last attempt ended.
    let retry = |attempts, excused, tried, next, redriven| Retry {
        attempts,
        excused: if layout >= 3 { excused } else { 0 },
        tried_at: if layout >= 5 {
            at(tried)
        } else {
            at(next) - CAP
        },
        next_at: at(next),
        redriven,
        resent: false,
    };
    Position {
        key: "trigger/n/t".to_owned(),
        revisions: vec![Revision {
            from: 5,
            uid: "u".to_owned(),
            generation: 2,
            fingerprint: 77,
            feeds: vec![("broker/n/b".to_owned(), vec!["subscription/n/s".to_owned()])],
            filters: "{}".to_owned(),
            until: Some(12),
        }],
        unrouted: Some((12, at(8))),
        floor: 3,
        ended: BTreeSet::from([4, 6]),
        retrying: BTreeMap::from_iter(
            [
                (2, retry(3, 1, 190, 200, None)),
                (5, retry(0, 0, 300, 300, Some(1))),
            ]
            .into_iter()
            .chain(resent(layout)),
        ),
        counted_to: Some(11),
        tally: Counters {
            matched: 9,
            resent: if layout >= 9 { 6 } else { 0 },
            delivered: 1,
            dead: 2,
            expired: 3,
            removed: 4,
            lost: if layout >= 4 { 5 } else { 0 },
        },
        held: Some("gone".to_owned()),
        doubt: None,
        unsure_from: (layout >= 4).then_some(2),
    }
}

/// An event that was sent again from the log, and failed once since.
fn resent(layout: usize) -> Option<(u64, Retry)> {
    let retry = Retry {
        attempts: 1,
        excused: 0,
        tried_at: at(310),
        next_at: at(320),
        redriven: None,
        resent: true,
    };
    (layout >= 9).then_some((1, retry))
}

/// A dead letter on its way again, which its sink refused.
fn event(layout: usize) -> DeadLetterEntry {
    DeadLetterEntry {
        consumer: 1,
        offset: 5,
        journal: 6,
        at: at(100),
        accepted_at: at(99),
        reason: "why".to_owned(),
        status: 503,
        attempts: 2,
        redrives: 1,
        sink: Sink::Failed("refused".to_owned()),
        left: true,
        entry: if layout >= 2 { "broker/n/b" } else { "" }.to_owned(),
        source: "/s".to_owned(),
        id: "1".to_owned(),
        type_: "t".to_owned(),
        reply: None,
        bytes: if layout >= 7 { 321 } else { 0 },
        class: FailureClass::Answer,
        cause: if layout >= 7 {
            "pool # exhausted"
        } else {
            "why"
        }
        .to_owned(),
    }
}

/// One that runs, and one that sends events again.
fn bulks(layout: usize) -> BulkEntries {
    let mut entries = BulkEntries::default();
    if layout >= 7 {
        entries.apply(&super::bulk());
    }
    if layout >= 9 {
        entries.apply(&super::resend(5));
    }
    entries
}

fn marks(layout: usize) -> GroupMarks {
    let mut marks = GroupMarks::default();
    if layout >= 8 {
        marks.apply(&super::mark(Some(MarkKind::Ignored)));
    }
    marks
}

fn reply(layout: usize) -> DeadLetterEntry {
    DeadLetterEntry {
        offset: 8,
        sink: Sink::Waiting,
        left: false,
        reply: (layout >= 6).then_some(ReplyFault::Refused),
        ..event(layout)
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.trim_ascii_end().as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    digits
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[test]
fn a_snapshot_stays_what_it_is() {
    let newest = LAYOUTS.len();
    let written = snapshot(newest).encode();
    pinned(
        "a snapshot of the journal",
        &written,
        LAYOUTS[newest - 1].trim_ascii_end(),
    );
}

#[test]
fn every_layout_of_a_snapshot_is_read() {
    for (layout, hex) in (1..).zip(LAYOUTS) {
        let found = Snapshot::decode(&bytes_of(hex));
        assert_eq!(
            found,
            Ok(snapshot(layout)),
            "directories of older versions hold snapshots of layout {layout}: docs/upgrade.md promises that they are read"
        );
    }
}
