//! The real file system.
//!
//! Growing a file reserves its blocks, so that a full disk is noticed there and not when the pages
//! are written back, where it would look like a broken disk. Locks are `flock` on the path itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags};
use rustix::io::Errno;

use super::{Create, Lock, Open, Space, Vfs, VfsFile, parent};

/// The machine's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskVfs;

impl DiskVfs {
    /// As the port that the rest of the system takes.
    #[must_use]
    pub fn shared() -> Arc<dyn Vfs> {
        Arc::new(Self)
    }
}

impl Vfs for DiskVfs {
    fn open(&self, path: &Path, options: Open) -> io::Result<Arc<dyn VfsFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(options.create != Create::Never)
            .truncate(options.create == Create::Truncate)
            .mode(options.mode)
            .open(path)?;
        Ok(Arc::new(DiskFile { file }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .filter(|dir| !dir.as_os_str().is_empty())
            .take_while(|dir| !dir.exists())
            .map(Path::to_path_buf)
            .collect();
        // The last one that exists may be what a broken-off attempt left, with a name not yet safe.
        let existing = missing.last().map_or(path, |dir| parent(dir));
        match self.sync_dir(parent(existing)) {
            // A directory we may not look into is one we did not make anything in.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
        for dir in missing.iter().rev() {
            match std::fs::DirBuilder::new().mode(0o700).create(dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => self.sync_dir(parent(dir))?,
            }
        }
        if path.is_dir() {
            Ok(())
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port's own implementation"
    )]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port's own implementation"
    )]
    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            // Names that are no text are none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the port's own implementation"
    )]
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Space {
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock::holding(file)),
            Err(std::fs::TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
}

impl VfsFile for DiskFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let before = self.len()?;
        if len <= before {
            return self.file.set_len(len);
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), before, len - before) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.file.set_len(len),
            Err(error) => {
                // A refused reservation may have grown the file part of the way.
                self.file.set_len(before)?;
                Err(error.into())
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn evict(&self) -> io::Result<()> {
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed).map_err(io::Error::from)
    }
}
