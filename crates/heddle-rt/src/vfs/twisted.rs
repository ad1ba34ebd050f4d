//! A file system whose files write and sync in another way, for tests that want to see what comes of it.

use std::fmt::{self, Debug};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Lock, Open, Space, Vfs, VfsFile};

/// What is different about one open file. Whatever is not said otherwise is done as ever.
pub trait FileTwist: Debug + Send + Sync {
    fn write_at(&self, file: &dyn VfsFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_at(offset, bytes)
    }

    fn sync(&self, file: &dyn VfsFile) -> io::Result<()> {
        file.sync()
    }
}

type Twists = dyn Fn() -> Arc<dyn FileTwist> + Send + Sync;

/// Everything is as in the file system below, but for a twist in each file that is opened.
pub struct TwistedVfs {
    inner: Arc<dyn Vfs>,
    twists: Box<Twists>,
}

impl TwistedVfs {
    pub fn new(
        inner: Arc<dyn Vfs>,
        twists: impl Fn() -> Arc<dyn FileTwist> + Send + Sync + 'static,
    ) -> Self {
        let twists = Box::new(twists);
        Self { inner, twists }
    }

    /// A disk that only says that it syncs: of each file that is opened, so many syncs are done, and then none.
    #[must_use]
    pub fn lazy(inner: Arc<dyn Vfs>, syncs: u32) -> Self {
        Self::new(inner, move || Arc::new(LazySync(AtomicU32::new(syncs))))
    }
}

impl Debug for TwistedVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwistedVfs")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl Vfs for TwistedVfs {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        let inner = self.inner.open(path, options)?;
        let twist = (self.twists)();
        Ok(Arc::new(TwistedFile { inner, twist }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.inner.space(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct TwistedFile {
    inner: Arc<dyn VfsFile>,
    twist: Arc<dyn FileTwist>,
}

impl VfsFile for TwistedFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.twist.write_at(&*self.inner, offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn sync(&self) -> io::Result<()> {
        self.twist.sync(&*self.inner)
    }

    fn evict(&self) -> io::Result<()> {
        self.inner.evict()
    }
}

/// How many syncs are still done.
#[derive(Debug)]
struct LazySync(AtomicU32);

impl FileTwist for LazySync {
    fn sync(&self, file: &dyn VfsFile) -> io::Result<()> {
        let take = |left: u32| left.checked_sub(1);
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        {
            Ok(_) => file.sync(),
            Err(_) => Ok(()),
        }
    }
}
