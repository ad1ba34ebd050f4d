//! The files of an installation, by the path that each has on a machine.
//!
//! The package and the archive have all of them. Completions come from the binary itself, which is thereby seen to run; man
//! pages from `packaging/man`, which `cargo xtask codegen` writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::gzip;
use super::read;

/// A file to install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
}

/// By path from the root of the machine, without a slash before it.
pub(super) type Files = BTreeMap<String, Content>;

pub(super) const PROGRAM: &str = "usr/bin/heddle";
pub(super) const CONFIGURATION: &str = "etc/heddle/heddle.yaml";

/// Where each shell looks for completions of other programs.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/heddle"),
    ("zsh", "usr/share/zsh/vendor-completions/_heddle"),
    ("fish", "usr/share/fish/vendor_completions.d/heddle.fish"),
];

/// From the repository, as they are.
const COPIED: [(&str, &str); 4] = [
    ("packaging/heddle.yaml", CONFIGURATION),
    (
        "packaging/systemd/heddle.service",
        "lib/systemd/system/heddle.service",
    ),
    (
        "examples/shop.yaml",
        "usr/share/doc/heddle/examples/shop.yaml",
    ),
    (
        "examples/team-a.yaml",
        "usr/share/doc/heddle/examples/team-a.yaml",
    ),
];

/// Everything, with the program at `binary`, whose bytes the caller has read.
pub(super) fn files(root: &Path, binary: &Path, program: Vec<u8>) -> Result<Files> {
    let mut files = Files::new();
    files.insert(
        PROGRAM.to_owned(),
        Content {
            mode: 0o755,
            bytes: program,
        },
    );
    let mut put = |path: String, bytes: Vec<u8>| {
        files.insert(path, Content { mode: 0o644, bytes });
    };
    for (from, to) in COPIED {
        put(to.to_owned(), read(&root.join(from))?);
    }
    for (shell, path) in COMPLETIONS {
        put(path.to_owned(), completions(binary, shell)?);
    }
    for (name, page) in manual(root)? {
        put(format!("usr/share/man/man1/{name}.gz"), gzip(&page)?);
    }
    put(
        "usr/share/doc/heddle/copyright".to_owned(),
        copyright(root)?,
    );
    let changes = gzip(crate::changelog::text(root, None)?.as_bytes())?;
    put("usr/share/doc/heddle/changelog.gz".to_owned(), changes);
    Ok(files)
}

fn completions(binary: &Path, shell: &str) -> Result<Vec<u8>> {
    let output = Command::new(binary)
        .args(["completions", shell])
        .output()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    ensure!(
        output.status.success() && !output.stdout.is_empty(),
        "{} completions {shell}: {}: {}",
        binary.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// The man pages, by name.
fn manual(root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let folder = root.join("packaging/man");
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).context("cannot list packaging/man")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        pages.insert(name.into_owned(), read(&path)?);
    }
    ensure!(
        pages.contains_key("heddle.1"),
        "packaging/man has no heddle.1"
    );
    Ok(pages)
}

/// As Debian wants it: whose this is, and the licence in full.
fn copyright(root: &Path) -> Result<Vec<u8>> {
    let head = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                Upstream-Name: heddle\n\nFiles: *\nCopyright: the authors of heddle\nLicense: Apache-2.0\n";
    let licence = String::from_utf8(read(&root.join("LICENSE"))?)?;
    let indented = licence.lines().map(|line| match line.trim_end() {
        "" => " .\n".to_owned(),
        text => format!(" {text}\n"),
    });
    Ok(format!("{head}{}", indented.collect::<String>()).into_bytes())
}
