//! Names of objects that stand for something with an id of its own.
//!
//! Platforms choose ids freely: any characters, any length. An id that already is a name is used as it is, so that people
//! find their instance under the id they know; any other is hashed. Names are stable: the same id gives the same name in every
//! release.

use sha2::{Digest as _, Sha256};

/// The longest name that can be the value of a label as well.
const NAME_CHARS_MAX: usize = 63;
/// The longest name of an object.
const OBJECT_NAME_CHARS_MAX: usize = 253;
/// 80 bits of a hash, in hexadecimal digits: too many to meet another by accident.
const HASH_CHARS: usize = 20;

/// Name of the ServiceInstance for an id.
pub fn instance(id: &str) -> String {
    of_id("instance", id)
}

/// Name of the ServiceBinding for an id.
pub fn binding(id: &str) -> String {
    of_id("binding", id)
}

/// Name of the one Subscription that carries an Application's events into a namespace.
pub fn link(application: &str, namespace: &str) -> String {
    let plain = format!("link-{application}-{namespace}");
    // `a-b` with `c` and `a` with `b-c` would give the same name.
    let ambiguous = application.contains('-') || namespace.contains('-');
    if plain.len() <= NAME_CHARS_MAX && !ambiguous {
        return plain;
    }
    let hash = hash(&[application, namespace]);
    let room = NAME_CHARS_MAX - HASH_CHARS - 1;
    let cut: String = plain.chars().take(room).collect();
    format!("{}-{hash}", cut.trim_end_matches(['-', '.']))
}

/// Name of the one Subscription that carries an Application's events to a Broker of a namespace.
pub fn link_to(application: &str, namespace: &str, broker: &str) -> String {
    if broker == crate::broker::DEFAULT_NAME {
        return link(application, namespace);
    }
    hashed("link", &[application, namespace, broker])
}

/// Name of the EventPolicy that lets an Application's events into a namespace.
pub fn policy(application: &str) -> String {
    let plain = format!("flow-{application}");
    if plain.len() <= NAME_CHARS_MAX {
        plain
    } else {
        hashed("flow", &[application])
    }
}

/// Name of the Secret with the keys that sign events of a Trigger, in its namespace.
pub fn signing_secret(trigger: &str) -> String {
    let plain = format!("{trigger}-signing");
    if plain.len() <= OBJECT_NAME_CHARS_MAX {
        plain
    } else {
        hashed("signing", &[trigger])
    }
}

/// Name of the EventActivation for the id of a service.
pub fn activation(service_id: &str) -> String {
    of_id("activation", service_id)
}

/// Name of the Bundle for an image of a registry.
pub fn bundle(registry: &str, repository: &str, track: &str) -> String {
    hashed("bundle", &[registry, repository, track])
}

/// Name of the BundleRevision for one state of a Bundle.
pub fn revision(bundle: &str, digest: &str) -> String {
    hashed("revision", &[bundle, digest])
}

/// Name of the SyncRun for one reading of a registry, by when it began.
pub fn sync_run(registry: &str, began_nanosecond: i128) -> String {
    hashed("sync", &[registry, &began_nanosecond.to_string()])
}

/// The value of [`crate::well_known::REGISTRY_LABEL`] for a Registry. Names may be longer than labels.
pub fn registry_label(registry: &str) -> String {
    if registry.len() <= NAME_CHARS_MAX {
        registry.to_owned()
    } else {
        hashed("registry", &[registry])
    }
}

/// Id of the run of an action for one operation. The same operation gives the same run, however often it is looked at.
pub fn run(uid: &str, operation: &str, action: &str, attempt: u32) -> String {
    hashed("run", &[uid, operation, action, &attempt.to_string()])
}

/// A name made of a prefix and a hash of several parts.
pub fn hashed(prefix: &str, parts: &[&str]) -> String {
    format!("{prefix}-{}", hash(parts))
}

fn of_id(prefix: &str, id: &str) -> String {
    let bytes = id.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let edges = [bytes.first(), bytes.last()];
    let is_name = id.len() <= NAME_CHARS_MAX
        && bytes.iter().all(inner)
        && edges
            .iter()
            .all(|edge| edge.is_some_and(|byte| *byte != b'-'));
    if is_name {
        id.to_owned()
    } else {
        hashed(prefix, &[id])
    }
}

fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text.chars().take(HASH_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_a_name_is_its_own_name_and_any_other_gets_a_valid_one() {
        let uuid = "0f5c1a4e-6f5b-4f5e-9d3a-2d9b6f1c7e55";
        assert_eq!(instance(uuid), uuid);
        let long = "x".repeat(64);
        for id in ["", "-a", "a-", "A", "a/b", "a~b.c_d-e", "ü", long.as_str()] {
            let name = instance(id);
            assert!(name.starts_with("instance-"), "{id:?} gives {name}");
            assert_eq!(name.len(), "instance-".len() + HASH_CHARS);
        }
        assert_eq!(instance("A"), instance("A"), "names are stable");
        assert_ne!(instance("A"), instance("B"));
        assert_ne!(instance("A"), binding("A"));
    }

    #[test]
    fn different_pairs_never_share_a_link() {
        assert_eq!(link("shop", "prod"), "link-shop-prod");
        assert_ne!(link("a-b", "c"), link("a", "b-c"));
        let (long, other) = ("n".repeat(63), "n".repeat(62));
        assert_ne!(link("shop", &long), link("shop", &other));
        assert!(link("shop", &long).len() <= NAME_CHARS_MAX);
        assert_eq!(link_to("shop", "prod", "default"), link("shop", "prod"));
        assert_ne!(link_to("shop", "prod", "audit"), link("shop", "prod"));
        assert_ne!(link_to("a", "b", "c"), link_to("a", "c", "b"));
    }
}
