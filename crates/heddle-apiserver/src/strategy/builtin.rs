//! Where the core kinds differ from custom resources: defaults, immutability, and decoding into real types.

use base64::Engine as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Secret};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::names;
use crate::object::meta_mut;
use crate::registry::{BuiltIn, Nature, Resource};
use crate::schema::Cause;
use crate::status::{Result, StatusError};

const NAMESPACE_FINALIZER: &str = "kubernetes";

pub(super) fn on_create(resource: &Resource, object: &mut Value) -> Result<()> {
    decode(resource, object)?;
    match resource.nature {
        Nature::BuiltIn(BuiltIn::Namespace) => {
            let name = object["metadata"]["name"].clone();
            meta_mut(object)
                .entry("labels")
                .or_insert_with(|| json!({}));
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            // Set by `begin` once it is settled who owns what: nobody sent these.
            let fields = object.as_object_mut().expect("claimed objects are objects");
            fields.remove("spec");
            fields.remove("status");
        }
        Nature::BuiltIn(BuiltIn::Secret) => {
            fold_string_data(object);
            let fields = object.as_object_mut().expect("claimed objects are objects");
            if fields
                .get("type")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                fields.insert("type".to_owned(), json!("Opaque"));
            }
        }
        _ => {}
    }
    Ok(())
}

/// What the server adds to a new object that belongs to no manager of fields.
pub(super) fn begin(resource: &Resource, object: &mut Value) {
    if resource.is(BuiltIn::Namespace) {
        object["spec"] = json!({"finalizers": [NAMESPACE_FINALIZER]});
        object["status"] = json!({"phase": "Active"});
    }
}

pub(super) fn on_update(
    resource: &Resource,
    old: &Value,
    new: &mut Value,
    name: &str,
) -> Result<()> {
    decode(resource, new)?;
    match resource.nature {
        // Only the namespace controller lets go of a namespace, through `finalize_namespace`.
        Nature::BuiltIn(BuiltIn::Namespace) => {
            new["spec"] = old["spec"].clone();
            meta_mut(new).entry("labels").or_insert_with(|| json!({}));
            new["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        }
        Nature::BuiltIn(BuiltIn::Secret) => {
            fold_string_data(new);
            let fields = new.as_object_mut().expect("claimed objects are objects");
            if fields
                .get("type")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                fields.insert("type".to_owned(), old["type"].clone());
            }
            if new["type"] != old["type"] {
                let text = format!("Invalid value: {}: field is immutable", new["type"]);
                return Err(immutable(resource, name, "type", &text));
            }
            guard_immutable(resource, old, new, name, &["data"])?;
        }
        Nature::BuiltIn(BuiltIn::ConfigMap) => {
            guard_immutable(resource, old, new, name, &["data", "binaryData"])?
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let maps: &[&str] = match resource.nature {
        Nature::BuiltIn(BuiltIn::Lease) => return lease_causes(object),
        Nature::BuiltIn(BuiltIn::ConfigMap) => &["data", "binaryData"],
        Nature::BuiltIn(BuiltIn::Secret) => &["data"],
        _ => return Vec::new(),
    };
    let keys = maps.iter().flat_map(|map| {
        object[*map]
            .as_object()
            .into_iter()
            .flatten()
            .map(move |(k, _)| (map, k))
    });
    keys.filter(|(_, key)| !is_data_key(key))
        .map(|(map, key)| {
            let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                       'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            names::invalid(&format!("{map}[{key}]"), key, why)
        })
        .collect()
}

fn lease_causes(object: &Value) -> Vec<Cause> {
    let rules = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    let broken = rules.into_iter().filter_map(|(field, least, why)| {
        let value = object["spec"][field]
            .as_i64()
            .filter(|value| *value < least)?;
        let text = format!("Invalid value: {value}: {why}");
        Some(names::cause(
            &format!("spec.{field}"),
            "FieldValueInvalid",
            &text,
        ))
    });
    broken.collect()
}

pub(crate) fn namespace_finalizers(object: &Value) -> Vec<&str> {
    let list = object["spec"]["finalizers"].as_array();
    list.map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// The namespace is empty: drop the finalizer that kept it.
pub(crate) fn finalize_namespace(object: &mut Value) {
    object["spec"] = json!({});
}

/// The real server reads built-ins into Go types and refuses what does not fit; so do we.
fn decode(resource: &Resource, object: &Value) -> Result<()> {
    let Nature::BuiltIn(builtin) = resource.nature else {
        return Ok(());
    };
    let decoded = match builtin {
        BuiltIn::Namespace => into::<Namespace>(object),
        BuiltIn::Secret => into::<Secret>(object),
        BuiltIn::ConfigMap => into::<ConfigMap>(object),
        BuiltIn::Event => into::<Event>(object),
        BuiltIn::Lease => into::<Lease>(object),
        BuiltIn::EventV1 | BuiltIn::CustomResourceDefinition | BuiltIn::Absent => Ok(()),
    };
    decoded.map_err(|error| {
        let kind = &resource.kind;
        let version = &resource.version;
        StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {error}"
        ))
    })
}

fn into<T: DeserializeOwned>(object: &Value) -> std::result::Result<(), serde_json::Error> {
    T::deserialize(object).map(drop)
}

fn fold_string_data(object: &mut Value) {
    let fields = object.as_object_mut().expect("claimed objects are objects");
    let Some(Value::Object(plain)) = fields.remove("stringData") else {
        return;
    };
    let data = fields
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    for (key, value) in plain {
        let encoded =
            base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        data[key] = json!(encoded);
    }
}

fn guard_immutable(
    resource: &Resource,
    old: &Value,
    new: &Value,
    name: &str,
    maps: &[&str],
) -> Result<()> {
    if old["immutable"] != json!(true) {
        return Ok(());
    }
    for field in maps.iter().copied().chain(["immutable"]) {
        if old[field] != new[field] {
            let text = "Forbidden: field is immutable when `immutable` is set";
            return Err(immutable(resource, name, field, text));
        }
    }
    Ok(())
}

fn immutable(resource: &Resource, name: &str, field: &str, text: &str) -> StatusError {
    let reason = if text.starts_with("Forbidden") {
        "FieldValueForbidden"
    } else {
        "FieldValueInvalid"
    };
    StatusError::invalid(resource, name, &[names::cause(field, reason, text)])
}

fn is_data_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !key.is_empty() && key.len() <= 253 && key != "." && key != ".." && key.chars().all(allowed)
}
