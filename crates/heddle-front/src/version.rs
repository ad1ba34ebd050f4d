//! The version of the API that a platform announces.
//!
//! Requests are understood alike whatever the version; answers differ, because older platforms refuse fields that they do
//! not know. So a version is a question: may this field be shown?

use http::HeaderMap;

use crate::error::OsbError;
use crate::settings::MissingVersion;

/// The header that announces it.
pub(crate) const HEADER: &str = "x-broker-api-version";

/// A version 2.x that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    minor: u32,
}

impl Version {
    /// The oldest that is understood.
    pub const OLDEST: Self = Self { minor: 13 };
    pub const V2_14: Self = Self { minor: 14 };
    pub const V2_15: Self = Self { minor: 15 };
    pub const V2_16: Self = Self { minor: 16 };
    /// The newest whose fields are known here; later ones are answered like this one.
    pub const NEWEST: Self = Self { minor: 17 };

    /// Reads `MAJOR.MINOR`. Newer minor versions only add to older ones, so any of them will do.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once('.')?;
        let (major, minor) = (number(major)?, number(minor)?);
        (major == 2 && minor >= Self::OLDEST.minor).then_some(Self {
            minor: minor.min(Self::NEWEST.minor),
        })
    }

    /// The `x` of 2.x, as far as it is known here.
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.minor
    }

    /// What a request announces.
    pub(crate) fn announced(
        headers: &HeaderMap,
        missing: MissingVersion,
    ) -> Result<Self, OsbError> {
        let Some(value) = headers.get(HEADER) else {
            return match missing {
                MissingVersion::Accept => Ok(Self::OLDEST),
                MissingVersion::BadRequest => Err(OsbError::VersionMissing { strict: false }),
                MissingVersion::PreconditionFailed => {
                    Err(OsbError::VersionMissing { strict: true })
                }
            };
        };
        let parsed = value.to_str().ok().and_then(Self::parse);
        parsed.ok_or(OsbError::VersionUnsupported)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "2.{}", self.minor)
    }
}

/// Digits only: `+2` is a number to Rust and to nobody else.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_newer_minor_ones_are_welcome() {
        for text in [
            "1.0", "3.0", "abc", "2.9", "2", "2.", ".13", "2.13.1", "+2.13", "", "2.-1",
        ] {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
        for (text, shown) in [
            ("2.13", "2.13"),
            ("2.14", "2.14"),
            ("2.17", "2.17"),
            ("2.99", "2.17"),
        ] {
            assert_eq!(Version::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_a_missing_version_means_is_a_setting() {
        let status = |missing| {
            Version::announced(&HeaderMap::new(), missing).map_err(|error| error.status().as_u16())
        };
        assert_eq!(status(MissingVersion::BadRequest), Err(400));
        assert_eq!(status(MissingVersion::PreconditionFailed), Err(412));
        assert_eq!(status(MissingVersion::Accept), Ok(Version::OLDEST));
    }
}
