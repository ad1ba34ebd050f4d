//! The Secret that holds the keys of a Trigger, in its namespace.
//!
//! ```text
//!   name             TRIGGER-signing         type  heddle.dev/signing-key
//!   key              whsec_… or whsk_…       what signs
//!   previous-key     the same                what signed before, and does so until
//!   previous-until   a time in RFC 3339
//! ```
//! Its name follows from the Trigger's and is not chosen: nobody has events signed with the key of another Trigger. One that
//! belongs to a Trigger which is gone is not used for another of the same name. One without an owner is somebody's who brings
//! their own key, and is used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource as _, ResourceExt as _};

use super::SigningKey;
use crate::Trigger;
use crate::names::signing_secret;

/// Entries of the Secret.
pub const KEY: &str = "key";
pub const PREVIOUS_KEY: &str = "previous-key";
pub const PREVIOUS_UNTIL: &str = "previous-until";

/// What signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeys {
    pub current: SigningKey,
    /// The key before, and until when it signs.
    pub previous: Option<(SigningKey, Timestamp)>,
}

impl SigningKeys {
    /// Reads what a Secret holds. The error says which entry is wrong and repeats nothing of it.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, String> {
        let current = key(data, KEY)?.ok_or_else(|| format!("has no entry {KEY}"))?;
        let previous = match (key(data, PREVIOUS_KEY)?, text(data, PREVIOUS_UNTIL)?) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(format!(
                    "has an entry {PREVIOUS_KEY} and no {PREVIOUS_UNTIL}"
                ));
            }
            (Some(key), Some(until)) => {
                let until = until.trim().parse();
                let until = until.map_err(|_| {
                    format!("has an entry {PREVIOUS_UNTIL} that is no time in RFC 3339")
                })?;
                Some((key, until))
            }
        };
        Ok(Self { current, previous })
    }

    /// What a Secret holds that has them.
    #[must_use]
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::from([(KEY.to_owned(), self.current.reveal())]);
        if let Some((key, until)) = &self.previous {
            data.insert(PREVIOUS_KEY.to_owned(), key.reveal());
            data.insert(PREVIOUS_UNTIL.to_owned(), until.to_string());
        }
        let bytes = |(name, text): (String, String)| (name, ByteString(text.into_bytes()));
        data.into_iter().map(bytes).collect()
    }
}

fn text<'a>(data: &'a BTreeMap<String, ByteString>, name: &str) -> Result<Option<&'a str>, String> {
    let Some(bytes) = data.get(name) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes.0);
    text.map(Some)
        .map_err(|_| format!("has an entry {name} that is no text"))
}

fn key(data: &BTreeMap<String, ByteString>, name: &str) -> Result<Option<SigningKey>, String> {
    let Some(text) = text(data, name)? else {
        return Ok(None);
    };
    // Editors and `echo` end a line.
    let key = SigningKey::parse(text.trim());
    key.map(Some)
        .map_err(|why| format!("has an entry {name} that is no key: it {why}"))
}

/// A Secret with keys, as it was read. It shows its name only.
#[derive(Clone)]
pub struct SigningSecret(Arc<Secret>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = self.place();
        write!(f, "SigningSecret({namespace}/{name})")
    }
}

/// Whether they give the same signatures for the same Triggers.
impl PartialEq for SigningSecret {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        std::ptr::eq(one, other)
            || (one.data == other.data
                && one.metadata.name == other.metadata.name
                && one.metadata.namespace == other.metadata.namespace
                && one.metadata.owner_references == other.metadata.owner_references
                && one.metadata.deletion_timestamp == other.metadata.deletion_timestamp)
    }
}

impl From<Arc<Secret>> for SigningSecret {
    fn from(secret: Arc<Secret>) -> Self {
        Self(secret)
    }
}

impl SigningSecret {
    /// Namespace and name.
    #[must_use]
    pub fn place(&self) -> (&str, &str) {
        let meta = &self.0.metadata;
        (
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    /// The keys, for a Trigger; or why there are none, as the end of a sentence that begins with its name.
    pub fn keys_for(&self, trigger: &Trigger) -> Result<SigningKeys, String> {
        if self.0.metadata.deletion_timestamp.is_some() {
            return Err("is being deleted".to_owned());
        }
        if belongs_to_another(&self.0, trigger) {
            return Err("belongs to a trigger of the same name that is gone".to_owned());
        }
        let empty = BTreeMap::new();
        SigningKeys::read(self.0.data.as_ref().unwrap_or(&empty))
    }
}

/// Whether a Secret is owned by another Trigger than this one.
#[must_use]
pub fn belongs_to_another(secret: &Secret, trigger: &Trigger) -> bool {
    let mut owners = secret.owner_references().iter();
    let uid = trigger.metadata.uid.as_deref();
    owners.any(|owner| owner.kind == Trigger::kind(&()) && Some(&*owner.uid) != uid)
}

/// Why events that are to be signed wait, and what to do about it. `why` ends a sentence that begins with the Secret.
#[must_use]
pub fn in_the_way(namespace: &str, trigger: &str, why: &str) -> String {
    let secret = signing_secret(trigger);
    let sign = format!("heddle trigger sign {namespace}/{trigger}");
    format!(
        "its events are to be signed, and Secret {namespace}/{secret} {why}; nothing is sent unsigned: restore it, or make another key \
         with `{sign}` and give that to the subscriber"
    )
}

/// Where there is no Secret.
pub const MISSING: &str = "does not exist";
