//! `Bundle`: one offering of a registry, known by registry, repository and track.
//!
//! A bundle that disappears from its registry is marked, and swept only when nothing uses it any more. Every reason to remove
//! a bundle goes through a mark.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::{structural, timestamp};

/// Which bundle it is.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "Bundle",
    plural = "bundles",
    shortname = "bun",
    category = "heddle",
    status = "BundleStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One offering of a registry.",
    selectable = ".spec.serviceID",
    selectable = ".spec.registry",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Registry","type":"string","jsonPath":".spec.registry"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.bundleVersion"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "a bundle is known by its spec, which is immutable"}]))]
pub struct BundleSpec {
    /// Name of the Registry.
    #[schemars(length(min = 1, max = 253))]
    pub registry: String,
    /// The repository, with its organisation.
    #[schemars(length(min = 1, max = 255))]
    pub repository: String,
    /// The tag that is followed.
    #[schemars(length(min = 1, max = 128))]
    pub track: String,
    /// Id of the offering, the same for ever.
    #[serde(rename = "serviceID")]
    #[schemars(length(min = 1, max = 253))]
    pub service_id: String,
}

/// What is known about a Bundle.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct BundleStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the bundle; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Where the bundle is in its life.
    #[serde(default)]
    pub phase: BundlePhase,
    /// Why and since when the bundle is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// What readings of the registry say. The controller of Registries writes this and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Name of the BundleRevision that new instances get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// The version that the bundle's author gave that revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<String>,
}

/// What readings of the registry say about a bundle. A reading that says the same as the last changes nothing here.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Digest of the manifest that was there last, usable or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Name of the BundleRevision of the newest usable image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Why the image with that digest cannot be used, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// That it is gone, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<Absence>,
}

/// Readings proved that a bundle is gone.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Absence {
    /// In what sense.
    pub reason: MarkReason,
    /// In how many successive readings, counted up to what the registry asks for.
    pub readings: i32,
    /// Name of the SyncRun that saw it first.
    pub sync_run: String,
}

/// Where a bundle is in its life.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum BundlePhase {
    /// Offered.
    #[default]
    Live,
    /// Withdrawn: no new instances, existing ones go on.
    Marked,
    /// About to go, unless somebody turns out to use it.
    Sweeping,
}

/// Why and since when a bundle is withdrawn.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Why.
    pub reason: MarkReason,
    /// Since when.
    #[schemars(schema_with = "timestamp")]
    pub since: Time,
    /// Name of the SyncRun that found out, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_run: Option<String>,
}

/// Why a bundle is withdrawn.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum MarkReason {
    /// Its repository is gone.
    RemovedFromRegistry,
    /// Its tag is gone.
    TagRemoved,
    /// Its image is no longer a bundle.
    NotABundle,
    /// The registry's settings no longer admit it.
    Filtered,
    /// Its registry was removed.
    RegistryRemoved,
    /// Somebody withdrew it.
    Admin,
    /// Its registry cannot be read and is set to hide; never swept for this reason.
    HiddenByStalePolicy,
}

/// What a Bundle promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// New instances can be made.
    pub const OFFERED: ConditionType = ConditionType {
        name: "Offered",
        meaning: "The bundle is in the catalog.",
        reasons: &[
            reason::WITHDRAWN,
            reason::NO_VALID_REVISION,
            reason::NAME_TAKEN,
        ],
    };
    /// The newest image is in use.
    pub const REVISION_ACCEPTED: ConditionType = ConditionType {
        name: "RevisionAccepted",
        meaning: "The newest image in the registry is the current revision.",
        reasons: &[
            reason::REVISION_REJECTED,
            reason::VERSION_REUSED,
            reason::NO_VALID_REVISION,
        ],
    };
    /// The registry cannot be read.
    pub const STALE: ConditionType = ConditionType {
        name: "Stale",
        meaning: "What is known of the bundle is from an earlier reading, because its registry cannot be read.",
        reasons: &[reason::REGISTRY_FRESH],
    };
}

/// Why a Bundle is not offered, or not in its newest form.
pub mod reason {
    use crate::conditions::Reason;

    /// Its registry was read.
    pub const REGISTRY_FRESH: Reason = Reason {
        name: "RegistryFresh",
        meaning: "The last reading of the registry succeeded.",
    };
    /// It is marked.
    pub const WITHDRAWN: Reason = Reason {
        name: "Withdrawn",
        meaning: "The bundle is withdrawn; `status.mark` says why.",
    };
    /// No image of it could be used.
    pub const NO_VALID_REVISION: Reason = Reason {
        name: "NoValidRevision",
        meaning: "No image of the bundle has a valid description yet, or the revision that had one is being removed.",
    };
    /// Another offering has its name.
    pub const NAME_TAKEN: Reason = Reason {
        name: "NameTaken",
        meaning: "Another bundle has the same id, which comes from its name; rename one of them.",
    };
    /// The newest image cannot be used.
    pub const REVISION_REJECTED: Reason = Reason {
        name: "RevisionRejected",
        meaning: "The newest image has no valid description; the last good one stays in use.",
    };
    /// A version stands for two images.
    pub const VERSION_REUSED: Reason = Reason {
        name: "VersionReused",
        meaning: "The newest image has the version of an earlier one; give each its own.",
    };
}

/// The conditions of a Bundle.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::OFFERED],
    informational: &[condition::REVISION_ACCEPTED, condition::STALE],
};
