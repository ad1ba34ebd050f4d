//! A store that cannot be opened, looked at without opening it.
//!
//! Everything here reads the file as it is and writes beside it. Opening would not do: the engine repairs what it finds, and
//! a repair may mean going back to an older commit.

use std::path::Path;
use std::sync::Arc;

use heddle_rt::Vfs;
use heddle_rt::vfs::Lock;

use crate::engine::{Image, RedbEngine};
use crate::recovery::{self, Unreadable};
use crate::sample::Samples;
use crate::{DATABASE, OpenError, format, load_error, lock_dir};

/// How many objects the store in `dir` holds, if every page and every record of it is sound. Nothing is changed.
pub fn check(vfs: &Arc<dyn Vfs>, dir: &Path) -> Result<u64, OpenError> {
    let _lock: Lock = lock_dir(vfs.as_ref(), dir)?;
    let path = dir.join(DATABASE);
    let image = RedbEngine::inspect(vfs.as_ref(), &path).map_err(load_error(&path))?;
    sound(image, &path)
}

/// Every record decodes, none is missing, and none is newer than the store itself.
fn sound(image: Image, path: &Path) -> Result<u64, OpenError> {
    let objects_count = image.objects.len() as u64;
    recovery::restore(image, &Samples::default(), 0).map_err(unreadable(path))?;
    Ok(objects_count)
}

pub(crate) fn unreadable(path: &Path) -> impl Fn(Unreadable) -> OpenError {
    let path = path.to_owned();
    move |unreadable| match unreadable {
        Unreadable::Newer(found) => OpenError::Newer {
            path: path.clone(),
            found,
            supported: format::FORMAT,
        },
        damaged => OpenError::Corrupt {
            path: path.clone(),
            reason: damaged.to_string(),
        },
    }
}
