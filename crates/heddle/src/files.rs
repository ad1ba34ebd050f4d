//! The user's own files, as a command reads and writes them.
//!
//! The data directory goes through `heddle_rt::Vfs`, where faults are injected; a manifest or a
//! configuration file that a person named on the command line does not, and is read here.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Larger inputs are surely a mistake, and a pipe could go on for ever.
pub const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The text of a file a person named.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    bounded_text(open(path)?, &path.display().to_string())
}

/// Everything on standard input.
pub fn read_stdin() -> anyhow::Result<String> {
    bounded_text(std::io::stdin().lock(), "standard input")
}

/// What a file holds, text or not; `-` is standard input.
pub fn read_bytes(name: &str) -> anyhow::Result<Vec<u8>> {
    if name == "-" {
        return bounded(std::io::stdin().lock(), "standard input");
    }
    bounded(open(Path::new(name))?, name)
}

pub fn open(path: &Path) -> anyhow::Result<std::fs::File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a file named on the command line; no simulated disk stands behind it"
    )]
    let file = std::fs::File::open(path);
    file.with_context(|| format!("cannot read {}", path.display()))
}

/// An empty file at the place a person named, for what a command will write.
pub fn create(path: &Path) -> anyhow::Result<std::fs::File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a file named on the command line; no simulated disk stands behind it"
    )]
    let file = std::fs::File::create(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

/// A file that only its owner may read, whatever was there before.
pub fn write_private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let written = || {
        #[expect(
            clippy::disallowed_methods,
            reason = "what an earlier command left; no simulated disk stands behind it"
        )]
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(path)?.write_all(bytes)
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

fn bounded_text(input: impl std::io::Read, name: &str) -> anyhow::Result<String> {
    let bytes = bounded(input, name)?;
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))
}

fn bounded(input: impl std::io::Read, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input
        .take(INPUT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    anyhow::ensure!(
        bytes.len() as u64 <= INPUT_BYTES_MAX,
        "{name} is larger than {} MiB",
        INPUT_BYTES_MAX >> 20
    );
    Ok(bytes)
}

/// The manifests of a folder and its subfolders, in a stable order.
pub fn manifests_under(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let path = entry.path();
            // A link to a folder is not followed: it could lead back here.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if is_manifest(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}
