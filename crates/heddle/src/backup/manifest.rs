//! `manifest.json`: what belongs to a backup, with the checksum of each file.
//!
//! It is written last, so a directory without one is no backup. Names come from outside when a backup is restored; one that
//! would lead elsewhere is refused.

use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, ensure};
use heddle_rt::Vfs;
use heddle_rt::vfs::Open;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::CHUNK_BYTES;
use crate::output;

pub(crate) const NAME: &str = "manifest.json";

/// The layout of a backup. A higher number is refused, not guessed at.
const FORMAT: u32 = 1;

/// What is in a backup.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// Which release wrote it.
    pub(crate) heddle: String,
    pub(crate) created: String,
    pub(crate) entries: Vec<Listed>,
}

/// One thing in it. What has a target is a symbolic link, what has neither that nor a checksum a directory.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Listed {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    #[serde(default)]
    pub(crate) mode: u32,
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
}

impl Manifest {
    pub(crate) fn new(created: jiff::Timestamp) -> Self {
        Self {
            format: FORMAT,
            heddle: env!("CARGO_PKG_VERSION").to_owned(),
            created: created.to_string(),
            entries: Vec::new(),
        }
    }

    /// Puts it in place: from now on this is a backup.
    pub(crate) fn save(&self, vfs: &dyn Vfs, dir: &Path) -> anyhow::Result<()> {
        let value = serde_json::to_value(self).context("cannot write the manifest")?;
        vfs.write_atomic(&dir.join(NAME), output::json(&value).as_bytes(), 0o600)
            .with_context(|| format!("cannot write {}", dir.join(NAME).display()))
    }

    pub(crate) fn load(vfs: &dyn Vfs, dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(NAME);
        let bytes = match vfs.read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => anyhow::bail!(
                "{} is no backup, or one that was broken off: it has no {NAME}",
                dir.display()
            ),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let manifest: Self = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} is damaged", path.display()))?;
        ensure!(
            manifest.format <= FORMAT,
            "{} has format {}, this release reads up to {FORMAT}",
            dir.display(),
            manifest.format
        );
        for entry in &manifest.entries {
            place(dir, &entry.name)?;
        }
        Ok(manifest)
    }

    /// Reads every file and compares it with what was written. Says how many bytes that were.
    pub(crate) fn verify(&self, vfs: &dyn Vfs, dir: &Path) -> anyhow::Result<u64> {
        let mut total = 0;
        for entry in self.entries.iter().filter(|entry| entry.sha256.is_some()) {
            let path = place(dir, &entry.name)?;
            let (size, sha256) =
                hash(vfs, &path).with_context(|| format!("cannot read {}", path.display()))?;
            ensure!(
                size == entry.size && Some(sha256) == entry.sha256,
                "{} is not what was written: it is damaged, or was changed since",
                path.display()
            );
            total += size;
        }
        Ok(total)
    }
}

/// Where something of this name goes below `dir`.
pub(crate) fn place(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let relative = Path::new(name);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    ensure!(
        !name.is_empty() && name != NAME && relative.components().all(plain),
        "`{name}` is no name of a file in a backup"
    );
    Ok(dir.join(relative))
}

/// Length and checksum of a file.
fn hash(vfs: &dyn Vfs, path: &Path) -> io::Result<(u64, String)> {
    let file = vfs.open(path, Open::existing())?;
    let (size, mut at, mut sum) = (file.len()?, 0, Sha256::new());
    let mut chunk = vec![0; CHUNK_BYTES];
    while at < size {
        let bytes = chunk_bytes(size - at);
        file.read_at(at, &mut chunk[..bytes])?;
        sum.update(&chunk[..bytes]);
        at += bytes as u64;
    }
    Ok((size, hex(&sum.finalize())))
}

/// How much of what is left fits a chunk.
pub(crate) fn chunk_bytes(left: u64) -> usize {
    usize::try_from(left)
        .unwrap_or(CHUNK_BYTES)
        .min(CHUNK_BYTES)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
