//! Unpacking one layer: an archive from a stranger, onto what the layers below left.
//!
//! Nothing is written outside of the root, and nothing through a symlink: every directory on the way to an entry is a real
//! one. Devices, sockets and sparse files are refused; set-user-id and owners are dropped; everybody may read, and enter
//! or run what anybody may. Links that stay inside are made, a symlink is only a text until somebody follows it, which
//! happens where this root is all there is. Whatever an archive claims, what it can take is metered as it is read.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::manifest::Packing;
use super::{Digest, Error, doing, tree};

/// Long names and attributes that stand before an entry. No sound archive needs more, and they are read into memory.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// How deep directories of an image may lie in each other.
const DEPTH_MAX: usize = 128;
const WHITEOUT: &[u8] = b".wh.";
/// Of the names that begin like this only the next one means anything.
const WHITEOUT_META: &[u8] = b".wh..wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Every compressed stream of Zstandard begins like this.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What the layers of an image may still take, together.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    bytes: Rc<Cell<u64>>,
    entries: Rc<Cell<u64>>,
    spent: Rc<Cell<bool>>,
}

impl Budget {
    pub(super) fn new(bytes: u64, entries: u64) -> Self {
        Self {
            bytes: Rc::new(Cell::new(bytes)),
            entries: Rc::new(Cell::new(entries)),
            spent: Rc::default(),
        }
    }

    /// Whether more bytes were wanted than there were.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.get()
    }
}

/// Reads no more than the budget has.
struct Metered<R> {
    inner: R,
    budget: Budget,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        let left = self.budget.bytes.get().checked_sub(read as u64);
        let Some(left) = left else {
            self.budget.spent.set(true);
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.budget.bytes.set(left);
        Ok(read)
    }
}

impl Error {
    /// Says in which layer it happened.
    pub(super) fn of_layer(self, digest: &Digest) -> Self {
        match self {
            Self::Refused(why) => Self::Refused(format!("layer {digest}: {why}")),
            other => other,
        }
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::Refused(why.into()))
}

/// Unpacks a layer onto `root`.
pub(super) fn apply(
    blob: File,
    packing: Packing,
    root: &Path,
    budget: &Budget,
) -> Result<(), Error> {
    let mut blob = BufReader::with_capacity(128 * 1024, blob);
    let begin = io::BufRead::fill_buf(&mut blob).map_err(doing("read a layer"))?;
    if begin.starts_with(&ZSTD) {
        return refused("packed with zstd, which is not supported; build the image with gzip");
    }
    let metered = |inner: Box<dyn Read>| Metered {
        inner,
        budget: budget.clone(),
    };
    let archive = match packing {
        Packing::Gzip => metered(Box::new(MultiGzDecoder::new(blob))),
        Packing::Plain => metered(Box::new(blob)),
    };
    let mut unpacking = Unpacking {
        root,
        made: HashSet::new(),
    };
    let unpacked = unpacking.all(archive, budget);
    if budget.is_spent() {
        return refused("the image is larger unpacked than is allowed");
    }
    unpacked
}

/// One layer, on its way.
struct Unpacking<'a> {
    root: &'a Path,
    /// What this layer brought. Its whiteouts mean the layers below.
    made: HashSet<PathBuf>,
}

