//! Writing a directory whole or not at all: a backup being made, and a data directory being restored.
//!
//! Everything goes into a directory beside the one that is wanted, which gets its name when all of it is safe. What a
//! broken-off attempt left behind is removed by the next one.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use heddle_rt::Vfs;
use heddle_rt::vfs::{Open, VfsFile};
use sha2::{Digest as _, Sha256};

use super::manifest::{self, Listed};
use crate::failure::Failure;

/// A directory that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    vfs: Arc<dyn Vfs>,
    wanted: PathBuf,
    unfinished: PathBuf,
    /// Modes of directories that keep us from writing into them.
    closed: Vec<(PathBuf, u32)>,
}

impl Writer {
    /// Begins. `wanted` must be free: absent, or an empty directory.
    pub(crate) fn begin(vfs: Arc<dyn Vfs>, wanted: &Path) -> anyhow::Result<Self> {
        if !is_free(vfs.as_ref(), wanted)? {
            let text = format!("{} exists and is not empty; name another", wanted.display());
            return Err(Failure::Conflict(text).into());
        }
        let name = wanted.file_name().context("a directory has a name")?;
        let mut unfinished = std::ffi::OsString::from(".");
        unfinished.push(name);
        unfinished.push(".unfinished");
        let unfinished = wanted.with_file_name(unfinished);
        remove_all(&unfinished)?;
        vfs.create_dir_all(&unfinished)
            .with_context(|| format!("cannot make {}", unfinished.display()))?;
        Ok(Self {
            vfs,
            wanted: wanted.to_path_buf(),
            unfinished,
            closed: Vec::new(),
        })
    }

    /// Where everything is until the end.
    pub(crate) fn dir(&self) -> &Path {
        &self.unfinished
    }

    /// Begins a file; the bytes are handed to it.
    pub(crate) fn file(&self, name: &str, mode: u32) -> anyhow::Result<Writing> {
        let path = manifest::place(&self.unfinished, name)?;
        self.parents(&path)?;
        let file = self.vfs.open(&path, Open::truncated(0o600));
        Ok(Writing {
            file: file.with_context(|| format!("cannot write {}", path.display()))?,
            name: name.to_owned(),
            path,
            mode,
            at: 0,
            sum: Sha256::new(),
        })
    }

    pub(crate) fn directory(&mut self, name: &str, mode: u32) -> anyhow::Result<Listed> {
        let path = manifest::place(&self.unfinished, name)?;
        self.vfs
            .create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        self.closed.push((path, mode));
        Ok(Listed {
            name: name.to_owned(),
            target: None,
            mode,
            size: 0,
            sha256: None,
        })
    }

    pub(crate) fn link(&self, name: &str, target: &str) -> anyhow::Result<Listed> {
        let path = manifest::place(&self.unfinished, name)?;
        self.parents(&path)?;
        std::os::unix::fs::symlink(target, &path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Listed {
            name: name.to_owned(),
            target: Some(target.to_owned()),
            mode: 0,
            size: 0,
            sha256: None,
        })
    }

    /// Gives the directory its name if `made` says that all went well, and leaves nothing behind otherwise.
    pub(crate) fn end<T>(self, made: anyhow::Result<T>) -> anyhow::Result<T> {
        match made {
            Ok(made) => self.finish().map(|()| made),
            Err(error) => {
                remove_all(&self.unfinished).unwrap_or_default();
                Err(error)
            }
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        // Inner ones first, for an outer one may not let us in any more.
        for (path, mode) in std::mem::take(&mut self.closed).into_iter().rev() {
            self.vfs.sync_dir(&path)?;
            set_mode(&path, mode).with_context(|| format!("cannot close {}", path.display()))?;
        }
        self.vfs.sync_dir(&self.unfinished)?;
        let parent = match self.wanted.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.vfs
            .rename(&self.unfinished, &self.wanted)
            .and_then(|()| self.vfs.sync_dir(parent))
            .with_context(|| format!("cannot name {}", self.wanted.display()))
    }

    fn parents(&self, path: &Path) -> anyhow::Result<()> {
        let parent = path.parent().context("a file is in a directory")?;
        self.vfs
            .create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Writing {
    file: Arc<dyn VfsFile>,
    name: String,
    path: PathBuf,
    mode: u32,
    at: u64,
    sum: Sha256,
}

impl Writing {
    pub(crate) fn add(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_at(self.at, bytes)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.sum.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Makes it safe.
    pub(crate) fn finish(self) -> anyhow::Result<Listed> {
        self.file
            .sync()
            .and_then(|()| set_mode(&self.path, self.mode))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(Listed {
            name: self.name,
            target: None,
            mode: self.mode,
            size: self.at,
            sha256: Some(manifest::hex(&self.sum.finalize())),
        })
    }
}

fn is_free(vfs: &dyn Vfs, path: &Path) -> anyhow::Result<bool> {
    match vfs.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        listed => Ok(listed
            .with_context(|| format!("cannot look at {}", path.display()))?
            .is_empty()),
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Only ever of a directory that an earlier attempt of ours made.
fn remove_all(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
