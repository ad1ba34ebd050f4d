//! What outlives runs and instances: logs and archives, both bounded in number and bytes; the oldest go first.

#![expect(
    clippy::disallowed_methods,
    reason = "shared with other processes and other users; faults come from killing them"
)]

use std::fs;
use std::io;
use std::path::Path;

use super::super::files::{self, RunFiles};
use super::super::{Options, SandboxError, disk};
use super::Runner;
use crate::removal;

impl Runner {
    /// Moves the log out of a run that is about to be forgotten, and lets the oldest ones go.
    pub(super) fn keep_log(&self, id: &str, run_files: &RunFiles) -> Result<(), SandboxError> {
        let logs = self.place("logs");
        match fs::rename(run_files.log(), logs.join(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SandboxError::io(format!("keep the log of run {id}"))(error));
            }
            _ => {}
        }
        prune(
            &logs,
            self.options.logs_count_max,
            self.options.logs_bytes_max,
            |log| Ok(fs::symlink_metadata(log)?.len()),
            |log| fs::remove_file(log),
        )
        .map_err(SandboxError::io("let old logs go"))
    }

    /// Moves what an instance wants to be kept out of what is about to be removed. A name that is taken gets a suffix.
    pub(super) fn keep_archive(&self, instance: &str, data: &Path) -> Result<(), SandboxError> {
        let archive = data.join("archive");
        let what = || format!("keep the archive of instance {instance}");
        match fs::symlink_metadata(&archive) {
            Ok(metadata) if metadata.is_dir() => {}
            _ => return Ok(()),
        }
        let mut target = self.place("archives").join(instance);
        while target.try_exists().map_err(SandboxError::io(what()))? {
            let name = format!("{instance}.{}", self.chance.suffix(6));
            target = self.place("archives").join(name);
        }
        fs::rename(&archive, &target).map_err(SandboxError::io(what()))?;
        self.bound_archives();
        Ok(())
    }

    /// Lets the oldest archives go until what is left is within bounds. What fails is tried with the next one.
    pub(super) fn bound_archives(&self) {
        let Options {
            archives_count_max: count_max,
            archives_bytes_max: bytes_max,
            ..
        } = self.options;
        let archives = self.place("archives");
        let remove = |path: &Path| {
            tracing::warn!(archive = %path.display(), count_max, bytes_max, "the oldest archive is removed: there are more than may be kept");
            self.discard(path)
        };
        let pruned = prune(&archives, count_max, bytes_max, disk::bytes_below, |path| {
            remove(path).map_err(io::Error::other)
        });
        if let Err(error) = pruned {
            tracing::warn!(%error, "old archives cannot be removed; it is tried again with the next");
        }
    }

    /// A directory leaves its place in one step; a crash while it is removed leaves nothing that could be misread.
    pub(super) fn discard(&self, directory: &Path) -> Result<(), SandboxError> {
        let what = || format!("remove {}", directory.display());
        let trash = self.place("trash").join(self.chance.uuid());
        match files::rename(directory, &trash) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(SandboxError::io(what()))?,
        }
        removal::remove(&trash).map_err(SandboxError::io(what()))
    }

    /// Removes what a crash left on its way out. What cannot be removed takes room and harms nobody, so the server starts.
    pub(super) fn empty_trash(&self) {
        let trash = self.place("trash");
        let names = files::names(&trash).unwrap_or_else(|error| {
            tracing::warn!(%error, "the trash cannot be listed");
            Vec::new()
        });
        for name in names {
            let path = trash.join(name);
            if let Err(error) = removal::remove(&path) {
                tracing::warn!(path = %path.display(), %error, "trash cannot be removed; it is tried again at the next start");
            }
        }
    }
}

/// Removes the oldest entries of a directory until what is left is within bounds.
fn prune(
    directory: &Path,
    count_max: usize,
    bytes_max: u64,
    size: impl Fn(&Path) -> io::Result<u64>,
    remove: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut entries = Vec::new();
    for name in files::names(directory)? {
        let path = directory.join(name);
        let modified = fs::symlink_metadata(&path)?.modified()?;
        entries.push((modified, size(&path)?, path));
    }
    entries.sort();
    let mut count = entries.len();
    let mut bytes: u64 = entries.iter().map(|(_, len, _)| len).sum();
    for (_, len, path) in entries {
        if count <= count_max && bytes <= bytes_max {
            break;
        }
        remove(&path)?;
        count -= 1;
        bytes -= len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_bounded_in_number_and_in_bytes_and_the_oldest_go_first() {
        let directory = tempfile::tempdir().unwrap();
        for index in 0..6_u64 {
            let path = directory.path().join(format!("log-{index}"));
            fs::write(&path, [b'x'; 10]).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(index);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        let bound = |bytes_max| {
            let size = |path: &Path| Ok(fs::symlink_metadata(path)?.len());
            let remove = |path: &Path| fs::remove_file(path);
            prune(directory.path(), 4, bytes_max, size, remove).unwrap();
        };
        bound(1000);
        assert_eq!(
            files::names(directory.path()).unwrap(),
            ["log-2", "log-3", "log-4", "log-5"]
        );
        bound(25);
        assert_eq!(files::names(directory.path()).unwrap(), ["log-4", "log-5"]);
    }
}