/// What stands before an entry, about it.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl Unpacking<'_> {
    fn all(&mut self, archive: impl Read, budget: &Budget) -> Result<(), Error> {
        let mut archive = Archive::new(archive);
        let entries = archive.entries().map_err(unreadable)?;
        let mut extensions = Extensions::default();
        // The archive's own way with long names reads them whole, however long they are.
        for entry in entries.raw(true) {
            let mut entry = entry.map_err(unreadable)?;
            let Some(left) = budget.entries.get().checked_sub(1) else {
                return refused("the image has more files than are allowed");
            };
            budget.entries.set(left);
            match entry.header().entry_type() {
                EntryType::GNULongName => extensions.path = Some(long_name(&mut entry)?),
                EntryType::GNULongLink => extensions.link = Some(long_name(&mut entry)?),
                EntryType::XHeader => extensions.read(&mut entry)?,
                EntryType::XGlobalHeader => {}
                _ => self.entry(&mut entry, std::mem::take(&mut extensions))?,
            }
        }
        Ok(())
    }

    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>, found: Extensions) -> Result<(), Error> {
        let name = found
            .path
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let Some(path) = inside(&name)? else {
            // The root itself, which has its mode.
            return Ok(());
        };
        let file_name = path.file_name().unwrap_or_default().as_bytes();
        if file_name.starts_with(WHITEOUT) {
            return self.white_out(&path);
        }
        let target = self.root.join(&path);
        self.parents(&path)?;
        let mode = entry.header().mode().map_err(unreadable)?;
        let link = found
            .link
            .or_else(|| entry.link_name_bytes().map(|name| name.into_owned()));
        let kind = entry.header().entry_type();
        let making = || doing(format!("make {}", path.display()));
        match kind {
            EntryType::Directory => make_directory(&target, mode).map_err(making())?,
            EntryType::Regular | EntryType::Continuous => {
                // An old way to write a directory.
                if name.ends_with(b"/") {
                    make_directory(&target, mode).map_err(making())?;
                } else {
                    tree::remove(&target).map_err(making())?;
                    make_file(&target, mode, entry.size(), entry).map_err(making())?;
                }
            }
            EntryType::Symlink => {
                let to = link.ok_or_else(|| unlinked(&path))?;
                tree::remove(&target).map_err(making())?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&to), &target).map_err(making())?;
            }
            EntryType::Link => {
                let to = link.ok_or_else(|| unlinked(&path))?;
                self.hard_link(&path, &to)?;
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return refused(format!("{} is a device or a pipe", path.display()));
            }
            _ => {
                return refused(format!("{} is of an unknown kind {kind:?}", path.display()));
            }
        }
        self.remember(&path);
        Ok(())
    }

    /// A layer that brings a file brings the directories it is in.
    fn remember(&mut self, path: &Path) {
        for path in path.ancestors().filter(|path| *path != Path::new("")) {
            if !self.made.insert(path.to_owned()) {
                return;
            }
        }
    }

    /// Makes sure that everything above a path is a real directory.
    fn parents(&self, path: &Path) -> Result<(), Error> {
        let mut target = self.root.to_owned();
        let parent = path.parent().unwrap_or_else(|| Path::new(""));
        for part in parent.components() {
            target.push(part);
            match fs::symlink_metadata(&target) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return refused(format!(
                        "{} would be written through a symlink",
                        path.display()
                    ));
                }
                Ok(_) => {
                    return refused(format!(
                        "{} lies in something that is no directory",
                        path.display()
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_directory(&target, 0o755)
                        .map_err(doing(format!("make {}", path.display())))?;
                }
                Err(error) => return Err(doing(format!("look at {}", path.display()))(error)),
            }
        }
        Ok(())
    }

    /// A second name for a file that is in the image already.
    fn hard_link(&self, path: &Path, to: &[u8]) -> Result<(), Error> {
        let what = || {
            format!(
                "{} is linked to something that is no file of the image",
                path.display()
            )
        };
        let Some(to) = inside(to)? else {
            return refused(what());
        };
        if to == path {
            return refused(what());
        }
        // The way there must not leave the image either; it must exist, so nothing is made.
        let mut source = self.root.to_owned();
        let mut parts = to.components().peekable();
        while let Some(part) = parts.next() {
            source.push(part);
            let Ok(found) = fs::symlink_metadata(&source) else {
                return refused(what());
            };
            let fits = if parts.peek().is_some() {
                found.is_dir()
            } else {
                found.is_file() || found.is_symlink()
            };
            if !fits {
                return refused(what());
            }
        }
        let target = self.root.join(path);
        let linked = tree::remove(&target).and_then(|()| fs::hard_link(&source, &target));
        linked.map_err(doing(format!("link {}", path.display())))
    }

    /// Takes away what a layer below brought.
    fn white_out(&self, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let parent = path.parent().unwrap_or_else(|| Path::new(""));
        if !self.is_real_directory(parent)? {
            return Ok(());
        }
        let taking = || doing(format!("take away {}", path.display()));
        if name == OPAQUE {
            return self.hide_below(parent).map_err(taking());
        }
        if name.starts_with(WHITEOUT_META) {
            return Ok(());
        }
        let hidden = &name[WHITEOUT.len()..];
        if matches!(hidden, b"" | b"." | b"..") {
            return refused(format!(
                "{} takes away nothing that could exist",
                path.display()
            ));
        }
        self.hide(&parent.join(OsStr::from_bytes(hidden)))
            .map_err(taking())
    }

    /// Whether a directory exists and is reached through directories only.
    fn is_real_directory(&self, path: &Path) -> Result<bool, Error> {
        let mut target = self.root.to_owned();
        for part in path.components() {
            target.push(part);
            match fs::symlink_metadata(&target) {
                Ok(found) if found.is_dir() => {}
                Ok(found) if found.is_symlink() => {
                    return refused(format!(
                        "{} would be reached through a symlink",
                        path.display()
                    ));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Removes a path, except for what this layer brought.
    fn hide(&self, path: &Path) -> io::Result<()> {
        if !self.made.contains(path) {
            return tree::remove(&self.root.join(path));
        }
        let target = self.root.join(path);
        if fs::symlink_metadata(&target)?.is_dir() {
            self.hide_below(path)?;
        }
        Ok(())
    }

    fn hide_below(&self, dir: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(dir))? {
            self.hide(&dir.join(entry?.file_name()))?;
        }
        Ok(())
    }
}

impl Extensions {
    fn read<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), Error> {
        let text = extension(entry)?;
        for pair in tar::PaxExtensions::new(&text) {
            let pair = pair.map_err(unreadable)?;
            match pair.key_bytes() {
                b"path" => self.path = Some(pair.value_bytes().to_vec()),
                b"linkpath" => self.link = Some(pair.value_bytes().to_vec()),
                // Only for files that are too large anyway, or to confuse.
                b"size" => return refused("a file says its size in an unusual way"),
                key if key.starts_with(b"GNU.sparse") => {
                    return refused("sparse files are not supported");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn extension<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Error> {
    if entry.size() > EXTENSION_BYTES_MAX {
        return refused("a file has a name or attributes of more than a megabyte");
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn long_name<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, Error> {
    let mut name = extension(entry)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn unreadable(error: io::Error) -> Error {
    Error::Refused(format!("the archive cannot be read: {error}"))
}

fn unlinked(path: &Path) -> Error {
    Error::Refused(format!("{} is a link to nothing", path.display()))
}

/// The path of an entry below the root; `None` for the root itself.
fn inside(name: &[u8]) -> Result<Option<PathBuf>, Error> {
    let path = Path::new(OsStr::from_bytes(name));
    let mut below = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) if !part.as_bytes().contains(&0) => below.push(part),
            Component::CurDir | Component::RootDir => {}
            _ => return refused(format!("{} leads out of the image", path.display())),
        }
    }
    if below.components().count() > DEPTH_MAX {
        return refused(format!(
            "an entry lies more than {DEPTH_MAX} directories deep"
        ));
    }
    Ok((below != Path::new("")).then_some(below))
}

fn make_directory(target: &Path, mode: u32) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            tree::remove(target)?;
            fs::create_dir(target)?;
        }
        Err(_) => fs::create_dir(target)?,
    }
    let mode = mode & 0o777 | 0o705;
    fs::set_permissions(target, Permissions::from_mode(mode))
}

fn make_file(target: &Path, mode: u32, size: u64, content: &mut impl Read) -> io::Result<()> {
    let run = if mode & 0o111 == 0 { 0 } else { 0o101 };
    let mode = mode & 0o777 | 0o604 | run;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)?;
    if io::copy(content, &mut file)? != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests;
