//! Registries as objects: what `heddle registry add` and an import both make of what they are given.
//!
//! Pure, and without a server: who creates the objects is left to the commands.

use std::collections::BTreeMap;
use std::fmt;

use heddle_api::Registry;
use heddle_api::registry::{RegistrySpec, RegistryType};
use heddle_api::well_known::SYSTEM_NAMESPACE;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// The types that a Registry can have, as people write them.
pub(crate) const TYPES: [&str; 7] = [
    "apiv2",
    "dockerhub",
    "quay",
    "rhcc",
    "helm",
    "oci-layout",
    "push",
];

/// What a command line or a file came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RegistryObjects {
    /// In the order in which they were given.
    pub(crate) registries: Vec<Registry>,
    /// Credentials that were given; each is named by a Registry.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) warnings: Vec<Warning>,
}

/// A key that does not mean what it meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) line: u64,
    pub(crate) key: String,
    /// What became of it, and what stands in for it.
    pub(crate) text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} {}", self.line, self.key, self.text)
    }
}

impl RegistryObjects {
    /// All objects, in the order in which they can be applied.
    pub(crate) fn manifests(&self) -> Vec<Value> {
        let secrets = self.secrets.iter().map(|secret| json!(secret));
        let registries = self.registries.iter().map(manifest);
        secrets.chain(registries).collect()
    }
}

/// A Registry as a manifest, without what it would get by default.
pub(crate) fn manifest(registry: &Registry) -> Value {
    let mut object = json!(registry);
    let plain = json!(Registry::new("", blank(registry.spec.type_)));
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|key, value| key == "type" || plain["spec"][key.as_str()] != *value);
    }
    object
}

/// A Registry of a type, with everything else by default.
pub(crate) fn blank(type_: RegistryType) -> RegistrySpec {
    serde_json::from_value(json!({"type": type_})).expect("everything but the type has a default")
}

/// The type that a word means.
pub(crate) fn registry_type(word: &str) -> Option<RegistryType> {
    serde_json::from_value(Value::from(word)).ok()
}

/// Why a Registry would offer nothing, if it would.
pub(crate) fn offers_nothing(spec: &RegistrySpec) -> Option<&'static str> {
    if !spec.white_list.is_empty() || !spec.tags.named.is_empty() {
        return None;
    }
    Some(match spec.black_list.is_empty() {
        true => "nothing is offered without a pattern that allows it",
        false => {
            "a list of what is denied allows nothing; nothing is offered without a pattern that allows it"
        }
    })
}

/// Registries that cannot be read without an address.
pub(crate) fn needs_url(type_: RegistryType) -> bool {
    use RegistryType::{ApiV2, Helm, OciLayout};
    matches!(type_, ApiV2 | Helm | OciLayout)
}

/// Labels of small letters, digits and `-`, with dots between them.
pub(crate) fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Name of the Secret that is made for a registry.
pub(crate) fn secret_name(registry: &str) -> String {
    format!("{registry}-registry")
}

/// The Secret that opens a registry.
pub(crate) fn secret(registry: &str, data: BTreeMap<&'static str, String>) -> Secret {
    let entry = |(key, text): (&str, String)| (key.to_owned(), ByteString(text.into_bytes()));
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(registry)),
            namespace: Some(SYSTEM_NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(data.into_iter().map(entry).collect()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
