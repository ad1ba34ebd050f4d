//! Keeping an image, step by step: its blobs come one after the other, and then all of it is kept at once.
//!
//! While a [`Hold`] lives, nothing that was written through it or found through it is let go. A blob is written under
//! another name, hashed on its way, and gets its own name when its content is what the digest says.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use super::{BLOBS, Digest, Error, Hasher, KEPT, Store, doing, tree};

/// An image that is being kept.
#[derive(Debug)]
pub struct Hold {
    store: Store,
    id: u64,
}

impl Hold {
    pub(super) fn new(store: Store) -> Self {
        let mut state = store.inner.state.lock();
        state.next += 1;
        let id = state.next;
        state.held.insert(id, HashSet::new());
        drop(state);
        Self { store, id }
    }

    /// Whether the content is here. If so it stays as long as this hold.
    #[must_use]
    pub fn has(&self, digest: &Digest) -> bool {
        let mut state = self.store.inner.state.lock();
        let here = self.store.blob_path(digest).is_file();
        if here {
            state
                .held
                .entry(self.id)
                .or_default()
                .insert(digest.clone());
        }
        here
    }

    /// A place for content of exactly `size` bytes.
    pub fn writer(&self, digest: &Digest, size: u64) -> Result<Writer, Error> {
        let limits = self.store.inner.limits;
        if size > limits.blob_bytes_max {
            let max = limits.blob_bytes_max;
            return Err(Error::Refused(format!(
                "{digest} has {size} bytes, and {max} are allowed"
            )));
        }
        let mut state = self.store.inner.state.lock();
        let (used, max) = (state.used, limits.total_bytes_max);
        if used.saturating_add(size) > max {
            return Err(Error::Full {
                wanted: size,
                used,
                max,
            });
        }
        state.used += size;
        state
            .held
            .entry(self.id)
            .or_default()
            .insert(digest.clone());
        drop(state);
        let mut writer = Writer {
            store: self.store.clone(),
            path: self.store.temporary(),
            file: None,
            hasher: Hasher::default(),
            digest: digest.clone(),
            size,
            written: 0,
            finished: false,
        };
        let file = File::create_new(&writer.path);
        writer.file = Some(file.map_err(doing(format!("make a file for {digest}")))?);
        Ok(writer)
    }

    /// Puts content that is in memory.
    pub fn put(&self, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
        if self.has(digest) {
            return Ok(());
        }
        let mut writer = self.writer(digest, bytes.len() as u64)?;
        writer.write(bytes)?;
        writer.finish()
    }

    /// From now on the image is kept, if all of it is here.
    pub fn seal(&self, manifest_digest: &Digest) -> Result<(), Error> {
        for part in self.store.parts(manifest_digest)? {
            if !self.has(&part) {
                return Err(Error::NotKept(part.to_string()));
            }
        }
        let mark = self.store.inner.dir.join(KEPT).join(manifest_digest.hex());
        let temporary = self.store.temporary();
        File::create_new(&temporary)
            .and_then(|_| tree::publish(&temporary, &mark))
            .map_err(doing(format!("note that {manifest_digest} is kept")))?;
        // Before the hold ends, so that nothing is let go in between.
        let mut state = self.store.inner.state.lock();
        state.kept.insert(manifest_digest.clone());
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.store.inner.state.lock().held.remove(&self.id);
    }
}

/// Content on its way into the store.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    path: PathBuf,
    file: Option<File>,
    hasher: Hasher,
    digest: Digest,
    size: u64,
    written: u64,
    finished: bool,
}

impl Writer {
    /// The next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        if self.written > self.size {
            let found = format!(
                "unknown, with more than the {} bytes it should have",
                self.size
            );
            return Err(self.mismatch(found));
        }
        self.hasher.update(bytes);
        let file = self.file.as_mut().expect("opened with the writer");
        file.write_all(bytes)
            .map_err(doing(format!("write {}", self.digest)))
    }

    /// Verifies the content and gives it its name.
    pub fn finish(mut self) -> Result<(), Error> {
        let found = std::mem::take(&mut self.hasher).finish();
        if found != self.digest {
            return Err(self.mismatch(found.to_string()));
        }
        if self.written != self.size {
            let found = format!(
                "the right one, but {} bytes instead of {}",
                self.written, self.size
            );
            return Err(self.mismatch(found));
        }
        let name = self.store.inner.dir.join(BLOBS).join(self.digest.hex());
        let here = name.is_file();
        tree::publish(&self.path, &name).map_err(doing(format!("put {} in place", self.digest)))?;
        // Two may have fetched the same; it takes its room once.
        self.finished = !here;
        Ok(())
    }

    fn mismatch(&self, found: String) -> Error {
        Error::Mismatch {
            expected: self.digest.clone(),
            found,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let mut state = self.store.inner.state.lock();
        state.used = state.used.saturating_sub(self.size);
        drop(state);
        if let Err(error) = tree::remove(&self.path) {
            tracing::warn!(%error, "cannot remove an unfinished blob");
        }
    }
}
