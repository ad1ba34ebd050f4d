//! Groups and what they stand for: an [`Access`] is said in groups, and read from them.
//!
//! ```text
//!   system:masters                       administrator everywhere
//!   system:heddle:viewers                viewer everywhere            system:heddle:viewers:team-a         viewer in team-a
//!   system:heddle:operators              operator everywhere          system:heddle:operators:team-a       operator in team-a
//!                                                                     system:heddle:administrators:team-a  administrator there
//!   system:heddle:payloads               and may read the data of events
//! ```
//! A proxy that logs people in itself gives them these by impersonation. One role counts, the mightiest that is named, in the
//! namespaces that are named with it; everywhere includes them.

use std::collections::BTreeSet;

use heddle_api::access::{Access, Role, Scope};

use super::{ADMINS, Identity, VIEWERS};

/// May operate everywhere.
pub const OPERATORS: &str = "system:heddle:operators";
/// With a namespace behind it: may do everything there.
const ADMINISTRATORS: &str = "system:heddle:administrators";
/// May read the data of events.
const PAYLOADS: &str = "system:heddle:payloads";

impl Identity {
    /// Somebody with these rights.
    #[must_use]
    pub fn of(access: &Access) -> Self {
        let group = group_of(access.role);
        let mut groups: Vec<String> = match &access.scope {
            Scope::All => vec![everywhere(access.role).to_owned()],
            Scope::Namespaces(names) => (names.iter())
                .map(|name| format!("{group}:{name}"))
                .collect(),
        };
        if access.payloads && access.role != Role::Administrator {
            groups.push(PAYLOADS.to_owned());
        }
        Self {
            user: access.user.as_str().into(),
            groups: groups.into(),
        }
    }

    /// What their groups allow them; `None` when they have no role.
    #[must_use]
    pub fn access(&self) -> Option<Access> {
        let role_and_scope = |role: Role| {
            if self.is_in(everywhere(role)) {
                return Some((role, Scope::All));
            }
            let group = group_of(role);
            let names: BTreeSet<String> = (self.groups.iter())
                .filter_map(|name| name.strip_prefix(group)?.strip_prefix(':'))
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect();
            (!names.is_empty()).then_some((role, Scope::Namespaces(names)))
        };
        let (role, scope) = Role::ALL.into_iter().rev().find_map(role_and_scope)?;
        Some(Access {
            user: self.user.to_string(),
            role,
            scope,
            payloads: role == Role::Administrator || self.is_in(PAYLOADS),
        })
    }
}

const fn group_of(role: Role) -> &'static str {
    match role {
        Role::Viewer => VIEWERS,
        Role::Operator => OPERATORS,
        Role::Administrator => ADMINISTRATORS,
    }
}

const fn everywhere(role: Role) -> &'static str {
    match role {
        Role::Administrator => ADMINS,
        role => group_of(role),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_groups_is_read_from_them() {
        let some = Scope::Namespaces(["team-a".to_owned(), "team-b".to_owned()].into());
        for role in Role::ALL {
            for scope in [Scope::All, some.clone()] {
                for payloads in [false, true] {
                    let access = Access {
                        user: "ada".to_owned(),
                        role,
                        scope: scope.clone(),
                        payloads: payloads || role == Role::Administrator,
                    };
                    assert_eq!(Identity::of(&access).access(), Some(access));
                }
            }
        }
    }

    #[test]
    fn the_mightiest_role_counts_and_no_group_is_no_role() {
        let access = |groups: &[&str]| Identity::new("ada", groups).access();
        let both = access(&[VIEWERS, "system:heddle:operators:team-a"]).unwrap();
        assert_eq!(both.role, Role::Operator);
        assert!(!both.scope.contains(Some("team-b")));
        for nothing in ["", "developers", "system:heddle:viewers:", ADMINISTRATORS] {
            assert_eq!(access(&[nothing]), None, "{nothing}");
        }
    }
}
