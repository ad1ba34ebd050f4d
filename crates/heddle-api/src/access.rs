//! What somebody may do here: a role, in all namespaces or in some, and whether they may read what events carry.
//!
//! ```text
//!   viewer          reads objects (no Secrets), events' attributes, health, what became of events
//!   operator        and redrives, discards, pauses, publishes, tries
//!   administrator   and everything else
//! ```
//! Whoever is at a door is told apart there, once, and the [`Access`] travels in the request's extensions: the resource API,
//! the questions below `/heddle/v1` and the page decide by the same value and the same function. A request without one is
//! nobody's. [`Visitor`] travels beside it, for pages that greet those whom they show nothing.
//!
//! Who answers for several namespaces leaves out what [`Access::sees`] does not see; who is asked about one refuses with
//! [`Access::refusal`] unless [`Access::may`]. What somebody may not see, is not there: neither in lists nor in numbers.

pub mod token;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From little to much: who may do something, may do what comes before.
#[derive(
    Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Viewer,
    Operator,
    Administrator,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Administrator];

    /// As tokens and people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }
}

/// Where somebody may do what their role allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    All,
    /// In these, and nowhere else: what belongs to no namespace is not theirs.
    Namespaces(BTreeSet<String>),
}

impl Scope {
    /// Whether something in a namespace, or in none, lies within.
    #[must_use]
    pub fn contains(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => namespace.is_some_and(|name| names.contains(name)),
        }
    }
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// To see that something is there, and how it is.
    Look,
    /// To see what events carry.
    Payloads,
    /// To change what becomes of events.
    Operate,
    /// Everything else.
    Administer,
}

impl Right {
    pub const ALL: [Self; 4] = [Self::Look, Self::Payloads, Self::Operate, Self::Administer];
}

/// Who somebody is, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub user: String,
    pub role: Role,
    pub scope: Scope,
    /// Whether they may read the data of events within their scope. Administrators always may.
    pub payloads: bool,
}

impl Access {
    /// Everything, everywhere.
    #[must_use]
    pub fn administrator(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            role: Role::Administrator,
            scope: Scope::All,
            payloads: true,
        }
    }

    /// Whether something may be done in a namespace, or where there is none.
    #[must_use]
    pub fn may(&self, right: Right, namespace: Option<&str>) -> bool {
        self.has(right) && self.scope.contains(namespace)
    }

    /// Whether something may be done anywhere at all.
    #[must_use]
    pub fn has(&self, right: Right) -> bool {
        match right {
            Right::Look => true,
            Right::Payloads => self.payloads || self.role == Role::Administrator,
            Right::Operate => self.role >= Role::Operator,
            Right::Administer => self.role == Role::Administrator,
        }
    }

    /// Whether they may know of an object that is named `trigger/NAMESPACE/NAME` or alike.
    #[must_use]
    pub fn sees(&self, object: &str) -> bool {
        self.may(Right::Look, namespace_of(object))
    }

    /// Why something is refused, for people.
    #[must_use]
    pub fn refusal(&self, right: Right, namespace: Option<&str>) -> String {
        let user = &self.user;
        let what = match right {
            Right::Look => "look at what is",
            Right::Payloads => "read the data of events",
            Right::Operate => "change what becomes of events",
            Right::Administer => "administer what is",
        };
        let place = match namespace {
            Some(namespace) => format!("in namespace {namespace}"),
            None => "in all namespaces".to_owned(),
        };
        let role = self.role.name();
        if self.has(right) {
            return format!(
                "{user} is {role} in some namespaces only and may not {what} {place}; name one with ?namespace=, or ask an administrator for a token"
            );
        }
        format!(
            "{user} is {role} and may not {what} {place}; ask an administrator for a token that allows it"
        )
    }
}

/// What a page knows of whoever has no [`Access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visitor {
    /// Nothing that is good for anything.
    Nobody,
    /// The cookie of a session without the number that goes with it: the frame may be shown, with nothing in it.
    CookieOnly,
    /// There is an [`Access`] too.
    Known,
}

/// The namespace of an object that is named `KIND/NAMESPACE/NAME`.
#[must_use]
pub fn namespace_of(object: &str) -> Option<&str> {
    let mut parts = object.split('/');
    let (_, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    (!namespace.is_empty() && !name.is_empty() && parts.next().is_none()).then_some(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_in_a_namespace_if_its_name_has_one() {
        assert_eq!(namespace_of("trigger/team-a/orders"), Some("team-a"));
        for name in ["mesh", "application/shop", "trigger//orders", "a/b/c/d", ""] {
            assert_eq!(namespace_of(name), None, "{name}");
        }
        let mut ada = Access::administrator("ada");
        assert!(ada.sees("trigger/team-b/orders") && ada.sees("mesh"));
        ada.scope = Scope::Namespaces(["team-a".to_owned()].into());
        assert!(ada.sees("trigger/team-a/orders"));
        assert!(!ada.sees("trigger/team-b/orders") && !ada.sees("mesh"));
    }

    /// All that can be said of who may do what: role × payloads × scope × right × where.
    #[test]
    fn a_role_may_what_it_may_and_only_within_its_scope() {
        let here: BTreeSet<String> = ["team-a".to_owned()].into();
        for role in Role::ALL {
            for payloads in [false, true] {
                for scope in [Scope::All, Scope::Namespaces(here.clone())] {
                    let everywhere = scope == Scope::All;
                    let access = Access {
                        user: "ada".to_owned(),
                        role,
                        scope,
                        payloads,
                    };
                    for right in Right::ALL {
                        let granted = match (right, role) {
                            (_, Role::Administrator) | (Right::Look, _) => true,
                            (Right::Payloads, _) => payloads,
                            (Right::Operate, Role::Operator) => true,
                            (Right::Operate, Role::Viewer) | (Right::Administer, _) => false,
                        };
                        assert_eq!(
                            access.may(right, Some("team-a")),
                            granted,
                            "{access:?} {right:?}"
                        );
                        let elsewhere = granted && everywhere;
                        assert_eq!(
                            access.may(right, Some("team-b")),
                            elsewhere,
                            "{access:?} {right:?}"
                        );
                        assert_eq!(access.may(right, None), elsewhere, "{access:?} {right:?}");
                    }
                }
            }
        }
    }
}
