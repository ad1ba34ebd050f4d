//! The one who writes: takes a buffer whole, writes it, syncs it, shows it, answers.
//!
//! ```text
//!   buffer ─> (next segment) ─> one write ─> one sync ─> index, recent records ─> committed ─> answers
//! ```
//! There is no timer: a buffer holds what came while the one before was made safe. When a segment is
//! full the next one is begun and the keeper seals the old one, so nobody waits for that.
//!
//! A refusal for want of room, or of descriptors or memory, refuses everything that waits, since it would have come
//! behind. What had reached the file is cut off, and the cut made safe, before anybody hears of the refusal: what was
//! refused does not come back. Any other failure, and a failed sync, ends the writing until a restart.
//! Invariant: a write begins only when all writes before it are safe.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use heddle_rt::vfs::{Open, VfsFile, is_exhausted, is_no_room};

use super::cache::Written;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::keeper::{Chore, Helper};
use super::pending::Buffer;
use super::segment::{Extent, Segment};
use super::shared::{Shared, Spare};
use super::{AppendError, segment_name};
use crate::Mode;

/// A segment that is begun under this name gets its own when its header is safe.
pub(super) const BEGUN: &str = "begun";

#[derive(Debug)]
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) helper: Helper,
    /// `None` until something has to be written.
    pub(super) active: Option<Active>,
    /// The end of what is safe.
    pub(super) next: u64,
    pub(super) chain: u32,
}

/// The segment that is appended to.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) tail: u64,
    /// The keeper was asked for the segment after this one.
    pub(super) followed: bool,
}

/// Where an append failed, which decides what is known about its bytes.
enum Failed {
    /// There was no segment to write to: no record is anywhere.
    Begin(io::Error),
    Write(io::Error),
    /// What was written may be safe, or lost.
    Sync(io::Error),
}

enum Work {
    Write(Buffer),
    Seal,
    End,
}

impl Writer {
    /// Writes until the log is closed and nothing waits.
    pub(super) fn run(mut self) {
        let _last_words = LastWords(self.shared.clone());
        loop {
            match self.work() {
                Work::Write(buffer) => self.commit(buffer),
                Work::Seal => self.seal(),
                Work::End => break,
            }
        }
        self.seal();
    }

    fn work(&self) -> Work {
        let mut pending = self.shared.pending.lock();
        loop {
            if let Some(buffer) = pending.take() {
                return Work::Write(buffer);
            }
            if std::mem::take(&mut pending.seal) {
                return Work::Seal;
            }
            if pending.closing {
                return Work::End;
            }
            pending.idle = true;
            self.shared.work.wait(&mut pending);
            pending.idle = false;
        }
    }

    /// Writes one buffer and answers everybody in it.
    pub(super) fn commit(&mut self, buffer: Buffer) {
        if let Some(reason) = self.shared.is_poisoned() {
            return self.refuse(buffer, AppendError::Poisoned(reason));
        }
        let started = self.shared.clock.monotonic();
        match self.make_safe(&buffer) {
            Ok(position) => {
                let took = self.shared.clock.monotonic().saturating_sub(started);
                self.show(buffer, position, took);
            }
            Err(error) => {
                let error = self.fail(error);
                self.refuse(buffer, error);
            }
        }
    }

    /// Returns where the buffer lies in the active segment.
    fn make_safe(&mut self, buffer: &Buffer) -> Result<u64, Failed> {
        let bytes = buffer.bytes.len() as u64;
        let full = |active: &Active| {
            active.tail > SEGMENT_HEADER_BYTES as u64
                && active.tail + bytes > self.shared.limits.segment_bytes
        };
        if self.active.as_ref().is_some_and(full) {
            self.seal();
        }
        let mut active = match self.active.take() {
            Some(active) => active,
            None => self.begin(buffer.first).map_err(Failed::Begin)?,
        };
        let position = active.tail;
        let written = active
            .file
            .write_at(position, &buffer.bytes)
            .map_err(Failed::Write)
            .and_then(|()| active.file.sync().map_err(Failed::Sync));
        if written.is_ok() {
            active.tail += bytes;
        }
        self.active = Some(active);
        written.map(|()| position)
    }

    /// Lets readers see a buffer that is safe, and tells those who wait.
    fn show(&mut self, buffer: Buffer, position: u64, took: Duration) {
        let shared = &self.shared;
        let next = buffer.next();
        let held_bytes = buffer.bytes.capacity() + buffer.positions.capacity() * size_of::<u32>();
        let bytes = buffer.bytes.len();
        let written = Arc::new(Written {
            first: buffer.first,
            bytes: buffer.bytes.into(),
            positions: buffer.positions,
            mark: shared.mark,
            held_bytes,
        });
        (self.next, self.chain) = (next, buffer.chain);
        let active = self.active.as_mut().expect("it was just written to");
        {
            let mut extent = active.segment.extent.write();
            for (head, at) in written.heads() {
                extent.add(&head, position + at);
            }
        }
        let records = written.positions.len();
        let dropped = shared.cache.write().push(written);
        shared.counters.lock().synced(records, bytes, took);
        shared.full.store(false, Ordering::Relaxed);
        shared.committed.send_replace(next);
        shared.pending.lock().done(bytes);
        buffer.promise.keep(&Ok(()));
        drop(dropped);
        // In a simulated world nothing is for free: the next segment is made ready when it is near.
        let near = match shared.mode {
            Mode::Thread => 0,
            Mode::Inline => shared.limits.segment_bytes / 2,
        };
        if !active.followed && active.tail >= near {
            active.followed = true;
            self.helper.ask(Chore::Prepare);
        }
    }

