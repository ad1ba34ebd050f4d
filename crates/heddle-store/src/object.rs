//! What goes in, what comes out: drafts, objects, writes and changes.
//!
//! An object is its final JSON plus the few facts the store indexes. The store never parses the
//! JSON; whoever writes it says where the version belongs, and the writer puts it there.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Key, ResourceVersion};

/// What the store knows about an object beside its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub uid: String,
    pub labels: Vec<(String, String)>,
    /// The uids of the owners.
    pub owners: Vec<String>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub key: Key,
    /// Of its last change.
    pub version: ResourceVersion,
    /// Of its creation.
    pub created: ResourceVersion,
    pub facts: Facts,
    /// With the version in it.
    pub json: Bytes,
}

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
