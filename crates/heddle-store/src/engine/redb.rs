//! redb on our files: one copy-on-write tree in one file.
//!
//! redb gives up after the first I/O error and wants to be opened again. For a full disk that
//! happens here, at once, and the file then says whether the batch was applied. A failed sync is
//! final: what the operating system forgot to write cannot be asked for.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use heddle_rt::vfs::{Open, Vfs, VfsFile};
use redb::backends::InMemoryBackend;
use redb::{
    Builder, Database, DatabaseError, Durability, ReadableDatabase as _, ReadableTable as _,
    StorageBackend, StorageError, TableDefinition,
};

use super::{Batch, Check, Engine, EngineError, Image, LoadError};

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
const TOMBSTONES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("tombstones");
const META_KEY: &str = "meta";

/// All reads are served from our own memory; redb needs its inner pages and what a commit touches.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// How much of the file is read at once.
const COPY_BYTES: usize = 1024 * 1024;

/// redb would take such a file for a database to be made.
const EMPTY: &str = "the file is empty";
const MISFIT: &str = "its pages do not fit their checksums";

/// The engine. Without a database after a failure, until it is opened again.
#[derive(Debug)]
pub struct RedbEngine {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    Open {
        database: Database,
        trouble: Arc<Trouble>,
    },
    /// No room, and none to open again either. The slot as it was before the batch in doubt.
    Full {
        meta: Bytes,
    },
    Failed(String),
}

/// What went wrong below redb.
#[derive(Debug, Default)]
struct Trouble {
    full: AtomicBool,
    sync_failed: AtomicBool,
}

impl RedbEngine {
    /// Opens the database at `path`, or makes one that holds `fresh`.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        fresh: &Batch,
        check: Check,
    ) -> Result<Self, LoadError> {
        if vfs.exists(path)? {
            // A creation that was broken off at its last step left a name that is not safe.
            vfs.sync_dir(dir_of(path)?)?;
        } else {
            Self::create(&vfs, path, fresh)?;
        }
        let (database, trouble) = open_database(vfs.as_ref(), path, check)?;
        Ok(Self {
            vfs,
            path: path.to_owned(),
            state: State::Open { database, trouble },
        })
    }

    /// Makes a database with these contents. It appears under its name complete or not at all.
    pub fn create(vfs: &Arc<dyn Vfs>, path: &Path, contents: &Batch) -> Result<(), LoadError> {
        create_database(vfs, path, |database| apply(database, contents))
    }

    /// The same with objects that are made as they are written, so that they need not all be in memory at once.
    pub(crate) fn create_from(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        meta: &[u8],
        objects: impl Iterator<Item = (Vec<u8>, Bytes)>,
    ) -> Result<(), LoadError> {
        create_database(vfs, path, |database| fill(database, meta, objects))
    }

    /// Reads the database at `path`, every page of it, and hands each object's key and record to `check`. Returns the slot.
    /// Only for a file that nobody else uses: redb marks it as open meanwhile.
    pub(crate) fn verify(
        vfs: &dyn Vfs,
        path: &Path,
        mut check: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
    ) -> Result<Bytes, LoadError> {
        let (mut database, _) = open_database(vfs, path, Check::Records)?;
        let verified = caught(|| {
            if !database.check_integrity()? {
                return Ok(Err(MISFIT.to_owned()));
            }
            let transaction = database.begin_read()?;
            for entry in transaction.open_table(OBJECTS)?.iter()? {
                let (key, record) = entry?;
                if let Err(reason) = check(key.value(), record.value()) {
                    return Ok(Err(reason));
                }
            }
            load_meta(&database).map(Ok)
        });
        let verified: Result<Result<Bytes, String>, redb::Error> =
            verified.map_err(LoadError::Corrupt)?;
        verified.map_err(image_error)?.map_err(LoadError::Corrupt)
    }

    /// Everything in the database at `path`, read on a copy in memory after a look at every page. The file is not changed.
    pub(crate) fn inspect(vfs: &dyn Vfs, path: &Path) -> Result<Image, LoadError> {
        let file = vfs.open(path, Open::existing())?;
        if file.len()? == 0 {
            return Err(LoadError::Corrupt(EMPTY.to_owned()));
        }
        let database = rehearse(file.as_ref())?;
        caught(|| load_image(&database))
            .map_err(LoadError::Corrupt)?
            .map_err(image_error)
    }

    /// After redb reported an error: was there no room, and was the batch applied?
    fn settle(
        &mut self,
        batch: &Batch,
        before: Bytes,
        error: redb::Error,
    ) -> Result<(), EngineError> {
        let State::Open { trouble, .. } = &self.state else {
            return Err(self.fail(format!("no open database: {error}")));
        };
        let full =
            trouble.full.load(Ordering::Acquire) && !trouble.sync_failed.load(Ordering::Acquire);
        if !full {
            return Err(self.fail(error.to_string()));
        }
        // The old database lets go of the file before it is opened again.
        self.state = State::Full { meta: before };
        match self.reopen(Some(batch)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(EngineError::Full),
            Err(error) => Err(error),
        }
    }

    /// Opens the database again after it ran out of room. Says whether `batch` was applied.
    fn reopen(&mut self, batch: Option<&Batch>) -> Result<bool, EngineError> {
        let State::Full { meta } = &self.state else {
            return Ok(false);
        };
        let before = meta.clone();
        let opened = caught(|| {
            let (database, trouble) = open_database(self.vfs.as_ref(), &self.path, Check::Records)?;
            let meta =
                load_meta(&database).map_err(|error| LoadError::Corrupt(error.to_string()))?;
            Ok::<_, LoadError>((database, trouble, meta))
        });
        let (database, trouble, meta) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(LoadError::Io(error))) if is_full(&error) => return Err(EngineError::Full),
            Ok(Err(error)) => return Err(self.fail(error.to_string())),
            Err(panic) => return Err(self.fail(panic)),
        };
        self.state = State::Open { database, trouble };
        let applied = batch.is_some_and(|batch| batch.meta == meta);
        if !applied && meta != before {
            // Refused once and there after all: readers would never learn of it in this process.
            return Err(self.fail("a batch that was refused has been applied".to_owned()));
        }
        Ok(applied)
    }

    fn fail(&mut self, reason: String) -> EngineError {
        self.state = State::Failed(reason.clone());
        EngineError::Failed(reason)
    }
}

