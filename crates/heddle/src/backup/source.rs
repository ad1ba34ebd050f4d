//! What belongs to a backup, and in which order it is taken.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use heddle_mesh::log::embedded;
use heddle_rt::Vfs;
use heddle_store::events::Export;

use super::server::BackedUpLogs;
use super::{Content, Entry, tree};
use crate::audit::journal::AUDIT;

/// The store of resources inside of a backup.
pub(crate) const RESOURCES: &str = "store/resources.redb";
/// The log and the journal below the data directory.
const EVENTS: &str = "events";
/// The logs that are copied; the rest of `events` follows from them.
const LOGS: [&str; 3] = ["events/journal", "events/log", AUDIT];
const PKI: &str = "pki";
const BUNDLES: &str = "bundles";
/// Of one run or one process: a copy of them would be wrong elsewhere.
const LEFT_OUT: [&str; 2] = ["lock", "endpoints.json"];
const SECRET: u32 = 0o600;

/// Of a running server: `resources` is a copy of its store, which was made before.
pub(crate) fn online(
    vfs: &dyn Vfs,
    dir: &Path,
    resources: &Path,
    logs: &BackedUpLogs,
) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    // Listed before anything is read, and read from the oldest on, which may be removed while this goes on.
    for exported in logs.events.export().context("cannot list the event log")? {
        let content = match exported.content {
            embedded::Content::Bytes(bytes) => Content::Bytes {
                bytes,
                mode: SECRET,
            },
            embedded::Content::File { path, bytes } => Content::File {
                path,
                bytes,
                mode: SECRET,
            },
        };
        let name = format!("{EVENTS}/{}", exported.name);
        entries.push(Entry { name, content });
    }
    let audit = logs.audit.journal().export();
    add_audit(audit.context("cannot list the audit log")?, &mut entries);
    entries.push(whole(vfs, resources, RESOURCES)?);
    the_rest(vfs, dir, &mut entries)?;
    Ok(entries)
}

/// The audit log as it is at this moment.
fn add_audit(exported: Export, entries: &mut Vec<Entry>) {
    let named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{AUDIT}/{name}")
    };
    entries.push(Entry {
        name: named(&exported.manifest_path),
        content: Content::Bytes {
            bytes: exported.manifest,
            mode: SECRET,
        },
    });
    for (path, bytes) in exported.segments {
        let (name, mode) = (named(&path), SECRET);
        let content = Content::File { path, bytes, mode };
        entries.push(Entry { name, content });
    }
}

/// Of a stopped server, whose directory the caller has taken.
pub(crate) fn offline(vfs: &dyn Vfs, dir: &Path, resources: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut entries = vec![whole(vfs, resources, RESOURCES)?];
    for log in LOGS {
        files_in(vfs, dir, log, &mut entries)?;
    }
    the_rest(vfs, dir, &mut entries)?;
    Ok(entries)
}

/// Credentials, and what bundles keep.
fn the_rest(vfs: &dyn Vfs, dir: &Path, entries: &mut Vec<Entry>) -> anyhow::Result<()> {
    files_in(vfs, dir, PKI, entries)?;
    files_in(vfs, dir, "", entries)?;
    tree::add(&dir.join(BUNDLES), BUNDLES, entries)
}

/// The files directly in a directory of ours.
fn files_in(
    vfs: &dyn Vfs,
    dir: &Path,
    inside: &str,
    entries: &mut Vec<Entry>,
) -> anyhow::Result<()> {
    let listed = match vfs.list(&dir.join(inside)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.with_context(|| format!("cannot list {}", dir.join(inside).display()))?,
    };
    for name in listed {
        let is_ours = !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str());
        let path = dir.join(inside).join(&name);
        if !is_ours || path.is_dir() {
            continue;
        }
        let name = if inside.is_empty() {
            name
        } else {
            format!("{inside}/{name}")
        };
        entries.push(whole(vfs, &path, &name)?);
    }
    Ok(())
}

fn whole(vfs: &dyn Vfs, path: &Path, name: &str) -> anyhow::Result<Entry> {
    let file = vfs.open(path, heddle_rt::vfs::Open::existing());
    let bytes = file.and_then(|file| file.len());
    let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
    let is_public = name.ends_with(".crt");
    let content = Content::File {
        path: path.to_path_buf(),
        bytes,
        mode: if is_public { 0o644 } else { SECRET },
    };
    Ok(Entry {
        name: name.to_owned(),
        content,
    })
}
