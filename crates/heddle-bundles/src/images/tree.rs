//! Directories as the store needs them: measured, emptied, put in place whole.

#![expect(
    clippy::disallowed_methods,
    reason = "trees with modes and symlinks, which the port to files knows nothing of"
)]

use std::collections::HashSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use bytes::Bytes;

pub(crate) use crate::removal::remove;

/// The names in a directory.
pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Bytes of all files of a tree, or of one file. Links are not followed, and a file with several names counts once.
pub(crate) fn size(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut linked = HashSet::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else if metadata.nlink() < 2 || linked.insert((metadata.dev(), metadata.ino())) {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}

/// Removes everything in a directory that can be removed, and tells of what cannot.
pub(crate) fn empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if let Err(error) = remove(&path) {
            tracing::warn!(path = %path.display(), %error, "something unfinished cannot be removed; it is tried again at the next start");
        }
    }
    Ok(())
}

/// A directory that everybody may look into: the program inside runs as somebody else.
pub(crate) fn make_root(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

/// Gives a finished file or tree its name, once it is safe on the disk.
pub(crate) fn publish(from: &Path, to: &Path) -> io::Result<()> {
    let opened = File::open(from)?;
    if opened.metadata()?.is_dir() {
        // Thousands of files at once, instead of one by one.
        nix::unistd::syncfs(opened.as_raw_fd())?;
    } else {
        opened.sync_all()?;
    }
    fs::rename(from, to)?;
    match to.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// A file as a whole, if it has at most `max` bytes.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if read as u64 > max {
        let text = format!("{} has more than {max} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Hands a file on piece by piece, until `take` wants no more.
pub(crate) fn pieces(
    path: &Path,
    bytes: usize,
    mut take: impl FnMut(Bytes) -> bool,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    loop {
        let mut piece = vec![0; bytes];
        let read = file.read(&mut piece)?;
        piece.truncate(read);
        if read == 0 || !take(piece.into()) {
            return Ok(());
        }
    }
}
