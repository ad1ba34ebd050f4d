//! Who asks, and whether they may.
//!
//! In process, the identity travels as a request extension that no remote peer can set. From outside, a bearer
//! token is looked up by its digest, and who asks in somebody else's name has that one's rights ([`impersonation`]). There
//! are no RBAC objects: the roles are fixed, and everything that is not allowed by one of them is refused.

mod impersonation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderMap, header};

use crate::registry::{BuiltIn, Nature, Resource};
use crate::status::{Result, StatusError};

/// May do everything.
pub const ADMINS: &str = "system:masters";
/// Heddle's own controllers: as admins, and may write what is read-only for everybody else.
pub const CONTROLLERS: &str = "system:heddle:controllers";
/// May read everything but secrets.
pub const VIEWERS: &str = "system:heddle:viewers";
/// May read metrics, which name objects, and nothing else.
pub const SCRAPERS: &str = "system:heddle:scrapers";

pub use impersonation::impersonates;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub user: Arc<str>,
    pub groups: Arc<[String]>,
}

impl Identity {
    pub fn new(user: &str, groups: &[&str]) -> Self {
        Self {
            user: user.into(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// Bearer tokens by digest, so that neither a memory dump of this table nor a timing of its look-up gives a
/// token away: the comparison is of two digests an attacker cannot steer.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    by_digest: HashMap<[u8; 32], Identity>,
}

impl Tokens {
    pub fn with(mut self, token: &str, identity: Identity) -> Self {
        self.by_digest.insert(digest(token), identity);
        self
    }

    /// The identity behind a token.
    pub fn identity(&self, token: &str) -> Option<&Identity> {
        self.by_digest.get(&digest(token))
    }

    /// The identity behind the request's `Authorization` header, or the one it asks to act as.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<Identity> {
        let value = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let token = token.ok_or_else(StatusError::unauthorized)?;
        let identity = self.identity(token).ok_or_else(StatusError::unauthorized)?;
        impersonation::effective(identity, headers)
    }
}

fn digest(token: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(token.as_bytes()).into()
}

/// The whole policy. `subresource` writes are writes of the resource.
pub(crate) fn authorize(
    identity: &Identity,
    verb: &str,
    resource: &Resource,
    namespace: Option<&str>,
) -> Result<()> {
    if allows(identity, verb, resource) {
        return Ok(());
    }
    let place = match namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let remedy = match resource.nature {
        Nature::Projection => {
            ": it is a read-only view that heddle keeps itself; change the objects it is made from"
        }
        _ => "",
    };
    Err(StatusError::forbidden(format!(
        "{} is forbidden: User \"{}\" cannot {verb} resource \"{}\" in API group \"{}\" {place}{remedy}",
        resource.qualified(),
        identity.user,
        resource.plural,
        resource.group
    )))
}

pub(crate) fn allows(identity: &Identity, verb: &str, resource: &Resource) -> bool {
    if identity.is_in(CONTROLLERS) {
        return true;
    }
    let reads = matches!(verb, "get" | "list" | "watch");
    if identity.is_in(ADMINS) {
        return reads || resource.nature != Nature::Projection;
    }
    identity.is_in(VIEWERS) && reads && !resource.is(BuiltIn::Secret)
}
