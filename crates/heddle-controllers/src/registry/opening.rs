//! What opens a registry: the Secret that its Registry names, as credentials. Pure.

use std::collections::BTreeMap;

use heddle_api::evidence::{Credentials, Trouble};
use heddle_api::registry::RegistrySpec;
use heddle_api::well_known::SYSTEM_NAMESPACE;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::reconcile::{Ctx, Error};

/// Reads the Secret that a Registry names; `None` if it names none or there is none.
pub(crate) async fn secret(ctx: &Ctx, spec: &RegistrySpec) -> Result<Option<Secret>, Error> {
    match &spec.auth_secret_name {
        Some(name) => ctx.find(SYSTEM_NAMESPACE, name).await,
        None => Ok(None),
    }
}

/// What opens the registry, or why that cannot be told.
pub(crate) fn credentials(
    spec: &RegistrySpec,
    secret: Option<&Secret>,
) -> Result<Credentials, Trouble> {
    let Some(name) = &spec.auth_secret_name else {
        return Ok(Credentials::None);
    };
    let refuse = |why: &str| {
        let text = format!("Secret {SYSTEM_NAMESPACE}/{name} {why}");
        Err(Trouble::AuthenticationFailed(text))
    };
    let Some(secret) = secret else {
        return refuse("does not exist");
    };
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    let text = |key: &str| data.get(key).and_then(utf8);
    if let (Some(username), Some(password)) = (text("username"), text("password")) {
        return Ok(Credentials::Basic { username, password });
    }
    if let Some(token) = text("token") {
        return Ok(Credentials::Token(token));
    }
    let Some(config) = text(".dockerconfigjson") else {
        return refuse("has neither username and password, nor a token, nor a .dockerconfigjson");
    };
    let Ok(config) = serde_json::from_str::<Value>(&config) else {
        return refuse("has a .dockerconfigjson that is not JSON");
    };
    let host = host(spec.url.as_deref().unwrap_or_default());
    let entries = config["auths"].as_object().into_iter().flatten();
    let mut fitting = entries.filter(|(address, _)| self::host(address) == host);
    match fitting.next() {
        Some((_, entry)) => {
            of_entry(entry).map_or_else(|| refuse(&format!("has no readable entry for {host}")), Ok)
        }
        None => refuse(&format!("has no entry for {host} in its .dockerconfigjson")),
    }
}

/// One entry of `auths`, as `docker login` writes it.
fn of_entry(entry: &Value) -> Option<Credentials> {
    let text = |key: &str| entry[key].as_str().filter(|text| !text.is_empty());
    for key in ["registrytoken", "identitytoken"] {
        if let Some(token) = text(key) {
            return Some(Credentials::Token(token.to_owned()));
        }
    }
    if let (Some(username), Some(password)) = (text("username"), text("password")) {
        return Some(Credentials::Basic {
            username: username.to_owned(),
            password: password.to_owned(),
        });
    }
    // A ByteString is base64 on the wire, and so is this.
    let bytes: ByteString = serde_json::from_value(json!(text("auth")?)).ok()?;
    let both = utf8(&bytes)?;
    let (username, password) = both.split_once(':')?;
    Some(Credentials::Basic {
        username: username.to_owned(),
        password: password.to_owned(),
    })
}

/// Files that are made by hand end in a line break, secrets do not.
fn utf8(bytes: &ByteString) -> Option<String> {
    let text = String::from_utf8(bytes.0.clone()).ok()?;
    Some(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Host and port of an address with or without a scheme and a path.
fn host(address: &str) -> &str {
    let rest = address
        .split_once("://")
        .map_or(address, |(_, after)| after);
    rest.split('/').next().unwrap_or_default()
}
