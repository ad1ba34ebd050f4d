//! A directory of files that are not ours: what bundles keep.
//!
//! Instances own what is in it and may write while it is read. It is taken as it is found, like a copy by `cp -a`: files,
//! directories and symbolic links; sockets and the like are left out.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

use super::{Content, Entry};

/// More than this is no directory of bundles.
const ENTRIES_MAX: usize = 1 << 20;

/// Adds everything below `root`, under `prefix`.
pub(super) fn add(root: &Path, prefix: &str, entries: &mut Vec<Entry>) -> anyhow::Result<()> {
    let mut folders = vec![(root.to_path_buf(), prefix.to_owned())];
    while let Some((folder, prefix)) = folders.pop() {
        let listed = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            listed => listed.with_context(|| format!("cannot list {}", folder.display()))?,
        };
        for entry in listed {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let path = entry.path();
            let name = entry.file_name();
            let name = name
                .to_str()
                .with_context(|| format!("{} is no text", path.display()))?;
            let name = format!("{prefix}/{name}");
            let Some(content) = content(&path)? else {
                continue;
            };
            if matches!(content, Content::Directory { .. }) {
                folders.push((path, name.clone()));
            }
            entries.push(Entry { name, content });
            ensure!(
                entries.len() <= ENTRIES_MAX,
                "{} has too many files",
                root.display()
            );
        }
    }
    Ok(())
}

fn content(path: &Path) -> anyhow::Result<Option<Content>> {
    let metadata = match std::fs::symlink_metadata(path) {
        // Gone since it was listed.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.with_context(|| format!("cannot look at {}", path.display()))?,
    };
    let mode = metadata.permissions().mode() & 0o7777;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Ok(Some(Content::Directory { mode }));
    }
    if kind.is_symlink() {
        let target = std::fs::read_link(path)?;
        let target = target.to_str().map(str::to_owned);
        return Ok(target.map(|target| Content::Link { target }));
    }
    let (path, bytes) = (path.to_path_buf(), metadata.len());
    Ok(kind
        .is_file()
        .then_some(Content::File { path, bytes, mode }))
}
