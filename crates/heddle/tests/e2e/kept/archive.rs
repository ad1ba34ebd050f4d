//! A data directory as one small file: a compressed tar of the directory, and of what is known about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use heddle_rt::{DiskVfs, Vfs as _};
use serde_json::Value;

use crate::harness::{read, write};

const DATA: &str = "data";
/// Beside the directory, since it is no part of it.
const KNOWN: &str = "kept.json";

/// Packs a directory that no server runs on, with what is known about it.
pub(super) fn pack(data: &Path, known: &Value) -> Vec<u8> {
    assert!(data.ends_with(DATA), "{}", data.display());
    let place = tempfile::tempdir().unwrap();
    write(&place.path().join(KNOWN), &format!("{known:#}\n"));
    let archive = place.path().join("archive");
    tar(&[
        "--create".as_ref(),
        "--gzip".as_ref(),
        "--file".as_ref(),
        &archive,
        "--directory".as_ref(),
        place.path(),
        KNOWN.as_ref(),
        "--directory".as_ref(),
        data.parent().unwrap(),
        DATA.as_ref(),
    ]);
    DiskVfs.read(&archive).unwrap()
}

/// Puts a directory below a folder, and tells where it is and what is known about it.
pub(super) fn unpack(archive: &[u8], folder: &Path) -> (PathBuf, Value) {
    let file = folder.join("archive");
    DiskVfs.write_atomic(&file, archive, 0o600).unwrap();
    tar(&[
        "--extract".as_ref(),
        "--gzip".as_ref(),
        "--file".as_ref(),
        &file,
        "--directory".as_ref(),
        folder,
    ]);
    let known = serde_json::from_str(&read(&folder.join(KNOWN))).unwrap();
    (folder.join(DATA), known)
}

fn tar(arguments: &[&Path]) {
    let status = Command::new("tar").args(arguments).status().unwrap();
    assert!(status.success(), "tar {arguments:?}: {status}");
}
