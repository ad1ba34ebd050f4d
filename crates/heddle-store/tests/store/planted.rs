//! Bugs planted on purpose: the sweep that finds nothing in the store has to find these.

use std::io;
use std::path::Path;
use std::sync::Arc;

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{Lock, Open, Space, Vfs, VfsFile};
use heddle_store::engine::{Batch, Engine, EngineError, Image, LoadError, RedbEngine};
use heddle_store::{Check, OpenError, Options, Store};

use crate::crash::sweep;
use crate::support::*;

pub(crate) type Opener = fn(&MemoryVfs) -> Result<Store, OpenError>;

/// Acknowledges a batch and writes it when the next one comes.
struct Eager {
    inner: RedbEngine,
    waiting: Option<Batch>,
}

impl Engine for Eager {
    fn load(&mut self) -> Result<Image, LoadError> {
        self.inner.load()
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), EngineError> {
        match self.waiting.replace(batch.clone()) {
            Some(earlier) => self.inner.commit(&earlier),
            None => Ok(()),
        }
    }
}

fn open_eager(vfs: &MemoryVfs) -> Result<Store, OpenError> {
    let failed = |source: LoadError| OpenError::Corrupt {
        path: DIR.into(),
        reason: source.to_string(),
    };
    let dir = Path::new(DIR);
    vfs.create_dir_all(dir).map_err(|source| OpenError::Io {
        path: dir.into(),
        source,
    })?;
    let inner = RedbEngine::open(
        vfs.shared(),
        &dir.join("resources.redb"),
        &Store::fresh(),
        Check::Records,
    )
    .map_err(failed)?;
    Store::open_on(
        options(vfs),
        Box::new(Eager {
            inner,
            waiting: None,
        }),
    )
}

/// Says that bytes are safe after the first sync of each file, and does nothing.
#[derive(Debug)]
struct LyingVfs(Arc<dyn Vfs>);

#[derive(Debug)]
struct LyingFile {
    inner: Arc<dyn VfsFile>,
    synced: std::sync::atomic::AtomicU32,
}

impl Vfs for LyingVfs {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        let inner = self.0.open(path, options)?;
        Ok(Arc::new(LyingFile {
            inner,
            synced: 0.into(),
        }))
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }
    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.0.lock(path)
    }
}

impl VfsFile for LyingFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, out)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn sync(&self) -> io::Result<()> {
        // The making of the file is honest, so that the lie is about acknowledged commits.
        match self
            .synced
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        {
            0..8 => self.inner.sync(),
            _ => Ok(()),
        }
    }
    fn evict(&self) -> io::Result<()> {
        self.inner.evict()
    }
}

fn open_lied_to(vfs: &MemoryVfs) -> Result<Store, OpenError> {
    Store::open(Options {
        vfs: Arc::new(LyingVfs(vfs.shared())),
        ..options(vfs)
    })
}

#[tokio::test]
async fn an_engine_that_acknowledges_too_early_is_caught() {
    let found = sweep(open_eager).await.unwrap_err();
    assert!(found.contains("acknowledged"), "{found}");
}

#[tokio::test]
async fn a_disk_that_lies_about_syncing_is_caught() {
    let found = sweep(open_lied_to).await.unwrap_err();
    assert!(found.contains("PowerLoss"), "{found}");
}
