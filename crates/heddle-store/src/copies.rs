//! Verified copies, kept beside the store while it serves.
//!
//! redb keeps each object once. A copy makes it twice, in files that were written at different times, so that damage to a
//! page costs what was written since the copy and not what was in the page (`repair`). A copy is written from memory,
//! on a thread of its own, and read again before it counts. Two are kept: while the later one is made, and should it be
//! damaged too, there is another.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heddle_rt::{Clock, Vfs};

use crate::{BackupError, DATABASE, ResourceVersion, Store, backup_error, repair};

/// How many copies there are at rest.
pub(crate) const COPIES_MAX: usize = 2;

/// A store that changes is copied this often, and one that does not is not.
const COPY_EVERY: Duration = Duration::from_secs(15 * 60);

/// A store without a copy gets one after so long.
const FIRST_COPY_AFTER: Duration = Duration::from_secs(60);

/// No copy is made unless the disk has room for so many of them: events and the store itself come first.
const ROOM_FACTOR: u64 = 4;

const PREFIX: &str = "copy-";
const SUFFIX: &str = ".redb";

impl Store {
    /// Makes a copy whenever one is due. Ends with the store.
    pub async fn keep_copies(&self, clock: &Clock) {
        loop {
            let wait = match self.latest_copy() {
                Ok(None) => FIRST_COPY_AFTER,
                _ => COPY_EVERY,
            };
            clock.sleep(wait).await;
            match self.copy_beside().await {
                Ok(Some(path)) => tracing::debug!(path = %path.display(), "copied the store"),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(error = %error, "cannot keep a copy of the store; trying again later");
                }
            }
        }
    }

    /// Copies the store into a file beside it, verifies the copy, and lets the oldest one go. `None` when there is a copy of
    /// just this version, or no room for another.
    pub async fn copy_beside(&self) -> Result<Option<PathBuf>, BackupError> {
        let (vfs, dir) = (self.inner.vfs.clone(), self.inner.dir.clone());
        let version = self.version();
        let fail = backup_error(&dir);
        if self.latest_copy().map_err(&fail)? == Some(version) {
            return Ok(None);
        }
        if !has_room(vfs.as_ref(), &dir).map_err(&fail)? {
            tracing::warn!(dir = %dir.display(), "no room for a copy of the store");
            return Ok(None);
        }
        let path = dir.join(format!("{PREFIX}{:020}{SUFFIX}", version.get()));
        self.backup(&path).await?;
        let (checked, verified) = (path.clone(), vfs.clone());
        let verified = move || repair::verify(verified.as_ref(), &checked);
        let verified = self.aside("verify", verified).await.map_err(&fail)?;
        if let Err(error) = verified {
            vfs.remove(&path).map_err(&fail)?;
            return Err(fail(io::Error::other(error)));
        }
        let copies = list(vfs.as_ref(), &dir).map_err(&fail)?;
        for old in copies.iter().skip(COPIES_MAX) {
            vfs.remove(old).map_err(&fail)?;
        }
        Ok(Some(path))
    }

    /// The version of which there is a copy.
    fn latest_copy(&self) -> io::Result<Option<ResourceVersion>> {
        let copies = list(self.inner.vfs.as_ref(), &self.inner.dir)?;
        Ok(copies.first().and_then(|path| version_of(path)))
    }
}

/// The copies in the directory of a store, latest first.
pub(crate) fn list(vfs: &dyn Vfs, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut copies: Vec<PathBuf> = vfs.list(dir)?.iter().map(|name| dir.join(name)).collect();
    copies.retain(|path| version_of(path).is_some());
    copies.sort_by_key(|path| std::cmp::Reverse(version_of(path)));
    Ok(copies)
}

fn version_of(path: &Path) -> Option<ResourceVersion> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    digits.parse().ok()
}

fn has_room(vfs: &dyn Vfs, dir: &Path) -> io::Result<bool> {
    let store = vfs.open(&dir.join(DATABASE), heddle_rt::vfs::Open::existing())?;
    Ok(vfs.space(dir)?.free_bytes > store.len()?.saturating_mul(ROOM_FACTOR))
}
