//! Who asks, and whether they may.
//!
//! In process, the identity travels as a request extension that no remote peer can set. From outside, a bearer
//! token is looked up by its digest ([`tokens`]), and who asks in somebody else's name has that one's rights
//! ([`impersonation`]). There are no RBAC objects: the roles are fixed and said in groups ([`groups`]), and everything that
//! is not allowed by one of them is refused ([`policy`]).

mod groups;
mod impersonation;
mod policy;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

/// May do everything.
pub const ADMINS: &str = "system:masters";
/// Heddle's own controllers: as admins, and may write what is read-only for everybody else.
pub const CONTROLLERS: &str = "system:heddle:controllers";
/// May read everything but Secrets.
pub const VIEWERS: &str = "system:heddle:viewers";
/// May read metrics, which name objects, and nothing else.
pub const SCRAPERS: &str = "system:heddle:scrapers";

pub use groups::OPERATORS;
pub use impersonation::impersonates;
pub(crate) use policy::{ObjectRequest, allows, authorize};
pub use tokens::{IssuedTokens, TokenDigest, TokenHolder, Tokens, digest};

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
