//! Bearer tokens: those that this server was started with, and those that people were given since.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, header};
use jiff::Timestamp;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::{Identity, impersonation};
use crate::status::{Result, StatusError};

/// The digest of a token.
pub type TokenDigest = [u8; 32];

/// Whose a token is, for as long as it is good.
#[derive(Debug, Clone)]
pub struct TokenHolder {
    pub identity: Identity,
    /// Not good from then on.
    pub expires: Option<Timestamp>,
    /// Cancelled when the token is taken back: whatever was opened with it ends.
    pub ended: CancellationToken,
}

impl TokenHolder {
    /// Somebody whose token is good until this process ends.
    pub fn lasting(identity: Identity) -> Self {
        Self {
            identity,
            expires: None,
            ended: CancellationToken::new(),
        }
    }

    fn is_good(&self, now: Timestamp) -> bool {
        !self.ended.is_cancelled() && self.expires.is_none_or(|expires| now < expires)
    }
}

/// Bearer tokens by digest, so that neither a memory dump of this table nor a timing of its look-up gives a
/// token away: the comparison is of two digests an attacker cannot steer.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    by_digest: HashMap<TokenDigest, Identity>,
    issued: IssuedTokens,
}

/// Tokens that come and go. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub struct IssuedTokens(Arc<RwLock<HashMap<TokenDigest, TokenHolder>>>);

impl IssuedTokens {
    /// From now on these are good and no others. Who stays as they were keeps what they opened; all others lose it.
    pub fn replace(&self, tokens: HashMap<TokenDigest, (Identity, Option<Timestamp>)>) {
        let mut known = self.0.write();
        let mut next = HashMap::with_capacity(tokens.len());
        for (digest, (identity, expires)) in tokens {
            let ended = match known.remove(&digest) {
                Some(holder) if holder.identity == identity && holder.expires == expires => {
                    holder.ended
                }
                Some(changed) => {
                    changed.ended.cancel();
                    CancellationToken::new()
                }
                None => CancellationToken::new(),
            };
            let holder = TokenHolder {
                identity,
                expires,
                ended,
            };
            next.insert(digest, holder);
        }
        let gone = std::mem::replace(&mut *known, next);
        for holder in gone.into_values() {
            holder.ended.cancel();
        }
    }
}

impl Tokens {
    pub fn with(mut self, token: &str, identity: Identity) -> Self {
        self.by_digest.insert(digest(token), identity);
        self
    }

    /// The tokens that people are given while this process runs.
    pub fn issued(&self) -> IssuedTokens {
        self.issued.clone()
    }

    /// The identity behind a token that does not end.
    pub fn identity(&self, token: &str) -> Option<&Identity> {
        self.by_digest.get(&digest(token))
    }

    /// Whose a token is.
    pub(crate) fn holder(&self, token: &str, now: Timestamp) -> Option<TokenHolder> {
        if let Some(identity) = self.identity(token) {
            return Some(TokenHolder::lasting(identity.clone()));
        }
        let issued = self.issued.0.read();
        let holder = issued.get(&digest(token))?;
        holder.is_good(now).then(|| holder.clone())
    }

    /// Whose the request's bearer token is, whomever it asks to act as.
    pub(crate) fn owner(&self, headers: &HeaderMap, now: Timestamp) -> Option<Identity> {
        let holder = self.holder(bearer(headers)?, now)?;
        Some(holder.identity)
    }

    /// Who is behind the request's `Authorization` header, or the one it asks to act as.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, now: Timestamp) -> Result<TokenHolder> {
        let token = bearer(headers).ok_or_else(StatusError::unauthorized)?;
        let holder = self.holder(token, now);
        let mut holder = holder.ok_or_else(StatusError::unauthorized)?;
        holder.identity = impersonation::effective(&holder.identity, headers)?;
        Ok(holder)
    }
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What a token is known by.
#[must_use]
pub fn digest(token: &str) -> TokenDigest {
    use sha2::Digest as _;
    sha2::Sha256::digest(token.as_bytes()).into()
}
