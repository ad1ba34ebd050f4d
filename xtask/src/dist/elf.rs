//! What the head of a binary says about it: for which processor it is, and whether it needs a dynamic linker.

use anyhow::{Context as _, Result, bail, ensure};

/// A binary for Linux, as far as packages are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elf {
    /// As `uname -m` says it.
    pub(super) machine: &'static str,
    pub(super) is_static: bool,
}

/// Program header of the interpreter, which a static binary does not have.
const PT_INTERP: u32 = 3;

impl Elf {
    /// Reads the head of a 64-bit little-endian ELF file; others are not handed out.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"\x7fELF"), "it is no ELF file");
        ensure!(
            bytes.get(4..6) == Some(&[2, 1]),
            "it is not 64-bit little-endian"
        );
        let machine = match number(bytes, 18, 2)? {
            62 => "x86_64",
            183 => "aarch64",
            other => bail!("machine {other} is not known here"),
        };
        let (start, size) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?);
        let mut is_static = true;
        for index in 0..number(bytes, 56, 2)? {
            let kind = number(bytes, start + index * size, 4)?;
            is_static &= kind != u64::from(PT_INTERP);
        }
        Ok(Self { machine, is_static })
    }

    /// As Debian calls it.
    pub(super) fn debian(&self) -> &'static str {
        match self.machine {
            "aarch64" => "arm64",
            _ => "amd64",
        }
    }

    /// As images call it.
    pub(super) fn oci(&self) -> &'static str {
        self.debian()
    }
}

/// A little-endian number of so many bytes.
fn number(bytes: &[u8], at: u64, len: usize) -> Result<u64> {
    let at = usize::try_from(at)?;
    let field = bytes.get(at..at + len).context("it is cut off")?;
    Ok(field
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}
