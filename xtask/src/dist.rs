//! What is handed out: `cargo xtask dist` builds the binary and puts it into an archive, a Debian package and an OCI image.
//!
//! ```text
//!   cargo build (static, stripped) ─> the files of an installation ─┬─> heddle-VERSION-ARCH-linux.tar.gz
//!                                        binary, unit, man pages,   ├─> heddle_VERSION_ARCH.deb
//!                                        completions, configuration └─> heddle-VERSION-ARCH.oci.tar    + SHA256SUMS
//! ```
//! The same sources and `SOURCE_DATE_EPOCH` make the same bytes: names are sorted, owners and times are fixed, and nothing of
//! this machine is written into a file. What was written is read back and checked before it is called done. No network, no
//! container engine and no tool of Debian's is needed, except for what cargo needs to build.

mod archive;
mod build;
mod deb;
mod elf;
mod install;
mod oci;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use self::elf::Elf;
use crate::check::announce;

/// What a release is called, and when it was made.
#[derive(Clone, Debug)]
struct Release {
    version: String,
    /// Seconds since 1970 that every file carries.
    epoch: u64,
    elf: Elf,
}

/// What `cargo xtask dist` was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// A binary that was built already, by whomever.
    binary: Option<PathBuf>,
    /// Where everything goes; `target/dist` unless told otherwise.
    out: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let place = match *word {
                "--binary" => &mut options.binary,
                "--out" => &mut options.out,
                other => bail!("unknown option {other}; try: dist [--binary FILE] [--out DIR]"),
            };
            let value = words.next();
            *place = Some(
                value
                    .with_context(|| format!("{word} needs a path"))?
                    .into(),
            );
        }
        Ok(options)
    }
}

/// Builds, packs, and reads back what was packed.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let epoch = build::epoch(root)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::binary(root)?,
    };
    let program = read(&binary)?;
    let release = Release {
        version: version(root)?,
        epoch,
        elf: Elf::read(&program).with_context(|| format!("cannot use {}", binary.display()))?,
    };
    let files = install::files(root, &binary, program)?;
    let mut made = vec![
        (release.archive_name(), archive::made(&release, &files)?),
        (release.deb_name(), deb::made(root, &release, &files)?),
    ];
    if release.elf.is_static {
        let image = oci::made(&release, &files)?;
        oci::verify(&image).context("the image that was made is not sound")?;
        made.push((release.image_name(), image));
    } else {
        announce("==> no image: the binary needs a dynamic linker, and the image has none");
    }
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| build::target(root).join("dist"));
    put(&out, &made)?;
    for (name, bytes) in &made {
        announce(&format!(
            "==> {}: {} bytes",
            out.join(name).display(),
            bytes.len()
        ));
    }
    Ok(())
}

impl Release {
    fn archive_name(&self) -> String {
        format!("heddle-{}-{}-linux.tar.gz", self.version, self.elf.machine)
    }

    fn deb_name(&self) -> String {
        format!("heddle_{}_{}.deb", self.version, self.elf.debian())
    }

    fn image_name(&self) -> String {
        format!("heddle-{}-{}.oci.tar", self.version, self.elf.machine)
    }
}

/// Writes what was made and `SHA256SUMS`, which `sha256sum --check` understands. What an earlier run left is not part of it.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore writes into the target directory; no fault is injected here"
)]
fn put(out: &Path, made: &[(String, Vec<u8>)]) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut sums: Vec<String> = Vec::new();
    for (name, bytes) in made {
        std::fs::write(out.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
        sums.push(format!("{}  {name}\n", hex(&Sha256::digest(bytes))));
    }
    std::fs::write(out.join("SHA256SUMS"), sums.concat()).context("cannot write SHA256SUMS")
}

/// The version in the workspace's manifest, which is the product's.
pub(crate) fn version(root: &Path) -> Result<String> {
    let manifest = String::from_utf8(read(&root.join("Cargo.toml"))?)?;
    let (_, package) = manifest
        .split_once("[workspace.package]")
        .context("Cargo.toml has no [workspace.package]")?;
    let line = package
        .lines()
        .find_map(|line| line.strip_prefix("version = "));
    let version = line.map(|value| value.trim_matches('"').to_owned());
    let version = version.context("Cargo.toml has no version")?;
    ensure!(!version.is_empty(), "the version in Cargo.toml is empty");
    Ok(version)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore reads the working tree; no fault is injected here"
)]
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
