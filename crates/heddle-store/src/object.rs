//! What goes in, what comes out: drafts, objects, writes and changes.
//!
//! An object is its final JSON plus the few facts the store indexes. The store never parses the
//! JSON; whoever writes it says where the version belongs, and the writer puts it there. The JSON is
//! kept packed (see `sample`) and put together again for whoever reads it.

use std::sync::Arc;

use bytes::Bytes;

use crate::sample::Packed;
use crate::{Key, ResourceVersion};

/// What the store knows about an object beside its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Shared with the indexes, like those of the owners.
    pub uid: Arc<str>,
    pub labels: Vec<(String, String)>,
    /// The uids of the owners.
    pub owners: Vec<Arc<str>>,
    /// Whether its deletion has begun.
    pub deleting: bool,
}

/// An object without its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub facts: Facts,
    /// With an empty string where the version goes.
    pub json: Vec<u8>,
    /// Where in `json` the digits of the version go: between the two quotes.
    pub version_at: usize,
}

impl Draft {
    /// Whether `version_at` lies between two quotes.
    pub(crate) fn is_sound(&self) -> bool {
        let quote_at =
            |index: Option<usize>| index.and_then(|index| self.json.get(index)) == Some(&b'"');
        quote_at(self.version_at.checked_sub(1)) && quote_at(Some(self.version_at))
    }
}

/// An object as it is stored. Immutable; shared by readers, watchers and the history.
#[derive(Clone, Debug)]
pub struct Object {
    pub key: Key,
    /// Of its last change.
    pub version: ResourceVersion,
    /// Of its creation.
    pub created: ResourceVersion,
    /// Shared by all states that have the same.
    pub facts: Arc<Facts>,
    pub(crate) json: Json,
}

/// The JSON of an object.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    packed: Packed,
    /// Where the digits of the version go; `None` when they are in it.
    version_at: Option<u32>,
}

impl Object {
    /// With the version in it. Put together anew with each call.
    #[must_use]
    pub fn json(&self) -> Bytes {
        let mut json = Vec::with_capacity(self.json_len());
        self.write_json(&mut json);
        json.into()
    }

    /// Puts the JSON behind what `out` has.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.json_len());
        self.json.packed.unpack(out);
        if let Some(at) = self.json.version_at {
            let at = start + at as usize;
            let digits = self.version.to_string();
            out.splice(at..at, digits.bytes());
        }
    }

    /// About how long the JSON is.
    #[must_use]
    pub fn json_len(&self) -> usize {
        self.json.packed.len() + VERSION_DIGITS_MAX
    }

    /// The same object with other JSON at a later version, to be told and not to be kept.
    #[must_use]
    pub fn retold(&self, version: ResourceVersion, json: &[u8]) -> Self {
        Self {
            version,
            json: Json::whole(json),
            ..self.clone()
        }
    }

    /// What it takes in memory, but for what objects share.
    pub(crate) fn kept_bytes(&self) -> usize {
        size_of::<Self>() + self.json.packed.kept_bytes()
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, self.version, self.created, &self.facts)
            == (&other.key, other.version, other.created, &other.facts)
            && self.json() == other.json()
    }
}

impl Eq for Object {}

impl Json {
    /// With a place where the digits of the version go.
    pub(crate) fn without_version(packed: Packed, version_at: usize) -> Self {
        let at = u32::try_from(version_at).expect("objects are far smaller than 4 GiB");
        Self {
            packed,
            version_at: Some(at),
        }
    }

    /// With the version in it.
    pub(crate) fn with_version(packed: Packed) -> Self {
        Self {
            packed,
            version_at: None,
        }
    }

    /// With the version in it, and without a sample.
    pub(crate) fn whole(json: &[u8]) -> Self {
        Self::with_version(Packed::alone(json))
    }
}

/// Of the largest number there is.
const VERSION_DIGITS_MAX: usize = 20;

/// What has to be true for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No such object.
    Absent,
    /// The object, unchanged since this version.
    Version(ResourceVersion),
}

/// What a write does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put(Draft),
    /// Takes the object away. The draft is its last state, which watchers see with the new version.
    Remove(Draft),
    /// Changes nothing: the batch depends on this object staying as it is.
    Check,
}

/// One write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: Key,
    pub expect: Expect,
    pub op: Op,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One change, as watchers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub version: ResourceVersion,
    pub kind: ChangeKind,
    /// After the change; for a deletion the last state, with the version of the deletion.
    pub object: Arc<Object>,
    /// Before the change, where that is still known.
    pub previous: Option<Arc<Object>>,
    /// Put together from what is stored, not witnessed: changes in between are folded into the last
    /// one, and of a deleted object only its name, uid and labels are left.
    pub recovered: bool,
}

/// Objects of one resource as they were at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub version: ResourceVersion,
    /// Sorted by namespace and name.
    pub items: Vec<Arc<Object>>,
}
