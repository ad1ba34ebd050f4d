//! A file system in memory that can fail at any operation and lose its power.
//!
//! It keeps two truths: what programs see, and what would survive. A write moves from the first to
//! the second by `sync`, a name by `sync_dir`. Every operation that changes something has a number,
//! counted from 1, so a test can run once to learn how many there are and then again and again,
//! ending the world at each of them:
//!
//! ```text
//!   crash_at(n) ── operations n, n+1, … fail ──┬── kill()            a new world: all that was seen
//!                                              └── power_loss(how)   a new world: all that was safe,
//!                                                                    and whatever else `how` leaves
//! ```
//!
//! Invariant: nothing reaches the surviving truth except by a successful sync or by power loss.

mod change;
mod fault;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use change::{Change, NameChange};
pub use fault::Fault;

use super::{Create, Lock, Open, Space, Vfs, VfsFile, parent};
use crate::Chance;

/// What an operation cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Descriptor,
}

/// What is left when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerLoss {
    /// Only what was synced.
    LoseUnsynced,
    /// What was synced, and of the rest whatever the seed says: each write and each name kept,
    /// lost, or torn at sectors or in the middle of one, independently of order.
    Arbitrary { seed: u64 },
}

/// The file system. Clones are the same one.
#[derive(Clone, Debug)]
pub struct MemoryVfs {
    world: Arc<Mutex<World>>,
}

#[derive(Clone, Debug, Default)]
struct World {
    operations: u64,
    crash_at: Option<u64>,
    faults: BTreeMap<u64, Fault>,
    looks: u64,
    blind: Option<(Range<u64>, Fault)>,
    capacity_bytes: Option<u64>,
    files: BTreeMap<FileId, Content>,
    seen: Names,
    safe: Names,
    /// Changes of names that `sync_dir` has not made safe, in order.
    unsafe_names: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
}

type FileId = u64;
/// `None` is a directory.
type Names = BTreeMap<PathBuf, Option<FileId>>;

#[derive(Clone, Debug, Default)]
struct Content {
    seen: Vec<u8>,
    safe: Vec<u8>,
    /// Changes that no sync has made safe, in order.
    pending: Vec<Change>,
}

impl Default for MemoryVfs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryVfs {
    #[must_use]
    pub fn new() -> Self {
        Self::of(World::default())
    }

    fn of(world: World) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
        }
    }

    /// As the port that the rest of the system takes.
    #[must_use]
    pub fn shared(&self) -> Arc<dyn Vfs> {
        Arc::new(self.clone())
    }

    /// How many operations there have been.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world.lock().operations
    }

    /// Lets the operation with this number, and all after it, fail without effect.
    pub fn crash_at(&self, operation: u64) {
        self.world.lock().crash_at = Some(operation);
    }

    /// Lets the operation with this number fail, and only that one.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.world.lock().faults.insert(operation, fault);
    }

    /// How many looks there have been: files opened that were there, and parts of them read.
    #[must_use]
    pub fn looks(&self) -> u64 {
        self.world.lock().looks
    }

    /// Lets the looks with these numbers fail.
    pub fn fail_looks(&self, numbers: Range<u64>, fault: Fault) {
        self.world.lock().blind = Some((numbers, fault));
    }

    /// How many bytes all files together may have; `None` is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.world.lock().capacity_bytes = bytes;
    }

    /// How many bytes all files together have.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.world.lock().used_bytes()
    }

    /// The world after the process was killed: everything written is seen, and no safer than it was.
    #[must_use]
    pub fn kill(&self) -> Self {
        let world = self.world.lock();
        Self::of(World {
            crash_at: None,
            faults: BTreeMap::new(),
            blind: None,
            looks: 0,
            locks: BTreeSet::new(),
            operations: 0,
            ..world.clone()
        })
    }

    /// The world after the power was lost.
    #[must_use]
    pub fn power_loss(&self, how: PowerLoss) -> Self {
        let world = self.world.lock();
        let mut names = world.safe.clone();
        let mut files = world.files.clone();
        let chance = match how {
            PowerLoss::LoseUnsynced => None,
            PowerLoss::Arbitrary { seed } => Some(Chance::seeded(seed)),
        };
        if let Some(chance) = &chance {
            for change in world.unsafe_names.iter().filter(|_| chance.below(2) == 0) {
                change.apply(&mut names);
            }
        }
        // Without its directory a name leads nowhere.
        let dirs = names.clone();
        names.retain(|path, _| {
            let mut above = path
                .ancestors()
                .skip(1)
                .filter(|dir| !dir.as_os_str().is_empty());
            above.all(|dir| matches!(dirs.get(dir), Some(None)))
        });
        for content in files.values_mut() {
            if let Some(chance) = &chance {
                let pending = std::mem::take(&mut content.pending);
                for change in pending
                    .iter()
                    .filter_map(|change| change.weather(chance))
                    .flatten()
                {
                    change.apply(&mut content.safe);
                }
            }
            content.pending.clear();
            content.seen = content.safe.clone();
        }
        let known: BTreeSet<FileId> = names.values().flatten().copied().collect();
        files.retain(|id, _| known.contains(id));
        Self::of(World {
            files,
            seen: names.clone(),
            safe: names,
            capacity_bytes: world.capacity_bytes,
            ..World::default()
        })
    }

    /// Makes one directory, whose name is no safer than that of a new file.
    pub fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world.lock();
        if world.seen.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !matches!(world.seen.get(parent(path)), Some(None)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        world.make_dir(path)
    }

    /// Flips one bit of what is stored, as a decaying disk does.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut world = self.world.lock();
        let content = world.content(path)?;
        for bytes in [&mut content.seen, &mut content.safe] {
            let index = usize::try_from(bit / 8).map_err(io::Error::other)?;
            *bytes.get_mut(index).ok_or(io::ErrorKind::UnexpectedEof)? ^= 1 << (bit % 8);
        }
        Ok(())
    }

    /// Replaces what is stored, as a clumsy operator does.
    pub fn overwrite(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world.lock();
        let content = world.content(path)?;
        *content = Content {
            seen: bytes.to_vec(),
            safe: bytes.to_vec(),
            pending: Vec::new(),
        };
        Ok(())
    }
}

