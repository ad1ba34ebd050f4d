//! What a run is told: settings, who and what it is for, and the credentials that other actions handed out.

use std::collections::BTreeSet;

use heddle_api::description::{Parameter, PlanDescription};
use heddle_api::operation::OriginatingIdentity;
use heddle_api::service_binding::SECRET_KEY;
use heddle_api::{ServiceBinding, ServiceInstance};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

/// What programs are told the cluster is.
const CLUSTER: &str = "heddle";
/// Shorter values are too common in ordinary text to be taken out of it.
const SECRET_CHARS_MIN: usize = 4;

/// What an action is told about, besides its bundle.
#[derive(Clone)]
pub(crate) struct ActionInputs<'a> {
    pub instance: &'a ServiceInstance,
    pub binding: Option<&'a ServiceBinding>,
    /// Settings of the instance: those in force, or those that are to come into force.
    pub parameters: &'a Map<String, Value>,
    /// On whose behalf.
    pub identity: Option<&'a OriginatingIdentity>,
    /// The version that the bundle's author gave what the instance is made of.
    pub version: Option<&'a str>,
    /// The one before, for an update.
    pub previous_version: Option<&'a str>,
    pub provision_credentials: Option<&'a Map<String, Value>>,
    pub bind_credentials: Option<&'a Map<String, Value>>,
}

/// The variables of a run. What heddle says wins over a setting of the same name.
pub(crate) fn variables(told: &ActionInputs<'_>, plan: &PlanDescription) -> Map<String, Value> {
    let mut all = with_defaults(&plan.parameters, told.parameters);
    if let Some(binding) = told.binding {
        all.extend(with_defaults(
            &plan.bind_parameters,
            &binding.spec.parameters,
        ));
        let id = json!(binding.spec.binding_id);
        all.insert("_apb_service_binding_id".to_owned(), id);
    }
    let spec = &told.instance.spec;
    let namespace = told.instance.namespace().unwrap_or_default();
    for (name, value) in [
        ("_apb_plan_id", json!(plan.name)),
        ("_apb_service_class_id", json!(spec.service_id)),
        ("_apb_service_instance_id", json!(spec.instance_id)),
        ("_apb_last_requesting_user", json!(user(told.identity))),
        ("namespace", json!(namespace)),
        ("cluster", json!(CLUSTER)),
    ] {
        all.insert(name.to_owned(), value);
    }
    let credentials = |map: Option<&Map<String, Value>>| map.map(|map| Value::Object(map.clone()));
    let version = |version: Option<&str>| version.map(|version| json!(version));
    for (name, value) in [
        (
            "_apb_provision_creds",
            credentials(told.provision_credentials),
        ),
        ("_apb_bind_creds", credentials(told.bind_credentials)),
        ("_apb_bundle_version", version(told.version)),
        (
            "_apb_previous_bundle_version",
            version(told.previous_version),
        ),
    ] {
        match value {
            Some(value) => drop(all.insert(name.to_owned(), value)),
            // Nobody but heddle speaks of these.
            None => drop(all.remove(name)),
        }
    }
    all
}

fn with_defaults(declared: &[Parameter], given: &Map<String, Value>) -> Map<String, Value> {
    let defaults = declared.iter().filter_map(|parameter| {
        let default = parameter.default.clone()?;
        Some((parameter.name.clone(), default))
    });
    let mut all: Map<String, Value> = defaults.collect();
    all.extend(
        given
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    all
}

/// What the platform calls the user, by either of the names that platforms give this.
fn user(identity: Option<&OriginatingIdentity>) -> &str {
    let value = identity.map(|identity| &identity.value);
    let text = |key: &str| value.and_then(|value| value.get(key)?.as_str());
    text("username")
        .or_else(|| text("user_id"))
        .unwrap_or_default()
}

/// The credentials that a Secret of ours holds.
pub(crate) fn content(secret: &Secret) -> Option<Map<String, Value>> {
    let bytes = secret.data.as_ref()?.get(SECRET_KEY)?;
    serde_json::from_slice(&bytes.0).ok()
}

/// A text without the values in `credentials`, nor those in `settings` whose names say that they are secret. What a program
/// says when it fails is shown to whoever may see the object, which is more people than may see its credentials.
pub(crate) fn without_secrets(
    text: &str,
    credentials: &[&Map<String, Value>],
    settings: &[&Map<String, Value>],
) -> String {
    let mut secrets = BTreeSet::new();
    for map in credentials {
        map.values().for_each(|value| leaves(value, &mut secrets));
    }
    let named = settings.iter().flat_map(|map| map.iter());
    for (_, value) in named.filter(|(name, _)| sounds_secret(name)) {
        leaves(value, &mut secrets);
    }
    let mut secrets: Vec<String> = secrets.into_iter().collect();
    // A secret that contains another goes first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let hide = |text: String, secret: &String| text.replace(secret.as_str(), "…");
    secrets.iter().fold(text.to_owned(), hide)
}

fn leaves(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.chars().count() >= SECRET_CHARS_MIN => {
            found.insert(text.clone());
        }
        Value::Number(number) if number.to_string().len() >= SECRET_CHARS_MIN => {
            found.insert(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, found)),
        _ => {}
    }
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["pass", "secret", "token", "key", "cred", "pwd"]
        .iter()
        .any(|word| name.contains(word))
}
