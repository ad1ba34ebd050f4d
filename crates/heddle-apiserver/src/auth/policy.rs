//! The whole policy of the resource API: which request somebody's groups allow.
//!
//! ```text
//!                   reads                                writes
//!   viewer          everything but Secrets               nothing
//!   operator        everything but Secrets               Triggers, ServiceInstances and ServiceBindings, not their status
//!   administrator   everything                           everything but what heddle keeps itself
//! ```
//! Whoever has a role in some namespaces has it for the objects there, and may read those Namespaces by their names. Lists over
//! all namespaces, and objects that are in none, are for those who have their role everywhere: a list is never shortened.

use heddle_api::access::{Access, Role};
use heddle_api::well_known::SYSTEM_NAMESPACE;

use super::{ADMINS, CONTROLLERS, Identity};
use crate::registry::{BuiltIn, Nature, Resource};
use crate::status::{Result, StatusError};

/// What somebody wants to do.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRequest<'a> {
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) is_status: bool,
}

impl std::fmt::Debug for ObjectRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectRequest")
            .field("verb", &self.verb)
            .field("resource", &self.resource.qualified())
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("is_status", &self.is_status)
            .finish()
    }
}

/// What operating consists of, by group and plural.
const OPERATED: [(&str, &str); 3] = [
    ("eventing.knative.dev", "triggers"),
    ("heddle.dev", "serviceinstances"),
    ("heddle.dev", "servicebindings"),
];

const READS: [&str; 3] = ["get", "list", "watch"];

/// Refuses what is not allowed, as Kubernetes does.
pub(crate) fn authorize(identity: &Identity, request: &ObjectRequest<'_>) -> Result<()> {
    if allows(identity, request) {
        return Ok(());
    }
    let (resource, verb) = (request.resource, request.verb);
    let place = match request.namespace {
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

pub(crate) fn allows(identity: &Identity, request: &ObjectRequest<'_>) -> bool {
    if identity.is_in(CONTROLLERS) {
        return true;
    }
    let reads = READS.contains(&request.verb);
    if identity.is_in(ADMINS) {
        return reads || request.resource.nature != Nature::Projection;
    }
    let access = identity.access();
    access.is_some_and(|access| is_within(&access, request) && is_granted(&access, request))
}

/// Whether the object is in a namespace that is theirs.
fn is_within(access: &Access, request: &ObjectRequest<'_>) -> bool {
    let resource = request.resource;
    if resource.is(BuiltIn::Namespace) && request.verb == "get" {
        return access.scope.contains(request.name);
    }
    let namespace = request.namespace.filter(|_| resource.namespaced);
    access.scope.contains(namespace)
}

fn is_granted(access: &Access, request: &ObjectRequest<'_>) -> bool {
    let resource = request.resource;
    let reads = READS.contains(&request.verb);
    if access.role == Role::Administrator {
        // Whoever could write tokens could give themselves any.
        let holds_tokens =
            resource.is(BuiltIn::Secret) && request.namespace == Some(SYSTEM_NAMESPACE);
        return (reads || resource.nature != Nature::Projection) && !holds_tokens;
    }
    if reads {
        return !resource.is(BuiltIn::Secret);
    }
    let operated = OPERATED.contains(&(resource.group.as_str(), resource.plural.as_str()));
    access.role == Role::Operator && operated && !request.is_status
}

#[cfg(test)]
mod tests {
    use super::super::{OPERATORS, VIEWERS};
    use super::*;
    use crate::registry::Registry;

    const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

    /// Every kind × verb × place for somebody.
    fn for_all(groups: &[&str], check: impl Fn(&ObjectRequest<'_>, bool)) {
        let identity = Identity::new("somebody", groups);
        let registry = Registry::heddle().unwrap();
        for resource in registry.resources() {
            for verb in READS.iter().chain(&WRITES) {
                for namespace in [None, Some("team-a"), Some("team-b"), Some(SYSTEM_NAMESPACE)] {
                    for is_status in [false, true] {
                        let wanted = ObjectRequest {
                            verb,
                            resource,
                            namespace: namespace.filter(|_| resource.namespaced),
                            name: Some("something"),
                            is_status,
                        };
                        check(&wanted, allows(&identity, &wanted));
                    }
                }
            }
        }
    }

    #[test]
    fn viewers_read_everything_but_secrets_and_operators_write_what_they_operate() {
        for group in [VIEWERS, OPERATORS] {
            for_all(&[group], |wanted, allowed| {
                let (resource, reads) = (wanted.resource, READS.contains(&wanted.verb));
                let operated = OPERATED
                    .iter()
                    .any(|(_, plural)| *plural == resource.plural);
                let expected = match reads {
                    true => resource.plural != "secrets",
                    false => group == OPERATORS && operated && !wanted.is_status,
                };
                assert_eq!(allowed, expected, "{group} {wanted:?}");
            });
        }
        let registry = Registry::heddle().unwrap();
        for (group, plural) in OPERATED {
            let known = |one: &&Resource| one.group == group && one.plural == plural;
            assert!(
                registry
                    .resources()
                    .iter()
                    .map(|one| &**one)
                    .find(known)
                    .is_some(),
                "{plural}"
            );
        }
    }

    #[test]
    fn a_role_in_a_namespace_is_none_elsewhere() {
        for role in ["viewers", "operators", "administrators"] {
            let group = format!("system:heddle:{role}:team-a");
            for_all(&[&group], |wanted, allowed| {
                let here = wanted.namespace == Some("team-a");
                assert!(!allowed || here, "{group} {wanted:?}");
                let is_view = wanted.resource.nature == Nature::Projection;
                if role == "administrators" && here && !is_view {
                    assert!(allowed, "{group} {wanted:?}");
                }
            });
            let identity = Identity::new("somebody", &[&group]);
            let registry = Registry::heddle().unwrap();
            let namespaces = registry.find("", "v1", "namespaces").unwrap();
            for (name, verb, allowed) in [
                ("team-a", "get", true),
                ("team-b", "get", false),
                ("team-a", "list", false),
                ("team-a", "delete", false),
            ] {
                let wanted = ObjectRequest {
                    verb,
                    resource: namespaces,
                    namespace: None,
                    name: Some(name),
                    is_status: false,
                };
                assert_eq!(allows(&identity, &wanted), allowed, "{group} {name} {verb}");
            }
        }
    }

    #[test]
    fn nobody_gives_themselves_a_token() {
        let group = format!("system:heddle:administrators:{SYSTEM_NAMESPACE}");
        for_all(&[&group], |wanted, allowed| {
            let secret = wanted.resource.plural == "secrets";
            assert!(!(allowed && secret), "{wanted:?}");
        });
    }
}