impl World {
    /// Counts an operation and says whether it may happen.
    fn operate(&mut self) -> io::Result<()> {
        self.operate_on(Needs::Nothing)
    }

    fn operate_on(&mut self, needs: Needs) -> io::Result<()> {
        self.operations += 1;
        if self.crash_at.is_some_and(|at| self.operations >= at) {
            return Err(io::Error::other("the simulated machine has stopped"));
        }
        match self.faults.get(&self.operations) {
            Some(fault) if needs == Needs::Descriptor || !fault.is_of_descriptors() => {
                Err(fault.error())
            }
            _ => Ok(()),
        }
    }

    /// Counts a look and says whether it may happen.
    fn look(&mut self, needs: Needs) -> io::Result<()> {
        self.looks += 1;
        match &self.blind {
            Some((numbers, fault))
                if numbers.contains(&self.looks)
                    && (needs == Needs::Descriptor || !fault.is_of_descriptors()) =>
            {
                Err(fault.error())
            }
            _ => Ok(()),
        }
    }

    fn used_bytes(&self) -> u64 {
        self.seen
            .values()
            .flatten()
            .filter_map(|id| self.files.get(id))
            .map(|content| content.seen.len() as u64)
            .sum()
    }

    fn content(&mut self, path: &Path) -> io::Result<&mut Content> {
        let id = self
            .seen
            .get(path)
            .copied()
            .flatten()
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(self.files.get_mut(&id).expect("a name leads to a file"))
    }

    fn make_dir(&mut self, path: &Path) -> io::Result<()> {
        self.operate()?;
        self.change_name(NameChange::Put {
            path: path.to_owned(),
            entry: None,
        });
        Ok(())
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.seen);
        self.unsafe_names.push(change);
    }

    fn change_content(&mut self, id: FileId, change: Change) -> io::Result<()> {
        self.operate()?;
        let before = self
            .files
            .get(&id)
            .ok_or(io::ErrorKind::NotFound)?
            .seen
            .len() as u64;
        let growth = change.len_after(before).saturating_sub(before);
        if self
            .capacity_bytes
            .is_some_and(|capacity| growth > 0 && self.used_bytes() + growth > capacity)
        {
            return Err(Fault::Enospc.error());
        }
        let content = self.files.get_mut(&id).expect("it was there a moment ago");
        change.apply(&mut content.seen);
        content.pending.push(change);
        Ok(())
    }
}

