//! Planning a group commit: which batches hold, which versions they get, what goes to disk.
//!
//! Batches are looked at in the order they came. Each sees what readers see plus what earlier
//! batches of the group, and earlier writes of its own, will have done. A batch whose expectation
//! fails leaves no trace and costs the others nothing. Pure: nothing is written here.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Batch;
use crate::format::{self, Meta};
use crate::object::Json;
use crate::recovery::{Tombstone, Window};
use crate::sample::Samples;
use crate::state::State;
use crate::{
    Change, ChangeKind, CommitError, Draft, Expect, Key, Object, Op, ResourceVersion, Write,
};

/// What a caller gets for a batch: the objects written, in order.
pub(crate) type CommitResult = Result<Vec<Arc<Object>>, CommitError>;

/// Batches being put together against the state they start from.
pub(crate) struct Group<'a> {
    state: &'a State,
    version: ResourceVersion,
    /// What the group has changed so far. `None`: removed.
    overlay: HashMap<Key, Option<Arc<Object>>>,
    changes: Vec<Change>,
    records: Vec<(Vec<u8>, Option<Bytes>)>,
}

/// A write whose JSON its caller has packed: there are many callers, and one writer.
#[derive(Debug)]
pub(crate) struct Prepared {
    key: Key,
    expect: Expect,
    /// `None` when the object only has to be as expected.
    prospect: Option<Prospect>,
}

/// What an object is to become.
#[derive(Debug)]
struct Prospect {
    draft: Draft,
    packed: Json,
    removes: bool,
}

impl Prepared {
    pub(crate) fn new(write: Write, samples: &Samples) -> Self {
        let Write { key, expect, op } = write;
        let (draft, removes) = match op {
            Op::Put(draft) => (Some(draft), false),
            Op::Remove(draft) => (Some(draft), true),
            Op::Check => (None, false),
        };
        let prospect = draft.map(|draft| Prospect {
            packed: Json::without_version(
                samples.pack(&key.resource, &draft.json),
                draft.version_at,
            ),
            draft,
            removes,
        });
        Self {
            key,
            expect,
            prospect,
        }
    }

    /// How much is to be written.
    pub(crate) fn bytes(&self) -> usize {
        let prospect = self.prospect.as_ref();
        prospect.map_or(0, |prospect| prospect.draft.json.len())
    }
}

/// A group that only has to be made safe and then shown.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) version: ResourceVersion,
    pub(crate) horizon: ResourceVersion,
    pub(crate) changes: Vec<Change>,
    pub(crate) new_tombstones: Vec<Arc<Tombstone>>,
    pub(crate) expired_tombstones: Vec<ResourceVersion>,
    /// The same for the engine.
    pub(crate) batch: Batch,
}