    /// Decides what a failure means and leaves the file fit for it.
    fn fail(&mut self, failed: Failed) -> AppendError {
        let shared = &self.shared;
        let (error, passes) = match failed {
            Failed::Begin(error) | Failed::Write(error) => {
                let passes = is_exhausted(&error);
                (error, passes)
            }
            Failed::Sync(error) => {
                let passes = is_no_room(&error);
                (error, passes)
            }
        };
        if !passes {
            shared.poison(format!("an append failed: {error}").into());
        } else if let Err(error) = self.cut() {
            shared.poison(format!("cutting off a refused append failed: {error}").into());
        } else {
            return self.short_of(&error);
        }
        AppendError::Undetermined(shared.is_poisoned().expect("it is now"))
    }

    /// Takes what a refused append wrote out of the file, and makes room.
    fn cut(&self) -> io::Result<()> {
        // It is also a descriptor.
        self.shared.release_spare();
        let Some(active) = &self.active else {
            return Ok(());
        };
        active.file.set_len(active.tail)?;
        active.file.sync()
    }

    /// Appends are refused until there is enough of what was missing.
    fn short_of(&self, error: &io::Error) -> AppendError {
        let shared = &self.shared;
        let reason: Option<Arc<str>> = (!is_no_room(error)).then(|| error.to_string().into());
        shared.short_of.lock().clone_from(&reason);
        if !shared.full.swap(true, Ordering::Relaxed) {
            tracing::warn!(dir = %shared.dir.display(), %error, "appends are refused until this has passed");
        }
        reason.map_or(AppendError::Full, AppendError::Exhausted)
    }

    /// Refuses this buffer and all that wait: they would have come behind it.
    fn refuse(&self, buffer: Buffer, error: AppendError) {
        let waiting = {
            let mut pending = self.shared.pending.lock();
            pending.done(buffer.bytes.len());
            pending.reset(self.next, self.chain)
        };
        self.shared.counters.lock().refusals += 1 + waiting.len() as u64;
        let refused = Err(error);
        for buffer in std::iter::once(buffer).chain(waiting) {
            buffer.promise.keep(&refused);
        }
    }

    /// Begins a segment: its header is safe before its name, its name before its records.
    fn begin(&self, first: u64) -> io::Result<Active> {
        let shared = &self.shared;
        let begun = shared.spare.lock().take();
        let Spare { path: begun, file } = match begun {
            Some(spare) => spare,
            None => {
                let path = shared.dir.join(BEGUN);
                let file = shared.vfs.open(&path, Open::truncated(0o600))?;
                Spare { path, file }
            }
        };
        let named = self.name(&begun, &*file, first);
        if named.is_err() {
            // It may be large, and there may be no room.
            drop(shared.vfs.remove(&begun));
        }
        let path = named?;
        let segment = Segment::new(first, path, Extent::empty(first, self.chain));
        shared
            .segments
            .write()
            .by_first
            .insert(first, segment.clone());
        shared.begun.fetch_add(1, Ordering::Relaxed);
        self.helper.ask(Chore::Note);
        Ok(Active {
            segment,
            file,
            tail: SEGMENT_HEADER_BYTES as u64,
            followed: false,
        })
    }

    /// Gives a file the header and the name of a segment.
    fn name(&self, begun: &Path, file: &dyn VfsFile, first: u64) -> io::Result<PathBuf> {
        let shared = &self.shared;
        let header = SegmentHeader {
            mark: shared.mark,
            chain: self.chain,
            first,
        };
        file.write_at(0, &header.encode())?;
        file.sync()?;
        let path = self.free_path(first)?;
        shared.vfs.rename(begun, &path)?;
        if let Err(error) = shared.vfs.sync_dir(&shared.dir) {
            // The name may be safe or not. Without it the next attempt begins from the beginning.
            shared.vfs.remove(&path)?;
            return Err(error);
        }
        Ok(path)
    }

    /// A name that no file has: a misnamed segment is not replaced.
    fn free_path(&self, first: u64) -> io::Result<PathBuf> {
        let name = segment_name(first);
        let mut path = self.shared.dir.join(&name);
        let mut number = 0;
        while self.shared.vfs.exists(&path)? {
            number += 1;
            path = self.shared.dir.join(format!("{number}-{name}"));
        }
        Ok(path)
    }

    /// Lets the keeper seal the active segment, when it holds anything.
    pub(super) fn seal(&mut self) {
        if self.shared.is_poisoned().is_some() {
            return;
        }
        let holds = |active: &mut Active| active.tail > SEGMENT_HEADER_BYTES as u64;
        if let Some(active) = self.active.take_if(holds) {
            self.helper.ask(Chore::Seal(active.segment));
        }
    }
}

/// Tells everybody when the writer breaks, so that nobody takes silence for health.
struct LastWords(Arc<Shared>);

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison("the writer broke".into());
            self.0.pending.lock().buffers.clear();
        }
    }
}
