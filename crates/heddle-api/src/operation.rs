//! Operations: what a platform asked for through OSB, and how far it has come.
//!
//! The request half is part of the spec, so that accepting a request is one durable write and a restart forgets nothing; the
//! progress half is part of the status. Both carry the operation's id, which tells whether they speak of the same operation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::Action;
use crate::conditions::Reason;
use crate::schema::{free_form, timestamp};

/// How long something that only people can put right may be wrong before an operation fails for it: long enough for
/// manifests that are applied in any order, short enough that nobody waits an hour for the news.
pub const GRACE_SECONDS: i64 = 60;

/// How many ended operations an instance or binding remembers besides the one that was accepted last.
pub const EARLIER_OPERATIONS_MAX: usize = 8;

/// The work is under way, for an instance as for a binding.
pub const IN_PROGRESS: Reason = Reason {
    name: "InProgress",
    meaning: "The operation is under way.",
};
/// The bundle's action failed.
pub const ACTION_FAILED: Reason = Reason {
    name: "ActionFailed",
    meaning: "The bundle's action failed for good; its message says why.",
};

/// An operation as it was accepted.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationRequest {
    /// Names the operation towards the platform; unreserved characters only, since some clients do not encode it.
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[A-Za-z0-9._~-]+$"))]
    pub id: String,
    /// What was asked for.
    pub kind: OperationKind,
    /// Hash of the request's attributes: an equal request repeats this operation, a different one conflicts with it.
    #[schemars(length(min = 1, max = 128))]
    pub request_hash: String,
    /// When the request was accepted.
    #[schemars(schema_with = "timestamp")]
    pub accepted_at: Time,
    /// When the operation counts as failed if it has not ended by then; earlier than the platform stops asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub deadline: Option<Time>,
}

/// What was asked for.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OperationKind {
    /// Make an instance.
    Provision,
    /// Change an instance.
    Update,
    /// Remove an instance.
    Deprovision,
    /// Make a binding.
    Bind,
    /// Remove a binding.
    Unbind,
}

/// How far an operation has come.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationProgress {
    /// Id of the operation this is about.
    pub id: String,
    /// What was asked for.
    pub kind: OperationKind,
    /// Where it stands.
    pub state: OperationState,
    /// What it is doing or waiting for, in one line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How often the present step was attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub finished_at: Option<Time>,
    /// Whether the instance still works after a failed update or deprovision; absent means that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_usable: Option<bool>,
    /// Whether a failed update may succeed when repeated; absent means that it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_repeatable: Option<bool>,
}

/// Where an operation stands.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OperationState {
    /// Accepted, not started; platforms see it as in progress.
    Queued,
    /// Under way.
    InProgress,
    /// Ended as asked.
    Succeeded,
    /// Ended otherwise, for a reason that time does not heal.
    Failed,
}

/// On whose behalf a platform asks.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OriginatingIdentity {
    /// Which platform, such as `kubernetes` or `cloudfoundry`.
    pub platform: String,
    /// What that platform says about the user, as it was sent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub value: Map<String, Value>,
}

/// The revision that an instance or binding is pinned to, whatever becomes of its offering.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionReference {
    /// Name of the BundleRevision.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Digest of its image's manifest.
    #[schemars(length(min = 1, max = 256))]
    pub digest: String,
    /// The version that the bundle's author gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<String>,
}

/// A bundle's action that was started for an operation, and how it went.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Id of the run; under it, its log is kept.
    pub id: String,
    /// What it does.
    pub action: Action,
    /// How often the action was started for the operation. Only removals are started again.
    pub attempt: i32,
    /// When it was started.
    #[schemars(schema_with = "timestamp")]
    pub started_at: Time,
    /// How it ended, in one line; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How it ended, in one word; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// Whether other actions ran for the same object before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
}

/// How a run ended, in one word.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RunResult {
    /// As asked.
    Succeeded,
    /// Otherwise: by itself, by its limits, or because it was called off.
    Failed,
    /// Nobody knows how: whoever watched it died with it.
    Interrupted,
    /// It never began.
    NotStarted,
}

/// The version of a plan's implementation, for maintenance updates.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceInfo {
    /// A semantic version.
    pub version: String,
}
