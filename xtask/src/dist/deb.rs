//! A Debian package, written as its format says: an ar archive of a version, a tar about the package and one with its files.
//!
//! Removing the package keeps the configuration and the data; purging it removes both (`packaging/deb`).

use std::path::Path;

use anyhow::Result;
use md5::{Digest as _, Md5};

use super::archive::{ROOT, Tar, ar, gzip};
use super::install::{CONFIGURATION, Files};
use super::{Release, hex, read};

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub(super) fn made(root: &Path, release: &Release, files: &Files) -> Result<Vec<u8>> {
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control(root, release, files)?)?),
        ("data.tar.gz", gzip(&data(release, files)?)?),
    ];
    Ok(ar(release.epoch, &members))
}

fn data(release: &Release, files: &Files) -> Result<Vec<u8>> {
    let mut tar = Tar::new(release.epoch);
    tar.folder(".", 0o755, ROOT)?;
    for (path, content) in files {
        tar.file(&format!("./{path}"), content.mode, &content.bytes)?;
    }
    tar.finish()
}

fn control(root: &Path, release: &Release, files: &Files) -> Result<Vec<u8>> {
    let mut tar = Tar::new(release.epoch);
    tar.folder(".", 0o755, ROOT)?;
    tar.file("./control", 0o644, about(release, files).as_bytes())?;
    tar.file(
        "./conffiles",
        0o644,
        format!("/{CONFIGURATION}\n").as_bytes(),
    )?;
    tar.file("./md5sums", 0o644, sums(files).as_bytes())?;
    for script in SCRIPTS {
        let text = read(&root.join("packaging/deb").join(script))?;
        tar.file(&format!("./{script}"), 0o755, &text)?;
    }
    tar.finish()
}

fn about(release: &Release, files: &Files) -> String {
    let bytes: usize = files.values().map(|content| content.bytes.len()).sum();
    let libraries = if release.elf.is_static {
        ""
    } else {
        ", libc6, libgcc-s1"
    };
    let lines = [
        "Package: heddle".to_owned(),
        format!("Version: {}", release.version),
        format!("Architecture: {}", release.elf.debian()),
        "Maintainer: The authors of heddle <heddle@localhost>".to_owned(),
        format!("Installed-Size: {}", bytes.div_ceil(1024)),
        format!("Depends: adduser{libraries}"),
        "Recommends: ca-certificates".to_owned(),
        "Section: net".to_owned(),
        "Priority: optional".to_owned(),
        "Description: Open Service Broker with a durable CloudEvents mesh".to_owned(),
        " heddle offers the events and APIs of applications as self-service through the".to_owned(),
        " Open Service Broker API, keeps what was provisioned by reconciling controllers,"
            .to_owned(),
        " and delivers CloudEvents from a log that acknowledges after fsync. One process,"
            .to_owned(),
        " one directory; no cluster and no database.".to_owned(),
    ];
    lines.join("\n") + "\n"
}

/// Of everything but the configuration, which people change.
fn sums(files: &Files) -> String {
    let checked = files.iter().filter(|(path, _)| *path != CONFIGURATION);
    checked
        .map(|(path, content)| format!("{}  {path}\n", hex(&Md5::digest(&content.bytes))))
        .collect()
}
