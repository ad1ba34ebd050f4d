//! Credentials: what a workload needs to call the API of a service, as one flat JSON object.
//!
//! ```text
//!   one API         GATEWAY_URL          CREDENTIALS_TYPE          clientId          …
//!   several APIs    ORDERS_GATEWAY_URL   ORDERS_CREDENTIALS_TYPE   ORDERS_clientId   …
//! ```
//! All values are text, and names made here are fit for environment variables. With several APIs each name begins with
//! that of its entry, in capitals, with `_` for whatever is neither letter nor digit. An entry without a name goes by its
//! id, one without either by its place (`API_2`); the later of two that would be called the same adds its place
//! (`ORDERS_2`). What a Secret holds keeps its keys; bytes that are not text are given in base64.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use heddle_api::application::{ENTRY_API, Entry, Service};
use heddle_api::service_binding::{Endpoint, Protocol};
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

/// What the Secrets of APIs hold, by the name of the Secret. Not to be seen in any log.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Sources(pub BTreeMap<String, BTreeMap<String, ByteString>>);

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The APIs of a service.
pub(super) fn apis(service: &Service) -> impl Iterator<Item = &Entry> {
    service
        .entries
        .iter()
        .filter(|entry| entry.type_ == ENTRY_API)
}

/// Names of the Secrets that a service's APIs refer to.
pub(super) fn secret_names(service: &Service) -> BTreeSet<&str> {
    let credentials = apis(service).filter_map(|entry| entry.credentials.as_ref());
    let names = credentials.map(|credentials| credentials.secret_name.as_str());
    names.filter(|name| !name.is_empty()).collect()
}

pub(super) fn credentials(service: &Service, sources: &Sources) -> Map<String, Value> {
    let prefixes = prefixes(service);
    let mut all = Map::new();
    for (entry, prefix) in apis(service).zip(&prefixes) {
        let named = entry.credentials.as_ref();
        let source = named.and_then(|named| sources.0.get(&named.secret_name));
        for (key, bytes) in source.into_iter().flatten() {
            all.insert(format!("{prefix}{key}"), text(bytes));
        }
    }
    // After all Secrets: what the Application says about its APIs is not theirs to change.
    for (entry, prefix) in apis(service).zip(&prefixes) {
        if let Some(named) = &entry.credentials {
            all.insert(format!("{prefix}CREDENTIALS_TYPE"), json!(named.type_));
        }
        if let Some(url) = url(entry) {
            all.insert(format!("{prefix}GATEWAY_URL"), json!(url));
        }
    }
    all
}

/// Where calls go: through the gateway, where there is one.
fn url(entry: &Entry) -> Option<&str> {
    entry.gateway_url.as_deref().or(entry.target_url.as_deref())
}

fn text(bytes: &ByteString) -> Value {
    match std::str::from_utf8(&bytes.0) {
        Ok(text) => json!(text),
        Err(_) => json!(bytes),
    }
}

/// What the names of each API begin with: nothing if there is only one.
fn prefixes(service: &Service) -> Vec<String> {
    if apis(service).count() == 1 {
        return vec![String::new()];
    }
    let mut taken = BTreeSet::new();
    let names = apis(service).enumerate().map(|(index, entry)| {
        let place = index + 1;
        let given = entry.name.as_deref().or(entry.id.as_deref()).map(capitals);
        let given = given.filter(|name| !name.is_empty());
        let mut name = given.unwrap_or_else(|| format!("API_{place}"));
        while !taken.insert(name.clone()) {
            name = format!("{name}_{place}");
        }
        format!("{name}_")
    });
    names.collect()
}

fn capitals(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name.trim().chars().map(fit).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

/// The network addresses of a service's APIs; none at all unless all are known, since the list must be complete.
pub(super) fn endpoints(service: &Service) -> Vec<Endpoint> {
    let all: Option<Vec<Endpoint>> = apis(service).map(|entry| endpoint(url(entry)?)).collect();
    let mut all = all.unwrap_or_default();
    let mut seen = BTreeSet::new();
    all.retain(|endpoint| seen.insert((endpoint.host.clone(), endpoint.ports.clone())));
    all
}

fn endpoint(url: &str) -> Option<Endpoint> {
    let (scheme, rest) = url.split_once("://")?;
    let standard = match scheme.to_ascii_lowercase().as_str() {
        "http" => "80",
        "https" => "443",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit('@').next()?;
    // An IPv6 address has colons of its own, inside brackets.
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (place, ""),
    };
    let port = if port.is_empty() { standard } else { port };
    let valid = !host.is_empty() && port.parse::<u16>().is_ok();
    valid.then(|| Endpoint {
        host: host.to_owned(),
        ports: vec![port.to_owned()],
        protocol: Protocol::Tcp,
    })
}
