//! Tombstones: what is remembered of a bundle that was swept, so that a platform with an old catalog is told what happened.
//!
//! Like records of instances they are ConfigMaps in the system namespace, found by their label, and go after a while.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::bundle::MarkReason;
use crate::names;
use crate::record::{kept_by, kept_in};

/// Value of [`crate::well_known::RECORD_LABEL`] on tombstones.
pub const LABEL: &str = "bundle";
/// Under this key of a ConfigMap's data a tombstone stands, as JSON.
const KEY: &str = "tombstone";
/// How long a tombstone is kept: a month, in which every platform has read the catalog anew.
pub const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// What is remembered of a bundle.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// Id of its offering.
    #[serde(rename = "serviceID")]
    pub service_id: String,
    /// Name of its offering.
    pub name: String,
    /// Name of its registry.
    pub registry: String,
    /// Repository and tag.
    pub image: String,
    /// Why it was withdrawn.
    pub reason: MarkReason,
    /// When it was withdrawn.
    pub withdrawn_at: Time,
    /// When it was gone.
    pub gone_at: Time,
}

impl Tombstone {
    /// Name of the object that keeps the tombstone of an offering.
    pub fn object_name(service_id: &str) -> String {
        names::hashed("gone-bundle", &[service_id])
    }

    /// The object that keeps the tombstone.
    pub fn to_config_map(&self) -> ConfigMap {
        kept_in(Self::object_name(&self.service_id), LABEL, KEY, self)
    }

    /// The tombstone that an object keeps; `None` if it keeps none that can be read.
    pub fn from_config_map(object: &ConfigMap) -> Option<Self> {
        kept_by(object, KEY)
    }
}
