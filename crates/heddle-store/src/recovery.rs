//! Starting from what is stored, and going on with watches over a restart.
//!
//! Changes live in memory only. After a restart a watch that left off at N is told about every
//! object that changed after N, as it is now, and every object that is gone, from its tombstone.
//! Tombstones are kept for a while; the horizon is the last deletion that may be forgotten, so a
//! watch from before it has to start over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Image;
use crate::format::{self, Damage, Meta};
use crate::object::Json;
use crate::sample::Samples;
use crate::state::State;
use crate::{Change, ChangeKind, Facts, Key, Limits, Object, ResourceVersion};

/// What is left of a deleted object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) version: ResourceVersion,
    pub(crate) created: ResourceVersion,
    /// When, by the wall clock, in seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) key: Key,
    pub(crate) uid: Arc<str>,
    pub(crate) labels: Vec<(String, String)>,
}

/// How long tombstones are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) count_max: usize,
    pub(crate) seconds_max: i64,
}

impl Limits {
    pub(crate) fn window(&self) -> Window {
        let seconds_max = i64::try_from(self.tombstone_age_max.as_secs()).unwrap_or(i64::MAX);
        Window {
            count_max: self.tombstones_max,
            seconds_max,
        }
    }
}

/// The tombstones that are kept, and from where on they are complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct TombstoneSet {
    pub(crate) tombstones: BTreeMap<ResourceVersion, Arc<Tombstone>>,
    pub(crate) horizon: ResourceVersion,
}

impl TombstoneSet {
    /// Which tombstones go when `added` more come, oldest first.
    pub(crate) fn overdue(&self, window: Window, added: usize, now: i64) -> Vec<ResourceVersion> {
        let excess = (self.tombstones.len() + added).saturating_sub(window.count_max);
        let mut overdue = Vec::new();
        for (index, tombstone) in self.tombstones.values().enumerate() {
            // A clock that was set back makes tombstones look young; the count still bounds them.
            if index >= excess && now.saturating_sub(tombstone.seconds) <= window.seconds_max {
                break;
            }
            overdue.push(tombstone.version);
        }
        overdue
    }
}

impl Tombstone {
    pub(crate) fn of(removed: &Object, seconds: i64) -> Self {
        Self {
            version: removed.version,
            created: removed.created,
            seconds,
            key: removed.key.clone(),
            uid: removed.facts.uid.clone(),
            labels: removed.facts.labels.clone(),
        }
    }

    /// The little that can be said about the object.
    fn object(&self) -> Object {
        let mut json = String::from(r#"{"metadata":{"name":"#);
        push_json(&mut json, &self.key.name);
        if !self.key.namespace.is_empty() {
            json.push_str(r#","namespace":"#);
            push_json(&mut json, &self.key.namespace);
        }
        json.push_str(r#","uid":"#);
        push_json(&mut json, &self.uid);
        json.push_str(r#","resourceVersion":"#);
        push_json(&mut json, &self.version.to_string());
        json.push_str("}}");
        Object {
            key: self.key.clone(),
            version: self.version,
            created: self.created,
            facts: Arc::new(Facts {
                uid: self.uid.clone(),
                labels: self.labels.clone(),
                owners: Vec::new(),
                deleting: true,
            }),
            json: Json::whole(json.as_bytes()),
        }
    }
}

/// Adds `text` as a JSON string.
fn push_json(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            control if u32::from(control) < 0x20 => {
                json.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            plain => json.push(plain),
        }
    }
    json.push('"');
}

/// What a watch of `resource` from `from` has missed, in order; the changes that matter of it.
pub(crate) fn missed(state: &State, resource: &str, from: ResourceVersion) -> Vec<Change> {
    let changed = state
        .objects(resource, None)
        .filter(|object| object.version > from);
    let changed = changed.map(|object| {
        let kind = if object.created > from {
            ChangeKind::Added
        } else {
            ChangeKind::Modified
        };
        recovered(kind, object.clone())
    });
    let gone = state
        .tombstone_set
        .tombstones
        .range(from.next()..)
        .map(|(_, tombstone)| tombstone);
    // Who left off before an object was made need not hear that it is gone.
    let gone =
        gone.filter(|tombstone| &*tombstone.key.resource == resource && tombstone.created <= from);
    let gone = gone.map(|tombstone| recovered(ChangeKind::Deleted, Arc::new(tombstone.object())));
    let mut changes: Vec<Change> = changed.chain(gone).collect();
    changes.sort_by_key(|change| change.version);
    changes
}

fn recovered(kind: ChangeKind, object: Arc<Object>) -> Change {
    Change {
        version: object.version,
        kind,
        object,
        previous: None,
        recovered: true,
    }
}

/// Why an image is not a store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("format {0}")]
    Newer(u32),
    #[error("{0}")]
    Damaged(#[from] Damage),
    #[error("{what}: {found} found, {expected} expected")]
    Missing {
        what: &'static str,
        found: u64,
        expected: u64,
    },
    #[error("{key} has version {version}, beyond the last one, {last}")]
    Beyond {
        key: Key,
        version: ResourceVersion,
        last: ResourceVersion,
    },
}

/// Reads everything, checks everything, builds the indexes.
pub(crate) fn restore(
    image: Image,
    samples: &Samples,
    history_bytes_max: usize,
) -> Result<State, Unreadable> {
    let meta = format::decode_meta(&image.meta)?;
    if meta.format > format::FORMAT {
        return Err(Unreadable::Newer(meta.format));
    }
    check_count("objects", image.objects.len() as u64, meta.objects_count)?;
    check_count(
        "tombstones",
        image.tombstones.len() as u64,
        meta.tombstones_count,
    )?;
    let mut state = State::new(meta.version, history_bytes_max);
    for (key, record) in image.objects {
        let mut object = format::decode_object(&key, &record, samples)?;
        check_version(&meta, &object.key, object.version)?;
        object.key = state.share(object.key);
        state.insert(Arc::new(object));
    }
    state.tombstone_set.horizon = meta.horizon;
    for (version, record) in &image.tombstones {
        let tombstone = format::decode_tombstone(*version, record)?;
        check_version(&meta, &tombstone.key, tombstone.version)?;
        state
            .tombstone_set
            .tombstones
            .insert(tombstone.version, Arc::new(tombstone));
    }
    Ok(state)
}

pub(crate) fn check_count(what: &'static str, found: u64, expected: u64) -> Result<(), Unreadable> {
    if found == expected {
        Ok(())
    } else {
        Err(Unreadable::Missing {
            what,
            found,
            expected,
        })
    }
}

fn check_version(meta: &Meta, key: &Key, version: ResourceVersion) -> Result<(), Unreadable> {
    let last = meta.version;
    if version <= last {
        return Ok(());
    }
    Err(Unreadable::Beyond {
        key: key.clone(),
        version,
        last,
    })
}

#[cfg(test)]
mod tests;
