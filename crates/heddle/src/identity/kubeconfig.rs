//! `admin.kubeconfig`: made once, then only its address and authority are kept up to date.
//!
//! People add contexts and namespaces to such files. What they added stays; only the entries
//! named `heddle` are ours.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::output;

const CLUSTER: &str = "heddle";
const USER: &str = "heddle-admin";

/// What a kubeconfig gives access with.
pub(super) struct AdminAccess<'a> {
    pub(super) server: &'a str,
    pub(super) ca_pem: &'a str,
    pub(super) token: &'a str,
}

/// The administrator's token in a kubeconfig of ours.
pub(super) fn token(text: &str) -> Result<String, String> {
    let config = parse(text)?;
    let user = named(&config["users"], USER).ok_or_else(|| format!("it has no user {USER}"))?;
    let token = user["user"]["token"]
        .as_str()
        .filter(|token| !token.is_empty());
    token
        .map(str::to_owned)
        .ok_or_else(|| format!("user {USER} has no token"))
}

/// The kubeconfig that gives `access`: a new one, or `existing` with address and authority mended.
pub(super) fn write(existing: Option<&str>, access: &AdminAccess<'_>) -> Result<String, String> {
    let cluster = json!({
        "server": access.server,
        "certificate-authority-data": BASE64_STANDARD.encode(access.ca_pem),
    });
    let Some(text) = existing else {
        return Ok(output::yaml(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CLUSTER, "cluster": cluster}],
            "users": [{"name": USER, "user": {"token": access.token}}],
            "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": USER, "namespace": "default"}}],
            "current-context": CLUSTER,
        })));
    };
    let mut config = parse(text)?;
    let clusters = config["clusters"]
        .as_array_mut()
        .ok_or("it has no clusters")?;
    let entry = clusters
        .iter_mut()
        .find(|entry| entry["name"] == CLUSTER)
        .ok_or_else(|| format!("it has no cluster {CLUSTER}"))?;
    if entry["cluster"] == cluster {
        // Untouched to the byte, comments included.
        return Ok(text.to_owned());
    }
    entry["cluster"] = cluster;
    Ok(output::yaml(&config))
}

fn parse(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry["name"] == name)
}
