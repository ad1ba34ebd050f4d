//! Removes trees that strangers made: however deep, however locked up, with three open directories and no recursion.
//!
//! ```text
//!   top/a/b/c/…      what is in a directory of the top is removed; directories in it are moved up to the top instead,
//!   top/a  top/b     so nothing is ever looked at deeper than that, and no path becomes longer
//! ```
//! Each directory is moved at most once, so the work is linear in what there is. Links are removed, never followed. A removal
//! that breaks off is simply begun again.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, SFlag, fchmod, fchmodat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Removes a file or a tree. One that is not there is removed.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match kind_at(None, path) {
        Err(Errno::ENOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(Kind::Directory) => Ok(remove_directory(path)?),
        Ok(Kind::Other) => Ok(absent(unlinkat(None, path, UnlinkatFlags::NoRemoveDir))?),
    }
}

fn remove_directory(path: &Path) -> nix::Result<()> {
    let mut moved = 0;
    loop {
        let found = pass(path, &mut moved)?;
        match unlinkat(None, path, UnlinkatFlags::RemoveDir) {
            // Directories that were moved up may not have been met in the same pass.
            Err(Errno::ENOTEMPTY | Errno::EEXIST) if found => {}
            removed => return absent(removed),
        }
    }
}

/// Looks at everything in the top once. Whether there was anything.
fn pass(path: &Path, moved: &mut u64) -> nix::Result<bool> {
    let mut top = open(None, path)?;
    let fd = top.as_raw_fd();
    let mut found = false;
    for entry in top.iter() {
        let entry = entry?;
        if !is_itself(entry.file_name()) {
            found = true;
            remove_entry(fd, entry.file_name(), moved)?;
        }
    }
    Ok(found)
}

/// Removes what stands in the top; directories in a directory are moved up.
fn remove_entry(top: RawFd, name: &CStr, moved: &mut u64) -> nix::Result<()> {
    match kind_at(Some(top), name) {
        Ok(Kind::Directory) => {}
        Ok(Kind::Other) => return absent(unlinkat(Some(top), name, UnlinkatFlags::NoRemoveDir)),
        Err(Errno::ENOENT) => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut below = open(Some(top), name)?;
    let fd = below.as_raw_fd();
    for entry in below.iter() {
        let entry = entry?;
        let inner = entry.file_name();
        if is_itself(inner) {
            continue;
        }
        match kind_at(Some(fd), inner) {
            Ok(Kind::Directory) => move_up(fd, inner, top, moved)?,
            Ok(Kind::Other) => absent(unlinkat(Some(fd), inner, UnlinkatFlags::NoRemoveDir))?,
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
    }
    drop(below);
    match unlinkat(Some(top), name, UnlinkatFlags::RemoveDir) {
        // What the pass has missed is found by the next.
        Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOENT) => Ok(()),
        removed => removed,
    }
}

/// A directory is moved under a name of its own. Where that is taken by an empty directory it takes its place, which is as good.
fn move_up(from: RawFd, name: &CStr, top: RawFd, moved: &mut u64) -> nix::Result<()> {
    let mut opened = false;
    loop {
        *moved += 1;
        let free = CString::new(format!(".moved-{moved}")).map_err(|_| Errno::EINVAL)?;
        match renameat(Some(from), name, Some(top), free.as_c_str()) {
            Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
            // A directory that may not be written cannot be told who is above it.
            Err(Errno::EACCES | Errno::EPERM) if !opened => {
                opened = true;
                unlock(Some(from), name)?;
            }
            renamed => return absent(renamed),
        }
    }
}

fn absent(done: nix::Result<()>) -> nix::Result<()> {
    match done {
        Err(Errno::ENOENT) => Ok(()),
        done => done,
    }
}

/// Opens a directory so that what is in it can be removed, whatever its mode was.
fn open<P: ?Sized + nix::NixPath>(at: Option<RawFd>, name: &P) -> nix::Result<Dir> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let open = || match at {
        Some(fd) => Dir::openat(Some(fd), name, flags, Mode::empty()),
        None => Dir::open(name, flags, Mode::empty()),
    };
    let opened = match open() {
        Err(Errno::EACCES) => {
            unlock(at, name)?;
            open()
        }
        opened => opened,
    }?;
    // Who owns it may do that; who does not is told by what fails next.
    fchmod(opened.as_raw_fd(), Mode::S_IRWXU).ok();
    Ok(opened)
}

/// Gives the owner of a directory back what it needs. It was looked at before and is no link; nobody else is there to change it.
fn unlock<P: ?Sized + nix::NixPath>(at: Option<RawFd>, name: &P) -> nix::Result<()> {
    fchmodat(at, name, Mode::S_IRWXU, FchmodatFlags::FollowSymlink)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    Other,
}

fn kind_at<P: ?Sized + nix::NixPath>(at: Option<RawFd>, name: &P) -> nix::Result<Kind> {
    let found = fstatat(at, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let kind = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT;
    Ok(match kind == SFlag::S_IFDIR {
        true => Kind::Directory,
        false => Kind::Other,
    })
}

fn is_itself(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "trees of the sort that programs leave behind, on a real disk"
)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Deeper than any path or stack allows, made one directory at a time.
    fn deep(at: &Path, depth: usize) {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        fs::create_dir(at).unwrap();
        let mut here = Dir::open(at, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            let fd = here.as_raw_fd();
            nix::sys::stat::mkdirat(Some(fd), "d", Mode::S_IRWXU).unwrap();
            here = Dir::openat(Some(fd), "d", flags, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_tree_is_removed_however_deep_on_a_small_stack() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("tree");
        deep(&top, 5_000);
        let removal = {
            let top = top.clone();
            let small = std::thread::Builder::new().stack_size(128 << 10);
            small.spawn(move || remove(&top)).unwrap()
        };
        removal.join().unwrap().unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn many_files_locked_directories_and_links_are_removed_and_nothing_outside() {
        let directory = tempfile::tempdir().unwrap();
        let (top, outside) = (directory.path().join("tree"), directory.path().join("out"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::create_dir_all(top.join(".moved-1/x")).unwrap();
        fs::write(top.join(".moved-2"), "a name that is taken").unwrap();
        for number in 0..500 {
            fs::write(top.join(format!("a/b/{number}")), "x").unwrap();
        }
        symlink(&outside, top.join("a/link")).unwrap();
        symlink(&outside, top.join("a/b/c/link")).unwrap();
        for locked in ["a/b/c", "a/b", "a", ""] {
            let mode = fs::Permissions::from_mode(0o000);
            fs::set_permissions(top.join(locked), mode).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists() && outside.join("kept").exists());
        remove(&top).unwrap();
        let link = directory.path().join("link");
        symlink(&outside, &link).unwrap();
        remove(&link).unwrap();
        assert!(!link.is_symlink() && outside.join("kept").exists());
    }
}
