//! Durable bytes: revisioned resources and, in [`events`], a log, behind one write-ahead discipline.
//!
//! *Write, sync, then acknowledge; after a failed sync acknowledge nothing more until a restart.*
//! Objects are kept whole on disk, and packed in memory (see `sample`). Every change gets the next version of one global
//! order. Readers see consistent snapshots of what is safe; watchers see every change once, in
//! order, and can go on over a restart.
//!
//! ```text
//!   commit ─> writer ─> group (plan) ─> engine (redb on a Vfs)      open ─> engine ─> recovery ─┐
//!                │                                                                             │
//!                └─> state (objects, indexes, history) <───────────────────────────────────────┘
//!                          └─> get, list, watch
//! ```
//! What the bytes mean, who may write them and what a selector matches is left to the API server.

mod copies;
pub mod engine;
mod error;
pub mod events;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod history;
mod key;
mod mode;
mod object;
mod recovery;
pub mod repair;
mod sample;
mod state;
mod stats;
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::vfs::{Lock, Vfs};
use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot};

pub use engine::Check;
pub use error::{BackupError, CommitError, Expired, OpenError};
pub use key::{Key, ResourceVersion};
pub use mode::Mode;
pub use object::{Change, ChangeKind, Draft, Expect, Facts, Listing, Object, Op, Write};
pub use stats::{Health, Stats};
pub use watch::Watch;

use engine::{Batch, Engine, LoadError, RedbEngine};
use format::Meta;
use group::Prepared;
use mode::WriterDoor;
use sample::Samples;
use state::State;
use stats::CommitCounters;
use writer::{Request, Shared, Writer};

/// The database inside the store's directory.
const DATABASE: &str = "resources.redb";
const LOCK: &str = "lock";

/// A restored backup goes on this many versions later, so that it repeats none of those that were
/// given out after the backup was made.
const BACKUP_VERSION_STEP: u64 = 1_000_000_000;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    pub vfs: Arc<dyn Vfs>,
    /// Made when missing. Belongs to the store alone.
    pub dir: PathBuf,
    pub clock: Clock,
    /// Who owns the writer; it gets a group of its own.
    pub tasks: Tasks,
    pub limits: Limits,
    pub mode: Mode,
    pub check: Check,
}

/// Every bound of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// As large as etcd takes, so what is accepted here is accepted on a cluster.
    pub object_bytes_max: usize,
    /// Batches that wait; more callers wait outside.
    pub queue_max: usize,
    pub group_batches_max: usize,
    pub group_bytes_max: usize,
    /// Changes kept for watchers, over all resources.
    pub history_bytes_max: usize,
    /// Deletions remembered for watches that go on over a restart.
    pub tombstones_max: usize,
    pub tombstone_age_max: Duration,
    /// After a refusal for want of room the disk is left alone for so long: each attempt costs redb
    /// a look at the whole database.
    pub full_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object_bytes_max: 1536 * 1024,
            queue_max: 1024,
            group_batches_max: 512,
            group_bytes_max: 8 * 1024 * 1024,
            history_bytes_max: 8 * 1024 * 1024,
            tombstones_max: 16 * 1024,
            tombstone_age_max: Duration::from_secs(3600),
            full_pause: Duration::from_secs(1),
        }
    }
}

impl Options {
    /// With the usual limits and a task tree of its own.
    #[must_use]
    pub fn new(vfs: Arc<dyn Vfs>, dir: impl Into<PathBuf>, clock: Clock) -> Self {
        Self {
            vfs,
            dir: dir.into(),
            clock,
            tasks: Tasks::new("heddle"),
            limits: Limits::default(),
            mode: Mode::default(),
            check: Check::default(),
        }
    }
}

/// A handle on the store. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Shared,
    samples: Samples,
    door: WriterDoor<Request, Writer>,
    limits: Limits,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    tasks: Tasks,
}