impl Engine for RedbEngine {
    fn load(&mut self) -> Result<Image, LoadError> {
        let State::Open { database, .. } = &self.state else {
            return Err(LoadError::Corrupt("the database is not open".to_owned()));
        };
        let loaded = caught(|| load_image(database)).map_err(LoadError::Corrupt)?;
        loaded.map_err(image_error)
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), EngineError> {
        self.reopen(None)?;
        let database = match &self.state {
            State::Open { database, .. } => database,
            State::Failed(reason) => return Err(EngineError::Failed(reason.clone())),
            State::Full { .. } => return Err(EngineError::Full),
        };
        let done = caught(|| {
            let before = load_meta(database)?;
            Ok::<_, redb::Error>((before, apply(database, batch)))
        });
        match done {
            Ok(Ok((_, Ok(())))) => Ok(()),
            Ok(Ok((before, Err(error)))) => self.settle(batch, before, error),
            Ok(Err(error)) => Err(self.fail(error.to_string())),
            Err(panic) => Err(self.fail(panic)),
        }
    }
}

fn dir_of(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn create_database(
    vfs: &Arc<dyn Vfs>,
    path: &Path,
    write: impl FnOnce(&Database) -> Result<(), redb::Error>,
) -> Result<(), LoadError> {
    let dir = dir_of(path)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(
        path.file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?,
    );
    name.push(".new");
    let unfinished = dir.join(name);
    let file = vfs.open(&unfinished, Open::truncated(0o600))?;
    let (backend, _) = Backend::on(file.clone());
    let database = builder().create_with_backend(backend).map_err(load_error)?;
    write(&database).map_err(|error| LoadError::Io(io::Error::other(error)))?;
    drop(database);
    file.sync()?;
    vfs.rename(&unfinished, path)?;
    vfs.sync_dir(dir)?;
    Ok(())
}

/// Opens a database that exists.
fn open_database(
    vfs: &dyn Vfs,
    path: &Path,
    check: Check,
) -> Result<(Database, Arc<Trouble>), LoadError> {
    let file = vfs.open(path, Open::existing())?;
    if file.len()? == 0 {
        return Err(LoadError::Corrupt(EMPTY.to_owned()));
    }
    if !closed_in_order(file.as_ref())? {
        // What the earlier process wrote and could not sync may still be cached. It is either made
        // safe now or forgotten, before anybody reads it and believes it.
        file.sync()?;
        file.evict()?;
    }
    if check == Check::Pages {
        rehearse(file.as_ref())?;
    }
    let (backend, trouble) = Backend::on(file);
    let opened = caught(|| builder().create_with_backend(backend)).map_err(LoadError::Corrupt)?;
    Ok((opened.map_err(load_error)?, trouble))
}

/// Whether the last process to write said goodbye: redb sets a bit behind its magic number as long
/// as a database is open, and never clears it after an error.
fn closed_in_order(file: &dyn VfsFile) -> io::Result<bool> {
    const FLAGS_AT: u64 = 9;
    const OPEN: u8 = 2;
    let mut flags = [OPEN];
    match file.read_at(FLAGS_AT, &mut flags) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| flags[0] & OPEN == 0),
    }
}

