//! A store that cannot be opened: what of it is intact, and a new one made of that.
//!
//! ```text
//!   damaged file ─> pages ─> salvage ─┐
//!   verified copy ────────────────────┴─> merge ─> Plan ─> a store beside, verified ─> renamed into place
//! ```
//! Everything here reads the file as it is and writes beside it. Opening would not do: the engine repairs what it finds, and
//! a repair may mean going back to an older commit. The damaged file is kept. The new store goes on with much higher versions,
//! as a restored backup does, so that no version means two things.

mod merge;
mod pages;
mod salvage;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use heddle_rt::Vfs;
use heddle_rt::vfs::{Lock, Open};

use crate::engine::{Image, LoadError, RedbEngine};
use crate::format::{self, Meta};
use crate::recovery::{self, Unreadable};
use crate::sample::Samples;
use crate::{BACKUP_VERSION_STEP, DATABASE, Key, OpenError, ResourceVersion};
use crate::{copies, load_error, lock_dir, open_error};
use merge::{Copy, Merged, merge};
use salvage::{Records, Salvage};

/// Where the damaged file goes.
const DAMAGED: &str = "resources.damaged";
/// The new store, until it takes the place of the damaged one.
const REPAIRED: &str = "resources.repaired";

/// How a store was found.
#[derive(Debug)]
pub enum Finding {
    /// Every page and every record is sound.
    Sound {
        objects_count: u64,
    },
    Damaged(Box<Plan>),
}

/// What a repair would do. Holds the store's lock.
pub struct Plan {
    /// What the store was refused for.
    pub reason: String,
    /// Objects that are as they were last written.
    pub intact_count: u64,
    /// Objects that come back in a form that may be older than the last one, with the version of that form. One that was
    /// deleted in the meantime may be among them.
    pub older: Vec<(Key, ResourceVersion)>,
    /// Objects of which nothing is left.
    pub lost: Vec<Key>,
    /// So many more are gone without their names; `None` when not even their number is known.
    pub unnamed_count: Option<u64>,
    /// The verified copy that fills in what is missing, if there is one.
    pub copy: Option<PathBuf>,
    version: ResourceVersion,
    records: Records,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    _lock: Lock,
}

/// Looks at every page and record of the store in `dir`. Nothing is changed.
pub fn examine(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<Finding, OpenError> {
    let lock = lock_dir(vfs.as_ref(), dir)?;
    let path = dir.join(DATABASE);
    let inspected = inspect(vfs.as_ref(), &path);
    let reason = match inspected {
        Ok(image) => {
            let objects_count = image.objects.len() as u64;
            return Ok(Finding::Sound { objects_count });
        }
        Err(OpenError::Corrupt { reason, .. }) => reason,
        Err(OpenError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            "it is missing".to_owned()
        }
        Err(other) => return Err(other),
    };
    let file = match vfs.read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(open_error(&path))?,
    };
    let salvage = Salvage::of(&file);
    drop(file);
    let found = newest_copy(vfs.as_ref(), dir)?;
    let (copy_path, copy) = found.unzip();
    let copy_version = copy
        .as_ref()
        .map_or(ResourceVersion::ZERO, |copy| copy.version);
    let version = salvage.version_max.max(copy_version);
    let intact_count = salvage.live.len() as u64;
    let Merged {
        records,
        older,
        lost,
        unnamed_count,
    } = merge(salvage, copy);
    Ok(Finding::Damaged(Box::new(Plan {
        reason,
        intact_count,
        older: older
            .into_iter()
            .map(|old| (old.key, old.version))
            .collect(),
        lost,
        unnamed_count,
        copy: copy_path,
        version,
        records,
        vfs: Arc::clone(vfs),
        dir: dir.to_owned(),
        _lock: lock,
    })))
}

impl Plan {
    /// Makes the new store and puts it in place as one step. Returns where the damaged file is now.
    pub fn carry_out(self) -> Result<PathBuf, OpenError> {
        let (vfs, path) = (self.vfs.as_ref(), self.dir.join(DATABASE));
        let kept = self.keep_damaged(&path).map_err(open_error(&path))?;
        let repaired = self.dir.join(REPAIRED);
        let objects = self.records.iter();
        let objects = objects.map(|(key, record)| (key.clone(), record.bytes.clone()));
        let meta = fresh_meta(self.version, self.records.len() as u64);
        RedbEngine::create_from(&self.vfs, &repaired, &meta, objects)
            .map_err(load_error(&repaired))?;
        verify(vfs, &repaired)?;
        vfs.rename(&repaired, &path).map_err(open_error(&path))?;
        vfs.sync_dir(&self.dir).map_err(open_error(&self.dir))?;
        Ok(kept)
    }