impl Store {
    /// Opens the store in `options.dir`, or makes one. A second process is refused.
    ///
    /// Blocks while it reads everything.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Options { vfs, dir, .. } = &options;
        vfs.create_dir_all(dir).map_err(open_error(dir))?;
        let lock = lock_dir(vfs.as_ref(), dir)?;
        let path = dir.join(DATABASE);
        let engine = RedbEngine::open(vfs.clone(), &path, &Self::fresh(), options.check)
            .map_err(load_error(&path))?;
        Self::start(options, Box::new(engine), Some(lock))
    }

    /// Runs on another engine, which the caller keeps others away from. A fresh one has to hold
    /// what [`Store::fresh`] gives.
    pub fn open_on(options: Options, engine: Box<dyn Engine>) -> Result<Self, OpenError> {
        Self::start(options, engine, None)
    }

    /// The contents of a store without objects.
    #[must_use]
    pub fn fresh() -> Batch {
        let meta = format::encode_meta(&Meta {
            format: format::FORMAT,
            ..Meta::default()
        });
        Batch {
            meta,
            ..Batch::default()
        }
    }

    fn start(
        options: Options,
        mut engine: Box<dyn Engine>,
        lock: Option<Lock>,
    ) -> Result<Self, OpenError> {
        let Options {
            vfs,
            dir,
            clock,
            tasks,
            limits,
            mode,
            ..
        } = options;
        let (path, tasks) = (dir.join(DATABASE), tasks.child("store"));
        let image = engine.load().map_err(load_error(&path))?;
        let samples = Samples::default();
        let state = recovery::restore(image, &samples, limits.history_bytes_max)
            .map_err(repair::unreadable(&path))?;
        let shared = Shared {
            state: Arc::new(RwLock::new(state)),
            counters: Arc::new(Mutex::new(CommitCounters::default())),
        };
        let writer = Writer {
            engine,
            shared: shared.clone(),
            clock,
            limits,
            full_at: None,
            _lock: lock,
        };
        let door = match mode {
            Mode::Inline => WriterDoor::inline(writer),
            Mode::Thread => {
                let (tx, rx) = mpsc::channel(limits.queue_max);
                tasks
                    .spawn_thread("writer", OnError::EndProcess, move || writer.run(rx))
                    .map_err(|source| OpenError::Io { path, source })?;
                WriterDoor::thread(tx)
            }
        };
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                samples,
                door,
                limits,
                vfs,
                dir,
                tasks,
            }),
        })
    }

    /// Writes all of the batch or nothing, and returns when it is safe. The objects written come
    /// back in order, without the checks. Each write sees the earlier ones of its batch.
    ///
    /// A caller that stops waiting does not stop the write. An empty batch waits for all before it,
    /// and asks a full disk whether it still is.
    pub async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Arc<Object>>, CommitError> {
        batch.iter().try_for_each(|write| self.check(write))?;
        let (reply, answer) = oneshot::channel();
        let samples = &self.inner.samples;
        let batch = batch
            .into_iter()
            .map(|write| Prepared::new(write, samples))
            .collect();
        let request = Request { batch, reply };
        match &self.inner.door {
            WriterDoor::Thread(tx) => {
                let tx = tx.lock().clone().ok_or(CommitError::Closed)?;
                tx.send(request).await.map_err(|_| self.gone())?;
            }
            WriterDoor::Inline(writer) => match writer.lock().as_mut() {
                Some(writer) => writer.commit(vec![request]),
                None => return Err(CommitError::Closed),
            },
        }
        answer.await.map_err(|_| self.gone())?
    }

    /// The writer is not there any more: it ended, or it broke.
    fn gone(&self) -> CommitError {
        if self.inner.shared.state.read().closed {
            CommitError::Closed
        } else {
            CommitError::Poisoned
        }
    }

    fn check(&self, write: &Write) -> Result<(), CommitError> {
        let (Op::Put(draft) | Op::Remove(draft)) = &write.op else {
            return Ok(());
        };
        let invalid = |reason| {
            Err(CommitError::Invalid {
                key: write.key.clone(),
                reason,
            })
        };
        let (bytes, bytes_max) = (draft.json.len(), self.inner.limits.object_bytes_max);
        if bytes > bytes_max {
            return Err(CommitError::TooLarge {
                key: write.key.clone(),
                bytes,
                bytes_max,
            });
        }
        let Key {
            resource,
            namespace,
            name,
        } = &write.key;
        if [resource, namespace, name]
            .iter()
            .any(|part| part.len() > format::KEY_PART_BYTES_MAX)
        {
            return invalid("its name is too long");
        }
        if !draft.is_sound() {
            return invalid("its version does not go between two quotes");
        }
        Ok(())
    }

    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.inner.shared.state.read().get(key).cloned()
    }

    /// The last version that is safe.
    #[must_use]
    pub fn version(&self) -> ResourceVersion {
        self.inner.shared.state.read().version
    }

    /// The objects of a resource at one version, of one namespace or of all.
    #[must_use]
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> Listing {
        self.inner.shared.state.read().list(resource, namespace)
    }

    /// The objects of a resource that have this name, of all namespaces, at one version.
    #[must_use]
    pub fn list_named(&self, resource: &str, name: &str) -> Listing {
        self.inner.shared.state.read().list_named(resource, name)
    }

    #[must_use]
    pub fn by_uid(&self, uid: &str) -> Option<Arc<Object>> {
        self.inner.shared.state.read().by_uid(uid).cloned()
    }

    /// The objects that name this uid as an owner, sorted by key.
    #[must_use]
    pub fn dependents(&self, owner_uid: &str) -> Vec<Arc<Object>> {
        self.inner.shared.state.read().dependents(owner_uid)
    }

    /// How many objects each resource has; those without any are left out.
    #[must_use]
    pub fn counts(&self) -> Vec<(Arc<str>, usize)> {
        self.inner.shared.state.read().counts()
    }

    /// The changes of a resource after `from`.
    ///
    /// What this process has not witnessed, or not kept, is put together from what is stored
    /// ([`Change::recovered`]), as far back as deletions are remembered.
    pub fn watch(&self, resource: &str, from: ResourceVersion) -> Result<Watch, Expired> {
        Watch::start(&self.inner.shared.state, resource, from)
    }

    /// The objects of a resource, and every change after that list.
    ///
    /// The watch of a closed store ends with its first question.
    #[must_use]
    pub fn list_and_watch(&self, resource: &str) -> (Listing, Watch) {
        let shared = &self.inner.shared.state;
        let state = State::read_with_ring(shared, resource);
        (
            state.list(resource, None),
            Watch::at_end(shared, &state, resource),
        )
    }

    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.inner.shared.counters.lock().fill(&mut stats);
        let state = self.inner.shared.state.read();
        stats.version = state.version;
        stats.objects_count = state.objects_count();
        stats.tombstones_count = state.tombstone_set.tombstones.len();
        stats.history_count = state.history.len();
        stats.history_bytes = state.history.bytes();
        stats.watchers_count = state.history.watchers();
        if let WriterDoor::Thread(tx) = &self.inner.door
            && let Some(tx) = tx.lock().as_ref()
        {
            stats.queue_count = tx.max_capacity() - tx.capacity();
        }
        stats
    }

    #[must_use]
    pub fn health(&self) -> Health {
        self.inner.shared.state.read().health.clone()
    }

    /// Finishes what is queued, refuses what comes later, and returns when the files are let go.
    /// Reads go on; watches end.
    pub async fn close(&self) {
        match &self.inner.door {
            WriterDoor::Inline(writer) => {
                drop(writer.lock().take());
                self.inner.shared.close();
            }
            WriterDoor::Thread(tx) => {
                drop(tx.lock().take());
                self.inner.tasks.join().await;
            }
        }
    }

    /// Writes a copy of one version into a fresh file while serving. To restore it, put it in the
    /// place of the database of a store that is not running. The copy goes on with much higher
    /// versions: watches have to start over, and no version means two things.
    pub async fn backup(&self, path: &Path) -> Result<(), BackupError> {
        let exists = self.inner.vfs.exists(path).map_err(backup_error(path))?;
        if exists {
            return Err(BackupError::Exists {
                path: path.to_owned(),
            });
        }
        let (objects, version) = {
            let state = self.inner.shared.state.read();
            (state.all().cloned().collect::<Vec<_>>(), state.version)
        };
        let (vfs, target) = (self.inner.vfs.clone(), path.to_owned());
        let copy = move || {
            let meta = repair::fresh_meta(version, objects.len() as u64);
            let records = objects.iter().map(|object| {
                let key = format::encode_key(&object.key);
                (key, format::reencode_object(object))
            });
            RedbEngine::create_from(&vfs, &target, &meta, records)
        };
        let copied = self.aside("backup", copy).await;
        let copied = copied.map_err(backup_error(path))?;
        copied.map_err(|error| match error {
            LoadError::Io(source) => backup_error(path)(source),
            LoadError::Corrupt(reason) => backup_error(path)(std::io::Error::other(reason)),
        })
    }

    /// Runs what takes long where it makes nobody wait: on a thread of its own, unless the store has none.
    async fn aside<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<T> {
        if matches!(self.inner.door, WriterDoor::Inline(_)) {
            return Ok(work());
        }
        self.inner.tasks.blocking(name, work).await
    }
}

fn backup_error(path: &Path) -> impl Fn(std::io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io {
        path: path.clone(),
        source,
    }
}

/// Keeps other processes away from the directory.
fn lock_dir(vfs: &dyn Vfs, dir: &Path) -> Result<Lock, OpenError> {
    match vfs.lock(&dir.join(LOCK)) {
        Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => Err(OpenError::Busy {
            dir: dir.to_owned(),
        }),
        other => other.map_err(open_error(dir)),
    }
}

fn open_error(path: &Path) -> impl Fn(std::io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io {
        path: path.clone(),
        source,
    }
}

fn load_error(path: &Path) -> impl Fn(LoadError) -> OpenError {
    let path = path.to_owned();
    move |error| match error {
        LoadError::Corrupt(reason) => OpenError::Corrupt {
            path: path.clone(),
            reason,
        },
        LoadError::Io(source) => OpenError::Io {
            path: path.clone(),
            source,
        },
    }
}
