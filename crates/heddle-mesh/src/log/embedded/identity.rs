//! Which directories belong together: a small file in each says whose it is and what it is for.
//!
//! ```text
//!   magic │ crc32c of the rest │ number of the installation u64 │ role u32
//! ```
//! A directory that was taken from elsewhere, or exchanged with its neighbour, is noticed before anything in it is touched.
//! A file that is missing or damaged has no say, and is written again.

use std::io;
use std::path::Path;

use heddle_rt::Vfs;

use super::open::{EVENTS_DIR, JOURNAL_DIR, MIRROR_DIR};
use crate::codec::{Put as _, Take, Unreadable};

const NAME: &str = "identity";
const MAGIC: &[u8; 8] = b"heddleid";

/// The directories, by role.
pub(super) const DIRS: [&str; 3] = [EVENTS_DIR, JOURNAL_DIR, MIRROR_DIR];

/// What the file in a directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) installation: u64,
    /// Which of [`DIRS`] it was written for.
    pub(super) role: u32,
}

impl Identity {
    fn encode(self) -> Vec<u8> {
        let mut body = Vec::new();
        body.u64(self.installation);
        body.u32(self.role);
        let mut bytes = Vec::new();
        bytes.put(MAGIC);
        bytes.u32(crate::log::checksum(&body));
        bytes.put(&body);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut take = Take(bytes);
        if take.take(MAGIC.len())? != MAGIC || take.u32()? != crate::log::checksum(take.0) {
            return Err(Unreadable::Damaged("no identity"));
        }
        Ok(Self {
            installation: take.u64()?,
            role: take.u32()?,
        })
    }

    /// What a directory says, unless it says nothing that can be read.
    pub(super) fn of(vfs: &dyn Vfs, dir: &Path) -> io::Result<Option<Self>> {
        let path = dir.join(NAME);
        match vfs.exists(&path)? {
            true => Ok(Self::decode(&vfs.read(&path)?).ok()),
            false => Ok(None),
        }
    }

    /// Whether a directory is gone, or another one is in its place. What cannot be asked or read is not known to be.
    pub(super) fn is_gone(self, vfs: &dyn Vfs, dir: &Path) -> bool {
        match vfs.exists(&dir.join(NAME)) {
            Ok(true) => matches!(Self::of(vfs, dir), Ok(Some(found)) if found != self),
            Ok(false) => true,
            Err(_) => false,
        }
    }

    pub(super) fn write(self, vfs: &dyn Vfs, dir: &Path) -> io::Result<()> {
        vfs.write_atomic(&dir.join(NAME), &self.encode(), 0o600)
    }
}

/// Two directories that do not belong together, or one that is in the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    Strangers(&'static str, &'static str),
    Exchanged {
        place: &'static str,
        role: &'static str,
    },
}

/// The installation that all directories belong to, if any of them says.
pub(super) fn agree(found: [Option<Identity>; 3]) -> Result<Option<u64>, Clash> {
    let mut first: Option<(&'static str, u64)> = None;
    for ((place, identity), own) in DIRS.into_iter().zip(found).zip(0..) {
        let Some(identity) = identity else {
            continue;
        };
        if identity.role != own {
            let role = DIRS.get(identity.role as usize).copied();
            let role = role.unwrap_or(place);
            return Err(Clash::Exchanged { place, role });
        }
        match first {
            Some((other, installation)) if installation != identity.installation => {
                return Err(Clash::Strangers(other, place));
            }
            _ => first = Some((place, identity.installation)),
        }
    }
    Ok(first.map(|(_, installation)| installation))
}
