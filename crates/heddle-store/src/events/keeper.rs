//! The one who tidies up: seals segments, makes the next one ready, removes old ones.
//!
//! Nothing here is in the way of an append. A chore that finds the disk full, or no descriptor, is left for later; one
//! that finds the disk broken poisons the log, as every failed sync does. Chores are done in the order
//! they were asked for, which is how the manifest knows that all segments before one are sealed.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heddle_rt::vfs::{Open, is_no_room};
use tokio::sync::{mpsc, oneshot};

use super::RemoveError;
use super::format::SEGMENT_HEADER_BYTES;
use super::segment::Segment;
use super::shared::{Shared, Spare};

/// Chores that wait. More than a few mean that segments are filled faster than they are sealed, and
/// then the writer may as well wait.
pub(super) const CHORES_MAX: usize = 16;

/// How the names of spare files begin. A number follows: the writer may still be turning one into a
/// segment while the next one is filled, and the two must not meet.
pub(super) const SPARE: &str = "spare-";
const FILL_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) enum Chore {
    /// A segment was begun.
    Note,
    Seal(Arc<Segment>),
    /// Have a file ready for the segment after this one.
    Prepare,
    Remove {
        first: u64,
        reply: oneshot::Sender<Result<(), RemoveError>>,
    },
}

/// Where the writer's chores go.
#[derive(Debug)]
pub(super) enum Helper {
    Thread(mpsc::Sender<Chore>),
    Inline(Keeper),
}

impl Helper {
    pub(super) fn ask(&self, chore: Chore) {
        match self {
            Self::Inline(keeper) => keeper.perform(chore),
            // Without a keeper segments stay unsealed until the log is opened again.
            Self::Thread(chores) => drop(chores.blocking_send(chore)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
}

impl Keeper {
    /// Serves until everybody who could ask is gone.
    pub(super) fn run(self, mut chores: mpsc::Receiver<Chore>) {
        while let Some(chore) = chores.blocking_recv() {
            self.perform(chore);
        }
        self.finish();
    }

    fn perform(&self, chore: Chore) {
        match chore {
            Chore::Note => self.note(),
            Chore::Seal(segment) => self.seal(&segment),
            Chore::Prepare => self.prepare(),
            Chore::Remove { first, reply } => {
                // Whoever gave up waiting does not hear that it worked; the segment is gone.
                drop(reply.send(self.remove(first)));
            }
        }
    }

    fn note(&self) {
        if let Err(error) = self.save() {
            self.shared.failed("writing the manifest", &error);
        }
    }

    fn seal(&self, segment: &Segment) {
        // Those that could not be sealed when it was their turn come first.
        let upto = |one: &Arc<Segment>| one.first <= segment.first;
        for one in self.shared.all_segments().into_iter().filter(upto) {
            if let Err(error) = one.seal(&*self.shared.vfs, self.shared.mark) {
                return self.shared.failed("sealing a segment", &error);
            }
        }
        let next = segment.next();
        let before = |other: &Arc<Segment>| other.first >= segment.first || other.is_sealed();
        if self.shared.all_segments().iter().all(before) {
            let mut manifest = self.shared.manifest.lock();
            manifest.sealed = manifest.sealed.max(next);
            manifest.floor = manifest.floor.max(next);
        }
        self.note();
    }

    /// Writes down which segment is the newest, and whatever else has changed.
    fn save(&self) -> io::Result<()> {
        let newest = self
            .shared
            .segments
            .read()
            .by_first
            .keys()
            .next_back()
            .copied();
        let mut manifest = self.shared.manifest.lock();
        manifest.newest = newest.unwrap_or(manifest.newest);
        manifest.save(&*self.shared.vfs, &self.shared.dir)
    }

    /// Fills a file with zeroes. Writing over them is cheaper to make safe than making a file grow.
    fn prepare(&self) {
        if self.shared.limits.reserve_bytes <= SEGMENT_HEADER_BYTES as u64
            || self.shared.spare.lock().is_some()
        {
            return;
        }
        let number = self.shared.spares.fetch_add(1, Ordering::Relaxed);
        let path = self.shared.dir.join(format!("{SPARE}{number}"));
        match self.fill(&path) {
            Ok(Some(spare)) => *self.shared.spare.lock() = Some(spare),
            Ok(None) => {}
            Err(error) => {
                // A part of a spare file helps nobody who is short of room.
                drop(self.shared.vfs.remove(&path));
                self.shared.failed("making the next segment ready", &error);
            }
        }
    }

    /// `None` when the log was closed meanwhile.
    fn fill(&self, path: &Path) -> io::Result<Option<Spare>> {
        let shared = &self.shared;
        let file = shared.vfs.open(path, Open::truncated(0o600))?;
        let (mut at, end) = (0, shared.limits.reserve_bytes);
        let zeroes = vec![0; FILL_BYTES.min(usize::try_from(end).unwrap_or(FILL_BYTES))];
        while at < end {
            if !shared.is_open() {
                return Ok(None);
            }
            let len = (end - at).min(zeroes.len() as u64);
            let len = usize::try_from(len).expect("no longer than the zeroes");
            file.write_at(at, &zeroes[..len])?;
            // A little at a time: a large flush would hold up the syncs that appends wait for.
            file.sync()?;
            at += len as u64;
        }
        let path = path.to_owned();
        Ok(Some(Spare { path, file }))
    }

    /// Removes a sealed segment. That it was meant is safe before it is gone.
    pub(super) fn remove(&self, first: u64) -> Result<(), RemoveError> {
        let shared = &self.shared;
        let segment = shared.segments.read().by_first.get(&first).cloned();
        let segment = segment.ok_or(RemoveError::NotFound { first })?;
        if !segment.is_sealed() {
            return Err(RemoveError::Active { first });
        }
        let removed = self.forget(&segment);
        removed.map_err(|source| {
            shared.failed("removing a segment", &source);
            let path = segment.path.clone();
            RemoveError::Io { path, source }
        })
    }

    fn forget(&self, segment: &Segment) -> io::Result<()> {
        let shared = &self.shared;
        shared.manifest.lock().remove(segment.first..segment.next());
        let mut saved = self.save();
        if is_full(&saved) && shared.release_spare() {
            saved = self.save();
        }
        // On a disk without any room the segment has to go first. A crash before the manifest is
        // written then reports the segment as missing: a false alarm, and no other harm.
        let after = is_full(&saved);
        if !after {
            saved?;
        }
        shared.segments.write().by_first.remove(&segment.first);
        drop(shared.cache.write().forget(segment.next()));
        shared.vfs.remove(&segment.path)?;
        shared.vfs.sync_dir(&shared.dir)?;
        if after { self.save() } else { Ok(()) }
    }

    /// Writes down that the log ended here, and on purpose.
    pub(super) fn finish(&self) {
        if self.shared.is_poisoned().is_some() {
            return;
        }
        self.shared.release_spare();
        let committed = self.shared.committed();
        {
            let mut manifest = self.shared.manifest.lock();
            manifest.clean = true;
            manifest.floor = committed;
        }
        self.note();
    }
}

fn is_full(result: &io::Result<()>) -> bool {
    result.as_ref().is_err_and(is_no_room)
}
