//! The files of a [`MemoryVfs`] by number, as a kernel wants them.
//!
//! A number belongs to a file, not to its name: it stays when the file is renamed, and serves whoever
//! still has the file open when the name is gone. No number is used twice, not even after a power
//! loss, so nothing the kernel remembers can lead to a wrong file.
//!
//! What heddle does not do is refused rather than half done: directories are neither renamed nor
//! removed, there are no links and no holes. Owner, times and modes are not kept over a power loss.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_rt::vfs::{MemoryVfs, Open, PowerLoss, Vfs as _, VfsFile};
use rustix::io::Errno;

/// The number of the top, by convention.
pub(super) const ROOT: u64 = 1;

pub(super) type Result<T> = std::result::Result<T, Errno>;

#[derive(Debug)]
pub(super) struct Tree {
    vfs: MemoryVfs,
    nodes: HashMap<u64, Node>,
    numbers: HashMap<PathBuf, u64>,
    last_number: u64,
    lies: Option<&'static str>,
}

#[derive(Debug)]
struct Node {
    path: PathBuf,
    /// `None` is a directory.
    file: Option<Arc<dyn VfsFile>>,
    mode: u32,
}

/// What is known of a file or a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) number: u64,
    pub(super) is_dir: bool,
    pub(super) len: u64,
    pub(super) mode: u32,
}

impl Tree {
    pub(super) fn on(vfs: MemoryVfs) -> Self {
        vfs.create_dir_all(Path::new("/")).unwrap();
        let mut tree = Self {
            vfs,
            nodes: HashMap::new(),
            numbers: HashMap::new(),
            last_number: ROOT,
            lies: None,
        };
        tree.forget();
        tree
    }

    pub(super) fn vfs(&self) -> &MemoryVfs {
        &self.vfs
    }

    pub(super) fn lie_about(&mut self, folder: &'static str) {
        self.lies = Some(folder);
    }

    pub(super) fn lose_power(&mut self, how: PowerLoss) {
        self.vfs = self.vfs.power_loss(how);
        self.forget();
    }

    fn forget(&mut self) {
        let top = Node {
            path: PathBuf::from("/"),
            file: None,
            mode: 0o700,
        };
        self.numbers = HashMap::from([(top.path.clone(), ROOT)]);
        self.nodes = HashMap::from([(ROOT, top)]);
    }

    pub(super) fn look_up(&mut self, parent: u64, name: &OsStr) -> Result<Attributes> {
        let path = self.path(parent, name)?;
        let number = self.number_of(path)?;
        self.attributes(number)
    }

    pub(super) fn attributes(&self, number: u64) -> Result<Attributes> {
        let node = self.node(number)?;
        Ok(Attributes {
            number,
            is_dir: node.file.is_none(),
            len: match &node.file {
                Some(file) => file.len().map_err(errno)?,
                None => 0,
            },
            mode: node.mode,
        })
    }

    /// The names in a directory.
    pub(super) fn list(&mut self, dir: u64) -> Result<Vec<(Attributes, String)>> {
        let path = self.node(dir)?.path.clone();
        let names = self.vfs.list(&path).map_err(errno)?;
        let named = names.into_iter().map(|name| {
            let attributes = self.look_up(dir, OsStr::new(&name))?;
            Ok((attributes, name))
        });
        named.collect()
    }

    pub(super) fn create_dir(
        &mut self,
        parent: u64,
        name: &OsStr,
        mode: u32,
    ) -> Result<Attributes> {
        let path = self.path(parent, name)?;
        self.vfs.create_dir(&path).map_err(errno)?;
        let number = self.add(path, None, mode);
        self.attributes(number)
    }

