//! Which records a repaired store gets: pure, from what a damaged file and a verified copy still hold.
//!
//! A record of the last commit is taken as it is. Where one is missing, an earlier form of it is better than none, but an
//! object that was deleted must not come back. So an earlier form counts only
//!
//! - inside a range of keys that could not be read: elsewhere the last commit says that the object is gone;
//! - if no deletion of it is known that is later;
//! - if the copy has the object too, or was made before there was one: what existed when the copy was made and is not in
//!   it, had been deleted by then.

use std::collections::BTreeSet;

use super::salvage::{Record, Records, Salvage};
use crate::{Key, ResourceVersion};

/// A verified copy.
#[derive(Debug, Default)]
pub(super) struct Copy {
    /// The version of the store when it was made.
    pub(super) version: ResourceVersion,
    pub(super) records: Records,
}

/// Everything that is kept, and what is known about the rest.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) records: Records,
    /// Kept in a form that may be older than the last one.
    pub(super) older: Vec<Record>,
    /// There was such an object, and nothing of it is left.
    pub(super) lost: Vec<Key>,
    /// So many more are missing, of which not even the name is known. `None` when nobody can say how many: what could not be
    /// read may hold some, and the record that counts them cannot be read either.
    pub(super) unnamed_count: Option<u64>,
}

pub(super) fn merge(salvage: Salvage, copy: Option<Copy>) -> Merged {
    let expected = salvage.meta.map(|meta| meta.objects_count);
    let is_whole = salvage.gaps.is_empty();
    let mut merged = Merged {
        older: older(&salvage, copy.as_ref()),
        records: salvage.live,
        ..Merged::default()
    };
    for record in &merged.older {
        let key = crate::format::encode_key(&record.key);
        merged.records.insert(key, record.clone());
    }
    let kept: BTreeSet<&Key> = merged.records.values().map(|record| &record.key).collect();
    let lost: BTreeSet<Key> = salvage.damaged.into_iter().collect();
    merged.lost = lost.into_iter().filter(|key| !kept.contains(key)).collect();
    let accounted = merged.records.len() as u64 + merged.lost.len() as u64;
    merged.unnamed_count = match expected {
        Some(expected) => Some(expected.saturating_sub(accounted)),
        None => is_whole.then_some(0),
    };
    merged
}

/// The earlier forms that count, newest of each object.
fn older(salvage: &Salvage, copy: Option<&Copy>) -> Vec<Record> {
    let copied = copy.map(|copy| &copy.records);
    let mut candidates: Records = copied.cloned().unwrap_or_default();
    for (key, record) in &salvage.stale {
        let known = candidates.get(key);
        let follows = match (known, copy) {
            (Some(known), _) => record.version > known.version,
            (None, Some(copy)) => record.created > copy.version,
            (None, None) => true,
        };
        if follows {
            candidates.insert(key.clone(), record.clone());
        }
    }
    let missing = |key: &[u8]| {
        !salvage.live.contains_key(key) && salvage.gaps.iter().any(|gap| gap.contains(key))
    };
    let is_deleted = |record: &Record| {
        let deleted = salvage.deleted.get(&record.key);
        deleted.is_some_and(|deleted| *deleted > record.version)
    };
    candidates
        .into_iter()
        .filter(|(key, record)| missing(key) && !is_deleted(record))
        .map(|(_, record)| record)
        .collect()
}
