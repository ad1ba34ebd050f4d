//! Signing: what a Trigger sends is signed as the Standard Webhooks specification has it, so that its subscriber can tell it from
//! what others send.
//!
//! ```text
//!   heddle.dev/signing: "true"     and a Secret with the key, TRIGGER-signing (see `secret`)
//!
//!   v1   HMAC-SHA256   whsec_…     one key for both sides: whoever has it can sign
//!   v1a  Ed25519       whsk_…      signs; whpk_… verifies, and need not be kept secret
//! ```
//! A key is shown to somebody once, when it is made. What must be kept secret does not show itself in any other way.

pub mod secret;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::well_known::annotation;

pub use secret::{SigningKeys, SigningSecret};

/// Bytes of chance in a key: as many as the hash has that is made with it.
const KEY_BYTES: usize = 32;
/// What the specification allows of a key that others made.
const SHARED_KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// A seed, or a seed and the public key that follows from it, as some libraries write it.
const SEED_BYTES: usize = 32;
const SEED_AND_PUBLIC_BYTES: usize = 64;

const PUBLIC_PREFIX: &str = "whpk_";

/// How long the key before goes on signing unless somebody says otherwise, and the longest that it may.
pub const OVERLAP: Duration = Duration::from_secs(24 * 3600);
const OVERLAP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// What can be said of that, for people.
pub const OVERLAP_WANTED: &str = "none, or a time up to 30d such as 90m, 24h or 7d";

/// How something is signed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SigningScheme {
    /// With a secret that both sides know.
    #[default]
    #[serde(rename = "v1")]
    HmacSha256,
    /// With a key pair.
    #[serde(rename = "v1a")]
    Ed25519,
}

impl SigningScheme {
    /// What stands before a signature.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::HmacSha256 => "v1",
            Self::Ed25519 => "v1a",
        }
    }

    /// What stands before a key that signs.
    const fn prefix(self) -> &'static str {
        match self {
            Self::HmacSha256 => "whsec_",
            Self::Ed25519 => "whsk_",
        }
    }
}

/// For people.
impl fmt::Display for SigningScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::Ed25519 => "Ed25519",
        };
        write!(f, "{name} ({})", self.version())
    }
}

/// A key that signs. It does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub scheme: SigningScheme,
    bytes: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.scheme.version())
    }
}

impl SigningKey {
    /// A key that nobody has yet, from chance.
    #[must_use]
    pub fn draw(scheme: SigningScheme, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = vec![0; KEY_BYTES];
        fill(&mut bytes);
        Self { scheme, bytes }
    }

    /// Reads `whsec_…` or `whsk_…`. The error does not repeat what it is about.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let schemes = [SigningScheme::HmacSha256, SigningScheme::Ed25519];
        let found = schemes
            .into_iter()
            .find_map(|scheme| Some((scheme, text.strip_prefix(scheme.prefix())?)));
        let (scheme, encoded) = found.ok_or("begins with neither whsec_ nor whsk_")?;
        let decoded = BASE64_STANDARD.decode(encoded);
        let mut bytes = decoded.map_err(|_| "is not in base64")?;
        match scheme {
            SigningScheme::HmacSha256 if SHARED_KEY_BYTES.contains(&bytes.len()) => {}
            SigningScheme::HmacSha256 => return Err("is not of 24 to 64 bytes"),
            SigningScheme::Ed25519 => match bytes.len() {
                SEED_BYTES => {}
                SEED_AND_PUBLIC_BYTES => bytes.truncate(SEED_BYTES),
                _ => return Err("is not of 32 bytes"),
            },
        }
        Ok(Self { scheme, bytes })
    }

    /// What is signed with: the secret, or the seed of the key pair.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As it is written into a Secret, and, if it is one that both sides know, told to whoever had it made.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!(
            "{}{}",
            self.scheme.prefix(),
            BASE64_STANDARD.encode(&self.bytes)
        )
    }
}

/// A public key as subscribers are given it.
#[must_use]
pub fn public_key(bytes: &[u8]) -> String {
    format!("{PUBLIC_PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// Whether annotations ask for signatures. What cannot be understood is an error: to send unsigned would be the wrong default.
pub fn is_wanted(annotations: Option<&BTreeMap<String, String>>) -> Result<bool, String> {
    let name = annotation::SIGNING;
    match annotations.and_then(|all| all.get(name)) {
        None => Ok(false),
        Some(value) => value.parse().map_err(|_| {
            format!("annotation {name} is {value:?}, wanted is true or false; nothing is sent until then")
        }),
    }
}

/// The merge patch that asks for signatures on the object with this uid, or for none.
#[must_use]
pub fn patch(uid: &str, wanted: bool) -> Value {
    let value = wanted.then_some("true");
    json!({"metadata": {"uid": uid, "annotations": {(annotation::SIGNING): value}}})
}

/// Reads how long the key before goes on signing: `none`, `90m`, `24h`, `7d`.
#[must_use]
pub fn overlap(text: &str) -> Option<Duration> {
    if text == "none" {
        return Some(Duration::ZERO);
    }
    let units = [('m', 60), ('h', 3600), ('d', 86_400)];
    let (digits, seconds) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))?;
    // The standard parser also takes a sign.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u32 = digits.parse().ok().filter(|_| is_plain)?;
    let overlap = Duration::from_secs(u64::from(count) * seconds);
    (!overlap.is_zero() && overlap <= OVERLAP_MAX).then_some(overlap)
}

/// `POST /heddle/v1/triggers/{namespace}/{name}/sign`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignRequest {
    #[serde(default)]
    pub scheme: SigningScheme,
}

/// `POST /heddle/v1/triggers/{namespace}/{name}/rotate-key`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RotateKeyRequest {
    /// The same as before unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<SigningScheme>,
    /// See [`overlap()`]; 24h unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
}

/// The answer to both: the only one that has the key.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MadeKey {
    /// `NAMESPACE/NAME` of the Trigger.
    pub trigger: String,
    /// `NAMESPACE/NAME` of the Secret that has the key.
    pub secret: String,
    pub scheme: SigningScheme,
    /// What its subscriber verifies with: `whsec_…` or `whpk_…`.
    pub key: String,
    /// Until when the key before signs, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_until: Option<Timestamp>,
}

/// How what is sent to a subscriber is signed. No key is in it that must be kept secret.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SigningFacts {
    /// `NAMESPACE/NAME` of the Secret that has the keys.
    pub secret: String,
    /// Those that sign now, the newest first.
    pub keys: Vec<SigningKeyFacts>,
}

/// One key that signs.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SigningKeyFacts {
    pub scheme: SigningScheme,
    /// What verifies its signatures, if everybody may know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl SigningFacts {
    /// `with HMAC-SHA256 (v1), and until … with the key before it; the keys are in Secret team-a/orders-signing`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let keys = self.keys.iter().map(SigningKeyFacts::in_words);
        format!(
            "with {}; kept in Secret {}",
            keys.collect::<Vec<_>>().join(", and "),
            self.secret
        )
    }
}

impl SigningKeyFacts {
    fn in_words(&self) -> String {
        let mut words = self.scheme.to_string();
        if let Some(key) = &self.public_key {
            words.push_str(&format!(", which {key} verifies"));
        }
        if let Some(until) = self.until {
            words.push_str(&format!(", until {until} by the key before"));
        }
        words
    }
}

#[cfg(test)]
mod tests;
