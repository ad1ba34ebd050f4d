//! What authors write on images: the description of a bundle, its version, the contract it is made for.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use heddle_api::bundle_revision::VersionSource;
use serde_json::{Map, Value};

/// Labels with a description, the first that is there counts.
pub const DESCRIPTIONS: [&str; 2] = ["io.heddle.bundle.spec", "com.redhat.apb.spec"];
/// Labels with the version of the contract, the first that is there counts.
const RUNTIMES: [&str; 2] = ["com.redhat.bundle.runtime", "com.redhat.apb.runtime"];
/// Labels with the bundle's version, the first that is there counts.
const VERSIONS: [&str; 2] = ["org.opencontainers.image.version", "com.redhat.apb.version"];
/// Contracts that are known here.
const RUNTIMES_KNOWN: std::ops::RangeInclusive<i32> = 1..=2;
/// A version is a word, not a text.
const VERSION_BYTES_MAX: usize = 256;
/// A description is not larger, decoded.
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;

/// As tools write it: padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What the labels say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    pub(super) description: Map<String, Value>,
    pub(super) version: Option<(String, VersionSource)>,
    pub(super) runtime: i32,
}

/// Reads an image's labels. `None` if they speak of no bundle, an error if what they say of it cannot be used.
pub(super) fn describe(
    labels: &BTreeMap<String, String>,
    tag: &str,
) -> Result<Option<Described>, String> {
    let Some((label, encoded)) = DESCRIPTIONS
        .iter()
        .find_map(|label| Some((label, labels.get(*label)?)))
    else {
        return Ok(None);
    };
    let text = decode(encoded).map_err(|why| format!("label {label} {why}"))?;
    let (description, said) = read(&text)?;
    Ok(Some(Described {
        version: version(said, labels, tag),
        runtime: runtime(labels)?,
        description,
    }))
}

fn decode(encoded: &str) -> Result<String, String> {
    // A third more than what it stands for, and line ends.
    if encoded.len() > DESCRIPTION_BYTES_MAX * 3 / 2 {
        return Err("is too long".to_owned());
    }
    let compact: String = encoded.split_ascii_whitespace().collect();
    let bytes = BASE64
        .decode(compact)
        .map_err(|error| format!("is not base64: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "is not text".to_owned())
}

/// The description, and the version it says the bundle has.
fn read(text: &str) -> Result<(Map<String, Value>, Option<String>), String> {
    let (members, description) = heddle_api::description::read(text)?;
    Ok((members, description.version()))
}

fn version(
    said: Option<String>,
    labels: &BTreeMap<String, String>,
    tag: &str,
) -> Option<(String, VersionSource)> {
    let usable = |version: &String| !version.is_empty() && version.len() <= VERSION_BYTES_MAX;
    let labelled = || {
        let mut found = VERSIONS.iter().filter_map(|label| labels.get(*label));
        found.find(|version| usable(version)).cloned()
    };
    let tagged = || {
        let version = tag.strip_prefix('v').unwrap_or(tag);
        semver::Version::parse(version)
            .ok()
            .map(|version| version.to_string())
    };
    let said = said
        .filter(usable)
        .map(|version| (version, VersionSource::Description));
    said.or_else(|| labelled().map(|version| (version, VersionSource::Label)))
        .or_else(|| tagged().map(|version| (version, VersionSource::Tag)))
}

fn runtime(labels: &BTreeMap<String, String>) -> Result<i32, String> {
    let Some((label, text)) = RUNTIMES
        .iter()
        .find_map(|label| Some((label, labels.get(*label)?)))
    else {
        return Ok(1);
    };
    let known = text
        .trim()
        .parse()
        .ok()
        .filter(|runtime| RUNTIMES_KNOWN.contains(runtime));
    known.ok_or_else(|| {
        let (first, last) = (RUNTIMES_KNOWN.start(), RUNTIMES_KNOWN.end());
        format!("label {label} asks for runtime {text:?}; {first} to {last} are supported")
    })
}

#[cfg(test)]
mod tests;
