//! What outlives runs and instances: logs for a while, archives until somebody removes them.

#![expect(
    clippy::disallowed_methods,
    reason = "shared with other processes and other users; faults come from killing them"
)]

use std::fs;
use std::io;
use std::path::Path;

use super::super::Refusal;
use super::super::files::{self, RunFiles};
use super::Runner;

impl Runner {
    /// Moves the log out of a run that is about to be forgotten, and lets the oldest ones go.
    pub(super) fn keep_log(&self, id: &str, run_files: &RunFiles) -> Result<(), Refusal> {
        let logs = self.place("logs");
        match fs::rename(run_files.log(), logs.join(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Refusal::io(format!("keep the log of run {id}"))(error));
            }
            _ => {}
        }
        prune(
            &logs,
            self.options.logs_count_max,
            self.options.logs_bytes_max,
        )
        .map_err(Refusal::io("let old logs go"))
    }

    /// Moves what an instance wants to be kept out of what is about to be removed. A name that is taken gets a suffix.
    pub(super) fn keep_archive(&self, instance: &str, data: &Path) -> Result<(), Refusal> {
        let archive = data.join("archive");
        let what = || format!("keep the archive of instance {instance}");
        match fs::symlink_metadata(&archive) {
            Ok(metadata) if metadata.is_dir() => {}
            _ => return Ok(()),
        }
        let mut target = self.place("archives").join(instance);
        while target.try_exists().map_err(Refusal::io(what()))? {
            let name = format!("{instance}.{}", self.chance.suffix(6));
            target = self.place("archives").join(name);
        }
        fs::rename(&archive, &target).map_err(Refusal::io(what()))
    }

    /// A directory leaves its place in one step; a crash while it is removed leaves nothing that could be misread.
    pub(super) fn discard(&self, directory: &Path) -> Result<(), Refusal> {
        let what = || format!("remove {}", directory.display());
        let trash = self.place("trash").join(self.chance.uuid());
        match files::rename(directory, &trash) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(Refusal::io(what()))?,
        }
        files::remove_tree(&trash).map_err(Refusal::io(what()))
    }

    pub(super) fn empty_trash(&self) -> Result<(), Refusal> {
        let trash = self.place("trash");
        let names = files::names(&trash).map_err(Refusal::io("list the trash"))?;
        for name in names {
            files::remove_tree(&trash.join(name)).map_err(Refusal::io("empty the trash"))?;
        }
        Ok(())
    }
}

/// Removes the oldest files until what is left is within bounds.
fn prune(directory: &Path, count_max: usize, bytes_max: u64) -> io::Result<()> {
    let mut logs = Vec::new();
    for name in files::names(directory)? {
        let path = directory.join(name);
        let metadata = fs::symlink_metadata(&path)?;
        logs.push((metadata.modified()?, metadata.len(), path));
    }
    logs.sort();
    let mut count = logs.len();
    let mut bytes: u64 = logs.iter().map(|(_, len, _)| len).sum();
    for (_, len, path) in logs {
        if count <= count_max && bytes <= bytes_max {
            break;
        }
        fs::remove_file(path)?;
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
        prune(directory.path(), 4, 1000).unwrap();
        assert_eq!(
            files::names(directory.path()).unwrap(),
            ["log-2", "log-3", "log-4", "log-5"]
        );
        prune(directory.path(), 4, 25).unwrap();
        assert_eq!(files::names(directory.path()).unwrap(), ["log-4", "log-5"]);
    }
}
