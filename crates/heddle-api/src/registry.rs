//! `Registry`: a place where bundles come from, and how its contents become the catalog.
//!
//! A registry that cannot be read makes its bundles stale, never fewer: nothing is withdrawn on the strength of a failure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::{structural, timestamp};

/// Where bundles come from.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "Registry",
    plural = "registries",
    shortname = "reg",
    category = "heddle",
    status = "RegistryStatus",
    derive = "PartialEq",
    doc = "A place where bundles come from.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Bundles","type":"integer","jsonPath":".status.liveBundleCount"}"#,
    printcolumn = r#"{"name":"Last_success","type":"date","jsonPath":".status.lastSuccess"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.type != 'helm' || (has(self.url) && has(self.runner))", "message": "type helm needs url and runner"},
    {"rule": "self.type == 'helm' || !has(self.runner)", "message": "runner is for type helm"}
]))]
pub struct RegistrySpec {
    /// How the registry is spoken to.
    #[serde(rename = "type")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "type is immutable"}]))]
    pub type_: RegistryType,
    /// Address of the registry, or path of the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub url: Option<String>,
    /// Organisation whose repositories are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Which tags are looked at.
    #[serde(default)]
    pub tags: Tags,
    /// Repositories to look at although the registry does not list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub images: Vec<String>,
    /// Regular expressions of which a repository must match one to be offered. Without any, nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub white_list: Vec<String>,
    /// Regular expressions of which a repository must match none to be offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub black_list: Vec<String>,
    /// Image that carries out actions on charts, such as `registry.example/helm-runner:v1`. For type `helm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub runner: Option<String>,
    /// Secret in heddle's namespace with `username` and `password`, a `token`, or a `.dockerconfigjson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub auth_secret_name: Option<String>,
    /// Whether the registry's certificate is accepted unverified.
    #[serde(
        rename = "skipVerifyTLS",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub skip_verify_tls: bool,
    /// Whether a failure to read the registry is an alert and not only a condition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_on_error: bool,
    /// How many seconds lie between two readings of the registry.
    #[serde(default = "refresh_seconds")]
    #[schemars(range(min = 1))]
    pub refresh_interval_seconds: i32,
    /// What becomes of the registry's offerings while it cannot be read.
    #[serde(default)]
    pub stale_policy: StalePolicy,
    /// When the disappearance of many bundles at once is not believed.
    #[serde(default)]
    pub mass_removal: MassRemoval,
    /// In how many successive readings a bundle must be absent to be withdrawn.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub removal_confirmations: i32,
    /// How many unused revisions of a bundle are kept.
    #[serde(default = "revision_history")]
    #[schemars(range(min = 0, max = 100))]
    pub revision_history: i32,
    /// With which image actions on existing instances run.
    #[serde(default)]
    pub action_image: ActionImage,
    /// What becomes of an action when the image it should run with cannot be had.
    #[serde(default)]
    pub when_unavailable: WhenUnavailable,
    /// How many seconds a withdrawn bundle that nothing uses is kept; without it, one refresh interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub sweep_grace_seconds: Option<i32>,
    /// What the actions of the registry's bundles may use.
    #[serde(default)]
    pub actions: ActionPolicy,
    /// How ids of offerings are made.
    #[serde(default)]
    pub id_scheme: IdScheme,
}

/// The upstream's refresh interval, kept.
fn refresh_seconds() -> i32 {
    600
}

fn one() -> i32 {
    1
}

fn revision_history() -> i32 {
    2
}

/// How a registry is spoken to.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RegistryType {
    /// The OCI distribution API, as most registries speak it.
    #[serde(rename = "apiv2")]
    ApiV2,
    /// Docker Hub.
    #[serde(rename = "dockerhub")]
    DockerHub,
    /// Quay.
    #[serde(rename = "quay")]
    Quay,
    /// Red Hat's catalog.
    #[serde(rename = "rhcc")]
    Rhcc,
    /// A repository of Helm charts, whose actions are carried out by `runner`.
    #[serde(rename = "helm")]
    Helm,
    /// A directory in the OCI image layout.
    #[serde(rename = "oci-layout")]
    OciLayout,
    /// Bundles that developers pushed to heddle itself.
    #[serde(rename = "push")]
    Push,
}

