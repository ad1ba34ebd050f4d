//! Signatures of what is sent, as the Standard Webhooks specification has them.
//!
//! ```text
//!   webhook-id         msg_ and a hash of source and id: the same at every attempt, and no text of a publisher's
//!   webhook-timestamp  the seconds at which this attempt is written
//!   webhook-signature  v1,… or v1a,… over ID.TIMESTAMP.BODY; two of them while keys are rotated
//! ```
//! The body is the one that is sent, byte for byte, in whichever form. Nothing of a publisher's can put such headers there:
//! attributes become headers with `ce-` in front, and other headers of theirs do not travel on.
//!
//! Keys are made ready when the table is compiled. An attempt does no more than sign.

use std::fmt;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use heddle_api::Trigger;
use heddle_api::signing::{
    SigningFacts, SigningKey, SigningKeyFacts, SigningScheme, SigningSecret, public_key,
};
use heddle_rt::Clock;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use ring::{digest, hmac};

static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The keys of a Trigger, ready to sign.
pub struct Signer {
    /// What they were made from.
    secret: SigningSecret,
    /// The Trigger they are for.
    uid: Option<String>,
    current: ReadyKey,
    previous: Option<(ReadyKey, Timestamp)>,
}

enum ReadyKey {
    Shared(hmac::Key),
    Pair(Ed25519KeyPair),
}

/// No key shows itself.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({:?})", self.secret)
    }
}

/// What an attempt is signed with.
#[derive(Clone, Copy, Debug)]
pub struct MessageSigning<'a> {
    pub signer: &'a Signer,
    /// See [`message_id`].
    pub id: &'a str,
    /// Asked when the attempt is written: waiting for a connection takes nothing of the time for which a subscriber
    /// believes it.
    pub clock: &'a Clock,
}

impl MessageSigning<'_> {
    /// The headers for a body.
    pub(super) fn headers(&self, body: &[u8]) -> [(&'static HeaderName, HeaderValue); 3] {
        let now = self.clock.now();
        let seconds = now.as_second().to_string();
        let signatures = self.signer.signatures(self.id, &seconds, body, now);
        [
            (&WEBHOOK_ID, self.id),
            (&WEBHOOK_TIMESTAMP, &seconds),
            (&WEBHOOK_SIGNATURE, &signatures),
        ]
        .map(|(name, text)| {
            let value =
                HeaderValue::from_str(text).expect("base64, digits and commas are a header");
            (name, value)
        })
    }
}

impl Signer {
    /// Makes the keys of a Secret ready; or says why that cannot be done, as the end of a sentence that begins with its name.
    pub fn new(secret: &SigningSecret, trigger: &Trigger) -> Result<Self, String> {
        let keys = secret.keys_for(trigger)?;
        let previous = match &keys.previous {
            Some((key, until)) => Some((ReadyKey::new(key)?, *until)),
            None => None,
        };
        Ok(Self {
            secret: secret.clone(),
            uid: trigger.metadata.uid.clone(),
            current: ReadyKey::new(&keys.current)?,
            previous,
        })
    }

    /// Whether these are the keys that the Secret has for the Trigger.
    pub(crate) fn is_of(&self, secret: &SigningSecret, trigger: &Trigger) -> bool {
        self.secret == *secret && self.uid == trigger.metadata.uid
    }

    /// How it signs at a moment.
    pub(crate) fn facts(&self, now: Timestamp) -> SigningFacts {
        let (namespace, name) = self.secret.place();
        let keys = self.keys(now).map(|(key, until)| key.facts(until));
        SigningFacts {
            secret: format!("{namespace}/{name}"),
            keys: keys.collect(),
        }
    }

    /// The keys that sign at a moment, the newest first, and when they end.
    fn keys(&self, now: Timestamp) -> impl Iterator<Item = (&ReadyKey, Option<Timestamp>)> {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        let previous = previous.map(|(key, until)| (key, Some(*until)));
        [(&self.current, None)].into_iter().chain(previous)
    }

    fn signatures(&self, id: &str, seconds: &str, body: &[u8], now: Timestamp) -> String {
        let head = format!("{id}.{seconds}.");
        let mut signatures = String::new();
        for (key, _) in self.keys(now) {
            if !signatures.is_empty() {
                signatures.push(' ');
            }
            key.sign_into(head.as_bytes(), body, &mut signatures);
        }
        signatures
    }
}

impl ReadyKey {
    fn new(key: &SigningKey) -> Result<Self, String> {
        match key.scheme {
            SigningScheme::HmacSha256 => {
                Ok(Self::Shared(hmac::Key::new(hmac::HMAC_SHA256, key.bytes())))
            }
            SigningScheme::Ed25519 => Ed25519KeyPair::from_seed_unchecked(key.bytes())
                .map(Self::Pair)
                .map_err(|_| "has a key pair that cannot be used".to_owned()),
        }
    }

    fn scheme(&self) -> SigningScheme {
        match self {
            Self::Shared(_) => SigningScheme::HmacSha256,
            Self::Pair(_) => SigningScheme::Ed25519,
        }
    }

    fn facts(&self, until: Option<Timestamp>) -> SigningKeyFacts {
        SigningKeyFacts {
            scheme: self.scheme(),
            public_key: match self {
                Self::Shared(_) => None,
                Self::Pair(pair) => Some(public_key(pair.public_key().as_ref())),
            },
            until,
        }
    }

    fn sign_into(&self, head: &[u8], body: &[u8], out: &mut String) {
        out.push_str(self.scheme().version());
        out.push(',');
        match self {
            Self::Shared(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head);
                context.update(body);
                BASE64_STANDARD.encode_string(context.sign(), out);
            }
            // It goes over the text twice, so it wants it in one piece.
            Self::Pair(pair) => {
                let text = [head, body].concat();
                BASE64_STANDARD.encode_string(pair.sign(&text), out);
            }
        }
    }
}

/// What an event is called among signed ones: the same for every attempt, and in every process.
#[must_use]
pub fn message_id(source: &str, id: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    // The length keeps ("ab", "c") and ("a", "bc") apart.
    context.update(&(source.len() as u64).to_be_bytes());
    context.update(source.as_bytes());
    context.update(id.as_bytes());
    let mut text = "msg_".to_owned();
    BASE64_URL_SAFE_NO_PAD.encode_string(context.finish(), &mut text);
    text
}

/// What subscribers verify with whose events are signed by this key: the key itself, or its public half.
pub fn verification_key(key: &SigningKey) -> Result<String, String> {
    Ok(match ReadyKey::new(key)? {
        ReadyKey::Shared(_) => key.reveal(),
        ReadyKey::Pair(pair) => public_key(pair.public_key().as_ref()),
    })
}

#[cfg(test)]
pub(super) mod tests;
