//! What has been done and is not safe yet: changes of bytes and of names, and what a power loss
//! leaves of them.

use std::path::{Path, PathBuf};

use super::{FileId, Names};
use crate::Chance;
use crate::vfs::parent;

/// Disks write this much at once or not at all.
const SECTOR_BYTES: u64 = 512;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Len(u64),
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Put {
        path: PathBuf,
        entry: Option<FileId>,
    },
    Gone {
        path: PathBuf,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
        entry: Option<FileId>,
    },
}

impl Change {
    pub(super) fn len_after(&self, len: u64) -> u64 {
        match self {
            Self::Write { offset, bytes } => len.max(offset + bytes.len() as u64),
            Self::Len(len) => *len,
        }
    }

    pub(super) fn apply(&self, file: &mut Vec<u8>) {
        let len =
            usize::try_from(self.len_after(file.len() as u64)).expect("files in memory fit memory");
        file.resize(len, 0);
        if let Self::Write { offset, bytes } = self {
            let start = usize::try_from(*offset).expect("files in memory fit memory");
            file[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// What a power loss leaves of an unsynced change: all, nothing, some sectors, or a beginning.
    pub(super) fn weather(&self, chance: &Chance) -> Option<Vec<Self>> {
        let Self::Write { offset, bytes } = self else {
            return (chance.below(2) == 0).then(|| vec![self.clone()]);
        };
        match chance.below(4) {
            0 => None,
            1 => Some(vec![self.clone()]),
            2 => {
                let kept = usize::try_from(chance.below(bytes.len() as u64 + 1))
                    .expect("shorter than the write");
                Some(vec![Self::Write {
                    offset: *offset,
                    bytes: bytes[..kept].to_vec(),
                }])
            }
            _ => Some(
                sectors(*offset, bytes)
                    .filter(|_| chance.below(2) == 0)
                    .collect(),
            ),
        }
    }
}

/// The write, cut where the disk's sectors begin.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = Change> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let position = offset + at as u64;
        let left =
            usize::try_from(SECTOR_BYTES - position % SECTOR_BYTES).expect("a sector is small");
        let end = bytes.len().min(at + left);
        let sector = (at < end).then(|| Change::Write {
            offset: position,
            bytes: bytes[at..end].to_vec(),
        });
        at = end;
        sector
    })
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Put { path, entry } => {
                names.insert(path.clone(), *entry);
            }
            Self::Gone { path } => {
                names.remove(path);
            }
            Self::Move { from, to, entry } => {
                names.remove(from);
                names.insert(to.clone(), *entry);
            }
        }
    }

    pub(super) fn is_in(&self, dir: &Path) -> bool {
        match self {
            Self::Put { path, .. } | Self::Gone { path } => parent(path) == dir,
            Self::Move { from, to, .. } => parent(from) == dir || parent(to) == dir,
        }
    }
}
