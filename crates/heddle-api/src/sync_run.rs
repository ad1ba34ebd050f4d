//! `SyncRun`: the record of one reading of a Registry. A bounded number is kept per registry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::{structural, timestamp};

/// What is read, and why.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "SyncRun",
    plural = "syncruns",
    shortname = "sr",
    category = "heddle",
    status = "SyncRunStatus",
    derive = "PartialEq",
    doc = "The record of one reading of a Registry.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Registry","type":"string","jsonPath":".spec.registry"}"#,
    printcolumn = r#"{"name":"Added","type":"integer","jsonPath":".status.added"}"#,
    printcolumn = r#"{"name":"Updated","type":"integer","jsonPath":".status.updated"}"#,
    printcolumn = r#"{"name":"Marked","type":"integer","jsonPath":".status.marked"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "what a run was for is immutable"}]))]
pub struct SyncRunSpec {
    /// Name of the Registry.
    #[schemars(length(min = 1, max = 253))]
    pub registry: String,
    /// Why it is read.
    pub cause: SyncCause,
}

/// Why a registry is read.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SyncCause {
    /// The server started.
    Startup,
    /// Its interval passed.
    Interval,
    /// Its settings changed.
    ConfigChange,
    /// Somebody asked for it.
    Manual,
}

/// What is known about a SyncRun.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct SyncRunStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the run; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// When the reading began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub started_at: Option<Time>,
    /// When the reading ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub finished_at: Option<Time>,
    /// How many images were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<i32>,
    /// How many images are known to be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<i32>,
    /// How many images could be judged neither way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<i32>,
    /// How many bundles are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<i32>,
    /// How many bundles have a new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<i32>,
    /// How many bundles were withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked: Option<i32>,
    /// How many withdrawn bundles came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmarked: Option<i32>,
    /// How many requests it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<i64>,
    /// What is new about images; at most two hundred entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub findings: Vec<Finding>,
    /// What went wrong, by image; at most a hundred entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub errors: Vec<ImageError>,
}

/// What is new about one image.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Repository and tag.
    pub image: String,
    /// What was seen.
    pub verdict: FindingVerdict,
    /// More about it, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What was seen of an image.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FindingVerdict {
    /// It is new, or has a new form.
    Present,
    /// It has a new form, which cannot be used.
    Rejected,
    /// It is proven to be gone.
    Absent,
}

/// What went wrong with one image.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageError {
    /// Repository and tag.
    pub image: String,
    /// What happened.
    pub message: String,
}

/// What a SyncRun promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The reading ended well.
    pub const COMPLETED: ConditionType = ConditionType {
        name: "Completed",
        meaning: "The registry was read completely and its bundles were brought up to date.",
        reasons: &[reason::RUNNING, reason::INTERRUPTED, reason::FAILED],
    };
}

/// Why a SyncRun is not complete.
pub mod reason {
    use crate::conditions::Reason;

    /// It is under way.
    pub const RUNNING: Reason = Reason {
        name: "Running",
        meaning: "The reading is under way.",
    };
    /// The server stopped.
    pub const INTERRUPTED: Reason = Reason {
        name: "Interrupted",
        meaning: "The server stopped during the reading, or could not write what came of it; another one follows.",
    };
    /// The registry could not be read.
    pub const FAILED: Reason = Reason {
        name: "Failed",
        meaning: "The registry could not be read completely; the Registry's conditions say why.",
    };
}

/// The conditions of a SyncRun.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::COMPLETED],
    informational: &[],
};