/// Which tags of a repository are looked at.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tags {
    /// The tag that is looked at in every repository.
    #[serde(default = "latest")]
    #[schemars(length(min = 1, max = 128))]
    pub default: String,
    /// Further tags of every repository, each an offering of its own: a tag, a form such as `v1.*`, or a range of versions
    /// such as `>=1.2, <2`. Of forms and ranges, the newest 20 tags of a repository are taken up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub select: Vec<String>,
    /// Further tags of single repositories, each an offering of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["image", "tag"]))]
    pub named: Vec<NamedTag>,
}

impl Default for Tags {
    fn default() -> Self {
        Self {
            default: latest(),
            select: Vec::new(),
            named: Vec::new(),
        }
    }
}

fn latest() -> String {
    "latest".to_owned()
}

/// A tag of one repository.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedTag {
    /// The repository, with or without its organisation.
    #[schemars(length(min = 1, max = 255))]
    pub image: String,
    /// The tag.
    #[schemars(length(min = 1, max = 128))]
    pub tag: String,
}

/// What becomes of a registry's offerings while it cannot be read.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.mode == 'hide' || !(has(self.hideAfterFailures) || has(self.hideAfterSeconds))",
    "message": "hideAfterFailures and hideAfterSeconds need mode hide"
}]))]
pub struct StalePolicy {
    /// Whether they stay in the catalog.
    #[serde(default)]
    pub mode: StaleMode,
    /// After how many successive failures they are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub hide_after_failures: Option<i32>,
    /// After how many seconds without success they are hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub hide_after_seconds: Option<i32>,
}

/// Whether offerings of an unreadable registry stay in the catalog.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StaleMode {
    /// They stay.
    #[default]
    Keep,
    /// They are hidden from new instances, and come back with the registry.
    Hide,
}

/// When the disappearance of many bundles at once is not believed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MassRemoval {
    /// From which share of the registry's bundles on.
    #[serde(default = "percent")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: i32,
    /// From which number of bundles on.
    #[serde(default = "min")]
    #[schemars(range(min = 1))]
    pub min: i32,
    /// After how many equal readings it is believed after all.
    #[serde(default = "confirmations")]
    #[schemars(range(min = 1))]
    pub confirmations: i32,
}

impl Default for MassRemoval {
    fn default() -> Self {
        Self {
            percent: percent(),
            min: min(),
            confirmations: confirmations(),
        }
    }
}

fn percent() -> i32 {
    50
}

fn min() -> i32 {
    5
}

fn confirmations() -> i32 {
    3
}

/// With which image actions on existing instances run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ActionImage {
    /// With the one the instance is pinned to.
    #[default]
    Pinned,
    /// With the bundle's current one.
    Latest,
}

/// What becomes of an action when the image it should run with cannot be had.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenUnavailable {
    /// It waits, and fails when its time is over.
    #[default]
    Fail,
    /// It runs with the bundle's current image.
    Latest,
}

/// What the actions of a registry's bundles may use.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionPolicy {
    /// Whether they may connect to others, through heddle's proxy and by its egress rules. Heddle itself is out of reach.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Megabytes of memory, for all processes of an action together.
    #[serde(default = "memory_megabytes")]
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_megabytes: i32,
    /// Processes and threads at once.
    #[serde(default = "processes")]
    #[schemars(range(min = 1, max = 32768))]
    pub processes: i32,
    /// Seconds that an action may take.
    #[serde(default = "action_seconds")]
    #[schemars(range(min = 1, max = 86400))]
    pub timeout_seconds: i32,
    /// Megabytes that an instance may keep on disk. An action that makes it more is killed; a removal may use twice as much.
    #[serde(default = "disk_megabytes")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub disk_megabytes: i32,
    /// Files and directories that an instance may keep on disk.
    #[serde(default = "disk_files")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub disk_files: i32,
}

impl Default for ActionPolicy {
    fn default() -> Self {
        Self {
            network: false,
            memory_megabytes: memory_megabytes(),
            processes: processes(),
            timeout_seconds: action_seconds(),
            disk_megabytes: disk_megabytes(),
            disk_files: disk_files(),
        }
    }
}

fn memory_megabytes() -> i32 {
    512
}

fn processes() -> i32 {
    256
}

fn action_seconds() -> i32 {
    600
}