impl<'a> Group<'a> {
    pub(crate) fn new(state: &'a State) -> Self {
        Self {
            state,
            version: state.version,
            overlay: HashMap::new(),
            changes: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Takes a batch into the group, or says why not and forgets it.
    pub(crate) fn accept(&mut self, batch: Vec<Prepared>) -> CommitResult {
        let (version, changes, records) = (self.version, self.changes.len(), self.records.len());
        let mut undo = Vec::new();
        let mut written = Vec::with_capacity(batch.len());
        for write in batch {
            match self.write(write, &mut undo) {
                Ok(object) => written.extend(object),
                Err(error) => {
                    self.version = version;
                    self.changes.truncate(changes);
                    self.records.truncate(records);
                    for (key, before) in undo.into_iter().rev() {
                        match before {
                            Some(before) => self.overlay.insert(key, before),
                            None => self.overlay.remove(&key),
                        };
                    }
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    fn write(
        &mut self,
        prepared: Prepared,
        undo: &mut Vec<Undo>,
    ) -> Result<Option<Arc<Object>>, CommitError> {
        let Prepared {
            key,
            expect,
            prospect,
        } = prepared;
        let actual = self.current(&key);
        let met = match expect {
            Expect::Absent => actual.is_none(),
            Expect::Version(version) => actual
                .as_ref()
                .is_some_and(|object| object.version == version),
        };
        if !met {
            return Err(CommitError::Conflict { key, actual });
        }
        let Some(Prospect {
            draft,
            packed,
            removes,
        }) = prospect
        else {
            return Ok(None);
        };
        if removes && actual.is_none() {
            let reason = "what is absent cannot be removed";
            return Err(CommitError::Invalid { key, reason });
        }
        self.version = self.version.next();
        let created = actual
            .as_ref()
            .map_or(self.version, |object| object.created);
        let Draft {
            facts,
            json,
            version_at,
        } = draft;
        let json = json.split_at(version_at);
        let record = format::encode_object(&key, self.version, created, &facts, json);
        // What did not change is shared with the state before.
        let (key, facts) = match &actual {
            Some(actual) if *actual.facts == facts => (actual.key.clone(), actual.facts.clone()),
            Some(actual) => (actual.key.clone(), Arc::new(facts)),
            None => (self.state.share(key), Arc::new(facts)),
        };
        let object = Arc::new(Object {
            key: key.clone(),
            version: self.version,
            created,
            facts,
            json: packed,
        });
        self.records
            .push((format::encode_key(&key), (!removes).then_some(record)));
        let after = (!removes).then(|| object.clone());
        undo.push((key.clone(), self.overlay.insert(key, after)));
        self.changes.push(Change {
            version: object.version,
            kind: kind(actual.is_some(), removes),
            object: object.clone(),
            previous: actual,
            recovered: false,
        });
        Ok(Some(object))
    }

    fn current(&self, key: &Key) -> Option<Arc<Object>> {
        match self.overlay.get(key) {
            Some(changed) => changed.clone(),
            None => self.state.get(key).cloned(),
        }
    }

    /// Nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds what the store needs for itself: tombstones and the record about the whole.
    pub(crate) fn plan(self, window: Window, now: i64) -> Planned {
        let tombstone_set = &self.state.tombstone_set;
        let removed = self
            .changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Deleted);
        let mut new_tombstones: Vec<_> = removed
            .map(|change| Arc::new(Tombstone::of(&change.object, now)))
            .collect();
        let expired_tombstones = match new_tombstones.len() {
            0 => Vec::new(),
            added => tombstone_set.overdue(window, added, now),
        };
        // More removed at once than are kept at all: the first of them are forgotten right away.
        let forgotten: Vec<_> = new_tombstones
            .drain(..new_tombstones.len().saturating_sub(window.count_max))
            .collect();
        let horizon = [tombstone_set.horizon]
            .into_iter()
            .chain(expired_tombstones.last().copied())
            .chain(forgotten.last().map(|tombstone| tombstone.version))
            .max()
            .expect("there is at least the old one");
        let count = |kind| {
            self.changes
                .iter()
                .filter(|change| change.kind == kind)
                .count()
        };
        let objects_count =
            self.state.objects_count() + count(ChangeKind::Added) - count(ChangeKind::Deleted);
        let tombstones_count =
            tombstone_set.tombstones.len() + new_tombstones.len() - expired_tombstones.len();
        let meta = format::encode_meta(&Meta {
            format: format::FORMAT,
            version: self.version,
            horizon,
            objects_count: objects_count as u64,
            tombstones_count: tombstones_count as u64,
        });
        let added = new_tombstones.iter().map(|tombstone| {
            (
                tombstone.version.get(),
                Some(format::encode_tombstone(tombstone)),
            )
        });
        let dropped = expired_tombstones
            .iter()
            .map(|version| (version.get(), None));
        let tombstones = added.chain(dropped).collect();
        let batch = Batch {
            meta,
            objects: self.records,
            tombstones,
        };
        Planned {
            version: self.version,
            horizon,
            changes: self.changes,
            new_tombstones,
            expired_tombstones,
            batch,
        }
    }
}

/// A key and what the overlay said about it before.
type Undo = (Key, Option<Option<Arc<Object>>>);

fn kind(existed: bool, removes: bool) -> ChangeKind {
    match (existed, removes) {
        (_, true) => ChangeKind::Deleted,
        (true, false) => ChangeKind::Modified,
        (false, false) => ChangeKind::Added,
    }
}
