//! Digests: the names of content, which nobody can give to other content.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest as registries write it: `sha256:` and 64 lower-case hexadecimal digits. As it is also the name of a
/// file, there is no other way to make one than to check it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

/// Text that is no digest we can verify.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a SHA-256 digest")]
pub struct BadDigest(pub String);

const PREFIX: &str = "sha256:";

impl Digest {
    /// Checks text.
    pub fn parse(text: &str) -> Result<Self, BadDigest> {
        let hex = text.strip_prefix(PREFIX).unwrap_or_default();
        let sound = hex.len() == 64
            && hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if sound {
            Ok(Self(text.to_owned()))
        } else {
            // What a stranger sends is repeated in part only.
            Err(BadDigest(text.chars().take(100).collect()))
        }
    }

    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without the name of the algorithm.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0[PREFIX.len()..]
    }

    /// The digest whose hexadecimal digits are the name of a file.
    pub(super) fn from_hex(hex: &str) -> Option<Self> {
        Self::parse(&format!("{PREFIX}{hex}")).ok()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Makes the digest of bytes that come in pieces.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    #[must_use]
    pub fn finish(self) -> Digest {
        use fmt::Write as _;
        let mut text = String::with_capacity(PREFIX.len() + 64);
        text.push_str(PREFIX);
        for byte in self.0.finalize() {
            write!(text, "{byte:02x}").expect("text takes what is written");
        }
        Digest(text)
    }
}
