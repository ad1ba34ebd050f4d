//! Bugs planted on purpose: the sweep that finds nothing in the store has to find these.

use std::path::Path;
use std::sync::Arc;

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::{TwistedVfs, Vfs as _};
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

fn open_lied_to(vfs: &MemoryVfs) -> Result<Store, OpenError> {
    Store::open(Options {
        // The making of the file is honest, so that the lie is about acknowledged commits.
        vfs: Arc::new(TwistedVfs::lazy(vfs.shared(), 8)),
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
