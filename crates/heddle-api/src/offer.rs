//! What the services of Applications are offered as, and which of them cannot be offered.
//!
//! These rules are pure and shared: the front compiles its catalog by them, and the controller of Applications reports by
//! them. So a service of a living Application is in the catalog exactly when its Application does not list it as rejected.
//! Those for bundles, which have no services, are in [`bundle`].
//!
//! Ids and names are promises to platforms, which remember them. They are derived by rules that must not change between
//! releases, and two Applications that want the same one do not get it by chance: see [`Register`].

pub mod bundle;
mod register;
mod schema;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::application::{Application, ENTRY_API, ENTRY_EVENTS, Entry, Service};
use crate::names;
use crate::service_instance::ServiceInstanceSpec;

pub use register::{OfferState, Register};
pub use schema::{SCHEMA_BYTES_MAX, parameter_schema};

/// The longest name of an offering; some platforms keep it in a column of this width.
pub const NAME_CHARS_MAX: usize = 255;
/// The longest id of an offering or plan, which is also the longest that a ServiceInstance can hold.
pub const ID_CHARS_MAX: usize = 253;

const PLAN_SUFFIX: &str = "-plan";

/// How Applications become offerings.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Each service is an offering of its own, with one plan.
    #[default]
    PerService,
    /// Each Application is an offering, and its services are the plans.
    PerApplication,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerService => "perService",
            Self::PerApplication => "perApplication",
        }
    }

    /// The way in which an instance was provisioned, as its ids tell: `None` for an instance of something else.
    pub fn of_instance(instance: &ServiceInstanceSpec) -> Option<Self> {
        let service = &instance.application.as_ref()?.service_id;
        if instance.service_id == *service && instance.plan_id == plan_id(service) {
            Some(Self::PerService)
        } else if instance.plan_id == *service {
            Some(Self::PerApplication)
        } else {
            None
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that names no [`Mode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a catalog mapping: use perService or perApplication")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::PerService, Self::PerApplication]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// The name under which something is offered: lower-case letters, digits and dashes, which every platform's command line
/// takes. Text that is such a name stays as it is. In any other, capitals become small, each run of other characters becomes
/// one dash, and dashes at the ends are dropped. If nothing is left, or too much, a hash of the text helps out.
pub fn name(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.bytes().all(plain) {
        return text.to_owned();
    }
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    if name.is_empty() {
        return names::hashed("service", &[text]);
    }
    if name.len() > NAME_CHARS_MAX {
        let hash = names::hashed("", &[text]);
        name.truncate(NAME_CHARS_MAX - hash.len());
        name.push_str(&hash);
    }
    name
}

/// Id of the only plan of a service that is an offering of its own.
pub fn plan_id(service_id: &str) -> String {
    format!("{service_id}{PLAN_SUFFIX}")
}

/// Id of an Application that is an offering: the one a directory gave it, or else one that follows from its name.
pub fn offering_id(application: &Application) -> String {
    let metadata = application.spec.compass_metadata.as_ref();
    let given = metadata.map(|metadata| metadata.application_id.as_str());
    match given.filter(|id| !id.is_empty() && id.len() <= ID_CHARS_MAX) {
        Some(id) => id.to_owned(),
        None => uuid_of(application.metadata.name.as_deref().unwrap_or_default()),
    }
}

/// A UUID that follows from a name.
fn uuid_of(name: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"heddle.dev/application/");
    hasher.update(name.as_bytes());
    uuid(hasher)
}

/// A UUID that follows from several parts, whatever characters they have.
fn uuid_from(space: &str, parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(space.as_bytes());
    for part in parts {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    uuid(hasher)
}

/// A UUID of version 8, which leaves to us what the bits mean: they are those of a hash.
fn uuid(hasher: Sha256) -> String {
    let mut bits = hasher.finalize();
    bits[6] = (bits[6] & 0x0f) | 0x80;
    bits[8] = (bits[8] & 0x3f) | 0x80;
    let hex = |from: usize, to: usize| -> String {
        bits[from..to].iter().map(|b| format!("{b:02x}")).collect()
    };
    let parts = [hex(0, 4), hex(4, 6), hex(6, 8), hex(8, 10), hex(10, 16)];
    parts.join("-")
}

/// What is wrong with a service by itself, if anything, so that it cannot be offered.
pub fn fault(service: &Service, mode: Mode) -> Option<String> {
    if service.entries.is_empty() {
        return Some("it has no entries: add one of type API or Events".to_owned());
    }
    if service.name.is_empty() {
        return Some("its name is empty, and offerings are found by name".to_owned());
    }
    let of_mode = match mode {
        Mode::PerService if service.id.len() + PLAN_SUFFIX.len() > ID_CHARS_MAX => Some(format!(
            "its id has {} bytes, and its plan needs an id that is {} longer and at most {ID_CHARS_MAX}: shorten it",
            service.id.len(),
            PLAN_SUFFIX.len()
        )),
        Mode::PerService => None,
        Mode::PerApplication => parameter_schema(service).err(),
    };
    of_mode.or_else(|| service.entries.iter().find_map(entry_fault))
}

fn entry_fault(entry: &Entry) -> Option<String> {
    match entry.type_.as_str() {
        ENTRY_EVENTS => None,
        // Older Applications name the gateway, newer ones the API itself; either tells where calls go.
        ENTRY_API if entry.gateway_url.is_none() && entry.target_url.is_none() => {
            Some("an API entry needs a gatewayUrl or a targetUrl".to_owned())
        }
        ENTRY_API => None,
        other => Some(format!(
            "an entry has type {other:?}: only API and Events are known"
        )),
    }
}
