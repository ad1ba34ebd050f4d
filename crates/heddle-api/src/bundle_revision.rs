//! `BundleRevision`: one immutable state of a Bundle, pinned by the instances that were made from it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::{free_form, structural};

/// What the revision consists of.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "BundleRevision",
    plural = "bundlerevisions",
    shortname = "bunrev",
    category = "heddle",
    status = "BundleRevisionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One immutable state of a Bundle, pinned by the instances that were made from it.",
    selectable = ".spec.bundle",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Bundle","type":"string","jsonPath":".spec.bundle"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.bundleVersion"}"#,
    printcolumn = r#"{"name":"Digest","type":"string","jsonPath":".spec.manifestDigest","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
#[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "a revision is immutable"}]))]
pub struct BundleRevisionSpec {
    /// Name of the Bundle.
    #[schemars(length(min = 1, max = 253))]
    pub bundle: String,
    /// Name of the Registry, which knows how the image is fetched and what its actions may use.
    #[schemars(length(min = 1, max = 253))]
    pub registry: String,
    /// The image, with its registry and repository.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Digest of the image's manifest.
    #[schemars(length(min = 1, max = 256))]
    pub manifest_digest: String,
    /// Digest of the image's configuration.
    #[schemars(length(min = 1, max = 256))]
    pub config_digest: String,
    /// The version that the bundle's author gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub bundle_version: Option<String>,
    /// Where that version was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_source: Option<VersionSource>,
    /// Version of the contract between bundle and runner.
    #[serde(default = "runtime")]
    #[schemars(range(min = 1, max = 2))]
    pub runtime: i32,
    /// The bundle's description as its author wrote it.
    #[schemars(schema_with = "free_form")]
    pub description: Map<String, Value>,
}

fn runtime() -> i32 {
    1
}

/// Where a bundle's version was found.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VersionSource {
    /// In the bundle's description.
    Description,
    /// In a label of the image.
    Label,
    /// In the tag.
    Tag,
}

/// What is known about a BundleRevision.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct BundleRevisionStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the revision; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// What a BundleRevision promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// Its actions can run without the registry.
    pub const CACHED: ConditionType = ConditionType {
        name: "Cached",
        meaning: "All parts of the image are kept locally and were verified.",
        reasons: &[
            reason::NOT_FETCHED,
            reason::DIGEST_MISMATCH,
            reason::IMAGE_REFUSED,
            reason::FETCH_FAILED,
            reason::NO_BUNDLES,
        ],
    };
}

/// Why a BundleRevision is not ready.
pub mod reason {
    pub use crate::conditions::NO_BUNDLES;
    use crate::conditions::Reason;

    /// Nobody needed it yet.
    pub const NOT_FETCHED: Reason = Reason {
        name: "NotFetched",
        meaning: "The image is fetched when an instance is first made from the revision.",
    };
    /// What came is not what was asked for.
    pub const DIGEST_MISMATCH: Reason = Reason {
        name: "DigestMismatch",
        meaning: "The registry sent other content than the digest names; nothing of it is used.",
    };
    /// It may not be used.
    pub const IMAGE_REFUSED: Reason = Reason {
        name: "ImageRefused",
        meaning: "The image is too large, of an unknown kind, or reaches outside of itself; push another.",
    };
    /// It could not be fetched.
    pub const FETCH_FAILED: Reason = Reason {
        name: "FetchFailed",
        meaning: "The image cannot be fetched at present; it is tried again, and the message says why it failed.",
    };
}

/// The conditions of a BundleRevision.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::CACHED],
    informational: &[],
};