fn disk_megabytes() -> i32 {
    1024
}

fn disk_files() -> i32 {
    100_000
}

/// How ids of offerings are made.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum IdScheme {
    /// From registry, repository and tag, unambiguously.
    #[default]
    #[serde(rename = "uuid")]
    Uuid,
    /// As the Automation Service Broker made them, for installations that come from it.
    #[serde(rename = "asb-md5")]
    AsbMd5,
}

/// What is known about a Registry.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct RegistryStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the registry; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// When the registry was last read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub last_success: Option<Time>,
    /// How many readings have failed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<i32>,
    /// Name of the last SyncRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_run: Option<String>,
    /// When the last reading ended, well or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub last_reading: Option<Time>,
    /// The generation of the spec that was read completely last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged_generation: Option<i64>,
    /// The request for a reading (`heddle.dev/sync`) that was answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_request: Option<String>,
    /// A disappearance of many bundles at once that is not believed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<Suspicion>,
    /// How many of its bundles are offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_bundle_count: Option<i32>,
    /// How many of its bundles are withdrawn but still in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_bundle_count: Option<i32>,
}

/// Many bundles disappeared at once, and it is not believed yet.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suspicion {
    /// Names exactly these bundles; approving another disappearance does not approve this one.
    pub id: String,
    /// How many bundles would be withdrawn.
    pub count: i32,
    /// In how many successive readings exactly these were absent.
    pub readings: i32,
    /// Names of those bundles; at most two hundred of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub bundles: Vec<String>,
}

/// Bundles that a suspicion names.
pub const SUSPECTS_MAX: usize = 200;

/// What a Registry promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The registry answers.
    pub const REACHABLE: ConditionType = ConditionType {
        name: "Reachable",
        meaning: "The last reading of the registry succeeded.",
        reasons: &[
            reason::UNREACHABLE,
            reason::AUTHENTICATION_FAILED,
            reason::LISTING_INCOMPLETE,
            reason::MISCONFIGURED,
            reason::NO_BUNDLES,
        ],
    };
    /// Everything in the registry is known.
    pub const CONVERGED: ConditionType = ConditionType {
        name: "Converged",
        meaning: "The registry was read completely at least once since it was configured as it is.",
        reasons: &[reason::NEVER_READ, reason::SUSPECTED_MASS_REMOVAL],
    };
    /// The catalog is older than it should be.
    pub const STALE: ConditionType = ConditionType {
        name: "Stale",
        meaning: "The registry's offerings are those of an earlier reading; `Reachable` says why.",
        reasons: &[reason::FRESH],
    };
}

/// Why a Registry is not ready, or stale.
pub mod reason {
    pub use crate::conditions::NO_BUNDLES;
    use crate::conditions::Reason;

    /// It does not answer.
    pub const UNREACHABLE: Reason = Reason {
        name: "Unreachable",
        meaning: "The registry does not answer as a registry; its offerings stay as they were.",
    };
    /// It does not know us.
    pub const AUTHENTICATION_FAILED: Reason = Reason {
        name: "AuthenticationFailed",
        meaning: "The registry refuses the credentials; correct `spec.authSecretName`.",
    };
    /// It answered in part.
    pub const LISTING_INCOMPLETE: Reason = Reason {
        name: "ListingIncomplete",
        meaning: "Not every page of the registry's listing could be read; nothing is withdrawn.",
    };
    /// It cannot be read as it is described.
    pub const MISCONFIGURED: Reason = Reason {
        name: "Misconfigured",
        meaning: "The settings of the registry make no sense; the message says which.",
    };
    /// It was read.
    pub const FRESH: Reason = Reason {
        name: "RegistryFresh",
        meaning: "The last reading of the registry succeeded.",
    };
    /// It was never read.
    pub const NEVER_READ: Reason = Reason {
        name: "NeverRead",
        meaning: "The first reading of the registry has not ended yet.",
    };
    /// Too much disappeared at once.
    pub const SUSPECTED_MASS_REMOVAL: Reason = Reason {
        name: "SuspectedMassRemoval",
        meaning: "So many bundles disappeared at once that nothing is withdrawn before it is confirmed.",
    };
}

/// The conditions of a Registry.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::REACHABLE, condition::CONVERGED],
    informational: &[condition::STALE],
};
