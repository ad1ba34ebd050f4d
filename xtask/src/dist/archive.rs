//! Archives that depend on nothing but what is in them: tar with fixed owners and times, gzip without a name, and ar.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::Release;
use super::install::Files;

/// Somebody's files and folders: numbers of user and group.
pub(super) type Owner = (u64, u64);

pub(super) const ROOT: Owner = (0, 0);

/// A tar being written.
pub(super) struct Tar {
    builder: Builder<Vec<u8>>,
    epoch: u64,
    folders: BTreeSet<String>,
}

impl Tar {
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            builder: Builder::new(Vec::new()),
            epoch,
            folders: BTreeSet::new(),
        }
    }

    /// A file, and the folders above it that are not there yet.
    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            if &path[..at] != "." {
                self.folder(&path[..at], 0o755, ROOT)?;
            }
        }
        self.entry(path, EntryType::Regular, mode, ROOT, bytes)
    }

    /// A folder, once.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: Owner) -> Result<()> {
        if !self.folders.insert(path.to_owned()) {
            return Ok(());
        }
        self.entry(&format!("{path}/"), EntryType::Directory, mode, owner, &[])
    }

    fn entry(
        &mut self,
        path: &str,
        kind: EntryType,
        mode: u32,
        (user, group): Owner,
        bytes: &[u8],
    ) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(user);
        header.set_gid(group);
        header.set_mtime(self.epoch);
        header.set_size(bytes.len().try_into()?);
        // A path that begins with `./` stays as it is: Debian's tools expect that of a package.
        let name = path.as_bytes();
        let field = &mut header.as_gnu_mut().expect("it was made as GNU's").name;
        anyhow::ensure!(
            name.len() < field.len(),
            "{path} is too long for a tar header"
        );
        field[..name.len()].copy_from_slice(name);
        header.set_cksum();
        self.builder
            .append(&header, bytes)
            .with_context(|| format!("cannot add {path}"))
    }

    pub(super) fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?)
    }
}

/// Compressed, without the time and name that gzip would write down.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The archive of a Debian package.
pub(super) fn ar(epoch: u64, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let head = format!(
            "{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            "100644",
            bytes.len()
        );
        archive.extend_from_slice(head.as_bytes());
        archive.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

/// Everything below one folder, to be unpacked wherever somebody likes.
pub(super) fn made(release: &Release, files: &Files) -> Result<Vec<u8>> {
    let mut tar = Tar::new(release.epoch);
    for (path, content) in files {
        let path = format!("heddle-{}/{path}", release.version);
        tar.file(&path, content.mode, &content.bytes)?;
    }
    gzip(&tar.finish()?)
}
