//! The rules of merging, on records made for the purpose. Files are damaged in the tests of the crate.

use bytes::Bytes;

use super::merge::{Copy, merge};
use super::pages::Gap;
use super::salvage::{Record, Records, Salvage};
use crate::format::{Meta, encode_key};
use crate::{Key, ResourceVersion};

fn key(name: &str) -> Key {
    Key::new("things", "default", name)
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(number)
}

/// Records from `name@created-version`.
fn records(list: &[&str]) -> Records {
    let record = |text: &&str| {
        let (name, versions) = text.split_once('@').unwrap();
        let (created, last) = versions.split_once('-').unwrap();
        let record = Record {
            key: key(name),
            created: version(created.parse().unwrap()),
            version: version(last.parse().unwrap()),
            bytes: Bytes::new(),
        };
        (encode_key(&record.key), record)
    };
    list.iter().map(record).collect()
}

fn gap(above: &str, up_to: &str) -> Gap {
    Gap {
        above: Some(encode_key(&key(above))),
        up_to: Some(encode_key(&key(up_to))),
    }
}

type Told = (String, String, String, Option<u64>);

/// `name@version` of all that is kept; then of what may be old; then what is lost.
fn told(salvage: Salvage, copy: Option<Copy>) -> Told {
    let merged = merge(salvage, copy);
    let tell = |record: &Record| format!("{}@{}", record.key.name, record.version);
    let kept: Vec<String> = merged.records.values().map(tell).collect();
    let older: Vec<String> = merged.older.iter().map(tell).collect();
    let lost: Vec<String> = merged.lost.iter().map(|key| key.name.to_string()).collect();
    (
        kept.join(" "),
        older.join(" "),
        lost.join(" "),
        merged.unnamed_count,
    )
}

fn expect(told: Told, kept: &str, older: &str, lost: &str, unnamed: Option<u64>) {
    let expected = (kept.to_owned(), older.to_owned(), lost.to_owned(), unnamed);
    assert_eq!(told, expected);
}

fn damaged(live: &[&str], gaps: &[Gap], stale: &[&str]) -> Salvage {
    Salvage {
        live: records(live),
        gaps: gaps.to_vec(),
        stale: records(stale),
        ..Salvage::default()
    }
}

#[test]
fn an_earlier_form_counts_only_where_the_last_one_cannot_be_read() {
    let salvage = damaged(
        &["a@1-9", "e@2-8"],
        &[gap("a", "c")],
        &["a@1-3", "b@4-5", "d@6-7"],
    );
    expect(told(salvage, None), "a@9 b@5 e@8", "b@5", "", None);
}

/// A range reaches up to the next record that was read, and that one may have been read as part of it.
#[test]
fn what_was_read_is_neither_replaced_nor_doubted_whatever_could_not_be_read_around_it() {
    for gaps in [&[gap("a", "c")][..], &[Gap::default()]] {
        let salvage = damaged(&["b@1-9", "c@2-8"], gaps, &["b@1-9", "c@2-8"]);
        let copy = Copy {
            version: version(5),
            records: records(&["b@1-3", "c@2-4"]),
        };
        expect(told(salvage, Some(copy)), "b@9 c@8", "", "", None);
    }
}

#[test]
fn what_is_known_to_be_deleted_stays_so() {
    let mut salvage = damaged(&[], &[Gap::default()], &["a@1-3", "b@4-5"]);
    salvage.deleted.insert(key("a"), version(6));
    // Made again since.
    salvage.deleted.insert(key("b"), version(2));
    expect(told(salvage, None), "b@5", "b@5", "", None);
}

#[test]
fn what_was_gone_when_the_copy_was_made_does_not_come_back() {
    let salvage = damaged(
        &[],
        &[Gap::default()],
        &["gone@1-3", "new@12-13", "both@2-14"],
    );
    let copy = Copy {
        version: version(10),
        records: records(&["both@2-9", "only@4-7"]),
    };
    let kept = "both@14 new@13 only@7";
    let sorted = |text: &str| {
        let mut names: Vec<&str> = text.split(' ').collect();
        names.sort_unstable();
        names.join(" ")
    };
    let (all, older, lost, unnamed) = told(salvage, Some(copy));
    expect(
        (sorted(&all), sorted(&older), lost, unnamed),
        kept,
        kept,
        "",
        None,
    );
}

#[test]
fn a_copy_does_not_bring_back_what_the_last_commit_knows_is_gone() {
    let salvage = damaged(&["a@1-9"], &[gap("x", "z")], &[]);
    let copy = Copy {
        version: version(5),
        records: records(&["a@1-2", "b@3-4", "y@3-4"]),
    };
    expect(told(salvage, Some(copy)), "a@9 y@4", "y@4", "", None);
}

#[test]
fn what_is_missing_is_named_or_at_least_counted() {
    let mut salvage = damaged(&["a@1-9"], &[gap("a", "z")], &[]);
    salvage.damaged = vec![key("b")];
    salvage.meta = Some(Meta {
        objects_count: 4,
        ..Meta::default()
    });
    expect(told(salvage, None), "a@9", "", "b", Some(2));
}

#[test]
fn where_everything_was_read_nothing_is_missing_whatever_counts_it() {
    let salvage = damaged(&["a@1-9"], &[], &[]);
    expect(told(salvage, None), "a@9", "", "", Some(0));
}