/// Checks every page on a copy in memory, because redb repairs what it finds, and a repair of a
/// database that was closed in order means going back to an older commit.
fn rehearse(file: &dyn VfsFile) -> Result<Database, LoadError> {
    let copy = InMemoryBackend::new();
    let len = file.len()?;
    copy.set_len(len)?;
    let mut chunk = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < len {
        let bytes = usize::try_from(len - offset)
            .unwrap_or(COPY_BYTES)
            .min(COPY_BYTES);
        file.read_at(offset, &mut chunk[..bytes])?;
        copy.write(offset, &chunk[..bytes])?;
        offset += bytes as u64;
    }
    let after_crash = Arc::new(AtomicBool::new(false));
    let repairing = after_crash.clone();
    let mut builder = builder();
    builder.set_repair_callback(move |_| repairing.store(true, Ordering::Release));
    let sound = caught(|| {
        let mut database = builder.create_with_backend(copy)?;
        // After a crash redb has just looked at every page, and a torn last commit is no damage.
        let sound = after_crash.load(Ordering::Acquire) || database.check_integrity()?;
        Ok(sound.then_some(database))
    });
    // Memory does not fail: every error is about what is in the file.
    let damaged = |error: DatabaseError| LoadError::Corrupt(error.to_string());
    let sound = sound.map_err(LoadError::Corrupt)?.map_err(damaged)?;
    sound.ok_or_else(|| LoadError::Corrupt(MISFIT.to_owned()))
}

fn apply(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    {
        transaction
            .open_table(META)?
            .insert(META_KEY, batch.meta.as_ref())?;
        let mut objects = transaction.open_table(OBJECTS)?;
        for (key, record) in &batch.objects {
            match record {
                Some(record) => objects.insert(key.as_slice(), record.as_ref())?,
                None => objects.remove(key.as_slice())?,
            };
        }
        let mut tombstones = transaction.open_table(TOMBSTONES)?;
        for (version, record) in &batch.tombstones {
            match record {
                Some(record) => tombstones.insert(version, record.as_ref())?,
                None => tombstones.remove(version)?,
            };
        }
    }
    transaction.commit()?;
    Ok(())
}

fn fill(
    database: &Database,
    meta: &[u8],
    objects: impl Iterator<Item = (Vec<u8>, Bytes)>,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    {
        transaction.open_table(META)?.insert(META_KEY, meta)?;
        let mut table = transaction.open_table(OBJECTS)?;
        for (key, record) in objects {
            table.insert(key.as_slice(), record.as_ref())?;
        }
        transaction.open_table(TOMBSTONES)?;
    }
    transaction.commit()?;
    Ok(())
}

fn load_meta(database: &Database) -> Result<Bytes, redb::Error> {
    let table = database.begin_read()?.open_table(META)?;
    let meta = table.get(META_KEY)?;
    Ok(meta.map_or_else(Bytes::new, |meta| Bytes::copy_from_slice(meta.value())))
}

fn load_image(database: &Database) -> Result<Image, redb::Error> {
    let mut image = Image {
        meta: load_meta(database)?,
        ..Image::default()
    };
    let transaction = database.begin_read()?;
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, record) = entry?;
        let (key, record) = (
            Bytes::copy_from_slice(key.value()),
            Bytes::copy_from_slice(record.value()),
        );
        image.objects.push((key, record));
    }
    for entry in transaction.open_table(TOMBSTONES)?.iter()? {
        let (version, record) = entry?;
        image
            .tombstones
            .push((version.value(), Bytes::copy_from_slice(record.value())));
    }
    Ok(image)
}

fn image_error(error: redb::Error) -> LoadError {
    match error {
        redb::Error::Io(error) => LoadError::Io(error),
        other => LoadError::Corrupt(other.to_string()),
    }
}

fn load_error(error: DatabaseError) -> LoadError {
    match error {
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) =>
        {
            LoadError::Io(error)
        }
        other => LoadError::Corrupt(other.to_string()),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// redb asserts what it finds in a file; damage may show as a panic.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        format!(
            "the database does not hold together: {}",
            text.unwrap_or("no reason given")
        )
    })
}

/// redb's storage on one of our files.
#[derive(Debug)]
struct Backend {
    file: Arc<dyn VfsFile>,
    trouble: Arc<Trouble>,
}

impl Backend {
    fn on(file: Arc<dyn VfsFile>) -> (Self, Arc<Trouble>) {
        let trouble = Arc::new(Trouble::default());
        (
            Self {
                file,
                trouble: trouble.clone(),
            },
            trouble,
        )
    }

    fn note_full<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(is_full) {
            self.trouble.full.store(true, Ordering::Release);
        }
        result
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note_full(self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let result = self.file.sync();
        if result.is_err() {
            self.trouble.sync_failed.store(true, Ordering::Release);
        }
        result
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note_full(self.file.write_at(offset, data))
    }
}