    pub(super) fn create(
        &mut self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        exclusive: bool,
    ) -> Result<Attributes> {
        let path = self.path(parent, name)?;
        match self.look_up(parent, name) {
            Ok(_) if exclusive => Err(Errno::EXIST),
            Ok(found) if found.is_dir => Err(Errno::ISDIR),
            Ok(found) => Ok(found),
            Err(Errno::NOENT) => {
                let file = self.vfs.open(&path, Open::or_create()).map_err(errno)?;
                let number = self.add(path, Some(file), mode);
                self.attributes(number)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Result<()> {
        let moved = self.look_up(from.0, from.1)?;
        let replaced = self.look_up(to.0, to.1);
        if moved.is_dir || replaced.is_ok_and(|replaced| replaced.is_dir) {
            return Err(Errno::OPNOTSUPP);
        }
        let (from, to) = (self.path(from.0, from.1)?, self.path(to.0, to.1)?);
        self.vfs.rename(&from, &to).map_err(errno)?;
        self.numbers.remove(&from);
        self.numbers.insert(to.clone(), moved.number);
        let node = self.nodes.get_mut(&moved.number).ok_or(Errno::STALE)?;
        node.path = to;
        Ok(())
    }

    pub(super) fn remove(&mut self, parent: u64, name: &OsStr) -> Result<()> {
        // Whoever has it open finds it by its number.
        if self.look_up(parent, name)?.is_dir {
            return Err(Errno::ISDIR);
        }
        let path = self.path(parent, name)?;
        self.vfs.remove(&path).map_err(errno)?;
        self.numbers.remove(&path);
        Ok(())
    }

    pub(super) fn set_mode(&mut self, number: u64, mode: u32) -> Result<()> {
        self.nodes.get_mut(&number).ok_or(Errno::STALE)?.mode = mode;
        Ok(())
    }

    pub(super) fn set_len(&self, number: u64, len: u64) -> Result<()> {
        self.file(number)?.set_len(len).map_err(errno)
    }

    /// Sees to it that there is room, as far as `end`.
    pub(super) fn reserve(&self, number: u64, end: u64) -> Result<()> {
        let file = self.file(number)?;
        if file.len().map_err(errno)? >= end {
            return Ok(());
        }
        file.set_len(end).map_err(errno)
    }

    /// Up to `bytes` bytes; fewer where the file ends.
    pub(super) fn read(&self, number: u64, offset: u64, bytes: u32) -> Result<Vec<u8>> {
        let file = self.file(number)?;
        let left = file.len().map_err(errno)?.saturating_sub(offset);
        let bytes = usize::try_from(left.min(u64::from(bytes))).map_err(|_| Errno::INVAL)?;
        let mut out = vec![0; bytes];
        file.read_at(offset, &mut out).map_err(errno)?;
        Ok(out)
    }

    pub(super) fn write(&self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file(number)?.write_at(offset, bytes).map_err(errno)
    }

    pub(super) fn sync(&self, number: u64) -> Result<()> {
        let file = self.file(number)?;
        if self.is_lie(number)? {
            return Ok(());
        }
        file.sync().map_err(errno)
    }

    pub(super) fn sync_dir(&self, number: u64) -> Result<()> {
        let path = &self.node(number)?.path;
        if self.is_lie(number)? {
            return Ok(());
        }
        self.vfs.sync_dir(path).map_err(errno)
    }

    fn is_lie(&self, number: u64) -> Result<bool> {
        let path = &self.node(number)?.path;
        let told = |lie| path.components().any(|part| part.as_os_str() == lie);
        Ok(self.lies.is_some_and(told))
    }

    fn node(&self, number: u64) -> Result<&Node> {
        self.nodes.get(&number).ok_or(Errno::STALE)
    }

    fn file(&self, number: u64) -> Result<&dyn VfsFile> {
        self.node(number)?.file.as_deref().ok_or(Errno::ISDIR)
    }

    fn path(&self, parent: u64, name: &OsStr) -> Result<PathBuf> {
        Ok(self.node(parent)?.path.join(name))
    }

    fn number_of(&mut self, path: PathBuf) -> Result<u64> {
        if let Some(number) = self.numbers.get(&path) {
            return Ok(*number);
        }
        let (file, mode) = match self.vfs.open(&path, Open::existing()) {
            Ok(file) => (Some(file), 0o600),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => (None, 0o700),
            Err(error) => return Err(errno(error)),
        };
        Ok(self.add(path, file, mode))
    }

    fn add(&mut self, path: PathBuf, file: Option<Arc<dyn VfsFile>>, mode: u32) -> u64 {
        self.last_number += 1;
        self.numbers.insert(path.clone(), self.last_number);
        self.nodes
            .insert(self.last_number, Node { path, file, mode });
        self.last_number
    }
}

fn errno(error: io::Error) -> Errno {
    if let Some(known) = Errno::from_io_error(&error) {
        return known;
    }
    match error.kind() {
        io::ErrorKind::NotFound => Errno::NOENT,
        io::ErrorKind::AlreadyExists => Errno::EXIST,
        io::ErrorKind::IsADirectory => Errno::ISDIR,
        io::ErrorKind::NotADirectory => Errno::NOTDIR,
        io::ErrorKind::StorageFull => Errno::NOSPC,
        _ => Errno::IO,
    }
}
