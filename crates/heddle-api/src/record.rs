//! Records: what is remembered of an instance or binding that is gone.
//!
//! A platform may ask how a removal ended long after the object it was about has ended. The controller that finishes a
//! removal writes a record first and lets the object go then, so there is no instant at which neither can be found. Records
//! are ConfigMaps in the system namespace, named by what they are about; a newer removal of the same id replaces the older.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::names;
use crate::operation::OperationProgress;
use crate::well_known::{MANAGED_BY, MANAGED_BY_LABEL, RECORD_LABEL, SYSTEM_NAMESPACE};

/// Under this key of a ConfigMap's data a record stands, as JSON.
const KEY: &str = "record";

/// How long a record is kept: a week, which is longer than any platform is known to ask.
pub const KEPT_SECONDS: i64 = 7 * 24 * 3600;

/// What is remembered.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What it was about.
    pub about: About,
    /// The namespace it was in.
    pub namespace: String,
    /// The OSB front that it was asked for at, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// How its removal ended. Absent when somebody removed it without asking through OSB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationProgress>,
    /// When it was gone.
    pub gone_at: Time,
}

/// What a record is about.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// An instance, by the id the platform gave it.
    Instance(String),
    /// A binding, by the ids the platform gave it and its instance.
    Binding {
        /// Id of the instance.
        instance: String,
        /// Id of the binding.
        binding: String,
    },
}

impl About {
    /// Name of the record's object. Ids under one namespace's front say nothing about those under another's.
    pub fn record_name(&self, namespace: &str) -> String {
        match self {
            Self::Instance(id) => names::hashed("gone-instance", &[namespace, id]),
            Self::Binding { instance, binding } => {
                names::hashed("gone-binding", &[namespace, instance, binding])
            }
        }
    }

    /// Value of [`RECORD_LABEL`].
    fn label(&self) -> &'static str {
        match self {
            Self::Instance(_) => "instance",
            Self::Binding { .. } => "binding",
        }
    }
}

impl Record {
    /// The object that keeps the record.
    pub fn to_config_map(&self) -> ConfigMap {
        let name = self.about.record_name(&self.namespace);
        kept_in(name, self.about.label(), KEY, self)
    }

    /// The record that an object keeps; `None` if it keeps none that can be read.
    pub fn from_config_map(object: &ConfigMap) -> Option<Self> {
        kept_by(object, KEY)
    }
}

/// The object that keeps something of what is gone, as JSON under `key`.
pub(crate) fn kept_in<T: Serialize>(name: String, label: &str, key: &str, kept: &T) -> ConfigMap {
    let text = serde_json::to_string(kept).unwrap_or_default();
    let labels = [(RECORD_LABEL, label), (MANAGED_BY_LABEL, MANAGED_BY)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(SYSTEM_NAMESPACE.to_owned()),
            labels: Some(BTreeMap::from(labels)),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(key.to_owned(), text)])),
        ..ConfigMap::default()
    }
}

/// What such an object keeps, if it can be read.
pub(crate) fn kept_by<T: DeserializeOwned>(object: &ConfigMap, key: &str) -> Option<T> {
    let text = object.data.as_ref()?.get(key)?;
    serde_json::from_str(text).ok()
}
