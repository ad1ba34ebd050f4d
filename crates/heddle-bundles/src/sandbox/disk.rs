//! What an instance keeps on disk: counted as far as needed, and held against a bound.
//!
//! No quota of a file system is needed for it, and no file is opened: directories are read, and what is in them is looked at
//! without following a link, each by its name in a directory that is open already. So a program that changes the tree
//! meanwhile can make the count wrong by what it changes, and lead it nowhere else. The work is bounded by the bound itself:
//! beyond it nothing is counted.
//!
//! Counted is what files occupy, not how long they claim to be; a file with two names counts once. Not counted is what was
//! deleted and is still open: it is gone when the run is.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use heddle_api::action::{Action, Limits};
use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};
use nix::sys::statvfs::statvfs;

/// How deep directories may lie in each other. Each open one takes a file descriptor while it is counted.
const DEPTH_MAX: usize = 128;

/// What a block is in the status of a file, whatever the file system calls one.
const BLOCK_BYTES: u64 = 512;

/// Free room below which nothing new is begun: the server itself needs some to go on.
const RESERVE_BYTES: u64 = 256 << 20;

/// How much an instance may keep while an action of it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Why it is too much, for people. It says at least how much there is, because nobody counted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Bytes {
        used: Used,
        bound: u64,
    },
    Files {
        used: Used,
        bound: u64,
    },
    Depth,
    /// It may be little, and the disk has no room for more.
    Room {
        free: u64,
    },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        match self {
            Self::Bytes { used, bound } => write!(
                f,
                "/data has at least {} MiB in {} files, and may have {} MiB; spec.actions.diskMegabytes of its Registry \
                 changes that",
                mebibytes(used.bytes),
                used.files,
                mebibytes(*bound)
            ),
            Self::Files { used, bound } => write!(
                f,
                "/data has at least {} files with {} MiB, and may have {bound} files; spec.actions.diskFiles of its Registry \
                 changes that",
                used.files,
                mebibytes(used.bytes)
            ),
            Self::Depth => write!(
                f,
                "/data has directories that lie more than {DEPTH_MAX} deep in each other"
            ),
            Self::Room { free } => write!(
                f,
                "the disk of the server has {} MiB left, of which {} MiB stay free",
                mebibytes(*free),
                mebibytes(RESERVE_BYTES)
            ),
        }
    }
}

/// Why an action must not begin, if it must not. What takes away has to be possible however much there is.
pub(super) fn refusal(
    limits: Limits,
    action: Action,
    directory: &Path,
) -> nix::Result<Option<Excess>> {
    if action.is_removal() {
        return Ok(None);
    }
    let room = statvfs(directory)?;
    let free = room.blocks_available() * room.fragment_size();
    if free < RESERVE_BYTES {
        return Ok(Some(Excess::Room { free }));
    }
    Bound::of(limits, action).weigh(directory, || true)
}

/// What a tree occupies. One that is deeper than instances may make them counts as far as it was counted.
pub(super) fn bytes_below(directory: &Path) -> std::io::Result<u64> {
    let used = Cell::new(Used::default());
    let boundless = Bound {
        bytes: u64::MAX,
        files: u64::MAX,
    };
    boundless.count(directory, &used, || true)?;
    Ok(used.get().bytes)
}

impl Bound {
    /// While something is taken away there may be twice as much: what is to be removed, and an archive of it.
    pub(super) fn of(limits: Limits, action: Action) -> Self {
        let times = if action.is_removal() { 2 } else { 1 };
        Self {
            bytes: limits.disk_bytes.saturating_mul(times),
            files: limits.disk_files.saturating_mul(times),
        }
    }

    /// Whether `used` is more than this.
    fn exceeded_by(self, used: Used) -> Option<Excess> {
        if used.bytes > self.bytes {
            let bound = self.bytes;
            return Some(Excess::Bytes { used, bound });
        }
        let bound = self.files;
        (used.files > bound).then_some(Excess::Files { used, bound })
    }

    /// Whether there is more below `directory` than this. `is_wanted` is asked now and then; once nobody wants to know, the
    /// answer is that there is not.
    pub(super) fn weigh(
        self,
        directory: &Path,
        is_wanted: impl Fn() -> bool,
    ) -> nix::Result<Option<Excess>> {
        self.count(directory, &Cell::default(), is_wanted)
    }

    /// The same, and tells how far it has counted.
    fn count(
        self,
        directory: &Path,
        counted: &Cell<Used>,
        is_wanted: impl Fn() -> bool,
    ) -> nix::Result<Option<Excess>> {
        let mut used = Used::default();
        let mut linked = HashSet::new();
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut open = vec![Dir::open(directory, flags, Mode::empty())?.into_iter()];
        while let Some(at) = open.last_mut() {
            let fd = at.as_raw_fd();
            // What cannot be read any more has just been removed.
            let Some(Ok(entry)) = at.next() else {
                open.pop();
                continue;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(found) = fstatat(Some(fd), name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            used.files += 1;
            if found.st_nlink < 2
                || is_directory(&found)
                || linked.insert((found.st_dev, found.st_ino))
            {
                used.bytes += u64::try_from(found.st_blocks).unwrap_or_default() * BLOCK_BYTES;
            }
            counted.set(used);
            if let Some(excess) = self.exceeded_by(used) {
                return Ok(Some(excess));
            }
            if used.files.is_multiple_of(256) && !is_wanted() {
                return Ok(None);
            }
            if is_directory(&found) {
                if open.len() == DEPTH_MAX {
                    return Ok(Some(Excess::Depth));
                }
                let below = Dir::openat(Some(fd), name, flags, Mode::empty());
                open.extend(below.map(Dir::into_iter));
            }
        }
        Ok(None)
    }
}

fn is_directory(found: &FileStat) -> bool {
    SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
}

#[cfg(test)]
mod tests;