    /// A copy of the damaged file under a free name. It is not renamed: without a file of its name, a store is made anew.
    fn keep_damaged(&self, path: &Path) -> std::io::Result<PathBuf> {
        let vfs = self.vfs.as_ref();
        let mut kept = self.dir.join(DAMAGED);
        let mut number = 1;
        while vfs.exists(&kept)? {
            number += 1;
            kept = self.dir.join(format!("{DAMAGED}.{number}"));
        }
        if vfs.exists(path)? {
            let file = vfs.open(&kept, Open::truncated(0o600))?;
            file.write_at(0, &vfs.read(path)?)?;
            file.sync()?;
            vfs.sync_dir(&self.dir)?;
        }
        Ok(kept)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("reason", &self.reason)
            .field("intact_count", &self.intact_count)
            .field("older", &self.older)
            .field("lost", &self.lost)
            .field("unnamed_count", &self.unnamed_count)
            .finish_non_exhaustive()
    }
}

/// The meta record of a store that goes on from a copy of one at `version`.
pub(crate) fn fresh_meta(version: ResourceVersion, objects_count: u64) -> Bytes {
    let version = ResourceVersion::new(version.get() + BACKUP_VERSION_STEP);
    format::encode_meta(&Meta {
        format: format::FORMAT,
        version,
        horizon: version,
        objects_count,
        tombstones_count: 0,
    })
}

/// Reads a store that somebody just wrote as it would be read at a start: every page, every record, none missing. Says how
/// many objects there are. Takes no more memory than one of them.
pub(crate) fn verify(vfs: &dyn Vfs, path: &Path) -> Result<u64, OpenError> {
    let (mut objects_count, samples) = (0, Samples::default());
    let meta = RedbEngine::verify(vfs, path, |key, record| {
        objects_count += 1;
        let decoded = format::decode_object(key, record, &samples);
        decoded.map(drop).map_err(|damage| damage.to_string())
    });
    let meta = meta.map_err(load_error(path))?;
    let meta = format::decode_meta(&meta).map_err(Unreadable::from);
    let meta = meta.map_err(unreadable(path))?;
    recovery::check_count("objects", objects_count, meta.objects_count)
        .map_err(unreadable(path))?;
    Ok(objects_count)
}

/// How many objects the database at `path` holds, if every page and record of it is sound. The file is not changed.
pub fn check(vfs: &dyn Vfs, path: &Path) -> Result<u64, OpenError> {
    inspect(vfs, path).map(|image| image.objects.len() as u64)
}

/// Everything in the store at `path`, if every page and record of it is sound. The file is not changed.
fn inspect(vfs: &dyn Vfs, path: &Path) -> Result<Image, OpenError> {
    let image = RedbEngine::inspect(vfs, path).map_err(load_error(path))?;
    recovery::restore(image.clone(), &Samples::default(), 0).map_err(unreadable(path))?;
    Ok(image)
}

/// The latest of the copies beside the store that is sound.
fn newest_copy(vfs: &dyn Vfs, dir: &Path) -> Result<Option<(PathBuf, Copy)>, OpenError> {
    for path in copies::list(vfs, dir).map_err(open_error(dir))? {
        match inspect(vfs, &path) {
            Ok(image) => return Ok(Some((path, copy_of(&image)))),
            Err(OpenError::Corrupt { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

fn copy_of(image: &Image) -> Copy {
    let meta = format::decode_meta(&image.meta).unwrap_or_default();
    let version = meta.version.get().saturating_sub(BACKUP_VERSION_STEP);
    let records = image.objects.iter().filter_map(|(key, bytes)| {
        let record = salvage::record(key, bytes)?;
        Some((key.to_vec(), record))
    });
    Copy {
        version: ResourceVersion::new(version),
        records: records.collect(),
    }
}

pub(crate) fn unreadable(path: &Path) -> impl Fn(Unreadable) -> OpenError {
    let path = path.to_owned();
    move |unreadable| match unreadable {
        Unreadable::Newer(found) => OpenError::Newer {
            path: path.clone(),
            found,
            supported: format::FORMAT,
        },
        damaged => load_error(&path)(LoadError::Corrupt(damaged.to_string())),
    }
}