impl Vfs for MemoryVfs {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        let mut world = self.world.lock();
        let id = match (world.seen.get(path).copied(), options.create) {
            (Some(None), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Some(id)), Create::Truncate) => {
                world.change_content(id, Change::Len(0))?;
                id
            }
            (Some(Some(id)), _) => {
                world.look(Needs::Descriptor)?;
                id
            }
            (None, Create::Never) => return Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                if !matches!(world.seen.get(parent(path)), Some(None)) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                world.operate_on(Needs::Descriptor)?;
                let id = world.files.last_key_value().map_or(1, |(last, _)| last + 1);
                world.files.insert(id, Content::default());
                world.change_name(NameChange::Put {
                    path: path.to_owned(),
                    entry: Some(id),
                });
                id
            }
        };
        Ok(Arc::new(MemoryFile {
            world: self.world.clone(),
            id,
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        for dir in path.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
            match self.world.lock().seen.get(dir) {
                Some(None) => break,
                Some(Some(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => missing.push(dir),
            }
        }
        self.sync_dir(parent(missing.last().copied().map_or(path, parent)))?;
        for dir in missing.into_iter().rev() {
            self.world.lock().make_dir(dir)?;
            self.sync_dir(parent(dir))?;
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world.lock();
        let entry = *world.seen.get(from).ok_or(io::ErrorKind::NotFound)?;
        world.operate()?;
        world.change_name(NameChange::Move {
            from: from.to_owned(),
            to: to.to_owned(),
            entry,
        });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world.lock();
        world.content(path)?;
        world.operate()?;
        world.change_name(NameChange::Gone {
            path: path.to_owned(),
        });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.world.lock();
        if !matches!(world.seen.get(dir), Some(None)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = world
            .seen
            .keys()
            .filter(|path| parent(path) == dir && path.as_path() != dir);
        Ok(inside
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.world.lock().seen.contains_key(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world.lock();
        world.operate_on(Needs::Descriptor)?;
        let (now_safe, still_unsafe): (Vec<_>, Vec<_>) = std::mem::take(&mut world.unsafe_names)
            .into_iter()
            .partition(|change| change.is_in(dir));
        world.unsafe_names = still_unsafe;
        for change in now_safe {
            change.apply(&mut world.safe);
        }
        Ok(())
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let world = self.world.lock();
        if !world.seen.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let total_bytes = world.capacity_bytes.unwrap_or(u64::MAX);
        Ok(Space {
            free_bytes: total_bytes.saturating_sub(world.used_bytes()),
            total_bytes,
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        if self.world.lock().locks.insert(path.to_owned()) {
            Ok(Lock::holding(Held {
                world: self.world.clone(),
                path: path.to_owned(),
            }))
        } else {
            Err(io::ErrorKind::ResourceBusy.into())
        }
    }
}

struct Held {
    world: Arc<Mutex<World>>,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.world.lock().locks.remove(&self.path);
    }
}

struct MemoryFile {
    world: Arc<Mutex<World>>,
    id: FileId,
}

impl std::fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryFile")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl VfsFile for MemoryFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut world = self.world.lock();
        world.look(Needs::Nothing)?;
        let content = world.files.get(&self.id).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start
            .checked_add(out.len())
            .ok_or(io::ErrorKind::InvalidInput)?;
        out.copy_from_slice(
            content
                .seen
                .get(start..end)
                .ok_or(io::ErrorKind::UnexpectedEof)?,
        );
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.world.lock().change_content(
            self.id,
            Change::Write {
                offset,
                bytes: bytes.to_vec(),
            },
        )
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.world.lock().change_content(self.id, Change::Len(len))
    }

    fn len(&self) -> io::Result<u64> {
        let world = self.world.lock();
        Ok(world
            .files
            .get(&self.id)
            .ok_or(io::ErrorKind::NotFound)?
            .seen
            .len() as u64)
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world.lock();
        let crashed = world.crash_at;
        let result = world.operate();
        let stopped = crashed.is_some_and(|at| world.operations >= at);
        let is_done =
            result.is_ok() || world.faults.get(&world.operations) == Some(&Fault::EioAfter);
        let content = world
            .files
            .get_mut(&self.id)
            .ok_or(io::ErrorKind::NotFound)?;
        if stopped {
            return result;
        }
        let pending = std::mem::take(&mut content.pending);
        if is_done {
            pending
                .iter()
                .for_each(|change| change.apply(&mut content.safe));
        }
        result
    }

    fn evict(&self) -> io::Result<()> {
        let mut world = self.world.lock();
        let content = world
            .files
            .get_mut(&self.id)
            .ok_or(io::ErrorKind::NotFound)?;
        // What waits to be written stays in the cache; what a failed sync gave up on does not.
        let mut device = content.safe.clone();
        content
            .pending
            .iter()
            .for_each(|change| change.apply(&mut device));
        content.seen = device;
        Ok(())
    }
}
