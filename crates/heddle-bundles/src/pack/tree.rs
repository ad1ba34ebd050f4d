//! The file system of an image as one archive, in an order that depends on names alone.

#![expect(
    clippy::disallowed_methods,
    reason = "an author's files: no fault is injected there"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

use super::Error;
use super::settings::{Settings, inside};

/// More than this is no bundle.
const TREE_BYTES_MAX: u64 = 1 << 30;
const ENTRIES_MAX: usize = 100_000;

/// What is at one place in the image.
#[derive(Debug)]
enum Entry {
    Directory,
    File { from: PathBuf, executable: bool },
    Link(PathBuf),
}

type Tree = BTreeMap<PathBuf, Entry>;

/// The archive. What is included wins over what the directory has at the same place.
pub(super) fn tar(directory: &Path, settings: &Settings) -> Result<Vec<u8>, Error> {
    let mut tree = Tree::new();
    let rootfs = directory.join("rootfs");
    if !rootfs.is_dir() {
        let text = format!("{} has no rootfs/", directory.display());
        return Err(Error::Invalid(text));
    }
    gather(&rootfs, Path::new(""), &mut tree)?;
    for include in &settings.include {
        let from = directory.join(&include.from);
        let from =
            fs::canonicalize(&from).map_err(Error::io(format!("find {}", from.display())))?;
        let to = inside(&include.to)?;
        let above = to.ancestors().skip(1);
        for above in above.filter(|path| !path.as_os_str().is_empty()) {
            tree.entry(above.to_owned()).or_insert(Entry::Directory);
        }
        gather(&from, &to, &mut tree)?;
    }
    write(&tree)
}

fn gather(from: &Path, to: &Path, tree: &mut Tree) -> Result<(), Error> {
    let what = || format!("read {}", from.display());
    let metadata = fs::symlink_metadata(from).map_err(Error::io(what()))?;
    let kind = metadata.file_type();
    let entry = if kind.is_dir() {
        Entry::Directory
    } else if kind.is_file() {
        Entry::File {
            from: from.to_owned(),
            executable: metadata.permissions().mode() & 0o111 != 0,
        }
    } else if kind.is_symlink() {
        Entry::Link(fs::read_link(from).map_err(Error::io(what()))?)
    } else {
        let text = format!("{} is neither file, directory nor link", from.display());
        return Err(Error::Invalid(text));
    };
    if !to.as_os_str().is_empty() {
        tree.insert(to.to_owned(), entry);
    }
    if tree.len() > ENTRIES_MAX {
        let text = format!("there are more than {ENTRIES_MAX} files");
        return Err(Error::Invalid(text));
    }
    if kind.is_dir() {
        for child in fs::read_dir(from).map_err(Error::io(what()))? {
            let child = child.map_err(Error::io(what()))?;
            gather(&child.path(), &to.join(child.file_name()), tree)?;
        }
    }
    Ok(())
}

/// Directories come before what is in them, since a path is smaller than those it begins.
fn write(tree: &Tree) -> Result<Vec<u8>, Error> {
    let mut builder = Builder::new(Vec::new());
    let mut bytes = 0;
    for (path, entry) in tree {
        let what = || format!("pack {}", path.display());
        let mut header = Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(0);
        header.set_mode(0o755);
        let appended = match entry {
            Entry::Directory => {
                header.set_entry_type(EntryType::Directory);
                builder.append_data(&mut header, path, std::io::empty())
            }
            Entry::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                builder.append_link(&mut header, path, target)
            }
            Entry::File { from, executable } => {
                let content = fs::read(from).map_err(Error::io(what()))?;
                bytes += content.len() as u64;
                if bytes > TREE_BYTES_MAX {
                    let text = "there is more than a gibibyte of files".to_owned();
                    return Err(Error::Invalid(text));
                }
                header.set_entry_type(EntryType::Regular);
                header.set_mode(if *executable { 0o755 } else { 0o644 });
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content.as_slice())
            }
        };
        appended.map_err(Error::io(what()))?;
    }
    builder.into_inner().map_err(Error::io("pack the image"))
}
