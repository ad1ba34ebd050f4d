//! What a damaged file still holds: the records of the last commit, and what lies around of earlier ones.
//!
//! redb writes beside what it replaces, so a file is full of pages that nothing leads to any more. They hold earlier forms of
//! objects, some of which are gone by now; `merge` decides which of them to believe.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::pages::{Gap, Pages, Tree};
use crate::format::{self, Meta};
use crate::recovery::Tombstone;
use crate::sample::Samples;
use crate::{Key, ResourceVersion};

/// A record whose checksum fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Key,
    pub(super) version: ResourceVersion,
    pub(super) created: ResourceVersion,
    pub(super) bytes: Bytes,
}

/// Records by the bytes of their keys.
pub(super) type Records = BTreeMap<Vec<u8>, Record>;

/// All that could be read.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    /// Of the last commit, if it could be read.
    pub(super) meta: Option<Meta>,
    pub(super) live: Records,
    /// Where records of the last commit are missing.
    pub(super) gaps: Vec<Gap>,
    /// Keys that are there without a record that fits. The key may be what is damaged.
    pub(super) damaged: Vec<Key>,
    /// The newest form of each object that is in the file anywhere.
    pub(super) stale: Records,
    /// The last deletion of each key that is in the file anywhere.
    pub(super) deleted: BTreeMap<Key, ResourceVersion>,
    /// No record of the file has a higher version.
    pub(super) version_max: ResourceVersion,
}

impl Salvage {
    pub(super) fn of(file: &[u8]) -> Self {
        let pages = Pages(file);
        let mut salvage = Self::default();
        let metas = pages.tables("meta");
        let metas: Vec<Option<Meta>> = metas.iter().map(meta_in).collect();
        // Of the two commits in the file the later one counts, whatever the header says: that may be what is damaged.
        let newest = metas.iter().flatten().map(|meta| meta.version).max();
        let objects = pages.tables("objects");
        let mut objects: Vec<(Option<Meta>, Tree<'_>)> = metas.into_iter().zip(objects).collect();
        objects.sort_by_key(|(meta, tree)| {
            let is_newest = meta.is_some_and(|meta| Some(meta.version) == newest);
            (is_newest, tree.entries.len())
        });
        match objects.pop() {
            Some((meta, tree)) => {
                salvage.meta = meta;
                salvage.take(tree);
            }
            None => salvage.gaps.push(Gap::default()),
        }
        salvage.look_around(&pages);
        salvage.version_max = salvage.highest(newest);
        salvage
    }

    /// The tree of the last commit.
    fn take(&mut self, tree: Tree<'_>) {
        self.gaps.extend(tree.gaps);
        let (mut before, mut broken) = (None, false);
        for (key, bytes) in tree.entries {
            let Some(record) = record(key, bytes) else {
                self.damaged.extend(format::decode_key(key).ok());
                broken = true;
                continue;
            };
            if std::mem::take(&mut broken) {
                self.gaps.push(Gap {
                    above: before.take(),
                    up_to: Some(key.to_vec()),
                });
            }
            before = Some(key.to_vec());
            self.live.insert(key.to_vec(), record);
        }
        if broken {
            self.gaps.push(Gap {
                above: before,
                up_to: None,
            });
        }
    }

    /// Everything else in the file.
    fn look_around(&mut self, pages: &Pages<'_>) {
        for (key, bytes) in pages.leaves(None) {
            let Some(found) = record(key, bytes) else {
                continue;
            };
            let known = self.stale.get(key);
            if known.is_none_or(|known| known.version < found.version) {
                self.stale.insert(key.to_vec(), found);
            }
        }
        for (version, bytes) in pages.leaves(Some(size_of::<u64>())) {
            let Some(tombstone) = tombstone(version, bytes) else {
                continue;
            };
            let deleted = self.deleted.entry(tombstone.key).or_default();
            *deleted = (*deleted).max(tombstone.version);
        }
    }

    fn highest(&self, newest: Option<ResourceVersion>) -> ResourceVersion {
        let records = self.live.values().chain(self.stale.values());
        let versions = records.map(|record| record.version);
        let versions = versions.chain(self.deleted.values().copied());
        versions.chain(newest).max().unwrap_or_default()
    }
}

fn meta_in(tree: &Tree<'_>) -> Option<Meta> {
    let mut metas = tree.entries.iter();
    metas.find_map(|(_, bytes)| format::decode_meta(bytes).ok())
}

/// The record of an object, if it is one.
pub(super) fn record(key: &[u8], bytes: &[u8]) -> Option<Record> {
    // Samples are for objects that stay in memory; this one is put aside as bytes.
    let object = format::decode_object(key, bytes, &Samples::default()).ok()?;
    Some(Record {
        key: object.key,
        version: object.version,
        created: object.created,
        bytes: Bytes::copy_from_slice(bytes),
    })
}

fn tombstone(version: &[u8], bytes: &[u8]) -> Option<Tombstone> {
    let version = u64::from_le_bytes(version.try_into().ok()?);
    format::decode_tombstone(version, bytes).ok()
}
