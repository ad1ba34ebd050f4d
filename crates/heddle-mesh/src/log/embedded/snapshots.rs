//! Snapshots of the journal: files beside both copies of it, the newest and the one before in each place.

use std::io;
use std::path::{Path, PathBuf};

use heddle_rt::Vfs;

use super::Offset;

pub(super) const PREFIX: &str = "positions-";
/// The newest, and the one before it in case the newest is damaged.
const KEPT: usize = 2;

/// Where they are kept.
#[derive(Debug)]
pub(super) struct Snapshots {
    pub(super) dirs: [PathBuf; 2],
}

impl Snapshots {
    /// All that differ, newest first, from both places; what cannot be used is for the caller to pass over.
    pub(super) fn read(&self, vfs: &dyn Vfs) -> io::Result<Vec<(Offset, Vec<u8>)>> {
        let mut found = Vec::new();
        for dir in &self.dirs {
            for (next, name) in names(vfs, dir)? {
                found.push((next, vfs.read(&dir.join(name))?));
            }
        }
        // Stable: of two with the same number the one beside the journal itself comes first.
        found.sort_by_key(|(next, _)| std::cmp::Reverse(*next));
        found.dedup();
        Ok(found)
    }

    /// Keeps one in both places. Older ones go when it is safe.
    pub(super) fn keep(&self, vfs: &dyn Vfs, next: Offset, bytes: &[u8]) -> io::Result<()> {
        for dir in &self.dirs {
            // Padded, so that names sort like the numbers in them.
            vfs.write_atomic(&dir.join(format!("{PREFIX}{next:020}")), bytes, 0o600)?;
            for (_, name) in names(vfs, dir)?.iter().rev().skip(KEPT) {
                vfs.remove(&dir.join(name))?;
            }
            vfs.sync_dir(dir)?;
        }
        Ok(())
    }
}

/// Oldest first.
fn names(vfs: &dyn Vfs, dir: &Path) -> io::Result<Vec<(Offset, String)>> {
    let numbered = vfs.list(dir)?.into_iter().filter_map(|name| {
        let next = name.strip_prefix(PREFIX)?.parse().ok()?;
        Some((next, name))
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_unstable();
    Ok(numbered)
}
